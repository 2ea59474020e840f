/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_AGREE_H
#define SAR_NET_AGREE_H

#include <stdbool.h>

#include "net/net.h"

/** What must be equal on all ranks of a call, in the order in which it is looked at. */
enum sar_field {
    SAR_FIELD_CALL,  /**< which function */
    SAR_FIELD_PLANS, /**< which plans travel together, see plan/group.h; 0 for a call of its own */
    SAR_FIELD_COUNT,
    SAR_FIELD_DATATYPE,
    SAR_FIELD_OP,
    SAR_FIELD_IN_PLACE,
    SAR_FIELDS
};

/** One rank's share in an agreement, and after it everybody's. */
struct sar_ballot {
    int64_t nnz_sum, nnz_max;
    int64_t busy;    /**< enum sar_busy; the largest */
    int64_t staged;  /**< enum sar_staged; the largest */
    int64_t seconds; /**< nanoseconds the call before this one took after its agreement; the largest */
    int64_t entry;   /**< nanoseconds up to there; the smallest, of the rank that waited least for others */
    int64_t status;  /**< enum sar_status; the largest */
    int64_t status_rank, status_value;
    struct {
        int64_t low, high;
        int32_t low_rank, high_rank;
    } field[SAR_FIELDS];
};

/** An agreement under way. */
struct sar_agreement {
    struct sar_ballot mine, all;
    struct sar_collective collective;
};

/** Whether a rank may sleep in MPI. */
enum sar_busy {
    SAR_BUSY_NOT,
    SAR_BUSY,        /**< it must not, as others' calls are in flight */
    SAR_BUSY_LACKING /**< that, for all it tells; in the call before it lacked memory to share with others */
};

/** How a rank's dense vector comes to MPI, if that is to have it. */
enum sar_staged {
    SAR_STAGED_NOT,      /**< it is the host's */
    SAR_STAGED_WHOLE,    /**< it is a device's or was, which may fail once the ranks have agreed */
    SAR_STAGED_PIECEWISE /**< through pinned memory, likewise */
};

/** Fill in one rank's ballot but for status, nnz, busy, staged, seconds and entry. */
struct sar_ballot sar_ballot_make(const struct sar_net *net, const int64_t field[SAR_FIELDS]);

/** Combine two ballots into the second. Associative and commutative. */
void sar_ballot_merge(const struct sar_ballot *in, struct sar_ballot *inout);

/** Start: agreement->mine is this rank's ballot. Collective over net; one small message a stage, or none
 * where ranks share a window. */
enum sar_status sar_agree_start(const struct sar_net *net, struct sar_agreement *agreement);

/** Wait for it, or look whether it is done: then agreement->all is there. */
enum sar_status sar_agree_test(const struct sar_net *net, struct sar_agreement *agreement, bool block,
                               bool *done);

/** Create and free the MPI handles that agreements need; once in a process, local. */
enum sar_status sar_agree_setup(void);
void sar_agree_cleanup(void);

#endif
