/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface of `shared` for two_level, which ends with the stages of `shared` among the ranks of a node; and
 * functions of shared_input.c for shared.c. */

#ifndef SAR_SCHEME_SHARED_H
#define SAR_SCHEME_SHARED_H

#include "scheme/engine/shm_coll.h"

enum { SAR_SHARED_STATE_BYTES = 1024 }; /**< upper bound for the state of `shared` */

/** An output in the shared buffer where `shared` expects its input. */
struct sar_shared_output {
    struct sar_output_dest output; /**< first */
    const struct sar_task *task;
    struct sar_shm_coll_msg msg; /**< tells of the elements; zeroed at first */
};

/** Makes an output in this rank's input buffer. */
struct sar_shared_output sar_shared_output(const struct sar_task *task);

/** Makes the elements of the output the input of a task whose next stages are those of `shared`. */
void sar_shared_set_input(struct sar_task *task, const struct sar_shared_output *from);

/** Copies the input to this rank's input buffer, unless it is there, and notes its place in msg. */
enum sar_status sar_shared_copy_in(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Converts the caller's dense buffer to task->input.vec, in the input buffer. */
enum sar_status sar_shared_load_dense(struct sar_task *task, struct sar_shm_coll_msg *msg);

/** Finds this rank's slice of each rank's input. The slices of all ranks have about equally many elements. */
enum sar_status sar_shared_slice_inputs(struct sar_task *task, const struct sar_spvec inputs[],
                                        struct sar_spvec slices[]);

#endif
