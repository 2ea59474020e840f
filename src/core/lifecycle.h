/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens, configures and closes the state of a communicator. */

#ifndef SAR_CORE_LIFECYCLE_H
#define SAR_CORE_LIFECYCLE_H

#include "core/comm_state.h"

/** Opens the state of a communicator. Collective over user: all ranks succeed, or all return the same error.
 * @param hints       hints of the communicator, which override the environment; or NULL
 * @param comm_state  set on success; sar_comm_state_close frees it
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes, set on SAR_BAD_SETTING on all ranks */
enum sar_status sar_comm_state_open(MPI_Comm user, const struct sar_config_layer *hints,
                                    struct sar_comm_state **comm_state, char *error_text);

/** Change the settings of a communicator for later calls and plans. Discards its tensor states; open plans
 * keep their settings and states. No call may be in flight there. Collective: all ranks succeed, or all
 * return the same error and nothing changes.
 * @param mine        error that this rank has found already, or SAR_OK
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes, set on SAR_BAD_SETTING, but not for another rank's `mine` */
enum sar_status sar_comm_state_configure(struct sar_comm_state *comm_state, enum sar_status mine,
                                         const struct sar_config_layer *hints, char *error_text);

/** Starts to close a state: tells the other ranks how many watchdog messages to expect. Collective, does not
 * wait. No call may be in flight there. */
void sar_comm_state_begin_close(struct sar_comm_state *comm_state);

/** Frees a state; calls sar_comm_state_begin_close if the caller has not. Sets comm_state of its plans to
 * NULL. Collective; does not wait for late ranks, but defers the state until sar_comm_state_reap. */
void sar_comm_state_close(struct sar_comm_state *comm_state);

/** Frees the deferred states that all ranks have closed.
 * @param wait  wait until all ranks have closed all of them; collective then */
void sar_comm_state_reap(bool wait);

#endif
