/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing of communicator states. Opening runs in the first call on a communicator; it costs
 * some collectives and, unless a calibration file has the constants, the measurement of the machine.
 *
 * Before the library frees its own communicator it must receive the watchdog messages that ranks sent each
 * other. A rank knows their number only when all ranks have closed the state. But MPI libraries do not wait
 * in MPI_Comm_free, and programs rely on that: a rank may free a communicator and then send a message that
 * another rank receives before it frees its own. So if the other ranks do not close at once, the state is
 * deferred, without its memory. It is freed when another state is opened or closed, or in MPI_Finalize. */

#include "core/lifecycle.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/config.h"
#include "base/trace.h"
#include "comm/shm/shm.h"
#include "comm/calibration.h"
#include "comm/collective.h"
#include "comm/watchdog.h"
#include "core/policy.h"
#include "core/progress.h"

enum {
    PROBES = 1000 /* tests for the other ranks before a state is deferred: a fraction of a millisecond */
};

/* Broadcast by rank 0. */
struct settings {
    enum sar_status status;
    struct sar_config config;
    uint32_t seed;
    bool calibrated; /* `machine` comes from a calibration file, and need not be measured */
    struct sar_machine machine;
    char error_text[SAR_ERROR_TEXT_SIZE];
};

static struct sar_comm_state *_Atomic deferred;

static uint32_t random_seed(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint32_t)sar_mix64((uint64_t)now.tv_nsec ^ ((uint64_t)now.tv_sec << 30) ^
                               ((uint64_t)getpid() << 40));
}

static void read_settings(struct settings *s)
{
    sar_config_warn_unknown();
    s->status = sar_config_load(&s->config, sar_env_setting, NULL, s->error_text, sizeof s->error_text);
    if (s->status == SAR_OK)
        s->status = sar_policy_check(&s->config, s->error_text, sizeof s->error_text);
    s->seed = random_seed();
}

/* INFO only: programs that use communicators of several sizes have this often. WARN if the user asked to
 * explain. */
static void log_calibration_unused(const struct settings *s)
{
    static const char format[] = "constants are measured, not taken from %s: %s";
    if (s->config.explain)
        SAR_LOG(WARN, CORE, format, s->config.calibration, s->error_text);
    else
        SAR_LOG(INFO, CORE, format, s->config.calibration, s->error_text);
}

/* On rank 0: take the constants of the calibration file, if their machine and number of ranks match. */
static void read_calibration(struct settings *s, const struct sar_fingerprint *fingerprint)
{
    s->status = sar_calibration_apply(&s->config, fingerprint, &s->machine, &s->calibrated, s->error_text,
                                      sizeof s->error_text);
    if (s->status == SAR_OK && !s->calibrated)
        log_calibration_unused(s);
}

static enum sar_status calibrate(const struct sar_comm *comm, struct settings *s)
{
    struct sar_fingerprint fingerprint;
    SAR_TRY(sar_fingerprint_make(comm, &fingerprint));
    if (comm->rank == 0)
        read_calibration(s, &fingerprint);
    return sar_comm_bcast(comm, 0, s, (int)sizeof *s);
}

static enum sar_status find_constants(struct sar_comm_state *comm_state, const struct settings *s)
{
    const struct sar_config *config = &s->config;
    struct sar_machine *machine = &comm_state->settings.machine;
    comm_state->settings.measured = s->machine;
    if (!s->calibrated)
        SAR_TRY(sar_machine_measure(&comm_state->comm, &comm_state->settings.measured));
    *machine = comm_state->settings.measured;
    machine->alpha = config->alpha > 0 ? config->alpha : machine->alpha;
    machine->beta = config->beta > 0 ? config->beta : machine->beta;
    machine->gamma = config->gamma > 0 ? config->gamma : machine->gamma;
    machine->overhead = config->overhead > 0 ? config->overhead : machine->overhead;
    if (comm_state->comm.nodes.n == 1) {
        machine->intra_alpha = machine->alpha;
        machine->intra_beta = machine->beta;
        machine->intra_overhead = machine->overhead;
    }
    return SAR_OK;
}

/* Once in a program: the first rank tells of its own node. */
static void warn_oversubscribed(const struct sar_comm *comm)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    int rank = comm->rank;
    if (sar_mpi_world_is_up())
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && comm->oversubscribed && !atomic_flag_test_and_set(&warned))
        SAR_LOG(WARN, CORE,
                "this node has more ranks than processors, so that ranks wait for each other and calls take "
                "several times longer; start fewer ranks, or give them more processors");
}

static void log_opened(const struct sar_comm_state *comm_state, bool calibrated)
{
    const struct sar_machine *m = &comm_state->settings.machine;
    char label[SAR_COMM_LABEL_CHARS];
    struct sar_parallel former = sar_comm_state_begin_work(comm_state);
    int threads = sar_parallel_granted();
    sar_parallel_end(former);
    sar_comm_print_label(&comm_state->comm, label);
    SAR_LOG(INFO, CORE,
            "communicator of %d rank%s on %d node%s: %s, %d thread%s, alpha %.3g s, overhead %.3g s, "
            "beta %.3g s/B, gamma %.3g s/element, %s%s",
            comm_state->comm.ranks, comm_state->comm.ranks == 1 ? "" : "s", comm_state->comm.nodes.n,
            comm_state->comm.nodes.n == 1 ? "" : "s", label, threads, threads == 1 ? "" : "s", m->alpha,
            m->overhead, m->beta, m->gamma,
            calibrated ? comm_state->settings.policy.config.calibration : "measured",
            comm_state->comm.oversubscribed ? "; this node has more ranks than processors" : "");
}

static void set_throttle(struct sar_comm *comm, uint64_t throttle, const struct sar_machine *machine)
{
    bool automatic = throttle == SAR_U64_AUTO;
    comm->throttle = automatic ? SAR_EXCHANGE_THROTTLE : (int)throttle;
    comm->window_bytes = automatic ? sar_exchange_window_bytes(machine->alpha, machine->beta) : 0;
}

static enum sar_status apply_settings(struct sar_comm_state *comm_state, const struct settings *s)
{
    SAR_TRY(find_constants(comm_state, s));
    comm_state->settings.policy = sar_policy_make(&s->config, s->seed);
    SAR_TRY(sar_policy_measure_threads(&comm_state->comm, &comm_state->settings.policy));
    comm_state->comm.chunk = s->config.chunk;
    set_throttle(&comm_state->comm, s->config.throttle, &comm_state->settings.machine);
    comm_state->comm.long_message = s->config.long_message;
    comm_state->comm.stall_limit = s->config.stall;
    sar_policy_warn_threads(&comm_state->comm, &s->config);
    return SAR_OK;
}

static enum sar_status open_shm(struct sar_comm *comm, uint64_t nodes)
{
    if (nodes != 0)
        sar_nodes_override(&comm->nodes, comm->ranks, (int)nodes);
    return comm->nodes.n < comm->ranks || comm->ranks == 1 ? sar_shm_open(comm) : SAR_OK;
}

static enum sar_status init(struct sar_comm_state *comm_state, const struct sar_config_layer *hints,
                            char *error_text)
{
    struct settings settings;
    const struct sar_comm *comm = &comm_state->comm;
    memset(&settings, 0, sizeof settings);
    if (comm->rank == 0)
        read_settings(&settings);
    SAR_TRY(sar_comm_bcast(comm, 0, &settings, (int)sizeof settings));
    if (settings.status == SAR_OK && hints != NULL)
        SAR_TRY(sar_policy_apply_hints(comm, hints, &settings.config, error_text));
    if (settings.status == SAR_OK && strcmp(settings.config.calibration, "none") != 0)
        SAR_TRY(calibrate(comm, &settings));
    memcpy(error_text, settings.error_text, sizeof settings.error_text);
    SAR_TRY(settings.status);
    SAR_TRY(sar_watchdog_share_places(&comm_state->comm));
    SAR_TRY(open_shm(&comm_state->comm, settings.config.nodes));
    SAR_TRY(apply_settings(comm_state, &settings));
    SAR_TRY(sar_agree_open(&comm_state->comm, &comm_state->settings.machine));
    log_opened(comm_state, settings.calibrated);
    warn_oversubscribed(comm);
    return SAR_OK;
}

/* Returns the largest status of all ranks. Calls on other communicators progress meanwhile: other ranks may
 * come here only when those are done. */
static enum sar_status reduce_status(const struct sar_comm *comm, enum sar_status mine)
{
    struct sar_collective collective;
    int max_status = (int)mine, spins = 0;
    bool done = false;
    SAR_TRY(sar_collective_max_status_start(comm, &max_status, &collective));
    while (!done)
        SAR_TRY(sar_collective_test(comm, &collective, sar_progress_poll(comm, &spins), &done));
    return (enum sar_status)max_status;
}

enum sar_status sar_comm_state_configure(struct sar_comm_state *comm_state, enum sar_status mine,
                                         const struct sar_config_layer *hints, char *error_text)
{
    struct settings settings = { .config = comm_state->settings.policy.config,
                                 .seed = comm_state->settings.policy.partition.seed,
                                 .calibrated = true,
                                 .machine = comm_state->settings.measured };
    SAR_TRY(reduce_status(&comm_state->comm, mine));
    SAR_TRY(sar_policy_apply_hints(&comm_state->comm, hints, &settings.config, error_text));
    SAR_TRY(sar_policy_check_late(&comm_state->settings.policy.config, &settings.config, error_text));
    SAR_TRY(apply_settings(comm_state, &settings));
    comm_state->tensors.made = 0;
    comm_state->feedback.tensor = NULL;
    return SAR_OK;
}

/* Returns this rank's own stall limit, since that of rank 0 is not known before rank 0 calls. */
static double own_stall_limit(void)
{
    struct sar_config config;
    char error_text[SAR_ERROR_TEXT_SIZE];
    return sar_config_load(&config, sar_env_setting, NULL, error_text, sizeof error_text) == SAR_OK
               ? config.stall
               : 0;
}

static void advance_others(void)
{
    sar_progress();
}

/* Every step that can fail on one rank alone is followed by a vote. */
enum sar_status sar_comm_state_open(MPI_Comm user, const struct sar_config_layer *hints,
                                    struct sar_comm_state **comm_state, char *error_text)
{
    struct sar_comm comm;
    sar_comm_state_reap(false);
    sar_collective_open_barrier(user, own_stall_limit(), advance_others);
    SAR_TRY(sar_comm_open(user, &comm));
    struct sar_comm_state *made = sar_comm_state_alloc(&comm);
    enum sar_status status = sar_comm_max_status(&comm, made == NULL ? SAR_NO_MEMORY : SAR_OK);
    if (status == SAR_OK)
        status = sar_comm_max_status(&comm, init(made, hints, error_text));
    if (status == SAR_OK) {
        *comm_state = made;
        return SAR_OK;
    }
    if (made != NULL)
        comm = made->comm;
    sar_comm_state_free(made);
    sar_agree_close(&comm);
    sar_shm_close(&comm);
    sar_comm_close(&comm);
    return status;
}

void sar_comm_state_begin_close(struct sar_comm_state *comm_state)
{
    sar_watchdog_count_start(&comm_state->comm);
}

static void defer(struct sar_comm_state *comm_state)
{
    comm_state->next_deferred = atomic_load(&deferred);
    while (!atomic_compare_exchange_weak(&deferred, &comm_state->next_deferred, comm_state))
        continue;
}

/* True if all ranks close the state within some probes. */
static bool all_close(const struct sar_comm *comm)
{
    int spins = 0;
    for (int i = 1; !sar_watchdog_count_test(comm); i++) {
        if (i == PROBES)
            return false;
        if (sar_progress_poll(comm, &spins))
            sar_comm_backoff(comm, &spins);
    }
    return true;
}

static void free_closed(struct sar_comm_state *comm_state)
{
    sar_watchdog_drain(&comm_state->comm);
    sar_agree_close(&comm_state->comm);
    sar_comm_close(&comm_state->comm);
    sar_comm_state_free(comm_state);
}

/* Frees the deferred states that all ranks have closed. Returns true if others are left. Each state is
 * tested by one thread only, also if several threads call this at once. */
static bool reap_closed(void)
{
    struct sar_comm_state *comm_state = atomic_exchange(&deferred, NULL), *next;
    bool left = false;
    for (; comm_state != NULL; comm_state = next) {
        next = comm_state->next_deferred;
        if (sar_watchdog_count_test(&comm_state->comm)) {
            free_closed(comm_state);
        } else {
            defer(comm_state);
            left = true;
        }
    }
    return left;
}

/* Other ranks may have deferred the states in another order, and each test also passes their messages on. So
 * a wait tests all states in turn. */
void sar_comm_state_reap(bool wait)
{
    while (reap_closed() && wait) {
        (void)sar_progress();
        sched_yield();
    }
}

void sar_comm_state_close(struct sar_comm_state *comm_state)
{
    sar_trace_flush();
    sar_comm_state_begin_close(comm_state);
    for (struct sar_plan *plan = comm_state->plans.first; plan != NULL; plan = plan->next)
        plan->comm_state = NULL;
    sar_arena_free(&comm_state->memory.arena);
    for (int i = 0; i < SAR_STEP_ARENAS; i++)
        sar_arena_free(&comm_state->memory.scratch[i]);
    for (int i = 0; i < 2; i++)
        sar_buffer_free(&comm_state->memory.output[i]);
    sar_shm_close(&comm_state->comm);
    sar_comm_state_reap(false);
    if (all_close(&comm_state->comm))
        free_closed(comm_state);
    else
        defer(comm_state);
}
