/* SPDX-License-Identifier: BSD-3-Clause */
/* Apart from command.c, for programs that have no use for the library's MPI functions. */

#include "command.h"

#include <mpix_sparse.h>
#include <stdio.h>

void perf_command_version(const struct perf_command *command)
{
    int version = 0;
    MPIX_Sparse_get_version(&version);
    printf("%s %d.%d.%d, library %d.%d.%d\n", command->program, MPIX_SPARSE_VERSION >> 16,
           MPIX_SPARSE_VERSION >> 8 & 255, MPIX_SPARSE_VERSION & 255, version >> 16, version >> 8 & 255,
           version & 255);
}
