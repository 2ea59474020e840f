/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a device encodes and decodes. task_ops.c calls these functions; no other file does. */

#ifndef SAR_SCHEME_ENGINE_TASK_DEVICE_H
#define SAR_SCHEME_ENGINE_TASK_DEVICE_H

#include "scheme/engine/task.h"

/** Writes the header of a message, and queues the encoding of its payload. */
enum sar_status sar_task_encode_on_device(struct sar_task *task, const struct sar_msg_key *key,
                                          const struct sar_wire *wire, const struct sar_spvec *vec,
                                          struct sar_msg *message);

/** As sar_task_encode_on_device, for the values of vec alone. */
enum sar_status sar_task_encode_values_on_device(struct sar_task *task, const struct sar_msg_key *key,
                                                 const struct sar_spvec *vec, uint32_t index_hash,
                                                 struct sar_msg *message);

/** Queues the decoding of a message in any format. Checks its header at once; sar_device_exec_wait reports a
 * corrupt payload. The message must stay until then. */
enum sar_status sar_task_decode_on_device(struct sar_task *task, struct sar_msg_key *key,
                                          const struct sar_msg *message, struct sar_spvec *vec);

/** As sar_task_decode_on_device, for values alone. Also compares their list's hash, or queues that. */
enum sar_status sar_task_decode_values_on_device(struct sar_task *task, struct sar_msg_key *key,
                                                 const struct sar_list_hash *hash,
                                                 const struct sar_msg *message, struct sar_spvec *vec);

#endif
