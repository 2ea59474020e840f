/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that other processes of this node can map. It lasts as long as one of them has it mapped. */

#ifndef SAR_NET_SEGMENT_H
#define SAR_NET_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/** Mapped memory; zero bytes are none. */
struct sar_segment {
    void *memory;
    size_t bytes;
    bool part; /**< of another one, with which its mapping goes */
};

/** What another process needs to map a segment; plain bytes. */
struct sar_segment_name {
    int64_t process;
    uint64_t serial; /**< of the process's segments, from 1 on */
    uint64_t bytes;
    int64_t file; /**< by which the process knows the segment */
};

/** Whether it is only memory that ranks share which cannot be had: there may be some of a rank's own. */
static inline bool sar_segment_lacks(enum sar_status status)
{
    return status == SAR_NO_SEGMENT || status == SAR_NO_FILES;
}

/** Make a segment of zero bytes of memory. Pages are taken when they are first touched, close to the
 * processor that does so. */
enum sar_status sar_segment_make(size_t bytes, struct sar_segment *segment, struct sar_segment_name *name);

/** Map the segment of another process, which has not sealed it yet. */
enum sar_status sar_segment_map(const struct sar_segment_name *name, struct sar_segment *segment);

/** Whether others may still map an own segment, which takes a file descriptor as long. */
static inline bool sar_segment_is_open(const struct sar_segment_name *name)
{
    return name->serial != 0 && name->file >= 0;
}

/** A part of a segment, own or mapped, that every rank can name. Parts have numbers below 255. */
struct sar_segment sar_segment_part(const struct sar_segment *whole, size_t from, size_t bytes);
struct sar_segment_name sar_segment_name_part(const struct sar_segment_name *whole, unsigned number,
                                              size_t bytes);

/** Let nobody map an own segment any more. */
void sar_segment_seal(struct sar_segment_name *name);

/** Give the mapping back. */
void sar_segment_unmap(struct sar_segment *segment);

bool sar_segment_same(const struct sar_segment_name *a, const struct sar_segment_name *b);

#endif
