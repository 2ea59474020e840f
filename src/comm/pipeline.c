/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank posts the receives of the next sixteen pieces of each tree. A slot goes from receiving to arrived;
 * then the piece is sent to the children from where it lies, and its user reads it. When all of them are
 * done, the slot receives the piece that comes sixteen pieces later. A slow rank so holds up its parent. At
 * most four pieces of a tree are being sent at a time, so that messages of the two trees to a rank do not
 * queue up for its link.
 *
 *     time = bytes beta + (log2(nodes) + 1) (alpha + 2 piece beta) + pieces overhead */

#include "comm/pipeline.h"

#include <string.h>

#include "comm/exchange.h"

/* In a simulation (bench/sim/smpi.h) all messages that are under way share a link fairly, where those of a
 * real network follow each other. So a send there takes the time that the message takes on the link, and is
 * complete when the message has arrived. */
#ifndef SAR_PIPELINE_ISEND
#define SAR_PIPELINE_ISEND PMPI_Isend
#endif

enum { REQUESTS = SAR_BCAST_TREES * SAR_PIPELINE_SLOTS * SAR_PIPELINE_REQUESTS };

static const char NAME[] = "broadcast";

enum sar_status sar_pipeline_open(const struct sar_comm *comm, uint64_t piece_bytes, struct sar_arena *arena,
                                  struct sar_pipeline *p)
{
    enum { SLOTS = SAR_BCAST_TREES * SAR_PIPELINE_SLOTS };
    void *memory;
    size_t stride = sar_align_up(piece_bytes);
    memset(p, 0, sizeof *p);
    SAR_TRY(sar_arena_alloc(arena, SLOTS, stride, &memory));
    p->comm = comm;
    p->piece_bytes = piece_bytes;
    for (size_t i = 0; i < SLOTS; i++)
        p->slots[i].memory = (unsigned char *)memory + i * stride;
    for (size_t i = 0; i < sizeof p->requests / sizeof *p->requests; i++)
        p->requests[i] = MPI_REQUEST_NULL;
    return SAR_OK;
}

static int tree_of(uint64_t piece)
{
    return (int)(piece % SAR_BCAST_TREES);
}

static size_t slot_index(uint64_t piece)
{
    size_t in_tree = (size_t)(piece / SAR_BCAST_TREES % SAR_PIPELINE_SLOTS);
    return (size_t)tree_of(piece) * SAR_PIPELINE_SLOTS + in_tree;
}

struct sar_pipeline_slot *sar_pipeline_slot_of(struct sar_pipeline *p, uint64_t piece)
{
    return &p->slots[slot_index(piece)];
}

static bool is_root(const struct sar_pipeline *p)
{
    return p->comm->rank == p->root;
}

static void fail(struct sar_pipeline *p, int code)
{
    if (code != MPI_SUCCESS && p->status == SAR_OK)
        p->status = SAR_MPI_FAILED;
}

/* Sends a slot to the children. A send that fails is not in flight. */
static void send_on(struct sar_pipeline *p, size_t slot)
{
    struct sar_pipeline_slot *s = &p->slots[slot];
    int tree = (int)(slot / SAR_PIPELINE_SLOTS);
    const struct sar_bcast_links *links = &p->links[tree];
    for (int i = 0; i < links->n_children; i++) {
        MPI_Request *request = &p->requests[slot * SAR_PIPELINE_REQUESTS + 1 + (size_t)i];
        int code = SAR_PIPELINE_ISEND(s->memory, (int)s->bytes, MPI_BYTE, links->children[i], p->tag + tree,
                                      p->comm->mpi_comm, request);
        fail(p, code);
        if (code != MPI_SUCCESS) {
            *request = MPI_REQUEST_NULL;
            continue;
        }
        s->sends++;
        p->active++;
        p->bytes_sent += s->bytes;
        p->messages_sent++;
    }
}

static void arrive(struct sar_pipeline *p, size_t slot, uint64_t bytes)
{
    p->slots[slot].bytes = bytes;
    p->slots[slot].arrived = true;
    p->bytes_received += bytes;
}

/* True if fewer pieces of a tree than the window are being sent. */
static bool may_send(const struct sar_pipeline *p, int tree)
{
    int n = 0;
    for (size_t i = 0; i < SAR_PIPELINE_SLOTS; i++)
        n += p->slots[(size_t)tree * SAR_PIPELINE_SLOTS + i].sends > 0;
    return n < SAR_PIPELINE_WINDOW;
}

/* Sends the pieces that have arrived to the children, in their order. MPI may complete receives in another
 * one. */
static void send_arrived(struct sar_pipeline *p)
{
    for (int tree = 0; tree < SAR_BCAST_TREES; tree++)
        for (; may_send(p, tree) && p->sent_on[tree] < p->posted[tree]; p->sent_on[tree] += SAR_BCAST_TREES) {
            size_t slot = slot_index(p->sent_on[tree]);
            if (!p->slots[slot].arrived)
                break;
            send_on(p, slot);
        }
}

/* A receive that cannot be posted counts as a piece of no bytes. */
static void post_receive(struct sar_pipeline *p, uint64_t piece)
{
    size_t slot = slot_index(piece);
    int tree = tree_of(piece);
    p->slots[slot].arrived = p->slots[slot].released = false;
    int code = PMPI_Irecv(p->slots[slot].memory, (int)p->piece_bytes, MPI_BYTE, p->links[tree].parent,
                          p->tag + tree, p->comm->mpi_comm, &p->requests[slot * SAR_PIPELINE_REQUESTS]);
    fail(p, code);
    if (code == MPI_SUCCESS) {
        p->active++;
        return;
    }
    p->requests[slot * SAR_PIPELINE_REQUESTS] = MPI_REQUEST_NULL;
    arrive(p, slot, 0);
}

static bool is_free(const struct sar_pipeline *p, uint64_t piece)
{
    const struct sar_pipeline_slot *s = &p->slots[slot_index(piece)];
    uint64_t next = p->sent_on[tree_of(piece)];
    bool sent = piece < next + SAR_BCAST_TREES * SAR_PIPELINE_SLOTS;
    return s->released && s->sends == 0 && (is_root(p) || sent);
}

/* Posts the receives of a tree in the order of its pieces. */
static void post_receives(struct sar_pipeline *p)
{
    for (int tree = 0; tree < SAR_BCAST_TREES && !is_root(p); tree++)
        for (; p->posted[tree] < p->pieces && is_free(p, p->posted[tree]); p->posted[tree] += SAR_BCAST_TREES)
            post_receive(p, p->posted[tree]);
}

void sar_pipeline_begin(struct sar_pipeline *p, int root, uint32_t epoch, uint64_t pieces)
{
    uint32_t calls = (uint32_t)p->comm->tag_count / SAR_BCAST_TREES;
    p->root = root;
    p->tag = (int)(epoch % calls) * SAR_BCAST_TREES;
    p->pieces = pieces;
    for (int tree = 0; tree < SAR_BCAST_TREES; tree++) {
        sar_bcast_tree_links(&p->comm->nodes, p->comm->rank, root, tree, &p->links[tree]);
        p->posted[tree] = p->sent_on[tree] = (uint64_t)tree;
    }
    for (size_t i = 0; i < SAR_BCAST_TREES * SAR_PIPELINE_SLOTS; i++)
        p->slots[i].released = true;
    post_receives(p);
}

size_t sar_pipeline_writable(const struct sar_pipeline *p, uint64_t first)
{
    size_t n = 0;
    while (n < SAR_BCAST_TREES * SAR_PIPELINE_WINDOW && first + n < p->pieces && is_free(p, first + n) &&
           may_send(p, tree_of(first + n)))
        n++;
    return n;
}

size_t sar_pipeline_readable(const struct sar_pipeline *p)
{
    size_t n = 0;
    for (; n < SAR_BCAST_TREES * SAR_PIPELINE_SLOTS && p->taken + n < p->pieces; n++) {
        const struct sar_pipeline_slot *s = &p->slots[slot_index(p->taken + n)];
        if (!s->arrived || s->released)
            break;
    }
    return is_root(p) ? 0 : n;
}

void sar_pipeline_send(struct sar_pipeline *p, uint64_t piece)
{
    send_on(p, slot_index(piece));
    p->taken++;
}

void sar_pipeline_release(struct sar_pipeline *p)
{
    p->slots[slot_index(p->taken++)].released = true;
    post_receives(p);
}

static void complete(struct sar_pipeline *p, int request, MPI_Status *status, bool good)
{
    size_t slot = (size_t)request / SAR_PIPELINE_REQUESTS;
    int bytes = 0;
    p->active--;
    p->requests[request] = MPI_REQUEST_NULL;
    if (request % SAR_PIPELINE_REQUESTS != 0) {
        p->slots[slot].sends--;
        return;
    }
    if (good)
        PMPI_Get_count(status, MPI_BYTE, &bytes);
    arrive(p, slot, bytes > 0 ? (uint64_t)bytes : 0);
}

static bool has_not_moved(const struct sar_pipeline *p, int rank, bool sent)
{
    for (size_t slot = 0; slot < SAR_BCAST_TREES * SAR_PIPELINE_SLOTS; slot++) {
        const struct sar_bcast_links *links = &p->links[slot / SAR_PIPELINE_SLOTS];
        const MPI_Request *requests = &p->requests[slot * SAR_PIPELINE_REQUESTS];
        if (sent && links->parent == rank && requests[0] != MPI_REQUEST_NULL)
            return true;
        for (int i = 0; !sent && i < links->n_children; i++)
            if (links->children[i] == rank && requests[1 + i] != MPI_REQUEST_NULL)
                return true;
    }
    return false;
}

static bool is_late(const void *pipeline, int rank)
{
    const struct sar_pipeline *p = pipeline;
    return has_not_moved(p, rank, true) || has_not_moved(p, rank, false);
}

/* Warn of a long wait, and answer the heartbeats of ranks that wait. */
static void watch(struct sar_pipeline *p)
{
    if (p->comm->stall_limit <= 0 || p->comm->watchdog == NULL)
        return;
    double waited = sar_wait_timer_elapsed(&p->timer);
    if (waited <= 0)
        return;
    sar_watchdog_reply(p->comm);
    if (sar_wait_timer_must_warn(&p->timer, waited, p->comm->stall_limit))
        sar_watchdog_warn(p->comm, NAME, waited, is_late, p);
}

/* Tests each request by itself, after MPI has failed to test all. Forgets those that it fails to test: their
 * pieces have no bytes. */
static int test_each(struct sar_pipeline *p)
{
    MPI_Status status;
    int n = 0;
    fail(p, MPI_ERR_OTHER);
    for (int i = 0; i < REQUESTS; i++) {
        int flag = 0;
        if (p->requests[i] == MPI_REQUEST_NULL)
            continue;
        int code = PMPI_Test(&p->requests[i], &flag, &status);
        if (code == MPI_SUCCESS && !flag)
            continue;
        complete(p, i, &status, code == MPI_SUCCESS);
        n++;
    }
    return n;
}

/* Waits for one request. Returns the number of requests that are complete. */
static int wait_any(struct sar_pipeline *p)
{
    MPI_Status status;
    int completed = MPI_UNDEFINED;
    int code = PMPI_Waitany(REQUESTS, p->requests, &completed, &status);
    if (completed == MPI_UNDEFINED)
        return code == MPI_SUCCESS ? 0 : test_each(p);
    complete(p, completed, &status, code == MPI_SUCCESS);
    return 1;
}

static int test_some(struct sar_pipeline *p)
{
    int n = 0, completed[REQUESTS];
    MPI_Status statuses[REQUESTS];
    int code = PMPI_Testsome(REQUESTS, p->requests, &n, completed, statuses);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return test_each(p);
    for (int i = 0; i < n; i++)
        complete(p, completed[i], &statuses[i], code == MPI_SUCCESS || statuses[i].MPI_ERROR == MPI_SUCCESS);
    return n > 0 ? n : 0;
}

bool sar_pipeline_advance(struct sar_pipeline *p, bool block)
{
    bool may_wait =
        block && !p->comm->oversubscribed && (p->comm->stall_limit <= 0 || p->comm->watchdog == NULL);
    int n = 0;
    if (p->active > 0 && may_wait)
        n += wait_any(p);
    if (p->active > 0)
        n += test_some(p);
    send_arrived(p);
    post_receives(p);
    if (n > 0)
        p->timer = (struct sar_wait_timer){ 0 };
    else
        watch(p);
    return n > 0;
}

bool sar_pipeline_is_done(const struct sar_pipeline *p)
{
    return p->active == 0 && p->taken == p->pieces;
}
