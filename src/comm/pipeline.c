/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank posts the receives of the next pieces of each tree, one a slot. A slot goes from receiving to
 * arrived; then the piece is sent to the children from where it lies, and its user reads it. When all of
 * them are done, the slot receives a later piece of its tree. A slow rank so holds up its parent. A rank
 * sends at most `window` pieces of a tree to a child at a time, which fills its link. Each child has a window
 * of its own, so that a child whose link is busy does not delay messages to the others.
 *
 *     time = bytes beta + pieces (overhead + header beta) + log_k(nodes) (alpha + k piece beta) */

#include "comm/pipeline.h"

#include <limits.h>
#include <string.h>

#include "base/trace.h"
#include "comm/exchange.h"

/* In a simulation (bench/sim/smpi.h) all messages that are under way share a link fairly, where those of a
 * real network follow each other. So a send there takes the time that the message takes on the link, and is
 * complete when the message has arrived. A rank there tests its requests after each send. */
#ifndef SAR_PIPELINE_ISEND
#define SAR_PIPELINE_ISEND PMPI_Isend
#define SAR_PIPELINE_SENDS INT_MAX
#endif

static const char NAME[] = "broadcast";

enum sar_status sar_pipeline_open(const struct sar_comm *comm, uint64_t bytes, struct sar_arena *arena,
                                  struct sar_pipeline *p)
{
    void *memory = NULL;
    memset(p, 0, sizeof *p);
    p->comm = comm;
    if (comm->ranks == 1)
        return SAR_OK;
    SAR_TRY(sar_arena_alloc(arena, bytes, 1, &memory));
    p->memory = memory;
    p->memory_bytes = bytes;
    for (size_t i = 0; i < sizeof p->requests / sizeof *p->requests; i++)
        p->requests[i] = MPI_REQUEST_NULL;
    return SAR_OK;
}

static int tree_of(const struct sar_pipeline *p, uint64_t piece)
{
    return (int)(piece % (uint64_t)p->plan.trees);
}

static size_t slot_index(const struct sar_pipeline *p, uint64_t piece)
{
    uint64_t in_tree = piece / (uint64_t)p->plan.trees % (uint64_t)p->depth;
    return (size_t)tree_of(p, piece) * (size_t)p->depth + (size_t)in_tree;
}

static size_t n_slots(const struct sar_pipeline *p)
{
    return (size_t)p->plan.trees * (size_t)p->depth;
}

/* Requests of a slot: its receive, then its sends. */
static size_t slot_requests(const struct sar_pipeline *p)
{
    return (size_t)p->plan.trees + 2;
}

static int n_requests(const struct sar_pipeline *p)
{
    return (int)(n_slots(p) * slot_requests(p));
}

struct sar_pipeline_slot *sar_pipeline_slot_of(struct sar_pipeline *p, uint64_t piece)
{
    return &p->slots[slot_index(p, piece)];
}

static bool is_root(const struct sar_pipeline *p)
{
    return p->comm->rank == p->plan.root;
}

static void fail(struct sar_pipeline *p, int code)
{
    if (code != MPI_SUCCESS && p->status == SAR_OK)
        p->status = SAR_MPI_FAILED;
}

/* Sends a piece to a child. A send that fails is not in flight. */
static void send_to(struct sar_pipeline *p, uint64_t piece, int child)
{
    int tree = tree_of(p, piece), rank = p->links[tree].children[child];
    size_t slot = slot_index(p, piece);
    struct sar_pipeline_slot *s = &p->slots[slot];
    MPI_Request *request = &p->requests[slot * slot_requests(p) + 1 + (size_t)child];
    p->children[tree][child].next = piece + (uint64_t)p->plan.trees;
    int code = SAR_PIPELINE_ISEND(s->memory, (int)s->bytes, MPI_BYTE, rank, p->tag + tree, p->comm->mpi_comm,
                                  request);
    fail(p, code);
    if (code != MPI_SUCCESS) {
        *request = MPI_REQUEST_NULL;
        return;
    }
    p->children[tree][child].sending++;
    s->sends++;
    p->active++;
    p->bytes_sent += s->bytes;
    p->messages_sent++;
    sar_trace_message(&(struct sar_message_event){ 0, tree, rank, true, s->bytes });
}

static void arrive(struct sar_pipeline *p, size_t slot, uint64_t bytes)
{
    p->slots[slot].bytes = bytes;
    p->slots[slot].arrived = true;
    p->bytes_received += bytes;
}

static bool may_send(const struct sar_pipeline *p, int tree, int child)
{
    const struct sar_pipeline_child *c = &p->children[tree][child];
    return c->sending < p->window && c->next < p->posted[tree] && p->slots[slot_index(p, c->next)].arrived;
}

/* Sends one message: of the pieces that can go to a child, the earliest. Returns false if there is none. */
static bool send_next(struct sar_pipeline *p)
{
    int to_child = -1;
    uint64_t piece = UINT64_MAX;
    for (int tree = 0; tree < p->plan.trees; tree++)
        for (int i = 0; i < p->links[tree].n_children; i++)
            if (p->children[tree][i].next < piece && may_send(p, tree, i)) {
                piece = p->children[tree][i].next;
                to_child = i;
            }
    if (to_child < 0)
        return false;
    send_to(p, piece, to_child);
    return true;
}

/* Sends pieces that have arrived to the children, in their order: MPI may complete receives in another one.
 * Returns the number of sends. */
static int send_arrived(struct sar_pipeline *p)
{
    int n = 0;
    while (n < SAR_PIPELINE_SENDS && send_next(p))
        n++;
    return n;
}

/* A receive that cannot be posted counts as a piece of no bytes. */
static void post_receive(struct sar_pipeline *p, uint64_t piece)
{
    size_t slot = slot_index(p, piece);
    int tree = tree_of(p, piece);
    p->slots[slot].arrived = p->slots[slot].released = false;
    int code = PMPI_Irecv(p->slots[slot].memory, (int)p->plan.piece_bytes, MPI_BYTE, p->links[tree].parent,
                          p->tag + tree, p->comm->mpi_comm, &p->requests[slot * slot_requests(p)]);
    fail(p, code);
    if (code == MPI_SUCCESS) {
        p->active++;
        return;
    }
    p->requests[slot * slot_requests(p)] = MPI_REQUEST_NULL;
    arrive(p, slot, 0);
}

static bool is_free(const struct sar_pipeline *p, uint64_t piece)
{
    const struct sar_pipeline_slot *s = &p->slots[slot_index(p, piece)];
    int tree = tree_of(p, piece);
    bool sent = true;
    for (int i = 0; i < p->links[tree].n_children; i++)
        sent = sent && piece < p->children[tree][i].next + n_slots(p);
    return s->released && s->sends == 0 && sent;
}

/* Posts the receives of a tree in the order of its pieces. */
static void post_receives(struct sar_pipeline *p)
{
    uint64_t step = (uint64_t)p->plan.trees;
    for (int tree = 0; tree < p->plan.trees && !is_root(p); tree++)
        for (; p->posted[tree] < p->plan.pieces && is_free(p, p->posted[tree]); p->posted[tree] += step)
            post_receive(p, p->posted[tree]);
}

/* Gives each tree as many slots as the memory and the number of pieces allow. */
static void divide_memory(struct sar_pipeline *p)
{
    uint64_t trees = (uint64_t)p->plan.trees, stride = sar_align_up(p->plan.piece_bytes);
    uint64_t depth = p->memory_bytes / stride / trees, needed = p->plan.pieces / trees + 1;
    depth = depth < needed ? depth : needed;
    depth = depth < SAR_PIPELINE_SLOTS / trees ? depth : SAR_PIPELINE_SLOTS / trees;
    p->depth = (int)depth;
    p->window = p->plan.window < p->depth ? p->plan.window : p->depth;
    for (size_t i = 0; i < n_slots(p); i++) {
        p->slots[i].memory = p->memory + i * stride;
        p->slots[i].released = true;
    }
}

void sar_pipeline_begin(struct sar_pipeline *p, const struct sar_pipeline_plan *plan, uint32_t epoch)
{
    uint32_t calls = (uint32_t)p->comm->tag_count / SAR_BCAST_TREES_MAX;
    p->plan = *plan;
    p->tag = (int)(epoch % calls) * SAR_BCAST_TREES_MAX;
    divide_memory(p);
    for (int tree = 0; tree < plan->trees; tree++) {
        sar_bcast_tree_links(&p->comm->nodes, p->comm->rank, plan->root,
                             (struct sar_bcast_tree){ tree, plan->trees }, &p->links[tree]);
        p->posted[tree] = (uint64_t)tree;
        for (int i = 0; i < SAR_BCAST_CHILDREN; i++)
            p->children[tree][i] = (struct sar_pipeline_child){ .next = (uint64_t)tree };
    }
    post_receives(p);
}

size_t sar_pipeline_writable(const struct sar_pipeline *p, uint64_t first)
{
    size_t n = 0;
    for (; n < SAR_PIPELINE_WINDOW && first + n < p->plan.pieces && is_free(p, first + n); n++) {
        int before = (int)n / p->plan.trees, tree = tree_of(p, first + n);
        for (int i = 0; i < p->links[tree].n_children; i++)
            if (p->children[tree][i].sending + before >= p->window)
                return n;
    }
    return n;
}

size_t sar_pipeline_readable(const struct sar_pipeline *p)
{
    size_t n = 0;
    for (; n < n_slots(p) && p->taken + n < p->plan.pieces; n++) {
        const struct sar_pipeline_slot *s = &p->slots[slot_index(p, p->taken + n)];
        if (!s->arrived || s->released)
            break;
    }
    return is_root(p) ? 0 : n;
}

void sar_pipeline_send(struct sar_pipeline *p, uint64_t piece)
{
    for (int i = 0; i < p->links[tree_of(p, piece)].n_children; i++)
        send_to(p, piece, i);
    p->taken++;
}

void sar_pipeline_release(struct sar_pipeline *p)
{
    p->slots[slot_index(p, p->taken++)].released = true;
    post_receives(p);
}

static void complete(struct sar_pipeline *p, int request, MPI_Status *status, bool good)
{
    size_t slot = (size_t)request / slot_requests(p);
    int bytes = 0;
    p->active--;
    p->requests[request] = MPI_REQUEST_NULL;
    int tree = (int)slot / p->depth, child = request % (int)slot_requests(p) - 1;
    if (child >= 0) {
        p->slots[slot].sends--;
        p->children[tree][child].sending--;
        return;
    }
    if (good)
        PMPI_Get_count(status, MPI_BYTE, &bytes);
    arrive(p, slot, bytes > 0 ? (uint64_t)bytes : 0);
    sar_trace_message(
        &(struct sar_message_event){ 0, tree, p->links[tree].parent, false, p->slots[slot].bytes });
}

static bool has_not_moved(const struct sar_pipeline *p, int rank, bool sent)
{
    for (size_t slot = 0; slot < n_slots(p); slot++) {
        const struct sar_bcast_links *links = &p->links[slot / (size_t)p->depth];
        const MPI_Request *requests = &p->requests[slot * slot_requests(p)];
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
    for (int i = 0; i < n_requests(p); i++) {
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
    int code = PMPI_Waitany(n_requests(p), p->requests, &completed, &status);
    if (completed == MPI_UNDEFINED)
        return code == MPI_SUCCESS ? 0 : test_each(p);
    complete(p, completed, &status, code == MPI_SUCCESS);
    return 1;
}

static int test_some(struct sar_pipeline *p)
{
    enum { MAX = SAR_PIPELINE_SLOTS * SAR_PIPELINE_REQUESTS };
    int n = 0, completed[MAX];
    MPI_Status statuses[MAX];
    int code = PMPI_Testsome(n_requests(p), p->requests, &n, completed, statuses);
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
    n += send_arrived(p);
    post_receives(p);
    if (n > 0)
        sar_watchdog_end_wait(p->comm, &p->timer, NAME);
    else
        watch(p);
    return n > 0;
}

bool sar_pipeline_is_done(const struct sar_pipeline *p)
{
    return p->active == 0 && p->taken == p->plan.pieces;
}
