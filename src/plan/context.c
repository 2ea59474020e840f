/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/context.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "net/arrival.h"
#include "net/calibration.h"
#include "net/roll.h"
#include "net/window.h"
#include "plan/hints.h"
#include "plan/progress.h"

enum { CALLS_APART = 64 };

/* What rank 0 tells the others. */
struct settings {
    enum sar_status status;
    struct sar_config config;
    uint32_t seed;
    bool calibrated; /* `machine` is known, and need not be measured */
    struct sar_machine machine;
    char sentence[SAR_SENTENCE];
};

extern char **environ;

static void warn_unknown(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    size_t at = 0, length;
    const char *name;
    if (atomic_flag_test_and_set(&warned))
        return;
    while ((name = sar_config_unknown(environ, &at, &length)) != NULL)
        SAR_LOG(WARN, BASE, "%.*s is set but is no knob of this library", (int)length, name);
}

static uint32_t draw_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint32_t)sar_mix64((uint64_t)now.tv_nsec ^ ((uint64_t)now.tv_sec << 30) ^
                               ((uint64_t)getpid() << 40));
}

static bool is_word(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

static bool wire_exists(const char *name)
{
    return is_word(name, "auto") || is_word(name, "smallest") || sar_wire_find(name) != NULL;
}

/* A knob that names what does not exist, or NULL. */
static const char *find_unknown(const struct sar_config *config, const char **name)
{
    *name = config->scheme;
    if (!is_word(*name, "auto") && sar_scheme_find(*name) == NULL)
        return "SCHEME";
    *name = config->partition;
    if (!is_word(*name, "auto") && sar_partition_find(*name) < 0)
        return "PARTITION";
    *name = wire_exists(config->push_wire) ? config->pull_wire : config->push_wire;
    return wire_exists(*name) ? NULL : "WIRE";
}

enum sar_status sar_context_check(const struct sar_config *config, char *sentence, size_t room)
{
    char spelled[SAR_KNOB_TEXT];
    const char *name, *knob = find_unknown(config, &name);
    if (knob == NULL)
        return SAR_OK;
    sar_knob_spell(knob, sar_config_origin(config, knob), spelled, sizeof spelled);
    snprintf(sentence, room, "%s names '%s', which does not exist", spelled, name);
    return SAR_BAD_KNOB;
}

static void read_settings(struct settings *s)
{
    warn_unknown();
    s->status = sar_config_load(&s->config, sar_environment, NULL, s->sentence, sizeof s->sentence);
    if (s->status == SAR_OK)
        s->status = sar_context_check(&s->config, s->sentence, sizeof s->sentence);
    s->seed = draw_seed();
}

static bool wants_calibration(const struct settings *s)
{
    return s->status == SAR_OK && !is_word(s->config.calibration, "none");
}

/* Common enough, where a program uses communicators of several sizes, to be told only on request. */
static void tell_misfit(const struct settings *s)
{
    static const char format[] = "constants are measured, not taken from %s: %s";
    if (s->config.explain)
        SAR_LOG(WARN, PLAN, format, s->config.calibration, s->sentence);
    else
        SAR_LOG(INFO, PLAN, format, s->config.calibration, s->sentence);
}

/* On rank 0: the constants of the calibration file, where they hold for this communicator. */
static void read_calibration(struct settings *s, const struct sar_fingerprint *here)
{
    s->status =
        sar_calibration_apply(&s->config, here, &s->machine, &s->calibrated, s->sentence, sizeof s->sentence);
    if (s->status == SAR_OK && !s->calibrated)
        tell_misfit(s);
}

static enum sar_status calibrate(const struct sar_net *net, struct settings *s)
{
    struct sar_fingerprint here;
    SAR_TRY(sar_fingerprint_make(net, &here));
    if (net->rank == 0)
        read_calibration(s, &here);
    return sar_net_broadcast(net, 0, s, (int)sizeof *s);
}

static enum sar_status find_constants(struct sar_context *context, const struct settings *s)
{
    const struct sar_config *config = &s->config;
    struct sar_machine *machine = &context->machine;
    context->constants = s->machine;
    if (!s->calibrated)
        SAR_TRY(sar_machine_measure(&context->net, &context->constants));
    *machine = context->constants;
    machine->alpha = config->alpha > 0 ? config->alpha : machine->alpha;
    machine->beta = config->beta > 0 ? config->beta : machine->beta;
    machine->gamma = config->gamma > 0 ? config->gamma : machine->gamma;
    machine->overhead = config->overhead > 0 ? config->overhead : machine->overhead;
    if (context->net.nodes.n == 1) {
        machine->near_alpha = machine->alpha;
        machine->near_beta = machine->beta;
        machine->near_overhead = machine->overhead;
    }
    return SAR_OK;
}

/* Whoever asks for word of the ranks that are late wants it of all calls: it takes an agreement. */
static uint64_t most_forwarded(const struct sar_config *config)
{
    bool watch = config->stall > 0 && sar_config_origin(config, "STALL") != SAR_FROM_DEFAULT;
    return watch && sar_config_origin(config, "FORWARD") == SAR_FROM_DEFAULT ? 0 : config->forward;
}

struct sar_policy sar_policy_make(const struct sar_config *config, uint32_t seed)
{
    return (struct sar_policy){ .config = *config,
                                .seed = config->seed != 0 ? (uint32_t)sar_mix64(config->seed) : seed,
                                .forced = sar_scheme_find(config->scheme),
                                .push_wire = sar_wire_find(config->push_wire),
                                .pull_wire = sar_wire_find(config->pull_wire),
                                .partition = sar_partition_find(config->partition),
                                .forward = most_forwarded(config) };
}

static void tell_opened(const struct sar_context *context, bool calibrated)
{
    const struct sar_machine *m = &context->machine;
    SAR_LOG(INFO, PLAN,
            "communicator of %d ranks on %d nodes: alpha %.3g s, overhead %.3g s, beta %.3g s/B, "
            "gamma %.3g s/element, %s",
            context->net.ranks, context->net.nodes.n, m->alpha, m->overhead, m->beta, m->gamma,
            calibrated ? context->policy.config.calibration : "measured");
}

static enum sar_status adopt(struct sar_context *context, const struct settings *s)
{
    SAR_TRY(find_constants(context, s));
    context->policy = sar_policy_make(&s->config, s->seed);
    context->net.chunk = s->config.chunk;
    context->net.throttle = s->config.throttle == SAR_WHOLE_AUTO ? SAR_FEW_LONG : (int)s->config.throttle;
    context->net.long_message = s->config.long_message;
    context->net.stall = s->config.stall;
    return SAR_OK;
}

static enum sar_status open_window(struct sar_net *net, uint64_t nodes)
{
    if (nodes != 0)
        sar_nodes_pretend(&net->nodes, net->ranks, (int)nodes);
    return net->nodes.n < net->ranks || net->ranks == 1 ? sar_window_open(net, &net->window) : SAR_OK;
}

static enum sar_status fill(struct sar_context *context, const struct sar_source *hints, char *sentence)
{
    struct settings settings;
    const struct sar_net *net = &context->net;
    memset(&settings, 0, sizeof settings);
    if (net->rank == 0)
        read_settings(&settings);
    SAR_TRY(sar_net_broadcast(net, 0, &settings, (int)sizeof settings));
    if (settings.status == SAR_OK && hints != NULL)
        SAR_TRY(sar_hints_apply(net, hints, &settings.config, sentence));
    if (wants_calibration(&settings))
        SAR_TRY(calibrate(net, &settings));
    memcpy(sentence, settings.sentence, sizeof settings.sentence);
    SAR_TRY(settings.status);
    SAR_TRY(sar_roll_introduce(&context->net));
    SAR_TRY(open_window(&context->net, settings.config.nodes));
    SAR_TRY(adopt(context, &settings));
    tell_opened(context, settings.calibrated);
    return SAR_OK;
}

/* The worst of all ranks' statuses. Ranks may come here only when their calls on other communicators are
 * done. */
static enum sar_status meet(const struct sar_net *net, enum sar_status mine)
{
    struct sar_collective collective;
    int worst = (int)mine, looks = 0;
    bool done = false;
    SAR_TRY(sar_net_worst_start(net, &worst, &collective));
    while (!done)
        SAR_TRY(sar_net_test(net, &collective, sar_progress_meanwhile(net, &looks), &done));
    return (enum sar_status)worst;
}

enum sar_status sar_context_configure(struct sar_context *context, enum sar_status mine,
                                      const struct sar_source *hints, char *sentence)
{
    struct settings settings = { .config = context->policy.config,
                                 .seed = context->policy.seed,
                                 .calibrated = true,
                                 .machine = context->constants };
    SAR_TRY(meet(&context->net, mine));
    SAR_TRY(sar_hints_apply(&context->net, hints, &settings.config, sentence));
    SAR_TRY(sar_hints_in_time(&context->policy.config, &settings.config, sentence));
    SAR_TRY(adopt(context, &settings));
    context->records_made = 0;
    context->homework.record = NULL;
    return SAR_OK;
}

static size_t bounds_each(const struct sar_net *net)
{
    return (size_t)net->ranks + 1;
}

void sar_context_discard(struct sar_context *context)
{
    if (context == NULL)
        return;
    sar_roll_free(context->net.roll);
    free(context->bounds);
    free(context);
}

static struct sar_context *make(const struct sar_net *net)
{
    struct sar_context *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->net = *net;
    made->bounds = malloc(SAR_RECORDS * bounds_each(net) * sizeof *made->bounds);
    made->net.roll = sar_roll_make(net->ranks);
    if (made->bounds != NULL && made->net.roll != NULL)
        return made;
    sar_context_discard(made);
    return NULL;
}

/* Rank 0's is not known before it has called. */
static double own_stall(void)
{
    struct sar_config own;
    char sentence[SAR_SENTENCE];
    return sar_config_load(&own, sar_environment, NULL, sentence, sizeof sentence) == SAR_OK ? own.stall : 0;
}

static void let_move(void)
{
    sar_progress();
}

/* Nothing that can fail on one rank alone stands between two collective steps without a vote. */
enum sar_status sar_context_open(MPI_Comm user, const struct sar_source *hints, struct sar_context **context,
                                 char *sentence)
{
    struct sar_net net;
    sar_context_sweep(false);
    sar_arrival_wait(user, own_stall(), let_move);
    SAR_TRY(sar_net_open(user, &net));
    struct sar_context *made = make(&net);
    enum sar_status status = sar_net_worst(&net, made == NULL ? SAR_NO_MEMORY : SAR_OK);
    if (status == SAR_OK)
        status = sar_net_worst(&net, fill(made, hints, sentence));
    if (status == SAR_OK) {
        *context = made;
        return SAR_OK;
    }
    if (made != NULL)
        net = made->net;
    sar_context_discard(made);
    sar_net_close(&net);
    return status;
}

/* Once: other communicators will fare alike. */
static void tell_parted(const struct sar_net *net)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    enum sar_status lack = net->window != NULL ? net->window->lack : SAR_OK;
    char sentence[SAR_SENTENCE];
    if (net->rank != 0 || atomic_flag_test_and_set(&told))
        return;
    snprintf(sentence, sizeof sentence, sar_status_text(lack != SAR_OK ? lack : SAR_UNSHARED), "", "");
    SAR_LOG(WARN, PLAN, "%d calls send messages in place of sharing memory: %s", CALLS_APART, sentence);
}

void sar_context_part(struct sar_context *context)
{
    context->apart = CALLS_APART;
    tell_parted(&context->net);
    if (context->net.window != NULL)
        sar_window_drop(context->net.window);
}

MPIX_Sparse_report_t sar_context_report(const struct sar_context *context)
{
    MPIX_Sparse_report_t report = context->report;
    sar_selection_reason(&context->told, report.reason, sizeof report.reason);
    return report;
}

void sar_context_reset(struct sar_context *context)
{
    sar_arena_reset(&context->arena);
    for (int i = 0; i < SAR_SCRATCHES; i++)
        sar_arena_reset(&context->scratch[i]);
    for (int i = 0; i < 2; i++)
        sar_buffer_reset(&context->outcome[i]);
}

struct sar_record *sar_context_find(struct sar_context *context, const int64_t field[SAR_FIELDS])
{
    uint32_t n = context->records_made < SAR_RECORDS ? context->records_made : SAR_RECORDS;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (context->found + i) % n;
        if (memcmp(context->records[at].field, field, sizeof context->records[at].field) == 0) {
            context->found = at;
            return &context->records[at];
        }
    }
    return NULL;
}

struct sar_record *sar_context_record(struct sar_context *context, const int64_t field[SAR_FIELDS])
{
    struct sar_record *record = sar_context_find(context, field);
    if (record != NULL)
        return record;
    record = &context->records[context->records_made++ % SAR_RECORDS];
    if (context->homework.record == record)
        context->homework.record = NULL;
    memset(record, 0, sizeof *record);
    record->keep.bounds = context->bounds + (size_t)(record - context->records) * bounds_each(&context->net);
    memcpy(record->field, field, sizeof record->field);
    return record;
}
