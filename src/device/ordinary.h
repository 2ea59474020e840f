/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_ORDINARY_H
#define SAR_DEVICE_ORDINARY_H

#include <stdbool.h>

/** Whether an address is in the program's image, in the heap behind it or in the caller's stack, and so in
 * memory of the host's, whatever is loaded. That it is not says nothing. Takes nanoseconds. */
bool sar_memory_is_ordinary(const void *address);

#endif
