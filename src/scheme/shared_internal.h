/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that shared.c, shared_cost.c and shared_input.c share, and no other file uses. */

#ifndef SAR_SCHEME_SHARED_INTERNAL_H
#define SAR_SCHEME_SHARED_INTERNAL_H

#include "scheme/engine/shm_coll.h"

/** Copies the input to this rank's input buffer, unless it is there, and notes its place in msg. */
enum sar_status sar_shared_copy_in(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Converts the caller's dense buffer to task->input.vec, in the input buffer. */
enum sar_status sar_shared_load_dense(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Finds this rank's slice of each rank's input. The slices of all ranks have about equally many elements. */
enum sar_status sar_shared_slice_inputs(struct sar_task *task, const struct sar_spvec inputs[],
                                        struct sar_spvec slices[]);

/** Copies a vector to memory that all ranks read: past the caches if some ranks are on another socket. They
 * read memory faster than a cache on another socket, and this rank need not fetch the lines before it
 * writes them. */
void sar_shared_write(const struct sar_task *task, const struct sar_vec_desc *desc,
                      const struct sar_spvec *from, struct sar_spvec *to);

/** Returns true if each rank should reduce all elements instead of its part. Equal on all ranks.
 * @param desc  agreed->desc, or sar_task_desc, which knows of a -0.0
 * @param nnz   elements of a rank, on average */
bool sar_shared_prefers_replicated(const struct sar_agreed *agreed, const struct sar_vec_desc *desc,
                                   double nnz);

/** Returns the predicted seconds. */
double sar_shared_seconds(const struct sar_agreed *agreed);

#endif
