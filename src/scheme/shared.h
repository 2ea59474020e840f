/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface of `shared` for two_level, which ends with the stages of `shared` among the ranks of a node. */

#ifndef SAR_SCHEME_SHARED_H
#define SAR_SCHEME_SHARED_H

#include "scheme/engine/shm_coll.h"

enum { SAR_SHARED_STATE_BYTES = 1024 }; /**< upper bound for the state of `shared` */

/** An output in the shared buffer where `shared` expects its input. */
struct sar_shared_output {
    struct sar_output_dest output; /**< first */
    struct sar_shm_group *group;
    struct sar_shm_coll_msg msg; /**< tells of the elements; zeroed at first */
};

/** Makes an output in this rank's input buffer. */
struct sar_shared_output sar_shared_output(struct sar_shm_group *group);

/** Makes the elements of the output the input of a task whose next stages are those of `shared`. */
void sar_shared_set_input(struct sar_task *task, const struct sar_shared_output *from);

#endif
