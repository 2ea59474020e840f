/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement on a call: one small allreduce before each call. It compares the arguments of all ranks and
 * combines their status and profile. Schemes are chosen by agreed numbers only. */

#ifndef SAR_COMM_AGREE_H
#define SAR_COMM_AGREE_H

#include <stdbool.h>

#include "comm/collective.h"
#include "comm/machine.h"
#include "vector/quantiles.h"

/** Arguments that must be equal on all ranks of a call, in the order in which errors are reported. */
enum sar_agree_field {
    SAR_AGREE_FUNCTION, /**< the function called */
    SAR_AGREE_FUSION,   /**< plans that are fused into one call (core/persistent.h); 0: a call of its own */
    SAR_AGREE_BLOCK = SAR_AGREE_FUSION, /**< of reduce_scatter, which is never fused */
    SAR_AGREE_LABEL = SAR_AGREE_FUSION, /**< of an allreduce that is no start of a plan */
    SAR_AGREE_COUNT,
    SAR_AGREE_DATATYPE,
    SAR_AGREE_OP,
    SAR_AGREE_IN_PLACE, /**< 1: sendbuf is MPI_IN_PLACE; plus 2 k for a start of the k-th plan of the
                         * communicator */
    SAR_AGREE_FIELDS
};

/** Values of an argument. */
struct sar_agree_range {
    int64_t min, max;
    int32_t min_rank, max_rank; /**< lowest ranks with these values */
};

/** Parts of the pull of a call; of the push of a reduce_scatter. */
struct sar_agree_pull {
    int32_t permille; /**< largest part over the mean part, times 1000; 0: unknown */
    int32_t parts;    /**< parts of the partition map */
};

/** Spread of a rank's elements over the vector. */
struct sar_agree_spread {
    uint8_t equal_segments; /**< 1: this rank needs segments of equal length; maximum over the ranks */
    uint8_t not_owned; /**< allgather: bit k is set if elements violate candidate k (core/ownership.h); OR */
    struct sar_quantiles quantiles; /**< of the rank with most elements */
};

/** A time of the previous call that says nothing, on one rank. */
#define SAR_CALL_NS_UNKNOWN INT64_MAX

/** Messages that a rank has sent before the agreement (core/speculate.h). */
struct sar_agree_early {
    uint32_t min, max; /**< number of the call whose decisions they follow; 0: none were sent */
    int32_t tag;       /**< of these messages, one to each other rank */
};

/** The contribution of one rank; after the allreduce the combination of all ranks. */
struct sar_agree_msg {
    int64_t nnz_sum;              /**< nonzeros: sum over the ranks */
    int64_t nnz_max;              /**< nonzeros: maximum over the ranks */
    int64_t last_call_ns;         /**< nanoseconds of the previous call, from its agreement on: maximum;
                                 * SAR_CALL_NS_UNKNOWN if the program computed during the call */
    int64_t pre_scheme_ns;        /**< nanoseconds of the previous call up to there: minimum */
    int64_t status_value;         /**< argument of the error message, of status_rank */
    int32_t status;               /**< enum sar_status: maximum */
    int32_t status_rank;          /**< lowest rank with that status */
    struct sar_agree_pull pull;   /**< of the previous call: that with the largest imbalance */
    struct sar_agree_early early; /**< only where agreements take one round */
    struct sar_agree_spread spread;
    uint8_t may_block;  /**< enum sar_may_block: maximum */
    uint8_t dense_path; /**< enum sar_dense_path: maximum */
    uint8_t filler[2];  /**< zero, in place of padding */
    struct sar_agree_range field[SAR_AGREE_FIELDS];
};

/** An agreement in flight. */
struct sar_agreement {
    struct sar_agree_msg local;  /**< set by the caller */
    struct sar_agree_msg global; /**< set by sar_agree_test */
    struct sar_collective collective;
};

/** Tells if a rank may wait inside MPI. The maximum over the ranks counts, so one rank can forbid it.
 * SAR_MAY_BLOCK is 0, so that each other value forbids. */
enum sar_may_block {
    SAR_MAY_BLOCK,
    SAR_MAY_NOT_BLOCK,           /**< other calls are in flight on this rank */
    SAR_MAY_NOT_BLOCK_SHM_FAILED /**< the rank had no shared memory in the previous call, and may not block */
};

/** The way of a rank's dense vector to MPI, if MPI_Allreduce reduces it. */
enum sar_dense_path {
    SAR_DENSE_PATH_HOST,     /**< the vector is in host memory */
    SAR_DENSE_PATH_STAGED,   /**< it is copied from or to a device, which may fail after the agreement */
    SAR_DENSE_PATH_PIPELINED /**< it is copied through pinned memory in pieces; that may fail, too */
};

/** Returns a message with this rank's fields. The caller sets status, nnz_*, may_block, dense_path and the
 * times. */
struct sar_agree_msg sar_agree_msg_make(const struct sar_comm *comm, const int64_t field[SAR_AGREE_FIELDS]);

/** Combines two messages into the second. Associative and commutative. */
void sar_agree_msg_merge(const struct sar_agree_msg *in, struct sar_agree_msg *inout);

/** Chooses how ranks agree, by the constants of the machine: in one round, unless that takes longer. The
 * choice is equal on all ranks, unless one of them returns SAR_NO_MEMORY. Local. */
enum sar_status sar_agree_open(struct sar_comm *comm, const struct sar_machine *machine);

/** Frees what sar_agree_open allocated, if anything. Local. */
void sar_agree_close(struct sar_comm *comm);

/** Returns true if an agreement in one round takes no longer than one of log2 n stages. */
bool sar_agree_in_one_round(int ranks, const struct sar_machine *machine);

/** Returns the predicted seconds of an agreement between nodes. */
double sar_agree_seconds(int ranks, const struct sar_machine *machine);

/** True if a rank has sent messages before the agreement. */
static inline bool sar_agree_early_any(const struct sar_agree_msg *all)
{
    return all->early.max != 0;
}

/** True if all ranks have sent messages before the agreement, and follow equal decisions. Otherwise the
 * agreement has discarded those that were sent. */
static inline bool sar_agree_early_equal(const struct sar_agree_msg *all)
{
    return all->early.min != 0 && all->early.min == all->early.max;
}

/** Receives and discards the messages that other ranks have sent before the last agreement. */
enum sar_status sar_agree_discard_early(const struct sar_comm *comm);

/** Starts an agreement with the message agreement->local. Collective over comm. */
enum sar_status sar_agree_start(const struct sar_comm *comm, struct sar_agreement *agreement);

/** Tests an agreement, or waits for it if `block`. Sets *done; then agreement->global is valid. Returns
 * SAR_CORRUPT if another rank is in a call that makes no agreement, where ranks share memory. Local. */
enum sar_status sar_agree_test(const struct sar_comm *comm, struct sar_agreement *agreement, bool block,
                               bool *done);

/** Creates the MPI op and datatype of agreements; once in a process. Local. */
enum sar_status sar_agree_setup(void);

/** Frees them, if they exist. Local. */
void sar_agree_cleanup(void);

#endif
