/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings as keys of an MPI_Info. Used when a communicator is opened or configured and when a plan is made.
 * All functions are local. */

#ifndef SAR_MPI_EXT_INFO_H
#define SAR_MPI_EXT_INFO_H

#include <mpi.h>

#include "base/status.h"

/** An info object in which settings are looked up, and the last value found. */
struct sar_info {
    MPI_Info info;                    /**< or MPI_INFO_NULL; the caller's */
    char value[MPI_MAX_INFO_VAL + 1]; /**< written by sar_info_lookup */
};

/** Sets *stream to the address in the key mpix_sparse_stream; without the key *stream is unchanged. Returns
 * SAR_BAD_SETTING, and an error text, if the value is not an address.
 * @param error_text  SAR_ERROR_TEXT_SIZE bytes */
enum sar_status sar_info_get_stream(MPI_Info info, void **stream, char *error_text);

/** Warns of keys that begin with mpix_sparse_ and name no setting.
 * @param info  or MPI_INFO_NULL */
void sar_info_warn_unknown(MPI_Info info);

/** Returns the value of the key of a setting, or NULL. The value is valid until the next lookup. This is a
 * sar_config_lookup_fn.
 * @param name  name of the setting, without its prefix
 * @param info  a struct sar_info */
const char *sar_info_lookup(const char *name, void *info);

#endif
