/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and lookup of a communicator's state. All functions are local and do not wait. */

#include "core/comm_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/watchdog.h"
#include "comm/shm/group.h"

enum { NO_SHM_CALLS = 64 };

atomic_int sar_comm_states_active;

void sar_comm_state_free(struct sar_comm_state *comm_state)
{
    if (comm_state == NULL)
        return;
    sar_watchdog_free(comm_state->comm.watchdog);
    free(comm_state->tensors.bounds);
    free(comm_state);
}

struct sar_comm_state *sar_comm_state_alloc(const struct sar_comm *comm)
{
    struct sar_comm_state *comm_state = calloc(1, sizeof *comm_state);
    if (comm_state == NULL)
        return NULL;
    comm_state->comm = *comm;
    comm_state->tensors.bounds =
        malloc(SAR_TENSOR_STATES_MAX * ((size_t)comm->ranks + 1) * sizeof *comm_state->tensors.bounds);
    comm_state->comm.watchdog = sar_watchdog_create(comm->ranks);
    if (comm_state->tensors.bounds != NULL && comm_state->comm.watchdog != NULL)
        return comm_state;
    sar_comm_state_free(comm_state);
    return NULL;
}

/* Log once per process: other communicators will fail to allocate shared memory, too. */
static void log_no_shm(const struct sar_comm *comm)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    enum sar_status error = sar_shm_group_error(comm->shm_group);
    char error_text[SAR_ERROR_TEXT_SIZE] = "a rank cannot allocate it";
    if (comm->rank != 0 || atomic_flag_test_and_set(&logged))
        return;
    if (error != SAR_OK)
        snprintf(error_text, sizeof error_text, sar_status_text(error), "", "");
    SAR_LOG(WARN, CORE, "%d calls send messages in place of sharing memory: %s", NO_SHM_CALLS, error_text);
}

void sar_comm_state_suspend_shm(struct sar_comm_state *comm_state)
{
    comm_state->no_shm_calls = NO_SHM_CALLS;
    log_no_shm(&comm_state->comm);
    if (comm_state->comm.shm_group != NULL)
        sar_shm_group_discard_announced(comm_state->comm.shm_group);
}

MPIX_Sparse_report_t sar_comm_state_report(const struct sar_comm_state *comm_state)
{
    MPIX_Sparse_report_t report = comm_state->last.report;
    if (report.reason[0] == '\0')
        sar_selection_reason(&comm_state->last.selection, report.reason, sizeof report.reason);
    return report;
}

void sar_comm_state_reset_memory(struct sar_comm_state *comm_state)
{
    sar_arena_reset(&comm_state->memory.arena);
    for (int i = 0; i < SAR_STEP_ARENAS; i++)
        sar_arena_reset(&comm_state->memory.scratch[i]);
    for (int i = 0; i < 2; i++)
        sar_buffer_reset(&comm_state->memory.output[i]);
}

struct sar_parallel sar_comm_state_parallel(const struct sar_comm_state *comm_state,
                                            const struct sar_policy *policy)
{
    uint64_t threads = policy->config.threads;
    bool automatic = threads == SAR_U64_AUTO;
    return (struct sar_parallel){ .threads = automatic ? comm_state->comm.threads : (int)threads,
                                  .automatic = automatic };
}

struct sar_parallel sar_comm_state_begin_work(const struct sar_comm_state *comm_state)
{
    struct sar_parallel parallel = { .threads = 1 };
    if (comm_state != NULL)
        parallel = sar_comm_state_parallel(comm_state, &comm_state->settings.policy);
    return sar_parallel_begin(parallel);
}

struct sar_tensor_state *sar_comm_state_find_tensor(struct sar_comm_state *comm_state,
                                                    const int64_t field[SAR_AGREE_FIELDS])
{
    struct sar_comm_tensors *tensors = &comm_state->tensors;
    uint32_t n = tensors->made < SAR_TENSOR_STATES_MAX ? tensors->made : SAR_TENSOR_STATES_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (tensors->last_found + i) % n;
        if (memcmp(tensors->state[at].key, field, sizeof tensors->state[at].key) == 0) {
            tensors->last_found = at;
            return &tensors->state[at];
        }
    }
    return NULL;
}

struct sar_tensor_state *sar_comm_state_get_tensor(struct sar_comm_state *comm_state,
                                                   const int64_t field[SAR_AGREE_FIELDS])
{
    struct sar_tensor_state *tensor = sar_comm_state_find_tensor(comm_state, field);
    if (tensor != NULL)
        return tensor;
    tensor = &comm_state->tensors.state[comm_state->tensors.made++ % SAR_TENSOR_STATES_MAX];
    if (comm_state->feedback.tensor == tensor)
        comm_state->feedback.tensor = NULL;
    memset(tensor, 0, sizeof *tensor);
    tensor->oktopk.begin = comm_state->tensors.bounds + (size_t)(tensor - comm_state->tensors.state) *
                                                            ((size_t)comm_state->comm.ranks + 1);
    memcpy(tensor->key, field, sizeof tensor->key);
    return tensor;
}
