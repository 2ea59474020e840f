/* SPDX-License-Identifier: BSD-3-Clause */
/* State of a communicator: all data that the library keeps between calls. core/lifecycle.h opens and closes
 * it. */

#ifndef SAR_CORE_COMM_STATE_H
#define SAR_CORE_COMM_STATE_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/parallel.h"
#include "device/exec.h"
#include "mpix_sparse.h"
#include "comm/collective.h"
#include "comm/agree.h"
#include "core/call_args.h"
#include "core/profile.h"
#include "core/select.h"
#include "scheme/engine/task.h"

struct sar_active_call;
struct sar_fusion;
struct sar_plan;

enum { SAR_TENSOR_STATES_MAX = 32, SAR_ERROR_TEXT_SIZE = 256 };

/** The last full selection, reused while its inputs hardly change. Written by sar_active_call_select;
 * reuse_left is also cleared by call.c before a new profile. */
struct sar_selection_reuse {
    struct sar_selection selection;
    double ratio;        /**< measured over predicted time of the scheme, when it was selected */
    unsigned reuse_left; /**< calls that may still reuse it */
    bool shm;            /**< shared memory was available then */
};

/** Decisions of the last call, by which the next one may send messages before its check. Equal on all ranks.
 * Written by speculate.c. */
struct sar_speculation {
    uint32_t call;  /**< number of that call; 0: the next call may not */
    uint32_t pause; /**< calls that may not, since some rank could not */
    int scheme;
    size_t nnz_max; /**< of the ranks of that call */
    struct sar_agreed agreed;
};

/** State of one tensor, kept between calls with the same arguments. Equal on all ranks. */
struct sar_tensor_state {
    int64_t key[SAR_AGREE_FIELDS]; /**< sig.field of its calls */
    uint64_t calls;
    bool has_profile;
    struct sar_profile profile;    /**< written by call.c */
    struct sar_cost_history costs; /**< measured times; written by sar_timing_feedback_* */
    struct sar_agree_pull pull;    /**< of the last call of `balanced`; by sar_timing_feedback_apply */
    struct sar_price_cache prices; /**< cached model times; written by sar_select */
    struct sar_selection_reuse reuse;
    struct sar_speculation speculation;
    struct sar_oktopk_bounds oktopk; /**< part boundaries of `oktopk`; written by that scheme */
    uint64_t fallback_run;  /**< length of the current run of calls passed to MPI; by sar_fallback_plan */
    uint64_t fallback_left; /**< calls of that run still to come; decremented by sar_fallback_take */
};

/** Measurements of the last call, which the next agree message reports to all ranks. This rank's own. */
struct sar_timing_feedback {
    struct sar_tensor_state *tensor; /**< NULL: nothing to report */
    int scheme;
    double predicted;           /**< seconds */
    int64_t pre_scheme_ns;      /**< nanoseconds until the end of the agreement */
    int64_t scheme_ns;          /**< nanoseconds after it */
    struct sar_agree_pull pull; /**< of `balanced`; zero after other schemes */
};

/** Settings in force, with names resolved. Equal on all ranks. Written by sar_policy_make. */
struct sar_policy {
    struct sar_config config;
    const struct sar_scheme *forced; /**< or NULL */
    struct sar_agreed_partition partition;
    struct sar_agreed_wire wire; /**< but for its precision, which depends on the call */
    uint64_t fallback_max;       /**< longest run of calls passed to MPI without an agreement; 0: none */
    double thread_ratio;         /**< of sar_thread_ratio_measure; set by sar_policy_measure_threads */
};

/** Result of the last agreement of a plan, which following starts use without agreeing again. Written by
 * call.c. */
struct sar_saved_agreement {
    uint64_t skip_agree_left; /**< starts that may still use it */
    struct sar_agree_msg all;
    struct sar_agreed agreed;
    struct sar_selection selection;
};

/** A persistent call, or a fusion of them. Written by persistent.c; `tensor` as sar_tensor_state says. */
struct sar_plan {
    struct sar_comm_state *comm_state; /**< NULL once its communicator is freed */
    struct sar_plan *next;             /**< on this communicator */
    const struct sar_call_args *args;  /**< common to all starts; owned by mpi_ext/ */
    uint64_t id;                       /**< number of the plan on this communicator; equal on all ranks */
    uint64_t config_id;                /**< equal for plans with equal settings; equal on all ranks */
    struct sar_plan *next_fused;       /**< next member of the fusion that is being started */
    struct sar_fusion *fusion;         /**< cached, if this plan led one; or NULL */
    struct sar_policy policy;
    struct sar_tensor_state tensor;
    struct sar_saved_agreement saved;
};

/** Settings and machine constants. Written when the communicator is opened or configured. Equal on all
 * ranks. */
struct sar_comm_settings {
    struct sar_policy policy;
    struct sar_machine measured; /**< or from a calibration file */
    struct sar_machine machine;  /**< measured, overridden by settings */
};

/** States of the tensors seen on this communicator; a new one replaces the oldest. Equal on all ranks. */
struct sar_comm_tensors {
    struct sar_tensor_state state[SAR_TENSOR_STATES_MAX];
    uint32_t made;       /**< states ever made */
    uint32_t last_found; /**< where the next search starts */
    uint64_t *bounds;    /**< memory for oktopk.bounds, ranks + 1 for each state */
};

/** Memory of the current call, reset by the next one. */
struct sar_comm_memory {
    struct sar_arena arena;
    struct sar_arena scratch[SAR_STEP_ARENAS]; /**< of its steps, used in rotation */
    struct sar_arena exec[SAR_EXEC_ARENAS];    /**< for messages made on a device */
    struct sar_buffer output[2]; /**< indices and values of the result, before dense buffers are written */
};

/** Calls in their order; only the first one advances. Written by call.c, the links by progress.c under its
 * lock. */
struct sar_comm_queue {
    struct sar_active_call *first, *last;
    struct sar_comm_state *next_active; /**< list of communicators with calls in flight */
    bool listed;                        /**< in that list */
};

/** Open plans. Written by persistent.c and lifecycle.c. */
struct sar_comm_plans {
    struct sar_plan *first;
    uint64_t made; /**< plans ever opened; equal on all ranks */
};

/** The function of MPI that ran the last call, if the library passed it on. */
enum sar_fallback_kind { SAR_FALLBACK_NONE, SAR_FALLBACK_ALLREDUCE, SAR_FALLBACK_REDUCE_SCATTER };

/** The last call, for MPIX_Sparse_get_report. Written by finish.c, fallback.c and bcast_report.c. */
struct sar_comm_last {
    double end;                        /**< PMPI_Wtime at the end of the last call that was not a fallback */
    bool reported;                     /**< a call has ended */
    bool warned_forced;                /**< the log says that the forced scheme cannot run here */
    enum sar_fallback_kind fallback;   /**< of the last call; if any, `report` is of an earlier one */
    struct sar_vec_desc fallback_desc; /**< vector of the last fallback */
    MPIX_Sparse_report_t report;       /**< the reason is empty, except of a broadcast */
    struct sar_selection selection;
};

/** The last calls that were started together, of which one had an error in a rank's arguments. Written by
 * call.c. */
struct sar_comm_refusal {
    uint64_t group; /**< sar_active_call.group of these calls; 0: none */
    struct sar_error error;
};

/** Device memory on this communicator. Written by mpi_ext/. */
struct sar_comm_device {
    enum sar_cuda_aware_mode cuda_aware; /**< result of the test if MPI accepts device pointers */
    void *stream;                        /**< the caller's stream; each rank's own */
    atomic_int enqueued;                 /**< calls in streams that are not complete */
};

/** State of a user's communicator. All that choices depend on is equal on all ranks. The order of members
 * matters: call.c prefetches everything from tensors.last_found to the end. */
struct sar_comm_state {
    struct sar_comm comm; /**< the library's duplicate, its topology and its shared memory */
    struct sar_comm_settings settings;
    uint32_t epoch; /**< calls so far */
    struct sar_comm_tensors tensors;
    struct sar_timing_feedback feedback;
    int label; /**< of the next call that MPIX_Sparse_comm_set_label is for; each rank's own. By mpi_ext/. */
    uint64_t scatter_block; /**< of the last reduce_scatter; 0: none. By sar_active_call_task_init. */
    uint32_t no_shm_calls;  /**< next calls that do not use shared memory, after an allocation of it failed */
    struct sar_comm_memory memory;
    struct sar_comm_queue queue;
    struct sar_comm_state
        *next_deferred; /**< list of states that not all ranks have closed; by lifecycle.c */
    struct sar_comm_plans plans;
    struct sar_comm_refusal refusal;
    struct sar_comm_last last;
    struct sar_comm_device device;
};

/** Sets the call that warnings name: the last one, of a function (SAR_AGREE_FUNCTION). Called before its
 * agreement; without one, before its scheme. */
static inline void sar_comm_state_set_call(struct sar_comm_state *comm_state, int64_t function)
{
    comm_state->comm.call.number = comm_state->epoch;
    comm_state->comm.call.function = (int32_t)function;
}

/** Communicators with calls in flight. Written by progress.c; read through sar_comm_state_any_active. */
extern atomic_int sar_comm_states_active;

/** True if a call is in flight on any communicator of the process. */
static inline bool sar_comm_state_any_active(void)
{
    return atomic_load(&sar_comm_states_active) != 0;
}

/** Returns a state that owns *comm, its other members zero; or NULL if memory is short. Local. */
struct sar_comm_state *sar_comm_state_alloc(const struct sar_comm *comm);

/** Frees the memory of a state, but neither its communicator nor its arenas. NULL is allowed. Local. */
void sar_comm_state_free(struct sar_comm_state *comm_state);

/** Makes the memory of the last call available again. Local. */
void sar_comm_state_reset_memory(struct sar_comm_state *comm_state);

/** Returns the threads of work under a policy, of the communicator or of a plan. */
struct sar_parallel sar_comm_state_parallel(const struct sar_comm_state *comm_state,
                                            const struct sar_policy *policy);

/** Begins work that is not part of a call, on as many threads as the settings of the communicator say; on one
 * without a state: NULL. Ends with sar_parallel_end of what it returns. */
struct sar_parallel sar_comm_state_begin_work(const struct sar_comm_state *comm_state);

/** Stops using shared memory in the next calls, because an allocation of it failed. All ranks do so in the
 * same call. Later calls try again. */
void sar_comm_state_suspend_shm(struct sar_comm_state *comm_state);

/** Returns the report of the last call that was not a fallback. Composes a missing reason.
 * Local. */
MPIX_Sparse_report_t sar_comm_state_report(const struct sar_comm_state *comm_state);

/** Returns the state of the tensor with this key, or NULL. */
struct sar_tensor_state *sar_comm_state_find_tensor(struct sar_comm_state *comm_state,
                                                    const int64_t field[SAR_AGREE_FIELDS]);

/** Returns the state of the tensor with this key; if there is none, makes one in place of the oldest. */
struct sar_tensor_state *sar_comm_state_get_tensor(struct sar_comm_state *comm_state,
                                                   const int64_t field[SAR_AGREE_FIELDS]);

#endif
