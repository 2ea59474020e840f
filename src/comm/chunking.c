/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a message's chunks, and the receive of chunks that nobody wants.
 *
 * A discarded chunk is received by a datatype that places all its blocks at one address, so that 64 KiB are
 * enough for a chunk of any size. The standard calls overlapping receive entries erroneous (MPI 4.0, 5.1.11).
 * MPICH and Open MPI write the entries one after the other; since nobody reads them, all threads share the
 * block. The alternatives are worse. A buffer of the chunk's size, up to 1 GiB, is not to be had in the main
 * case: the message is discarded because there was no memory for it. A shorter receive is a truncation error,
 * which MPICH may raise on MPI_COMM_WORLD. Not to receive at all leaves the sender waiting. */

#include "comm/chunking.h"

#include <stddef.h>

#include "comm/mpi_util.h"

enum { DISCARD_BLOCK_BYTES = 64 << 10 };

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

const unsigned char *sar_chunked_send_data(const struct sar_chunked_send *s)
{
    bool detached = s->payload != NULL && s->sent != 0;
    return detached ? s->payload + (s->sent - SAR_MSG_HEADER_BYTES) : s->buffer + s->sent;
}

int sar_chunked_send_next(struct sar_chunked_send *s, uint64_t chunk)
{
    uint64_t bytes = min_of(s->bytes - s->sent, chunk);
    bool first = s->sent == 0, detached = s->payload != NULL;
    bool one_chunk = !detached && s->bytes <= chunk && s->bytes != SAR_FIRST_CHUNK_BYTES;
    if (first && !one_chunk)
        bytes = SAR_FIRST_CHUNK_BYTES;
    s->incomplete = first ? !one_chunk : bytes == chunk;
    s->sent += first && detached ? SAR_MSG_HEADER_BYTES : bytes;
    return (int)bytes;
}

bool sar_chunked_recv_is_first(const struct sar_chunked_recv *r)
{
    return r->incomplete && r->received == 0;
}

bool sar_chunked_recv_is_last(const struct sar_chunked_recv *r, uint64_t bytes, uint64_t chunk)
{
    return sar_chunked_recv_is_first(r) ? bytes != SAR_FIRST_CHUNK_BYTES : bytes < chunk;
}

void *sar_chunked_recv_next(struct sar_chunked_recv *r, uint64_t bytes)
{
    bool fits = r->incomplete && r->buffer != NULL && bytes <= r->bytes - r->received;
    unsigned char *buffer = !fits                ? NULL
                            : r->payload != NULL ? r->payload + (r->received - SAR_MSG_HEADER_BYTES)
                                                 : r->buffer + r->received;
    if (!fits)
        r->buffer = NULL;
    r->received += bytes;
    return buffer;
}

static enum sar_status discard_type(int bytes, MPI_Datatype *type)
{
    MPI_Datatype blocks, types[2];
    int lengths[2] = { 1, bytes % DISCARD_BLOCK_BYTES };
    MPI_Aint offsets[2] = { 0, 0 };
    SAR_TRY(
        sar_mpi(PMPI_Type_vector(bytes / DISCARD_BLOCK_BYTES, DISCARD_BLOCK_BYTES, 0, MPI_BYTE, &blocks)));
    types[0] = blocks;
    types[1] = MPI_BYTE;
    enum sar_status status = sar_mpi(PMPI_Type_create_struct(2, lengths, offsets, types, type));
    PMPI_Type_free(&blocks);
    SAR_TRY(status);
    status = sar_mpi(PMPI_Type_commit(type));
    if (status != SAR_OK)
        PMPI_Type_free(type);
    return status;
}

enum sar_status sar_chunk_discard(int bytes, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    static unsigned char block[DISCARD_BLOCK_BYTES];
    MPI_Datatype type;
    SAR_TRY(discard_type(bytes, &type));
    int code = PMPI_Irecv(block, 1, type, from, tag, comm, request);
    PMPI_Type_free(&type);
    return sar_mpi(code);
}
