/* SPDX-License-Identifier: BSD-3-Clause */
/* What split_allgather and split_dense have in common: push to the owners of contiguous parts, as in owner.h,
 * and a pull by concatenation in ceil(log2 p) steps.
 *
 * SparCML concatenates by recursive doubling, for powers of two. Here it is Bruck's allgather (Bruck et al.,
 * IEEE TPDS 8(11), 1997), for any p: in step i a rank has the parts of 2^i ranks from itself on, around the
 * end of the vector. It sends the first of them, as many as are still missing there, to the rank 2^i before
 * it, and puts those of the rank 2^i behind it at the end. Indices count from the beginning of its own part;
 * it turns them back when it has all. */

#ifndef SAR_SCHEME_SPLIT_H
#define SAR_SCHEME_SPLIT_H

#include "scheme/owner.h"

struct sar_split {
    struct sar_owner owner;
    int parts, coming;   /**< how many parts are here, and how many more on their way */
    struct sar_run have; /**< the elements of those here */
    struct sar_message outgoing;
};

/** The stages, to come after one whose `post` calls sar_split_open. */
#define SAR_SPLIT_STAGES                                                                            \
    { .compute = sar_owner_begin, .post = sar_owner_push, .arrived = sar_owner_arrived },           \
        { .compute = sar_split_sum }, { .compute = sar_split_prepare, .post = sar_split_exchange }, \
        { .compute = sar_split_finish },                                                            \
    {                                                                                               \
        .compute = NULL                                                                             \
    }

/** @param pull_wire  the scheme's format of the pull, or NULL */
void sar_split_open(struct sar_request *request, const struct sar_wire *pull_wire);
enum sar_status sar_split_sum(struct sar_request *request);
enum sar_status sar_split_prepare(struct sar_request *request);
void sar_split_exchange(struct sar_request *request);
enum sar_status sar_split_finish(struct sar_request *request);

/** Predicted time, see the schemes. */
double sar_split_seconds(const struct sar_agreed *agreed, const struct sar_wire *pull_wire);

#endif
