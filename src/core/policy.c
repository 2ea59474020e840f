/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings and hints. Runs when a communicator is opened or configured, and when a plan is opened; costs
 * three broadcasts or reductions at most.
 *
 * Rank 0 broadcasts its settings with the hints applied. Each rank compares them with its own. If any rank
 * disagrees, the lowest of these ranks broadcasts its error. */

#include "core/policy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "comm/thread_ratio.h"

/* A simulation defines it, whose threads have processors of their own: bench/sim/smpi.h. */
#ifndef SAR_THREADS_SHARE_PROCESSORS
#define SAR_THREADS_SHARE_PROCESSORS true
#endif

/* A rank's settings after its hints. */
struct hint_result {
    enum sar_status status;
    struct sar_config config;
    char error_text[SAR_ERROR_TEXT_SIZE];
};

static bool is_equal(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

static bool wire_exists(const char *name)
{
    return is_equal(name, "auto") || is_equal(name, "smallest") || sar_wire_find(name) != NULL;
}

/* Returns the name of this setting that a name misspells, or NULL. */
static const char *find_nearest(const char *setting, const char *name)
{
    struct sar_nearest nearest = sar_nearest_begin(name, strlen(name));
    bool scheme = is_equal(setting, "SCHEME"), partition = is_equal(setting, "PARTITION");
    for (int i = 0; scheme && sar_schemes[i] != NULL; i++)
        sar_nearest_try(&nearest, sar_schemes[i]->name);
    for (int i = 0; partition && sar_partition_names[i] != NULL; i++)
        sar_nearest_try(&nearest, sar_partition_names[i]);
    for (int i = 0; !scheme && !partition && sar_wires[i] != NULL; i++)
        sar_nearest_try(&nearest, sar_wires[i]->name);
    return nearest.found;
}

/* Returns the setting that names an unknown thing, or NULL. */
static const char *find_unknown(const struct sar_config *config, const char **name)
{
    *name = config->scheme;
    if (!is_equal(*name, "auto") && sar_scheme_find(*name) == NULL)
        return "SCHEME";
    *name = config->partition;
    if (!is_equal(*name, "auto") && sar_partition_find(*name) < 0)
        return "PARTITION";
    *name = wire_exists(config->push_wire) ? config->pull_wire : config->push_wire;
    return wire_exists(*name) ? NULL : "WIRE";
}

enum sar_status sar_policy_check(const struct sar_config *config, char *error_text, size_t size)
{
    char spelled[SAR_SETTING_TEXT];
    const char *name, *setting = find_unknown(config, &name);
    if (setting == NULL)
        return SAR_OK;
    sar_config_spell(setting, sar_config_source_of(config, setting), spelled, sizeof spelled);
    const char *nearest = find_nearest(setting, name);
    bool list = is_equal(setting, "WIRE") && strchr(name, ',') != NULL;
    snprintf(error_text, size,
             "%s names '%s', which does not exist; mpix_sparse_info -s lists all names%s%s%s%s", spelled,
             name, list ? "; a pair is push/pull, such as coo/bitmap" : "",
             nearest == NULL ? "" : "; did you mean '", nearest == NULL ? "" : nearest,
             nearest == NULL ? "" : "'?");
    return SAR_BAD_SETTING;
}

/* A user who sets STALL wants late ranks reported in every call. That needs an agreement in every call, so
 * there are no fallbacks unless the user sets FORWARD, too. */
static uint64_t fallback_max_of(const struct sar_config *config)
{
    bool watch = config->stall > 0 && sar_config_source_of(config, "STALL") != SAR_SOURCE_DEFAULT;
    return watch && sar_config_source_of(config, "FORWARD") == SAR_SOURCE_DEFAULT ? 0 : config->forward;
}

struct sar_policy sar_policy_make(const struct sar_config *config, uint32_t seed)
{
    return (struct sar_policy){ .config = *config,
                                .forced = sar_scheme_find(config->scheme),
                                .partition.kind = sar_partition_find(config->partition),
                                .partition.grain = config->grain,
                                .partition.columns = config->columns,
                                .partition.max_imbalance = config->imbalance,
                                .partition.seed =
                                    config->seed != 0 ? (uint32_t)sar_mix64(config->seed) : seed,
                                .wire.push = sar_wire_find(config->push_wire),
                                .wire.pull = sar_wire_find(config->pull_wire),
                                .wire.push_smallest = is_equal(config->push_wire, "smallest"),
                                .wire.pull_smallest = is_equal(config->pull_wire, "smallest"),
                                .wire.segment_bytes = config->segment,
                                .wire.long_message = config->long_message,
                                .wire.throttle = config->throttle,
                                .wire.relay = (enum sar_relay_mode)config->relay,
                                .fallback_max = fallback_max_of(config) };
}

static void read_hints(const struct sar_config_layer *hints, const struct sar_config *before,
                       struct hint_result *result)
{
    memset(result, 0, sizeof *result);
    result->config = *before;
    result->status = sar_config_apply(&result->config, hints, result->error_text, sizeof result->error_text);
    if (result->status == SAR_OK)
        result->status = sar_policy_check(&result->config, result->error_text, sizeof result->error_text);
}

static void compare_to_rank0(int rank, enum sar_config_source source, const struct hint_result *first,
                             struct hint_result *mine)
{
    char first_text[SAR_SETTING_TEXT], mine_text[SAR_SETTING_TEXT], key[SAR_SETTING_TEXT];
    const char *name, *fallback, *help;
    enum sar_config_source ignored;
    size_t i;
    if (sar_config_equal(&first->config, &mine->config, &i))
        return;
    sar_config_setting(i, &name, &fallback, &help);
    sar_config_format(&first->config, i, first_text, sizeof first_text, &ignored);
    sar_config_format(&mine->config, i, mine_text, sizeof mine_text, &ignored);
    sar_config_spell(name, source, key, sizeof key);
    snprintf(mine->error_text, sizeof mine->error_text, "%s is '%s' on rank 0 and '%s' on rank %d", key,
             first_text, mine_text, rank);
    mine->status = SAR_BAD_SETTING;
}

static void append_rank(char *error_text, int rank)
{
    size_t used = strlen(error_text);
    snprintf(error_text + used, SAR_ERROR_TEXT_SIZE - used, " (on rank %d)", rank);
}

enum sar_status sar_policy_apply_hints(const struct sar_comm *comm, const struct sar_config_layer *hints,
                                       struct sar_config *config, char *error_text)
{
    struct hint_result mine, first;
    int reporter;
    read_hints(hints, config, &mine);
    first = mine;
    SAR_TRY(sar_comm_bcast(comm, 0, &first, (int)sizeof first));
    bool compared = mine.status == SAR_OK && first.status == SAR_OK;
    if (compared)
        compare_to_rank0(comm->rank, hints->source, &first, &mine);
    SAR_TRY(sar_comm_min_rank(comm, mine.status != SAR_OK, &reporter));
    if (reporter == comm->ranks) {
        *config = first.config;
        return SAR_OK;
    }
    if (reporter == comm->rank && !compared)
        append_rank(mine.error_text, reporter);
    SAR_TRY(sar_comm_bcast(comm, reporter, &mine, (int)sizeof mine));
    memcpy(error_text, mine.error_text, sizeof mine.error_text);
    return mine.status;
}

enum sar_status sar_policy_check_late(const struct sar_config *before, const struct sar_config *after,
                                      char *error_text)
{
    bool calibration = strcmp(before->calibration, after->calibration) != 0;
    if (!calibration && before->nodes == after->nodes)
        return SAR_OK;
    snprintf(error_text, SAR_ERROR_TEXT_SIZE,
             "mpix_sparse_%s cannot be a hint here; set " SAR_ENV_PREFIX "%s in the environment",
             calibration ? "calibration" : "nodes", calibration ? "CALIBRATION" : "NODES");
    return SAR_BAD_SETTING;
}

enum sar_status sar_policy_measure_threads(const struct sar_comm *comm, struct sar_policy *policy)
{
    uint64_t threads = policy->config.threads;
    return sar_thread_ratio_measure(comm, threads == SAR_U64_AUTO ? comm->threads : (int)threads,
                                    &policy->thread_ratio);
}

/* The number `auto` never exceeds a rank's share of the processors. */
void sar_policy_warn_threads(const struct sar_comm *comm, const struct sar_config *config)
{
    static atomic_int warned;
    const struct sar_nodes *nodes = &comm->nodes;
    bool automatic = config->threads == SAR_U64_AUTO;
    int threads = automatic ? 1 : sar_parallel_limit((int)config->threads);
    int fit = nodes->comm_cpus > nodes->real_ranks ? nodes->comm_cpus / nodes->real_ranks : 1;
    char setting[SAR_SETTING_TEXT];
    if (!SAR_THREADS_SHARE_PROCESSORS || nodes->real_rank != 0 || threads <= fit ||
        atomic_exchange(&warned, threads) == threads)
        return;
    sar_config_spell("THREADS", sar_config_source_of(config, "THREADS"), setting, sizeof setting);
    SAR_LOG(WARN, CORE,
            "%s gives each rank %d threads, but this node has %d processor%s for %d rank%s: threads wait for "
            "each other, and calls take several times longer; unset it, or set it to %s%d",
            setting, threads, nodes->comm_cpus, nodes->comm_cpus == 1 ? "" : "s", nodes->real_ranks,
            nodes->real_ranks == 1 ? "" : "s", fit > 1 ? "at most " : "", fit);
}
