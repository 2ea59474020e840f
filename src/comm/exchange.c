/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point messages whose sizes only the sender knows. The receiver probes, allocates memory of the
 * right size, and receives. Each channel gets one message in each phase, whatever its content. So neither a
 * rank without memory nor a corrupt message leaves another rank waiting.
 *
 *     time of a phase = alpha + (messages - 1) overhead + bytes beta
 *
 * When all ranks send long messages to all ranks at once, each link carries p-1 streams that disturb each
 * other. On TCP such an exchange takes 1.8 times bytes / bandwidth. With four messages at a time, where each
 * rank begins with a different receiver, it takes 1.3 times. MPICH throttles its alltoall in the same way.
 * More are in flight while they are short: with four of 64 KiB at 25 Gb/s and 10 us, a link is idle for a
 * tenth of the time. */

#include "comm/exchange.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/trace.h"
#include "comm/chunking.h"

enum { REQUESTS_PER_CHANNEL = 2 /* one send and one receive */, PHASE_CHARS = 32 };

static const double WINDOW_LATENCIES = 110, MAX_WINDOW_BYTES = 1 << 30;

enum sar_status sar_exchange_open(const struct sar_comm *comm, struct sar_arena *arena,
                                  struct sar_exchange *x)
{
    void *arrived, *incoming, *outgoing, *requests, *indices;
    size_t channels = SAR_CHANNEL_CLASSES * (size_t)comm->ranks,
           max_requests = REQUESTS_PER_CHANNEL * channels;
    SAR_TRY(sar_arena_alloc_zeroed(arena, channels, sizeof *x->arrived, &arrived));
    SAR_TRY(sar_arena_alloc_zeroed(arena, channels, sizeof *x->incoming, &incoming));
    SAR_TRY(sar_arena_alloc_zeroed(arena, channels, sizeof *x->outgoing, &outgoing));
    SAR_TRY(sar_arena_alloc(arena, max_requests, sizeof *x->requests, &requests));
    SAR_TRY(sar_arena_alloc(arena, 2 * max_requests + channels, sizeof(int), &indices));
    *x = (struct sar_exchange){ .comm = comm,
                                .arena = arena,
                                .arrived = arrived,
                                .incoming = incoming,
                                .outgoing = outgoing,
                                .requests = requests,
                                .request_channel = indices,
                                .completed = (int *)indices + max_requests,
                                .send_queue = (int *)indices + 2 * max_requests,
                                .throttle = comm->throttle };
    return SAR_OK;
}

void sar_exchange_fail(struct sar_exchange *x, enum sar_status status)
{
    if (x->status == SAR_OK)
        x->status = status;
}

void sar_exchange_begin_phase(struct sar_exchange *x, uint32_t epoch, int phase)
{
    uint32_t number = (epoch * SAR_EXCHANGE_PHASES + (uint32_t)phase) %
                      ((uint32_t)x->comm->tag_count / SAR_CHANNEL_CLASSES);
    x->tag_base = (int)number * SAR_CHANNEL_CLASSES;
    x->epoch = epoch;
    x->phase = phase;
    x->timer = (struct sar_wait_timer){ 0 };
    x->n_requests = x->n_recvs = 0;
    x->wake_on_any = x->any_arrived = false;
    x->queue_head = x->queue_tail = x->long_in_flight = 0;
    x->bytes_in_flight = 0;
    memset(x->expected, 0, sizeof x->expected);
}

static int rank_of(const struct sar_exchange *x, int channel)
{
    return channel % x->comm->ranks;
}

static int tag_of(const struct sar_exchange *x, int channel)
{
    return x->tag_base + channel / x->comm->ranks;
}

/* Post the receive of a chunk, or discard it if `buffer` is NULL. */
static enum sar_status post_receive(struct sar_exchange *x, void *buffer, int bytes, int channel)
{
    int from = rank_of(x, channel), tag = tag_of(x, channel);
    MPI_Request *request = &x->requests[x->n_requests];
    if (buffer == NULL)
        SAR_TRY(sar_chunk_discard(bytes, from, tag, x->comm->mpi_comm, request));
    else
        SAR_TRY(sar_mpi(PMPI_Irecv(buffer, bytes, MPI_BYTE, from, tag, x->comm->mpi_comm, request)));
    x->incoming[channel].posted++;
    x->n_recvs++;
    x->request_channel[x->n_requests++] = ~channel;
    return SAR_OK;
}

/* Post the send of a channel's next chunk as request i. */
static enum sar_status post_send(struct sar_exchange *x, int channel, int i)
{
    struct sar_chunked_send *s = &x->outgoing[channel];
    const unsigned char *from = sar_chunked_send_data(s);
    int chunk = sar_chunked_send_next(s, x->comm->chunk);
    SAR_TRY(sar_mpi(PMPI_Isend(from, chunk, MPI_BYTE, rank_of(x, channel), tag_of(x, channel),
                               x->comm->mpi_comm, &x->requests[i])));
    x->request_channel[i] = channel;
    return SAR_OK;
}

/* True if the throttle applies to the channel's message. */
static bool is_throttled(const struct sar_exchange *x, int channel)
{
    const struct sar_comm *comm = x->comm;
    const int *node = comm->nodes.node;
    return x->throttle > 0 && x->outgoing[channel].bytes >= comm->long_message &&
           node[rank_of(x, channel)] != node[comm->rank];
}

uint64_t sar_exchange_window_bytes(double alpha, double beta)
{
    double bytes = beta > 0 ? WINDOW_LATENCIES * alpha / beta : 0;
    return bytes < MAX_WINDOW_BYTES ? (uint64_t)bytes : (uint64_t)MAX_WINDOW_BYTES;
}

static bool may_send_long(const struct sar_exchange *x)
{
    return x->long_in_flight < x->throttle ||
           (x->long_in_flight < SAR_EXCHANGE_MAX_THROTTLE && x->bytes_in_flight < x->comm->window_bytes);
}

static void start_send(struct sar_exchange *x, int channel)
{
    enum sar_status status = post_send(x, channel, x->n_requests);
    bool is_long = status == SAR_OK && is_throttled(x, channel);
    x->n_requests += status == SAR_OK;
    x->long_in_flight += is_long;
    x->bytes_in_flight += is_long ? x->outgoing[channel].bytes : 0;
    sar_exchange_fail(x, status);
}

static void end_send(struct sar_exchange *x, int channel)
{
    if (!is_throttled(x, channel))
        return;
    x->long_in_flight--;
    x->bytes_in_flight -= x->outgoing[channel].bytes;
}

static bool any_queued(const struct sar_exchange *x)
{
    return x->queue_head < x->queue_tail;
}

static void send_queued(struct sar_exchange *x)
{
    while (any_queued(x) && may_send_long(x))
        start_send(x, x->send_queue[x->queue_head++]);
}

static void trace_message(const struct sar_exchange *x, int channel, bool sent, uint64_t bytes)
{
    int ranks = x->comm->ranks;
    sar_trace_message(&(struct sar_message_event){ x->phase, channel / ranks, channel % ranks, sent, bytes });
}

void sar_exchange_send(struct sar_exchange *x, int channel, const struct sar_msg *message)
{
    struct sar_msg failure = { .buffer = &x->failure, .bytes = sizeof x->failure };
    if (x->status != SAR_OK)
        message = &failure;
    uint64_t head = message->payload != NULL ? SAR_FIRST_CHUNK_BYTES : SAR_MSG_HEADER_BYTES;
    x->traffic.bytes_sent += message->bytes - SAR_MSG_HEADER_BYTES + head;
    x->traffic.header_bytes_sent += head;
    x->traffic.messages_sent++;
    trace_message(x, channel, true, message->bytes);
    x->outgoing[channel] = (struct sar_chunked_send){ .buffer = message->buffer,
                                                      .bytes = message->bytes,
                                                      .payload = message->payload };
    if (is_throttled(x, channel))
        x->send_queue[x->queue_tail++] = channel;
    else
        start_send(x, channel);
    send_queued(x);
}

void sar_exchange_expect(struct sar_exchange *x, int channel)
{
    x->incoming[channel] = (struct sar_chunked_recv){ .incomplete = true };
    x->arrived[channel] = (struct sar_msg){ .buffer = NULL };
    x->expected[channel / x->comm->ranks]++;
}

/* Take the size of a message of several chunks from its header, and memory for a detached payload. */
static enum sar_status begin_multi_chunk(struct sar_exchange *x, struct sar_chunked_recv *r,
                                         const struct sar_msg_header *header)
{
    size_t bytes = (size_t)header->bytes;
    r->bytes = sar_add_saturate(header->bytes, SAR_MSG_HEADER_BYTES);
    if (header->detached == 0)
        return header->bytes < SAR_FIRST_CHUNK_BYTES - SAR_MSG_HEADER_BYTES ? SAR_CORRUPT : SAR_OK;
    r->received = SAR_MSG_HEADER_BYTES;
    if (x->recv_allocator == NULL)
        return SAR_OK;
    r->payload = x->recv_allocator->alloc(x->recv_allocator, &bytes);
    return r->payload == NULL ? SAR_NO_MEMORY : SAR_OK;
}

/* Allocate memory for a message. The first of several chunks is received here, since its header has the
 * message's size. It is so short that MPI sends it eagerly, so that PMPI_Recv does not wait.
 * @param chunk bytes of the message's first chunk */
static enum sar_status begin_receive(struct sar_exchange *x, struct sar_chunked_recv *r, uint64_t chunk,
                                     const MPI_Status *status)
{
    unsigned char first[SAR_FIRST_CHUNK_BYTES];
    struct sar_msg_header header;
    void *buffer;
    r->bytes = chunk;
    if (chunk == SAR_FIRST_CHUNK_BYTES) {
        SAR_TRY(sar_mpi(PMPI_Recv(first, SAR_FIRST_CHUNK_BYTES, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG,
                                  x->comm->mpi_comm, MPI_STATUS_IGNORE)));
        r->received = SAR_FIRST_CHUNK_BYTES;
        if (!sar_msg_read_header(first, &header))
            return SAR_CORRUPT;
        SAR_TRY(begin_multi_chunk(x, r, &header));
    }
    SAR_TRY(sar_arena_alloc(x->arena, r->payload != NULL ? SAR_MSG_HEADER_BYTES : r->bytes, 1, &buffer));
    r->buffer = buffer;
    memcpy(buffer, first, r->received);
    return SAR_OK;
}

static void receive_chunk(struct sar_exchange *x, int channel, int bytes)
{
    void *buffer = sar_chunked_recv_next(&x->incoming[channel], (uint64_t)bytes);
    if (buffer == NULL)
        sar_exchange_fail(x, SAR_CORRUPT);
    sar_exchange_fail(x, post_receive(x, buffer, bytes, channel));
}

static void end_receive(struct sar_exchange *x, int channel)
{
    struct sar_chunked_recv *r = &x->incoming[channel];
    r->incomplete = false;
    x->expected[channel / x->comm->ranks]--;
    trace_message(x, channel, false, r->received);
    if (r->buffer != NULL)
        x->arrived[channel] = (struct sar_msg){ r->buffer, r->received, r->payload };
}

/* Receive a chunk that has been probed. Without memory the chunk is discarded, so that its sender can go
 * on. */
static void accept_chunk(struct sar_exchange *x, int channel_class, const MPI_Status *status)
{
    int channel = channel_class * x->comm->ranks + status->MPI_SOURCE, bytes;
    struct sar_chunked_recv *r = &x->incoming[channel];
    PMPI_Get_count(status, MPI_BYTE, &bytes);
    bool first = sar_chunked_recv_is_first(r),
         last = sar_chunked_recv_is_last(r, (uint64_t)bytes, x->comm->chunk);
    x->traffic.bytes_received += (uint64_t)bytes;
    if (first)
        sar_exchange_fail(x, begin_receive(x, r, (uint64_t)bytes, status));
    if (!first || last)
        receive_chunk(x, channel, bytes);
    if (r->incomplete && last)
        end_receive(x, channel);
}

static bool any_expected(const struct sar_exchange *x)
{
    int n = 0;
    for (int channel_class = 0; channel_class < SAR_CHANNEL_CLASSES; channel_class++)
        n += x->expected[channel_class];
    return n > 0 && !x->send_only;
}

/* Receive a chunk of each class that has one. True if there was any. */
static bool probe_chunks(struct sar_exchange *x)
{
    bool any = false;
    for (int channel_class = 0; channel_class < SAR_CHANNEL_CLASSES && !x->send_only; channel_class++) {
        MPI_Status status;
        int found = 0;
        if (x->expected[channel_class] == 0 || x->n_recvs == SAR_CHANNEL_CLASSES * x->comm->ranks)
            continue;
        if (PMPI_Iprobe(MPI_ANY_SOURCE, x->tag_base + channel_class, x->comm->mpi_comm, &found, &status) !=
            MPI_SUCCESS) {
            sar_exchange_fail(x, SAR_MPI_FAILED);
            x->expected[channel_class] = 0;
        } else if (found) {
            accept_chunk(x, channel_class, &status);
            any = true;
        }
    }
    return any;
}

/* Forget the requests that MPI fails to test. */
static void drop_failed_requests(struct sar_exchange *x)
{
    int flag;
    sar_exchange_fail(x, SAR_MPI_FAILED);
    for (int i = 0; i < x->n_requests; i++)
        if (x->requests[i] != MPI_REQUEST_NULL &&
            PMPI_Test(&x->requests[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            x->requests[i] = MPI_REQUEST_NULL;
}

/* Remove completed requests from the list. A send is replaced by the send of its message's next chunk, if
 * any; then queued messages are sent. */
static void compact_requests(struct sar_exchange *x)
{
    int n_kept = 0;
    for (int i = 0; i < x->n_requests; i++) {
        int channel = x->request_channel[i];
        bool completed = x->requests[i] == MPI_REQUEST_NULL;
        if (completed && channel < 0) {
            x->incoming[~channel].posted--;
            x->n_recvs--;
            x->any_arrived |= sar_exchange_has_arrived(x, ~channel);
        } else if (completed && x->outgoing[channel].incomplete)
            sar_exchange_fail(x, post_send(x, channel, i));
        if (x->requests[i] == MPI_REQUEST_NULL) {
            if (channel >= 0)
                end_send(x, channel);
            continue;
        }
        x->requests[n_kept] = x->requests[i];
        x->request_channel[n_kept++] = channel;
    }
    x->n_requests = n_kept;
    send_queued(x);
}

/* True if all requests are complete, or one where that matters. MPI may wait itself if there is nothing to
 * probe for and no watchdog. */
static bool test_requests(struct sar_exchange *x, bool block)
{
    bool any = x->wake_on_any || any_queued(x), probing = any_expected(x);
    bool may_wait =
        block && !probing && (x->comm->stall_limit <= 0 || x->comm->watchdog == NULL) && x->status == SAR_OK;
    int code, n = x->n_requests;
    if (n == 0 && !any)
        return false;
    if (any)
        code = (may_wait ? PMPI_Waitsome : PMPI_Testsome)(x->n_requests, x->requests, &n, x->completed,
                                                          MPI_STATUSES_IGNORE);
    else
        code = may_wait ? PMPI_Waitall(x->n_requests, x->requests, MPI_STATUSES_IGNORE)
                        : PMPI_Testall(x->n_requests, x->requests, &n, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS)
        drop_failed_requests(x);
    return n > 0;
}

static bool has_not_sent(const void *exchange, int rank)
{
    const struct sar_exchange *x = exchange;
    for (int channel_class = 0; channel_class < SAR_CHANNEL_CLASSES; channel_class++)
        if (x->incoming[channel_class * x->comm->ranks + rank].incomplete)
            return true;
    return false;
}

static bool has_not_received(const void *exchange, int rank)
{
    const struct sar_exchange *x = exchange;
    for (int i = 0; i < x->n_requests; i++)
        if (x->request_channel[i] >= 0 && rank_of(x, x->request_channel[i]) == rank)
            return true;
    return false;
}

static const char *phase_name(const struct sar_exchange *x, char name[PHASE_CHARS])
{
    snprintf(name, PHASE_CHARS, "phase %d", x->phase);
    return name;
}

/* Warn of a long wait, and answer the heartbeats of ranks that wait. */
static void watch(struct sar_exchange *x)
{
    char not_sent[SAR_RANK_LIST_CHARS], not_received[SAR_RANK_LIST_CHARS];
    char operation[SAR_OPERATION_CHARS];
    if (x->comm->stall_limit <= 0 || x->comm->watchdog == NULL)
        return;
    double waited = sar_wait_timer_elapsed(&x->timer);
    if (waited <= 0)
        return;
    sar_watchdog_reply(x->comm);
    if (!sar_wait_timer_must_warn(&x->timer, waited, x->comm->stall_limit))
        return;
    const struct sar_rank_names *rank_names = sar_watchdog_rank_names(x->comm->watchdog);
    sar_rank_names_format(not_sent, sizeof not_sent, rank_names, has_not_sent, x);
    sar_rank_names_format(not_received, sizeof not_received, rank_names, has_not_received, x);
    sar_watchdog_print_operation(operation, x->comm, phase_name(x, (char[PHASE_CHARS]){ 0 }));
    SAR_LOG(WARN, COMM, "waited %.1f s in %s%s%s%s%s", waited, operation,
            not_sent[0] != '\0' ? "; no message from " : "", not_sent,
            not_received[0] != '\0' ? "; none taken by " : "", not_received);
}

static void end_wait(struct sar_exchange *x)
{
    char name[PHASE_CHARS];
    if (x->timer.warned > 0)
        sar_watchdog_end_wait(x->comm, &x->timer, phase_name(x, name));
    else
        x->timer = (struct sar_wait_timer){ 0 };
}

bool sar_exchange_has_arrived(const struct sar_exchange *x, int channel)
{
    const struct sar_chunked_recv *r = &x->incoming[channel];
    return !r->incomplete && r->posted == 0;
}

void sar_exchange_advance(struct sar_exchange *x, bool block, bool *done)
{
    int spins = 0;
    for (;;) {
        while (probe_chunks(x)) {
            spins = 0;
            end_wait(x);
        }
        if (test_requests(x, block) || x->status != SAR_OK)
            compact_requests(x);
        *done = x->n_requests == 0 && !any_expected(x);
        if (*done)
            end_wait(x);
        if (*done || (x->wake_on_any && x->any_arrived))
            return;
        watch(x);
        if (!block)
            return;
        sar_comm_backoff(x->comm, &spins);
    }
}
