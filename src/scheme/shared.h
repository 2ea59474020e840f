/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface of `shared` for two_level, which ends with the stages of `shared` among the ranks of a node; and
 * functions of shared_input.c for shared.c. */

#ifndef SAR_SCHEME_SHARED_H
#define SAR_SCHEME_SHARED_H

#include "scheme/engine/columns.h"
#include "scheme/engine/shm_coll.h"

enum { SAR_SHARED_STATE_BYTES = 1024 }; /**< upper bound for the state of `shared` */

/** An output in the shared buffer where `shared` expects its input. */
struct sar_shared_output {
    struct sar_output_dest output; /**< first */
    const struct sar_task *task;
    struct sar_vec_desc desc;    /**< of the elements */
    struct sar_shm_coll_msg msg; /**< tells of the elements; zeroed at first */
};

/** Makes an output in this rank's input buffer.
 * @param desc  of its elements: rows, or shares of rows */
struct sar_shared_output sar_shared_output(const struct sar_task *task, struct sar_vec_desc desc);

/** Makes the elements of the output the input of a task whose next stages are those of `shared`.
 * @param columns  if they slice rows, all ranks have the same indices, and each a share of the rows. Must
 *                 outlive the task */
void sar_shared_set_input(struct sar_task *task, const struct sar_shared_output *from,
                          const struct sar_columns *columns);

/** Copies the input to this rank's input buffer, unless it is there, and notes its place in msg. */
enum sar_status sar_shared_copy_in(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Converts the caller's dense buffer to task->input.vec, in the input buffer. */
enum sar_status sar_shared_load_dense(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Finds this rank's slice of each rank's input. The slices of all ranks have about equally many elements. */
enum sar_status sar_shared_slice_inputs(struct sar_task *task, const struct sar_spvec inputs[],
                                        struct sar_spvec slices[]);

/** As sar_shared_slice_inputs, for inputs that are shares of the same rows. */
void sar_shared_slice_shares(const struct sar_task *task, const struct sar_columns *columns,
                             const struct sar_spvec inputs[], struct sar_spvec slices[]);

/** Joins shares of the same rows, one of each rank, to rows. Returns the work, for a span.
 * @param out  its indices have index_size bytes, its arrays room for the rows; nnz is set */
struct sar_span_work sar_shared_join(const struct sar_task *task, const struct sar_columns *columns,
                                     const struct sar_spvec shares[], unsigned index_size,
                                     struct sar_spvec *out);

/** Joins all rows into the output; they become task->result.vec. */
enum sar_status sar_shared_join_to_output(struct sar_task *task, const struct sar_columns *columns,
                                          const struct sar_spvec shares[]);

#endif
