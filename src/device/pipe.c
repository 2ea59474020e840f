/* SPDX-License-Identifier: BSD-3-Clause */
/* Piece k is on the host, k + 1 and k + 2 come, and k - 1 goes. What a piece goes in is the stream in which
 * the next one comes into its memory, so that nothing waits for it. */

#include "device/pipe.h"

enum { AHEAD = 2 };

_Static_assert(AHEAD + 2 <= SAR_STAGING_BLOCKS, "each has memory of its own");

static size_t length_of(const struct sar_pipe *pipe, size_t k)
{
    uint64_t rest = pipe->bytes - (uint64_t)k * pipe->piece;
    return rest < pipe->piece ? (size_t)rest : pipe->piece;
}

static enum sar_status queue_until(struct sar_pipe *pipe, size_t last)
{
    for (; pipe->queued <= last && (uint64_t)pipe->queued * pipe->piece < pipe->bytes; pipe->queued++) {
        size_t k = pipe->queued;
        SAR_TRY(sar_staging_copy(pipe->staging, k, sar_pipe_piece(pipe, k), pipe->in + k * pipe->piece,
                                 length_of(pipe, k)));
        SAR_TRY(sar_staging_mark(pipe->staging, k));
    }
    return SAR_OK;
}

enum sar_status sar_pipe_open(struct sar_pipe *pipe, const struct sar_memory *memory,
                              const struct sar_course *course, size_t piece)
{
    uint64_t bytes = course->bytes;
    *pipe = (struct sar_pipe){ .in = course->in, .out = course->out, .bytes = bytes, .piece = piece };
    SAR_TRY(sar_staging_take(memory, bytes < piece ? (size_t)bytes : piece, &pipe->staging));
    for (size_t k = 0; k < SAR_STAGING_BLOCKS && (k == 0 || k * piece < bytes); k++)
        SAR_TRY(sar_staging_block(pipe->staging, k, &pipe->block[k]));
    return queue_until(pipe, AHEAD);
}

enum sar_status sar_pipe_bring(struct sar_pipe *pipe, size_t k)
{
    SAR_TRY(queue_until(pipe, k + AHEAD));
    return sar_staging_await(pipe->staging, k);
}

enum sar_status sar_pipe_send(struct sar_pipe *pipe, size_t k)
{
    return sar_staging_copy(pipe->staging, k, pipe->out + k * pipe->piece, sar_pipe_piece(pipe, k),
                            length_of(pipe, k));
}

enum sar_status sar_pipe_close(struct sar_pipe *pipe)
{
    enum sar_status status = sar_staging_give_back(pipe->staging);
    *pipe = (struct sar_pipe){ 0 };
    return status;
}
