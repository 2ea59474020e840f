/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages whose sizes only the sender knows. The receiver probes, takes memory of the right
 * size, and receives: one message a port and phase, whatever its content, so that neither a rank that ran out
 * of memory nor a damaged message can leave another rank waiting.
 *
 * Where all ranks send long messages to all at once, each link carries p-1 streams of them, which get in each
 * other's way: over TCP such an exchange takes 1.8 times its bytes over the rate, and 1.3 times with four
 * messages at a time, each rank beginning with another receiver. MPICH throttles its alltoall likewise. */

#include "net/exchange.h"

#include <string.h>

#include "base/log.h"
#include "base/trace.h"
#include "net/drop.h"
#include "net/roll.h"
#include "net/transfer.h"

enum { REQUESTS_EACH = 2 /* requests under way for each port */ };

enum sar_status sar_exchange_open(const struct sar_net *net, struct sar_arena *arena, struct sar_exchange *x)
{
    void *arrived, *incoming, *outgoing, *requests, *over, *ports_of, *held;
    size_t ports = SAR_LANES * (size_t)net->ranks, room = REQUESTS_EACH * ports;
    SAR_TRY(sar_arena_take_zeroed(arena, ports, sizeof *x->arrived, &arrived));
    SAR_TRY(sar_arena_take_zeroed(arena, ports, sizeof *x->incoming, &incoming));
    SAR_TRY(sar_arena_take_zeroed(arena, ports, sizeof *x->outgoing, &outgoing));
    SAR_TRY(sar_arena_take(arena, room, sizeof *x->requests, &requests));
    SAR_TRY(sar_arena_take(arena, room, sizeof *x->over, &over));
    SAR_TRY(sar_arena_take(arena, room, sizeof *x->ports, &ports_of));
    SAR_TRY(sar_arena_take(arena, ports, sizeof *x->held, &held));
    *x = (struct sar_exchange){ .net = net,
                                .arena = arena,
                                .arrived = arrived,
                                .incoming = incoming,
                                .outgoing = outgoing,
                                .requests = requests,
                                .over = over,
                                .ports = ports_of,
                                .held = held,
                                .throttle = net->throttle };
    return SAR_OK;
}

void sar_exchange_fail(struct sar_exchange *x, enum sar_status status)
{
    if (x->status == SAR_OK)
        x->status = status;
}

void sar_exchange_phase(struct sar_exchange *x, uint32_t epoch, int phase)
{
    uint32_t number = (epoch * SAR_PHASES + (uint32_t)phase) % ((uint32_t)x->net->tags / SAR_LANES);
    x->tag = (int)number * SAR_LANES;
    x->epoch = epoch;
    x->phase = phase;
    x->stall = (struct sar_stall){ 0 };
    x->pending = x->receiving = 0;
    x->piecemeal = x->news = false;
    x->held_first = x->held_end = x->throttled = 0;
    memset(x->expected, 0, sizeof x->expected);
}

static int rank_of(const struct sar_exchange *x, int port)
{
    return port % x->net->ranks;
}

static int tag_of(const struct sar_exchange *x, int port)
{
    return x->tag + port / x->net->ranks;
}

/* Post the receive of a piece; without a buffer it is dropped. */
static enum sar_status post_receive(struct sar_exchange *x, void *buffer, int bytes, int port)
{
    int from = rank_of(x, port), tag = tag_of(x, port);
    MPI_Request *request = &x->requests[x->pending];
    if (buffer == NULL)
        SAR_TRY(sar_drop(bytes, from, tag, x->net->comm, request));
    else
        SAR_TRY(sar_mpi(PMPI_Irecv(buffer, bytes, MPI_BYTE, from, tag, x->net->comm, request)));
    x->incoming[port].posted++;
    x->receiving++;
    x->ports[x->pending++] = ~port;
    return SAR_OK;
}

/* Post the next piece to a port as request i. */
static enum sar_status post_send(struct sar_exchange *x, int port, int i)
{
    struct sar_sending *s = &x->outgoing[port];
    const unsigned char *from = sar_sending_at(s);
    int piece = sar_sending_next(s, x->net->chunk);
    SAR_TRY(sar_mpi(
        PMPI_Isend(from, piece, MPI_BYTE, rank_of(x, port), tag_of(x, port), x->net->comm, &x->requests[i])));
    x->ports[i] = port;
    return SAR_OK;
}

/* Whether a message may have to wait for others. */
static bool is_throttled(const struct sar_exchange *x, int port)
{
    const struct sar_net *net = x->net;
    const int *node = net->nodes.node;
    return x->throttle > 0 && x->outgoing[port].bytes >= net->long_message &&
           node[rank_of(x, port)] != node[net->rank];
}

static void start_send(struct sar_exchange *x, int port)
{
    enum sar_status status = post_send(x, port, x->pending);
    x->pending += status == SAR_OK;
    x->throttled += status == SAR_OK && is_throttled(x, port);
    sar_exchange_fail(x, status);
}

static bool any_held(const struct sar_exchange *x)
{
    return x->held_first < x->held_end;
}

/* Send messages that had to wait, as far as others are over. */
static void release(struct sar_exchange *x)
{
    while (any_held(x) && x->throttled < x->throttle)
        start_send(x, x->held[x->held_first++]);
}

static void tell(const struct sar_exchange *x, int port, bool sent, uint64_t bytes)
{
    int ranks = x->net->ranks;
    sar_trace_message(&(struct sar_passage){ x->phase, port / ranks, port % ranks, sent, bytes });
}

void sar_exchange_send(struct sar_exchange *x, int port, const struct sar_message *message)
{
    struct sar_message failure = { .buffer = &x->failure, .bytes = sizeof x->failure };
    if (x->status != SAR_OK)
        message = &failure;
    uint64_t head = message->payload != NULL ? SAR_FIRST_PIECE : SAR_HEADER_BYTES;
    x->traffic.bytes_sent += message->bytes - SAR_HEADER_BYTES + head;
    x->traffic.header_bytes_sent += head;
    x->traffic.messages_sent++;
    tell(x, port, true, message->bytes);
    x->outgoing[port] = (struct sar_sending){ .buffer = message->buffer,
                                              .bytes = message->bytes,
                                              .payload = message->payload };
    if (is_throttled(x, port))
        x->held[x->held_end++] = port;
    else
        start_send(x, port);
    release(x);
}

void sar_exchange_expect(struct sar_exchange *x, int port)
{
    x->incoming[port] = (struct sar_receiving){ .open = true };
    x->arrived[port] = (struct sar_message){ .buffer = NULL };
    x->expected[port / x->net->ranks]++;
}

/* Of several pieces, as its header tells. */
static enum sar_status begin_long(struct sar_exchange *x, struct sar_receiving *r,
                                  const struct sar_header *header)
{
    size_t bytes = (size_t)header->bytes;
    r->bytes = sar_plus(header->bytes, SAR_HEADER_BYTES);
    if (header->apart == 0)
        return header->bytes < SAR_FIRST_PIECE - SAR_HEADER_BYTES ? SAR_CORRUPT : SAR_OK;
    r->seen = SAR_HEADER_BYTES;
    if (x->landing == NULL)
        return SAR_OK;
    r->payload = x->landing->take(x->landing, &bytes);
    return r->payload == NULL ? SAR_NO_MEMORY : SAR_OK;
}

/* Take memory for a message that begins with a piece of so many bytes. The first of several pieces is
 * received on the spot, since only its header tells how much memory that is, and which. */
static enum sar_status begin_receive(struct sar_exchange *x, struct sar_receiving *r, uint64_t piece,
                                     const MPI_Status *status)
{
    unsigned char first[SAR_FIRST_PIECE];
    struct sar_header header;
    void *buffer;
    r->bytes = piece;
    if (piece == SAR_FIRST_PIECE) {
        SAR_TRY(sar_mpi(PMPI_Recv(first, SAR_FIRST_PIECE, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG,
                                  x->net->comm, MPI_STATUS_IGNORE)));
        r->seen = SAR_FIRST_PIECE;
        if (!sar_message_header(first, &header))
            return SAR_CORRUPT;
        SAR_TRY(begin_long(x, r, &header));
    }
    SAR_TRY(sar_arena_take(x->arena, r->payload != NULL ? SAR_HEADER_BYTES : r->bytes, 1, &buffer));
    r->buffer = buffer;
    memcpy(buffer, first, r->seen);
    return SAR_OK;
}

static void receive_piece(struct sar_exchange *x, int port, int bytes)
{
    void *place = sar_receiving_next(&x->incoming[port], (uint64_t)bytes);
    if (place == NULL)
        sar_exchange_fail(x, SAR_CORRUPT);
    sar_exchange_fail(x, post_receive(x, place, bytes, port));
}

static void end_receive(struct sar_exchange *x, int port)
{
    struct sar_receiving *r = &x->incoming[port];
    r->open = false;
    x->expected[port / x->net->ranks]--;
    tell(x, port, false, r->seen);
    if (r->buffer != NULL)
        x->arrived[port] = (struct sar_message){ r->buffer, r->seen, r->payload };
}

/* Receive a piece that has been seen; into nothing without memory for it, so that its sender can go on. */
static void accept_piece(struct sar_exchange *x, int lane, const MPI_Status *status)
{
    int port = lane * x->net->ranks + status->MPI_SOURCE, bytes;
    struct sar_receiving *r = &x->incoming[port];
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    bool first = sar_receiving_begins(r), last = sar_receiving_ends(r, (uint64_t)bytes, x->net->chunk);
    x->traffic.bytes_received += (uint64_t)bytes;
    if (first)
        sar_exchange_fail(x, begin_receive(x, r, (uint64_t)bytes, status));
    if (!first || last)
        receive_piece(x, port, bytes);
    if (r->open && last)
        end_receive(x, port);
}

/* Whether a piece has been seen, on any lane. */
static bool look_for_pieces(struct sar_exchange *x)
{
    bool any = false;
    for (int lane = 0; lane < SAR_LANES; lane++) {
        MPI_Status status;
        int seen = 0;
        if (x->expected[lane] == 0 || x->receiving == SAR_LANES * x->net->ranks)
            continue;
        if (PMPI_Iprobe(MPI_ANY_SOURCE, x->tag + lane, x->net->comm, &seen, &status) != MPI_SUCCESS) {
            sar_exchange_fail(x, SAR_MPI_FAILED);
            x->expected[lane] = 0;
        } else if (seen) {
            accept_piece(x, lane, &status);
            any = true;
        }
    }
    return any;
}

/* Give up on requests that MPI cannot tell about. */
static void abandon(struct sar_exchange *x)
{
    int flag;
    sar_exchange_fail(x, SAR_MPI_FAILED);
    for (int i = 0; i < x->pending; i++)
        if (x->requests[i] != MPI_REQUEST_NULL &&
            PMPI_Test(&x->requests[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            x->requests[i] = MPI_REQUEST_NULL;
}

static void end_piece(struct sar_exchange *x, int port)
{
    x->incoming[port].posted--;
    x->receiving--;
    x->news |= sar_exchange_has(x, port);
}

/* Drop the requests that are over from the list, and send the next pieces of messages that have some left, or
 * others in their place. */
static void move_on(struct sar_exchange *x)
{
    int kept = 0;
    for (int i = 0; i < x->pending; i++) {
        int port = x->ports[i];
        bool over = x->requests[i] == MPI_REQUEST_NULL;
        if (over && port < 0)
            end_piece(x, ~port);
        else if (over && x->outgoing[port].open)
            sar_exchange_fail(x, post_send(x, port, i));
        if (x->requests[i] == MPI_REQUEST_NULL) {
            x->throttled -= port >= 0 && is_throttled(x, port);
            continue;
        }
        x->requests[kept] = x->requests[i];
        x->ports[kept++] = port;
    }
    x->pending = kept;
    release(x);
}

/* Whether all are over, or any where one matters. With nothing to look for or watch, MPI may sleep. */
static bool moved(struct sar_exchange *x, bool block)
{
    bool any = x->piecemeal || any_held(x), looks = x->expected[0] > 0 || x->expected[1] > 0;
    bool sleeps = block && !looks && (x->net->stall <= 0 || x->net->roll == NULL) && x->status == SAR_OK;
    int code, n = x->pending;
    if (n == 0 && !any)
        return false;
    if (any)
        code = (sleeps ? PMPI_Waitsome : PMPI_Testsome)(x->pending, x->requests, &n, x->over,
                                                        MPI_STATUSES_IGNORE);
    else
        code = sleeps ? PMPI_Waitall(x->pending, x->requests, MPI_STATUSES_IGNORE)
                      : PMPI_Testall(x->pending, x->requests, &n, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
        abandon(x);
    return n > 0;
}

static bool all_moved(struct sar_exchange *x, bool block)
{
    if (moved(x, block) || x->status != SAR_OK)
        move_on(x);
    return x->pending == 0;
}

static bool is_silent(const void *exchange, int rank)
{
    const struct sar_exchange *x = exchange;
    for (int lane = 0; lane < SAR_LANES; lane++)
        if (x->incoming[lane * x->net->ranks + rank].open)
            return true;
    return false;
}

static bool is_full(const void *exchange, int rank)
{
    const struct sar_exchange *x = exchange;
    for (int i = 0; i < x->pending; i++)
        if (x->ports[i] >= 0 && rank_of(x, x->ports[i]) == rank)
            return true;
    return false;
}

/* Warn of a wait that lasts long. */
static void watch(struct sar_exchange *x)
{
    char silent[SAR_NAMES], full[SAR_NAMES];
    if (x->net->stall <= 0 || x->net->roll == NULL)
        return;
    double waited = sar_stall_clock(&x->stall);
    if (waited <= 0)
        return;
    sar_roll_answer(x->net);
    if (!sar_stall_tells(&x->stall, waited, x->net->stall))
        return;
    const struct sar_roster *roster = sar_roll_roster(x->net->roll);
    sar_stall_list(silent, sizeof silent, roster, is_silent, x);
    sar_stall_list(full, sizeof full, roster, is_full, x);
    SAR_LOG(WARN, NET, "waited %.1f s in phase %d of call %u%s%s%s%s", waited, x->phase, x->epoch,
            silent[0] != '\0' ? "; no message from " : "", silent, full[0] != '\0' ? "; none taken by " : "",
            full);
}

bool sar_exchange_has(const struct sar_exchange *x, int port)
{
    const struct sar_receiving *r = &x->incoming[port];
    return !r->open && r->posted == 0;
}

void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done)
{
    int looks = 0;
    for (;;) {
        while (look_for_pieces(x)) {
            looks = 0;
            x->stall = (struct sar_stall){ 0 };
        }
        *done = all_moved(x, block) && x->expected[0] == 0 && x->expected[1] == 0;
        if (*done || (x->piecemeal && x->news))
            return;
        watch(x);
        if (!block)
            return;
        sar_net_pause(x->net, &looks);
    }
}
