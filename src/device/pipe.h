/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_PIPE_H
#define SAR_DEVICE_PIPE_H

#include "device/staging.h"

/** A dense vector in device memory that is worked on in pieces on the host: each comes into a block of a
 * ring, changes there, and goes to its place in the outcome. Later pieces come, and earlier ones go,
 * meanwhile. */
struct sar_pipe {
    struct sar_staging *staging;
    const char *in;
    char *out;
    uint64_t bytes;
    size_t piece;  /**< bytes of each piece but the last */
    size_t queued; /**< pieces that are on their way, or were */
    void *block[SAR_STAGING_BLOCKS];
};

/** What a vector comes from and goes to; the same array, or two that do not overlap. */
struct sar_course {
    const void *in;
    void *out;
    uint64_t bytes;
};

/** Take memory, and begin to bring the first pieces. To be closed, also on failure. */
enum sar_status sar_pipe_open(struct sar_pipe *pipe, const struct sar_memory *memory,
                              const struct sar_course *course, size_t piece);

/** Where piece k is to be worked on: memory of the host, whatever has failed since the pipe was opened. */
static inline void *sar_pipe_piece(const struct sar_pipe *pipe, size_t k)
{
    return pipe->block[k % SAR_STAGING_BLOCKS];
}

/** Wait until piece k is there, one after the other; it is sent on its way when that is over. */
enum sar_status sar_pipe_bring(struct sar_pipe *pipe, size_t k);
enum sar_status sar_pipe_send(struct sar_pipe *pipe, size_t k);

/** Wait until all that was sent has come to its place, and give the memory back. */
enum sar_status sar_pipe_close(struct sar_pipe *pipe);

#endif
