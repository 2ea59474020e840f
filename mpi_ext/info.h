/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_INFO_H
#define SAR_MPI_EXT_INFO_H

#include <mpi.h>

#include "base/status.h"

/** An info object in which knobs are looked up. */
struct sar_info {
    MPI_Info info; /**< or MPI_INFO_NULL */
    char value[MPI_MAX_INFO_VAL + 1];
};

/** The stream that an info object names by its address, the same as before where it names none.
 * SAR_BAD_KNOB with a sentence where that is no address. */
enum sar_status sar_info_stream(MPI_Info info, void **stream, char *sentence);

/** The value of the key that stands for a knob, until the next look; a sar_lookup_fn of a struct sar_info. */
const char *sar_info_lookup(const char *name, void *info);

#endif
