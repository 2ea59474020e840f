/* SPDX-License-Identifier: BSD-3-Clause */
/* The library finds the sizes of messages by probing, takes memory for them, and looks at several things
 * between two messages. Here all is known beforehand, so that nothing but MPI takes time. */

#include "messages.h"

#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "knobs.h"
#include "net/exchange.h"
#include "nodes.h"

enum { PIECE = 1 << 30, TAGS = 32767 }; /* what MPI takes at least: bytes of a message, tags */

static void take_down(void *data, const struct sar_passage *passage)
{
    struct perf_messages *m = data;

    if (m->n == m->room) {
        struct sar_passage *more = perf_alloc(2 * (size_t)m->room + 16, sizeof *more);
        if (m->n > 0)
            memcpy(more, m->at, (size_t)m->n * sizeof *more);
        free(m->at);
        m->at = more;
        m->room = 2 * m->room + 16;
    }
    m->at[m->n++] = *passage;
}

void perf_messages_begin(struct perf_messages *messages)
{
    *messages = (struct perf_messages){ .follower = { messages, NULL, take_down, perf_charge_work } };
    sar_trace_follow(&messages->follower);
}

static size_t up(uint64_t bytes)
{
    return ((size_t)bytes + PERF_LINE - 1) / PERF_LINE * PERF_LINE;
}

static int pieces(uint64_t bytes)
{
    return (int)(bytes / PIECE) + 1;
}

/* The end of the phase that begins with a message. */
static int end_of(const struct perf_messages *m, int begin)
{
    int end = begin;

    while (end < m->n && m->at[end].phase == m->at[begin].phase)
        end++;
    return end;
}

/* Which ranks are on other nodes, and how many long messages go there at a time: where the library chooses,
 * as many as it takes where nobody works. */
static void find_throttle(struct perf_messages *m)
{
    struct sar_config config = perf_knobs_config();
    struct sar_nodes nodes = perf_nodes_find();
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    m->far = perf_alloc((size_t)ranks, sizeof *m->far);
    for (int r = 0; r < ranks; r++)
        m->far[r] = nodes.node[r] != nodes.node[rank];
    sar_nodes_free(&nodes);
    m->throttle = config.throttle == SAR_WHOLE_AUTO ? SAR_FEW_LONG : (int)config.throttle;
    m->least = config.long_message;
    m->holding = perf_alloc((size_t)m->throttle, sizeof *m->holding);
}

void perf_messages_end(struct perf_messages *messages)
{
    size_t most_out = 0, most_in = 0;
    int most = 0;

    perf_charge_follow();
    for (int begin = 0, end; begin < messages->n; begin = end) {
        size_t out = 0, in = 0;
        int requests = 0;
        end = end_of(messages, begin);
        for (int i = begin; i < end; i++) {
            *(messages->at[i].sent ? &out : &in) += up(messages->at[i].bytes);
            requests += pieces(messages->at[i].bytes);
        }
        most_out = out > most_out ? out : most_out;
        most_in = in > most_in ? in : most_in;
        most = requests > most ? requests : most;
    }
    messages->out = perf_block_written(most_out);
    messages->in = perf_block_written(most_in);
    messages->request = perf_alloc((size_t)most, sizeof *messages->request);
    find_throttle(messages);
}

/* Post the piece of a message that begins at a byte of it. */
static void post(const struct sar_passage *passage, char *data, uint64_t at, MPI_Request *request)
{
    int tag = (2 * passage->phase + passage->lane) % TAGS;
    uint64_t rest = passage->bytes - at;
    int bytes = rest < PIECE ? (int)rest : PIECE;

    if (passage->sent)
        MPI_Isend(data + at, bytes, MPI_BYTE, passage->peer, tag, MPI_COMM_WORLD, request);
    else
        MPI_Irecv(data + at, bytes, MPI_BYTE, passage->peer, tag, MPI_COMM_WORLD, request);
}

/* Where to put the request of a message's piece: one of those of long messages, as soon as one is free. */
static MPI_Request *request_for(struct perf_messages *m, const struct sar_passage *passage)
{
    int place = m->held;

    if (!passage->sent || passage->bytes < m->least || m->throttle == 0 || !m->far[passage->peer])
        return &m->request[m->posted++];
    if (m->held < m->throttle)
        m->held++;
    else
        MPI_Waitany(m->held, m->holding, &place, MPI_STATUS_IGNORE);
    return &m->holding[place];
}

/* Post what a phase sends, or what it receives. */
static void post_all(struct perf_messages *m, int begin, int end, bool sent)
{
    char *data = sent ? m->out.data : m->in.data;

    for (int i = begin; i < end; i++)
        if (m->at[i].sent == sent) {
            for (uint64_t at = 0; at < m->at[i].bytes; at += PIECE)
                post(&m->at[i], data, at, request_for(m, &m->at[i]));
            data += up(m->at[i].bytes);
        }
}

void perf_messages_pass(struct perf_messages *messages)
{
    for (int begin = 0, end; begin < messages->n; begin = end) {
        end = end_of(messages, begin);
        messages->posted = messages->held = 0;
        post_all(messages, begin, end, false);
        post_all(messages, begin, end, true);
        MPI_Waitall(messages->posted, messages->request, MPI_STATUSES_IGNORE);
        MPI_Waitall(messages->held, messages->holding, MPI_STATUSES_IGNORE);
    }
}

void perf_messages_free(struct perf_messages *messages)
{
    free(messages->at);
    free(messages->request);
    free(messages->holding);
    free(messages->far);
    perf_block_free(&messages->out);
    perf_block_free(&messages->in);
    *messages = (struct perf_messages){ 0 };
}
