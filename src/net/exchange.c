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
    MEGABYTE = 1 << 20 /* unit of messages beyond INT_MAX bytes */
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

/* MPI counts with int: a large message is megabytes and a rest, in one datatype. */
static enum sar_status large_type(uint64_t bytes, MPI_Datatype *type)
{
    MPI_Datatype megabyte, types[2];
    int lengths[2] = { (int)(bytes / MEGABYTE), (int)(bytes % MEGABYTE) };
    MPI_Aint places[2] = { 0, (MPI_Aint)(bytes - bytes % MEGABYTE) };
    if (bytes / MEGABYTE > INT_MAX)
        return SAR_MPI_FAILED;
    SAR_TRY(sar_mpi(MPI_Type_contiguous(MEGABYTE, MPI_BYTE, &megabyte)));
    types[0] = megabyte;
    types[1] = MPI_BYTE;
    enum sar_status status = sar_mpi(MPI_Type_create_struct(2, lengths, places, types, type));
    MPI_Type_free(&megabyte);
    SAR_TRY(status);
    return sar_mpi(MPI_Type_commit(type));
}

static enum sar_status post(struct sar_exchange *x, bool sends, void *buffer, uint64_t bytes, int peer)
{
    MPI_Request *request = &x->requests[x->pending];
    MPI_Datatype type = MPI_BYTE;
    int n = (int)bytes, code;
    if (x->pending == 2 * x->net->ranks)
        return SAR_CORRUPT; /* more messages than peers: none of ours */
    if (bytes > INT_MAX) {
        SAR_TRY(large_type(bytes, &type));
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

/* Receive a message that has been seen. Without memory for it, it is received into nothing, which MPI calls
 * a truncation, so that its sender can go on. */
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
    sar_exchange_fail(x, post(x, false, buffer, taken == SAR_OK ? bytes : 0, peer));
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

/* After a dropped message Testall reports the truncation and may leave others unfinished: test one by one. */
static bool all_moved(struct sar_exchange *x)
{
    int flag = 1, all = 1;
    if (x->status == SAR_OK && MPI_Testall(x->pending, x->requests, &all, MPI_STATUSES_IGNORE) == MPI_SUCCESS)
        return all != 0;
    sar_exchange_fail(x, SAR_MPI_FAILED);
    for (int i = 0; i < x->pending; i++) {
        if (x->requests[i] != MPI_REQUEST_NULL &&
            MPI_Test(&x->requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            all &= flag;
    }
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
