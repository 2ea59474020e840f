/* SPDX-License-Identifier: BSD-3-Clause */
/* How long memory is kept that uses no longer need. Programs take turns between tensors of very different
 * sizes, as the layers of a network are, and memory that is given back and taken anew is mapped and zeroed
 * page by page. */

#ifndef SAR_BASE_IDLE_H
#define SAR_BASE_IDLE_H

#include <stdbool.h>
#include <stddef.h>

/** SAR_IDLE_USES: in a row that must each need little of some memory before it is given back.
 * SAR_IDLE_SHARE: it is more than so many times what they need. */
enum { SAR_IDLE_USES = 256, SAR_IDLE_SHARE = 4 };

/** Zero bytes at first. */
struct sar_idle {
    unsigned uses; /**< in a row that needed little */
    size_t most;   /**< bytes that one of them needed */
};

/** Note a use that needed so many bytes of those held.
 * @param worth  bytes that are kept in any case
 * @return whether they are to be given back: uses to come are taken to need no more than idle->most */
static inline bool sar_idle_note(struct sar_idle *idle, size_t held, size_t needed, size_t worth)
{
    if (held / SAR_IDLE_SHARE <= needed + worth) {
        idle->uses = 0;
        idle->most = 0;
        return false;
    }
    idle->most = needed > idle->most ? needed : idle->most;
    return ++idle->uses >= SAR_IDLE_USES;
}

#endif
