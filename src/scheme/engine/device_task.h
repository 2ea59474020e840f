/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of scheme/engine/task_ops.c for tasks whose vectors are in device memory: task->device.exec !=
 * NULL. They queue work on the device; the engine waits for it before it posts the messages of a stage. */

#ifndef SAR_SCHEME_ENGINE_DEVICE_TASK_H
#define SAR_SCHEME_ENGINE_DEVICE_TASK_H

#include "device/exec.h"
#include "scheme/engine/task.h"

/** Queues the encoding of a vector, so that the next one can be encoded before this message is complete.
 * @param wire  set to the format of the message */
enum sar_status sar_device_task_encode(struct sar_task *task, bool pull, struct sar_wire_layout layout,
                                       const struct sar_spvec *vec, struct sar_msg *message,
                                       const struct sar_wire **wire);

/** Waits until an encoded message can be sent. */
enum sar_status sar_device_task_wait_message(struct sar_task *task, const struct sar_msg *message);

/** Queues the decoding of a message in any format. Checks its header at once; sar_device_exec_wait reports a
 * corrupt payload. The message must stay until then. */
enum sar_status sar_device_task_decode(struct sar_task *task, struct sar_msg_key *key,
                                       const struct sar_msg *message, struct sar_spvec *vec);

/** Returns the vec_desc of the result's parts: coordinates have indices of the caller's size. */
struct sar_vec_desc sar_device_task_output_desc(const struct sar_task *task);

/** Turns slots of a map's parts back into indices, and appends the parts to task->result.parts. The order of
 * parts does not matter to a dense vector; core sorts coordinates when all parts are there.
 * @param times  calls of this function in the task, in total */
enum sar_status sar_device_task_add_output_parts(struct sar_task *task, size_t times,
                                                 const struct sar_partition_map *map,
                                                 const struct sar_spvec parts[]);

#endif
