/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound on messages. The library probes for sizes, allocates memory and polls between messages. A replay
 * knows all messages beforehand, so that only MPI takes time. */

#include "bench/limits/message_replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/nodes.h"
#include "bench/lib/settings.h"
#include "bench/sim/sim_work.h"
#include "comm/exchange.h"

enum { PIECE = 1 << 30, TAGS = 32767 }; /* limits that MPI guarantees */

static void on_message(void *data, const struct sar_message_event *event)
{
    struct perf_message_log *m = data;

    if (m->n == m->capacity) {
        struct sar_message_event *more = perf_alloc(2 * (size_t)m->capacity + 16, sizeof *more);
        if (m->n > 0)
            memcpy(more, m->at, (size_t)m->n * sizeof *more);
        free(m->at);
        m->at = more;
        m->capacity = 2 * m->capacity + 16;
    }
    m->at[m->n++] = *event;
}

void perf_message_log_begin(struct perf_message_log *messages)
{
    *messages = (struct perf_message_log){ .hook = { messages, NULL, on_message, perf_sim_work_on_work } };
    sar_trace_set_hook(&messages->hook);
}

static size_t round_up(uint64_t bytes)
{
    return ((size_t)bytes + PERF_CACHE_LINE - 1) / PERF_CACHE_LINE * PERF_CACHE_LINE;
}

static int piece_count(uint64_t bytes)
{
    return (int)(bytes / PIECE) + 1;
}

/* Returns the end of the phase that begins with message `begin`. */
static int phase_end(const struct perf_message_log *m, int begin)
{
    int end = begin;

    while (end < m->n && m->at[end].phase == m->at[begin].phase)
        end++;
    return end;
}

/* Sets the throttle of long messages to other nodes. If the library chooses the number itself, takes its
 * choice for idle processors. */
static void open_throttle(struct perf_message_log *m)
{
    struct sar_config config = perf_settings_config();
    struct sar_nodes nodes = perf_nodes_find();
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    m->remote = perf_alloc((size_t)ranks, sizeof *m->remote);
    for (int r = 0; r < ranks; r++)
        m->remote[r] = nodes.node[r] != nodes.node[rank];
    sar_nodes_free(&nodes);
    m->throttle = config.throttle == SAR_U64_AUTO ? SAR_EXCHANGE_THROTTLE : (int)config.throttle;
    m->long_bytes = config.long_message;
    m->long_request = perf_alloc((size_t)m->throttle, sizeof *m->long_request);
}

void perf_message_log_end(struct perf_message_log *messages)
{
    size_t most_out = 0, most_in = 0;
    int most = 0;

    perf_sim_work_trace();
    for (int begin = 0, end; begin < messages->n; begin = end) {
        size_t out = 0, in = 0;
        int requests = 0;
        end = phase_end(messages, begin);
        for (int i = begin; i < end; i++) {
            *(messages->at[i].sent ? &out : &in) += round_up(messages->at[i].bytes);
            requests += piece_count(messages->at[i].bytes);
        }
        most_out = out > most_out ? out : most_out;
        most_in = in > most_in ? in : most_in;
        most = requests > most ? requests : most;
    }
    messages->out = perf_block_written(most_out);
    messages->in = perf_block_written(most_in);
    messages->request = perf_alloc((size_t)most, sizeof *messages->request);
    open_throttle(messages);
}

/* Posts the piece of a message that begins at byte `at`. */
static void post(const struct sar_message_event *event, char *data, uint64_t at, MPI_Request *request)
{
    int tag = (2 * event->phase + event->channel) % TAGS;
    uint64_t rest = event->bytes - at;
    int bytes = rest < PIECE ? (int)rest : PIECE;

    if (event->sent)
        MPI_Isend(data + at, bytes, MPI_BYTE, event->peer, tag, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(data + at, bytes, MPI_BYTE, event->peer, tag, MPI_COMM_WORLD, request);
}

/* Returns the request for a piece of a message. A long message waits for a free long request. */
static MPI_Request *request_for(struct perf_message_log *m, const struct sar_message_event *event)
{
    int slot = m->long_posted;

    if (!event->sent || event->bytes < m->long_bytes || m->throttle == 0 || !m->remote[event->peer])
        return &m->request[m->posted++];
    if (m->long_posted < m->throttle)
        m->long_posted++;
    else
        MPI_Waitany(m->long_posted, m->long_request, &slot, MPI_STATUS_IGNORE);
    return &m->long_request[slot];
}

/* Posts the sends, or the receives, of a phase. */
static void post_all(struct perf_message_log *m, int begin, int end, bool sent)
{
    char *data = sent ? m->out.data : m->in.data;

    for (int i = begin; i < end; i++)
        if (m->at[i].sent == sent) {
            for (uint64_t at = 0; at < m->at[i].bytes; at += PIECE)
                post(&m->at[i], data, at, request_for(m, &m->at[i]));
            data += round_up(m->at[i].bytes);
        }
}

void perf_message_log_send(struct perf_message_log *messages)
{
    for (int begin = 0, end; begin < messages->n; begin = end) {
        end = phase_end(messages, begin);
        messages->posted = messages->long_posted = 0;
        post_all(messages, begin, end, false);
        post_all(messages, begin, end, true);
        MPI_Waitall(messages->posted, messages->request, MPI_STATUSES_IGNORE);
        MPI_Waitall(messages->long_posted, messages->long_request, MPI_STATUSES_IGNORE);
    }
}

void perf_message_log_free(struct perf_message_log *messages)
{
    free(messages->at);
    free(messages->request);
    free(messages->long_request);
    free(messages->remote);
    perf_block_free(&messages->out);
    perf_block_free(&messages->in);
    *messages = (struct perf_message_log){ 0 };
}

void perf_message_replay_begin(struct perf_message_replay *replay)
{
    perf_message_log_begin(&replay->log);
}

void perf_message_replay_end(struct perf_message_replay *replay, const struct perf_case *c,
                             const struct perf_tensor *tensor, const MPIX_Sparse_report_t *report)
{
    int log;

    perf_message_log_end(&replay->log);
    MPI_Allreduce(&replay->log.n, &log, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    replay->has_messages = log > 0;
    replay->has_copies = perf_copy_bound_has_levels(report) || !replay->has_messages;
    if (replay->has_copies)
        perf_copy_bound_open(&replay->copy_bound, c, tensor, report);
}

void perf_message_replay_run(struct perf_message_replay *replay, const struct perf_case *c,
                             const struct perf_step *step, void *recv)
{
    if (replay->has_copies)
        perf_copy_bound_before(&replay->copy_bound, c, step, recv);
    if (replay->has_messages)
        perf_message_log_send(&replay->log);
    if (replay->has_copies)
        perf_copy_bound_after(&replay->copy_bound, c, step, recv);
}

void perf_message_replay_describe(const struct perf_message_replay *replay, char *text, size_t size)
{
    int n = snprintf(text, size, "%s of the row before, without computing",
                     !replay->has_messages ? "copies of the bytes"
                     : replay->has_copies  ? "the messages and copies of the bytes"
                                           : "the messages");

    if (replay->has_copies && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ": %llu bytes read and written in memory",
                 replay->copy_bound.max_bytes);
}

void perf_message_replay_free(struct perf_message_replay *replay)
{
    perf_message_log_free(&replay->log);
    perf_copy_bound_close(&replay->copy_bound);
}
