/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_CONTEXT_H
#define SAR_PLAN_CONTEXT_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "device/worker.h"
#include "mpix_sparse.h"
#include "net/agree.h"
#include "plan/profile.h"
#include "plan/select.h"

enum { SAR_RECORDS = 32, SAR_SENTENCE = 256 };

/** What is remembered of one tensor: calls with the same arguments on this communicator. */
struct sar_record {
    int64_t field[SAR_FIELDS]; /**< the key */
    uint64_t calls;
    bool profiled;
    struct sar_profile profile;
    struct sar_lessons lessons;
    struct sar_predictions predictions;
    struct sar_selection selection; /**< the last one that was not taken over from the call before */
    double ratio;                   /**< that the scheme's lessons had then */
    unsigned lasts;                 /**< calls for which it may still be taken over */
    bool shared;                    /**< ranks shared memory then */
    struct sar_keep keep;
    uint64_t stretch; /**< calls to be forwarded after the last one that was agreed on */
    uint64_t follow;  /**< those of them that are still to come */
};

/** The call whose time the next ballot carries. */
struct sar_homework {
    struct sar_record *record; /**< NULL when there is none */
    int scheme;
    double predicted;
    int64_t entry, nanoseconds; /**< up to the end of its agreement, and after it */
};

/** What the user asked for: the knobs, and what their names stand for. Equal on all ranks. */
struct sar_policy {
    struct sar_config config;
    const struct sar_scheme *forced;              /**< or NULL */
    const struct sar_wire *push_wire, *pull_wire; /**< or NULL */
    int partition;                                /**< or -1 */
    uint32_t seed;
    uint64_t forward; /**< most calls that follow on a dense one unseen; 0 to agree on every call */
};

struct sar_pending;
struct sar_plan;

/** What hangs on a user's communicator. Everything in it that choices depend on is equal on all ranks. */
struct sar_context {
    struct sar_net net;
    struct sar_policy policy;
    struct sar_machine constants;           /**< measured, or of a calibration file */
    struct sar_machine machine;             /**< the same, with those that knobs set */
    uint32_t epoch;                         /**< calls so far */
    struct sar_record records[SAR_RECORDS]; /**< the most recently made one replaces the oldest */
    uint32_t records_made;
    uint32_t found;   /**< the record that was looked for last, where the next search begins */
    uint64_t *bounds; /**< for all records' keep, ranks + 1 each */
    double left;      /**< when the last call was over */
    struct sar_homework homework;
    uint32_t apart; /**< calls to come that do without memory which ranks share; see sar_context_part */
    struct sar_arena arena;                      /**< of the present call */
    struct sar_arena scratch[SAR_SCRATCHES];     /**< of its steps, in turn */
    struct sar_arena messages[SAR_WORKER_TURNS]; /**< for a worker, with memory while there is one */
    struct sar_buffer outcome[2];     /**< indices and values, where dense buffers are written from */
    struct sar_pending *first, *last; /**< calls in their order; the first is the one that moves */
    struct sar_context *next_busy;    /**< of those with calls in flight, see plan/progress.h */
    struct sar_context *next_aside;   /**< of those that wait for their end, see close.c */
    bool listed;
    struct sar_plan *plans;      /**< that are not freed */
    uint64_t plans_made;         /**< by sar_plan_open */
    MPIX_Sparse_report_t report; /**< without the reason, which takes as long to tell as a small call */
    struct sar_selection told;   /**< from which that follows */
    bool reported;
    atomic_int enqueued;        /**< calls that stand in streams, and are not over */
    enum sar_aware aware;       /**< whether MPI is handed device memory, once that is found out */
    void *stream;               /**< that callers work on device memory in; each rank's own */
    struct sar_shape forwarded; /**< of the last call that was forwarded */
    bool forwarded_last;        /**< it was the last of all: `report` is older */
};

/** Whether there are the schemes, formats and partitions that knobs name.
 * @param sentence  room for one, which tells what there is not on SAR_BAD_KNOB */
enum sar_status sar_context_check(const struct sar_config *config, char *sentence, size_t room);

/** Make the context of a communicator. Collective over user: all ranks succeed, or all fail alike.
 * @param hints     of the communicator, which go before the environment; or NULL
 * @param sentence  room for SAR_SENTENCE bytes, set on SAR_BAD_KNOB on all ranks */
enum sar_status sar_context_open(MPI_Comm user, const struct sar_source *hints, struct sar_context **context,
                                 char *sentence);

/** Change the knobs of a communicator, for calls and plans to come. What was learnt of its tensors is
 * forgotten; its plans keep theirs. Calls there must be done. Collective: all ranks succeed, or all fail
 * alike and nothing changes.
 * @param mine      what this rank has against it already, or SAR_OK
 * @param sentence  as above, but not for another rank's `mine` */
enum sar_status sar_context_configure(struct sar_context *context, enum sar_status mine,
                                      const struct sar_source *hints, char *sentence);

/** The policy of a set of knobs. seed is used where the knobs give none. */
struct sar_policy sar_policy_make(const struct sar_config *config, uint32_t seed);

/** Begin to free a context. Collective, does not wait; what is in flight must be done. */
void sar_context_leave(struct sar_context *context);

/** Let the next calls do without memory that ranks share, since one of them did not get any more; then it is
 * tried again. All ranks do so in the same call. */
void sar_context_part(struct sar_context *context);

/** Free a context, which is left if it has not been. Its plans lose it. Collective; does not wait for ranks
 * that are late, for whom the library's communicator stays until sar_context_sweep. */
void sar_context_close(struct sar_context *context);

/** Free what is left of contexts that all ranks have closed.
 * @param wait  for all ranks to close those that this one has; collective then */
void sar_context_sweep(bool wait);

/** Free the memory of a context without a net; NULL is allowed. For src/plan/close.c. */
void sar_context_discard(struct sar_context *context);

/** Make the memory of the last call available again. */
void sar_context_reset(struct sar_context *context);

/** What the last call that was not forwarded did. */
MPIX_Sparse_report_t sar_context_report(const struct sar_context *context);

/** The record of a tensor, or NULL. */
struct sar_record *sar_context_find(struct sar_context *context, const int64_t field[SAR_FIELDS]);

/** The record of a tensor, made when there is none. */
struct sar_record *sar_context_record(struct sar_context *context, const int64_t field[SAR_FIELDS]);

#endif
