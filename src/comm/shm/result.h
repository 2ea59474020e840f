/* SPDX-License-Identifier: BSD-3-Clause */
/* Results in memory that the ranks of a node share. All ranks of the group are holders of a result until each
 * has released it; then a later call may reuse the memory. A result outlives the group that created it. */

#ifndef SAR_COMM_SHM_RESULT_H
#define SAR_COMM_SHM_RESULT_H

#include "comm/shm/group.h"

struct sar_shm_result;

/** Most shared results of a process at a time; beyond that, creating one fails with SAR_MANY_RESULTS. Tests
 * lower it. */
extern int sar_shm_result_limit;

/** Finds or creates a result of at least `bytes` bytes, and makes all ranks of the group its holders. One
 * rank calls this and sends the handle to the others.
 * @param returned result that the caller hands back for reuse, or NULL; used if all ranks hold it and it
 * fits */
enum sar_status sar_shm_result_acquire(struct sar_shm_group *group, struct sar_shm_result *returned,
                                       size_t bytes, struct sar_shm_result **result);

/** Finds or maps the result that another rank has acquired. Local.
 * @param returned  result that the caller hands back for reuse, or NULL */
enum sar_status sar_shm_result_attach(struct sar_shm_group *group, struct sar_shm_result *returned,
                                      const struct sar_shm_handle *handle, struct sar_shm_result **result);

/** Returns the handle to send to the other ranks. */
struct sar_shm_handle sar_shm_result_handle(const struct sar_shm_result *result);

/** Returns the memory, which belongs to the result. */
void *sar_shm_result_memory(const struct sar_shm_result *result);

/** Closes the file descriptor, once every rank has mapped the result. Local. */
void sar_shm_result_close_fd(struct sar_shm_result *result);

/** Adds a reference of this process: the mapping stays until sar_shm_result_release. Local. */
void sar_shm_result_retain(struct sar_shm_result *result);

/** Ends this rank's hold, and drops a reference. Local, at any time. */
void sar_shm_result_release(struct sar_shm_result *result);

/** Drops the references of the group's free list. Local. */
void sar_shm_result_drop_free_list(struct sar_shm_group *group);

#endif
