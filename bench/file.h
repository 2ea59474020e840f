/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that all ranks read the same of. */
#ifndef PERF_FILE_H
#define PERF_FILE_H

#include <stddef.h>

#include "base.h"

/* What is in a file, with a null behind it, on all ranks and in fresh memory. Rank 0 reads it. Collective.
 * NULL when it cannot be read; rank 0 has then said so. */
char *perf_file_load(const char *path, size_t *bytes, const struct perf_world *world);

#endif
