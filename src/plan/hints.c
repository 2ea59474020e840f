/* SPDX-License-Identifier: BSD-3-Clause */
/* Hints in info objects. Rank 0 tells all others what it makes of its own; whoever cannot agree says why, and
 * the lowest of these ranks is heard. */

#include "plan/hints.h"

#include <stdio.h>
#include <string.h>

/* What a rank makes of its hints. */
struct reading {
    enum sar_status status;
    struct sar_config config;
    char sentence[SAR_SENTENCE];
};

static void read_hints(const struct sar_source *hints, const struct sar_config *before, struct reading *r)
{
    memset(r, 0, sizeof *r);
    r->config = *before;
    r->status = sar_config_apply(&r->config, hints, r->sentence, sizeof r->sentence);
    if (r->status == SAR_OK)
        r->status = sar_context_check(&r->config, r->sentence, sizeof r->sentence);
}

static void compare(int rank, enum sar_origin origin, const struct reading *first, struct reading *mine)
{
    char left[SAR_KNOB_TEXT], right[SAR_KNOB_TEXT], key[SAR_KNOB_TEXT];
    const char *name, *fallback, *help;
    enum sar_origin unused;
    size_t i;
    if (sar_config_same(&first->config, &mine->config, &i))
        return;
    sar_config_describe(i, &name, &fallback, &help);
    sar_config_show(&first->config, i, left, sizeof left, &unused);
    sar_config_show(&mine->config, i, right, sizeof right, &unused);
    sar_knob_spell(name, origin, key, sizeof key);
    snprintf(mine->sentence, sizeof mine->sentence, "%s is '%s' on rank 0 and '%s' on rank %d", key, left,
             right, rank);
    mine->status = SAR_BAD_KNOB;
}

enum sar_status sar_hints_apply(const struct sar_net *net, const struct sar_source *hints,
                                struct sar_config *config, char *sentence)
{
    struct reading mine, first;
    int speaker;
    read_hints(hints, config, &mine);
    first = mine;
    SAR_TRY(sar_net_broadcast(net, 0, &first, (int)sizeof first));
    if (mine.status == SAR_OK && first.status == SAR_OK)
        compare(net->rank, hints->origin, &first, &mine);
    SAR_TRY(sar_net_lowest(net, mine.status != SAR_OK, &speaker));
    if (speaker == net->ranks) {
        *config = first.config;
        return SAR_OK;
    }
    SAR_TRY(sar_net_broadcast(net, speaker, &mine, (int)sizeof mine));
    memcpy(sentence, mine.sentence, sizeof mine.sentence);
    return mine.status;
}

enum sar_status sar_hints_in_time(const struct sar_config *before, const struct sar_config *after,
                                  char *sentence)
{
    bool calibration = strcmp(before->calibration, after->calibration) != 0;
    if (!calibration && before->nodes == after->nodes)
        return SAR_OK;
    snprintf(sentence, SAR_SENTENCE, "mpix_sparse_%s comes too late for this communicator",
             calibration ? "calibration" : "nodes");
    return SAR_BAD_KNOB;
}
