/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings of a communicator or plan: check them, apply hints of info objects, resolve names. */

#ifndef SAR_CORE_POLICY_H
#define SAR_CORE_POLICY_H

#include "core/comm_state.h"

/** Returns the policy of these settings. Local.
 * @param seed  seed of the partition hash, if the settings do not give one */
struct sar_policy sar_policy_make(const struct sar_config *config, uint32_t seed);

/** Checks that every scheme, wire format and partition named by the settings exists. Local.
 * @param error_text  size bytes, set on SAR_BAD_SETTING */
enum sar_status sar_policy_check(const struct sar_config *config, char *error_text, size_t size);

/** Applies hints, which must have equal values on all ranks. Collective: all ranks succeed, or all return the
 * same error and *config is unchanged.
 * @param config      equal on all ranks, in and out
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes, set on SAR_BAD_SETTING */
enum sar_status sar_policy_apply_hints(const struct sar_comm *comm, const struct sar_config_layer *hints,
                                       struct sar_config *config, char *error_text);

/** Returns SAR_BAD_SETTING if hints changed a setting that is read only when a communicator is first used.
 * Local.
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes, set on SAR_BAD_SETTING */
enum sar_status sar_policy_check_late(const struct sar_config *before, const struct sar_config *after,
                                      char *error_text);

/** Measures what the threads of a policy gain, if that is not known. Collective; policies are equal on all
 * ranks. */
enum sar_status sar_policy_measure_threads(const struct sar_comm *comm, struct sar_policy *policy);

/** Warns if the settings give a number of threads, and the ranks of this node then have more threads than
 * processors. Only the first rank of a node warns, and only once for a number. Local. */
void sar_policy_warn_threads(const struct sar_comm *comm, const struct sar_config *config);

#endif
