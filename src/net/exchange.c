/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages whose sizes only the sender knows. The receiver probes, takes memory of the right
 * size, and receives: one message a peer and phase, whatever its content, so that neither a rank that ran
 * out of memory nor a damaged message can leave another rank waiting. */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "net/exchange.h"

#include <limits.h>
#include <string.h>

enum {
    MEGABYTE = 1 << 20,   /* unit of messages beyond INT_MAX bytes */
    DROP_BLOCK = 64 << 10 /* unit of messages received into nothing */
};

enum sar_status sar_exchange_open(const struct sar_net *net, struct sar_arena *arena, struct sar_exchange *x)
{
    void *arrived, *requests, *awaited;
    size_t ranks = (size_t)net->ranks;
    SAR_TRY(sar_arena_take_zeroed(arena, ranks, sizeof *x->arrived, &arrived));
    SAR_TRY(sar_arena_take(arena, 2 * ranks, sizeof *x->requests, &requests));
    SAR_TRY(sar_arena_take_zeroed(arena, ranks, sizeof *x->awaited, &awaited));
    *x = (struct sar_exchange){
        .net = net, .arena = arena, .arrived = arrived, .requests = requests, .awaited = awaited
    };
    return SAR_OK;
}

void sar_exchange_fail(struct sar_exchange *x, enum sar_status status)
{
    if (x->status == SAR_OK)
        x->status = status;
}

void sar_exchange_phase(struct sar_exchange *x, uint32_t epoch, int phase)
{
    x->tag = (int)((epoch * SAR_PHASES + (uint32_t)phase) % (uint32_t)x->net->tags);
    x->pending = 0;
    x->expected = 0;
}

/* Bytes in blocks and a rest, as one datatype: blocks one behind the other, or one over the other, which throws
 * away all but the last. MPI counts with int, and truncates what finds no room, an error that MPICH raises on
 * MPI_COMM_WORLD. */
static enum sar_status block_type(uint64_t bytes, int block, int stride, MPI_Datatype *type)
{
    MPI_Datatype blocks, types[2];
    int lengths[2] = { 1, (int)(bytes % (uint64_t)block) };
    MPI_Aint places[2] = { 0, (MPI_Aint)(bytes / (uint64_t)block) * stride };
    if (bytes / (uint64_t)block > INT_MAX)
        return SAR_MPI_FAILED;
    SAR_TRY(sar_mpi(MPI_Type_vector((int)(bytes / (uint64_t)block), block, stride, MPI_BYTE, &blocks)));
    types[0] = blocks;
    types[1] = MPI_BYTE;
    enum sar_status status = sar_mpi(MPI_Type_create_struct(2, lengths, places, types, type));
    MPI_Type_free(&blocks);
    SAR_TRY(status);
    return sar_mpi(MPI_Type_commit(type));
}

/* Post a message; without a buffer it is received into nothing. */
static enum sar_status post(struct sar_exchange *x, bool sends, void *buffer, uint64_t bytes, int peer)
{
    static unsigned char nothing[DROP_BLOCK];
    MPI_Request *request = &x->requests[x->pending];
    MPI_Datatype type = MPI_BYTE;
    int n = (int)bytes, code;
    if (x->pending == 2 * x->net->ranks)
        return SAR_CORRUPT; /* more messages than peers: none of ours */
    if (buffer == NULL) {
        SAR_TRY(block_type(bytes, DROP_BLOCK, 0, &type));
        buffer = nothing;
        n = 1;
    } else if (bytes > INT_MAX) {
        SAR_TRY(block_type(bytes, MEGABYTE, MEGABYTE, &type));
        n = 1;
    }
    if (sends)
        code = MPI_Isend(buffer, n, type, peer, x->tag, x->net->comm, request);
    else
        code = MPI_Irecv(buffer, n, type, peer, x->tag, x->net->comm, request);
    if (type != MPI_BYTE)
        MPI_Type_free(&type);
    SAR_TRY(sar_mpi(code));
    x->pending++;
    return SAR_OK;
}

void sar_exchange_send(struct sar_exchange *x, int peer, const struct sar_message *message)
{
    struct sar_message failure = { &x->failure, sizeof x->failure };
    if (x->status != SAR_OK)
        message = &failure;
    x->traffic.bytes_sent += message->bytes;
    x->traffic.header_bytes_sent += SAR_HEADER_BYTES;
    x->traffic.messages_sent++;
    sar_exchange_fail(x, post(x, true, message->buffer, message->bytes, peer));
}

void sar_exchange_expect(struct sar_exchange *x, int peer)
{
    x->awaited[peer] = true;
    x->arrived[peer] = (struct sar_message){ NULL, 0 };
    x->expected++;
}

static uint64_t size_of(MPI_Status *status)
{
    int n;
    MPI_Get_count(status, MPI_BYTE, &n);
    if (n != MPI_UNDEFINED)
        return (uint64_t)n;
#ifdef HAVE_MPI_GET_ELEMENTS_X
    MPI_Count large;
    MPI_Get_elements_x(status, MPI_BYTE, &large);
    if (large > 0)
        return (uint64_t)large;
#endif
    return 0;
}

/* Receive a message that has been seen; into nothing without memory for it, so that its sender can go on. */
static void accept_message(struct sar_exchange *x, MPI_Status *status)
{
    int peer = status->MPI_SOURCE;
    uint64_t bytes = size_of(status);
    void *buffer = NULL;
    enum sar_status taken = SAR_CORRUPT;
    if (x->awaited[peer])
        taken = sar_arena_take(x->arena, bytes, 1, &buffer);
    sar_exchange_fail(x, taken);
    if (taken == SAR_OK)
        x->arrived[peer] = (struct sar_message){ buffer, bytes };
    x->traffic.bytes_received += bytes;
    x->expected -= x->awaited[peer];
    x->awaited[peer] = false;
    sar_exchange_fail(x, post(x, false, buffer, bytes, peer));
}

static bool look_for_message(struct sar_exchange *x)
{
    MPI_Status status;
    int seen = 0;
    if (x->expected == 0)
        return false;
    if (MPI_Iprobe(MPI_ANY_SOURCE, x->tag, x->net->comm, &seen, &status) != MPI_SUCCESS) {
        sar_exchange_fail(x, SAR_MPI_FAILED);
        x->expected = 0;
        return false;
    }
    if (seen)
        accept_message(x, &status);
    return seen != 0;
}

static bool all_moved(struct sar_exchange *x)
{
    int all = 1, flag;
    if (x->status == SAR_OK && MPI_Testall(x->pending, x->requests, &all, MPI_STATUSES_IGNORE) == MPI_SUCCESS)
        return all != 0;
    sar_exchange_fail(x, SAR_MPI_FAILED);
    for (int i = 0; i < x->pending; i++)
        if (x->requests[i] != MPI_REQUEST_NULL &&
            MPI_Test(&x->requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            all &= flag;
    return all != 0;
}

void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done)
{
    int looks = 0;
    for (;;) {
        while (look_for_message(x))
            looks = 0;
        *done = x->expected == 0 && all_moved(x);
        if (*done || !block)
            return;
        sar_net_pause(x->net, &looks);
    }
}
