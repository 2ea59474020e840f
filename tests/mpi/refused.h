/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations that fail: of malloc and its kin, and of what else asks here.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. */
#ifndef REFUSED_H
#define REFUSED_H

#include <stdbool.h>

/** Which allocation is to fail, from 0 on; -1 for none. */
extern long refused_at;

/** How many there have been since this was last set to 0. */
extern long refused_asked;

/** Count an allocation; whether it is to fail. */
bool refused_next(void);

#endif
