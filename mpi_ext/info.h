/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_INFO_H
#define SAR_MPI_EXT_INFO_H

#include <mpi.h>

/** An info object in which knobs are looked up. */
struct sar_info {
    MPI_Info info; /**< or MPI_INFO_NULL */
    char value[MPI_MAX_INFO_VAL + 1];
};

/** The value of the key that stands for a knob, until the next look; a sar_lookup_fn of a struct sar_info. */
const char *sar_info_lookup(const char *name, void *info);

#endif
