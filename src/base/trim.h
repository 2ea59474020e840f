/* SPDX-License-Identifier: BSD-3-Clause */
/* When to release memory that many uses in a row have not needed. Programs alternate between tensors of very
 * different sizes, such as the layers of a network. Releasing memory early would cost new page faults. */

#ifndef SAR_BASE_TRIM_H
#define SAR_BASE_TRIM_H

#include <stdbool.h>
#include <stddef.h>

/** SAR_TRIM_USES: small uses in a row before memory is released.
 * SAR_TRIM_RATIO: a use is small if the memory held is more than this many times the memory needed. */
enum { SAR_TRIM_USES = 256, SAR_TRIM_RATIO = 4 };

/** Small uses of one piece of memory. Zero bytes are a valid initial value. */
struct sar_trim {
    unsigned small_uses; /**< small uses in a row */
    size_t peak;         /**< most bytes that one of these uses needed */
};

/** Records a use that needed `needed` of `held` bytes. Always keeps `reserve` bytes.
 * Returns true if the memory is to be released; later uses are expected to need at most trim->peak bytes. */
static inline bool sar_trim_note(struct sar_trim *trim, size_t held, size_t needed, size_t reserve)
{
    if (held / SAR_TRIM_RATIO <= needed + reserve) {
        trim->small_uses = 0;
        trim->peak = 0;
        return false;
    }
    trim->peak = needed > trim->peak ? needed : trim->peak;
    return ++trim->small_uses >= SAR_TRIM_USES;
}

#endif
