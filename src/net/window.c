/* SPDX-License-Identifier: BSD-3-Clause */
/* Meetings: each rank has a desk with two places for cards. To arrive is to write the card, and then the
 * meeting's number in front of it; to meet is to have read that number on every desk. Whoever has met may
 * already go to the next meeting while others still read, hence two places in turn: nobody can go to the one
 * after that before all have come to the next.
 *
 *     time = one store, p-1 loads: some 100 ns a rank */

#include "net/window.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "hash/murmur3.h"
#include "net/distance.h"
#include "net/line.h"
#include "net/numa.h"
#include "net/roll.h"
#include "net/storage.h"

enum {
    LEAST_SHELF = 64 << 10,
    DESK = 4096, /* bytes before the shelves that come with a desk */
    PLACES = 2
};

struct place {
    atomic_uint_least64_t meeting;
    unsigned char card[SAR_CARD];
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share numbers of meetings, and no locks");

struct desk {
    struct place places[PLACES];
    uint64_t token;                                     /* tells it from other memory */
    _Alignas(SAR_ALIGNMENT) atomic_uint_least64_t line; /* of cache, that is timed */
};

static struct desk *desk_of(const struct sar_window *window, int rank)
{
    return rank == window->rank ? window->desks.own.memory : window->desks.views[rank].memory;
}

static struct place *place_of(const struct sar_window *window, int rank)
{
    return &desk_of(window, rank)->places[window->meeting % PLACES];
}

void sar_window_arrive(struct sar_window *window, const char *what, const void *card, size_t bytes)
{
    window->meeting++;
    window->what = what;
    window->stall = (struct sar_stall){ 0 };
    window->seen = 0;
    struct place *place = place_of(window, window->rank);
    memcpy(place->card, card, bytes);
    atomic_store_explicit(&place->meeting, window->meeting, memory_order_release);
}

static bool all_seen(struct sar_window *window)
{
    for (; window->seen < window->ranks; window->seen++) {
        struct place *place = place_of(window, window->seen);
        if (atomic_load_explicit(&place->meeting, memory_order_acquire) != window->meeting)
            return false;
    }
    return true;
}

static bool is_missing(const void *of, int rank)
{
    const struct sar_net *net = of;
    const struct sar_nodes *nodes = &net->nodes;
    return nodes->node[rank] == nodes->node[net->rank] &&
           atomic_load(&place_of(net->window, nodes->place[rank])->meeting) != net->window->meeting;
}

/* Warn of a wait that lasts long. */
static void watch(const struct sar_net *net)
{
    struct sar_window *window = net->window;
    if (net->stall <= 0 || net->roll == NULL)
        return;
    double waited = sar_stall_clock(&window->stall);
    if (waited > 0 && sar_stall_tells(&window->stall, waited, net->stall))
        sar_roll_tell(net, window->what, waited, is_missing, net);
}

static void wait_a_little(const struct sar_net *net, int *looks)
{
    if (++*looks % SAR_LINE_MPI_LOOKS == 0)
        sar_net_let_mpi_move(net);
    if (net->crowded || *looks > SAR_LINE_LOOKS)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

bool sar_window_met(const struct sar_net *net, bool block)
{
    struct sar_window *window = net->window;
    int looks = 0;
    if (window == NULL)
        return true;
    while (!all_seen(window)) {
        watch(net);
        if (!block)
            return false;
        wait_a_little(net, &looks);
    }
    return true;
}

const void *sar_window_card(const struct sar_window *window, int rank)
{
    return place_of(window, rank)->card;
}

enum sar_status sar_shelf_replace(struct sar_shelf *shelf, size_t bytes, struct sar_segment *before)
{
    struct sar_segment made;
    struct sar_segment_name name;
    *before = (struct sar_segment){ NULL, 0, false };
    if (bytes <= shelf->own.bytes)
        return SAR_OK;
    size_t ample = bytes <= SIZE_MAX / 2 ? bytes + bytes / 4 : bytes;
    SAR_TRY(sar_segment_make(ample < LEAST_SHELF ? LEAST_SHELF : ample, &made, &name));
    sar_numa_place(made.memory, made.bytes);
    sar_segment_seal(&shelf->name);
    *before = shelf->own;
    shelf->own = made;
    shelf->name = name;
    return SAR_OK;
}

enum sar_status sar_shelf_room(struct sar_shelf *shelf, size_t bytes)
{
    struct sar_segment before;
    enum sar_status status = sar_shelf_replace(shelf, bytes, &before);
    sar_segment_unmap(&before);
    return status;
}

/* It is told again until all have mapped it: a call may end before they do. */
bool sar_shelf_tell(struct sar_window *window, struct sar_shelf *shelf)
{
    if (window->ranks == 1)
        sar_segment_seal(&shelf->name);
    if (!sar_segment_is_open(&shelf->name))
        return false;
    shelf->told = window->meeting + 1;
    return window->telling = true;
}

void sar_window_settle(struct sar_window *window)
{
    window->telling = false;
    for (int i = 0; i < SAR_SHELVES; i++) {
        struct sar_shelf *shelf = &window->shelves[i];
        if (!sar_segment_is_open(&shelf->name))
            continue;
        if (shelf->told + 1 == window->meeting)
            sar_segment_seal(&shelf->name);
        else
            window->telling |= shelf->told == window->meeting;
    }
}

static void drop_own(struct sar_shelf *shelf)
{
    sar_segment_seal(&shelf->name);
    sar_segment_unmap(&shelf->own);
    shelf->name = (struct sar_segment_name){ 0 };
}

void sar_window_drop(struct sar_window *window)
{
    window->telling = window->lacking = false;
    for (int i = 0; i < SAR_SHELVES; i++)
        if (sar_segment_is_open(&window->shelves[i].name))
            drop_own(&window->shelves[i]);
}

enum sar_status sar_shelf_view(struct sar_shelf *shelf, int rank, const struct sar_segment_name *name,
                               void **memory)
{
    struct sar_segment *view = &shelf->views[rank];
    if (sar_segment_same(name, &shelf->name)) {
        *memory = shelf->own.memory;
        return SAR_OK;
    }
    if (view->memory == NULL || !sar_segment_same(name, &shelf->viewed[rank])) {
        struct sar_segment mapped;
        SAR_TRY(sar_segment_map(name, &mapped));
        sar_segment_unmap(view);
        *view = mapped;
        shelf->viewed[rank] = *name;
    }
    *memory = view->memory;
    return SAR_OK;
}

static enum sar_status open_shelf(struct sar_shelf *shelf, int ranks)
{
    shelf->views = calloc((size_t)ranks, sizeof *shelf->views);
    shelf->viewed = calloc((size_t)ranks, sizeof *shelf->viewed);
    return shelf->views == NULL || shelf->viewed == NULL ? SAR_NO_MEMORY : SAR_OK;
}

static void close_shelf(struct sar_shelf *shelf, int ranks)
{
    for (int r = 0; shelf->views != NULL && r < ranks; r++)
        sar_segment_unmap(&shelf->views[r]);
    free(shelf->views);
    free(shelf->viewed);
    drop_own(shelf);
}

/* The shelf in a desk's memory. */
static struct sar_segment small_shelf(const struct sar_segment *desk, int i)
{
    return sar_segment_part(desk, DESK + (size_t)i * LEAST_SHELF, LEAST_SHELF);
}

static struct sar_segment_name small_name(const struct sar_segment_name *desk, int i)
{
    return sar_segment_name_part(desk, (unsigned)i, LEAST_SHELF);
}

/* One mapping is enough for calls of little data. */
static enum sar_status make_desk(struct sar_window *window)
{
    _Static_assert(sizeof(struct desk) <= DESK, "shelves begin behind a desk");
    SAR_TRY(sar_shelf_room(&window->desks, DESK + SAR_SHELVES * (size_t)LEAST_SHELF));
    for (int i = 0; i < SAR_SHELVES; i++) {
        window->shelves[i].own = small_shelf(&window->desks.own, i);
        window->shelves[i].name = small_name(&window->desks.name, i);
    }
    return SAR_OK;
}

/* All that one rank alone may fail to get. */
static enum sar_status make(const struct sar_net *net, uint64_t token, struct sar_window **window)
{
    struct sar_window *made = calloc(1, sizeof *made);
    *window = made;
    if (made == NULL)
        return SAR_NO_MEMORY;
    made->rank = net->nodes.place[net->rank];
    made->ranks = sar_nodes_size(&net->nodes, net->nodes.node[net->rank]);
    SAR_TRY(open_shelf(&made->desks, made->ranks));
    for (int i = 0; i < SAR_SHELVES; i++)
        SAR_TRY(open_shelf(&made->shelves[i], made->ranks));
    SAR_TRY(make_desk(made));
    desk_of(made, made->rank)->token = token;
    return SAR_OK;
}

struct greeting {
    struct sar_segment_name name;
    uint64_t token;
    uint64_t crowded; /* whether that is what the rank found */
};

/* The number of a process may be another one's on this side of a container's wall, so look at the token. */
static enum sar_status find_desks(const struct sar_net *net, struct sar_window *window,
                                  const struct greeting *all)
{
    void *memory;
    const int *ranks = &net->nodes.ranks[net->nodes.first[net->nodes.node[net->rank]]];
    for (int r = 0; r < window->ranks; r++) {
        const struct greeting *theirs = &all[ranks[r]];
        SAR_TRY(sar_shelf_view(&window->desks, r, &theirs->name, &memory));
        if (((const struct desk *)memory)->token != theirs->token)
            return SAR_NO_SEGMENT;
        for (int i = 0; i < SAR_SHELVES && r != window->rank; i++) {
            window->shelves[i].views[r] = small_shelf(&window->desks.views[r], i);
            window->shelves[i].viewed[r] = small_name(&theirs->name, i);
        }
    }
    return SAR_OK;
}

atomic_uint_least64_t *sar_window_line(const void *window, int rank)
{
    return &desk_of(window, rank)->line;
}

/* Ranks that take turns on processors wait for those, and not for lines. One that is told of by `all` keeps
 * all others of its node from timing any. */
static bool can_time(const struct sar_net *net, const struct greeting *all)
{
    bool crowded = false;
    for (int r = 0; r < net->ranks; r++)
        if (net->nodes.node[r] == net->nodes.node[net->rank])
            crowded |= all[r].crowded != 0;
    return !crowded;
}

/* Tell all ranks one's own desk, and find theirs. */
static enum sar_status greet(const struct sar_net *net, struct sar_window *window, uint64_t token,
                             struct greeting *all)
{
    struct greeting mine = { window->desks.name, token, net->crowded };
    int bytes = (int)sizeof mine;
    SAR_TRY(sar_mpi(PMPI_Allgather(&mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, net->comm)));
    SAR_TRY(sar_net_worst(net, find_desks(net, window, all)));
    sar_segment_seal(&window->desks.name);
    sar_distance_find(net, window, can_time(net, all));
    return SAR_OK;
}

/* Once: other communicators will fare alike. */
static void tell_of_none(const struct sar_net *net, enum sar_status why)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char sentence[128];
    if (net->rank != 0 || atomic_flag_test_and_set(&told))
        return;
    snprintf(sentence, sizeof sentence, sar_status_text(why), "", "");
    SAR_LOG(WARN, NET, "ranks of a node send each other messages: %s", sentence);
}

enum sar_status sar_window_open(const struct sar_net *net, struct sar_window **window)
{
    struct sar_window *made = NULL;
    struct greeting *all = calloc((size_t)net->ranks, sizeof *all);
    uint64_t token = sar_mix64((uint64_t)(PMPI_Wtime() * 1e9) ^ (uint64_t)(uintptr_t)&made);
    enum sar_status status = all == NULL ? SAR_NO_MEMORY : make(net, token, &made);
    status = sar_net_worst(net, status);
    if (status == SAR_OK)
        status = greet(net, made, token, all);
    free(all);
    if (status != SAR_OK) {
        tell_of_none(net, status);
        sar_window_close(made);
        made = NULL;
    }
    *window = made;
    return status == SAR_MPI_FAILED ? status : SAR_OK;
}

void sar_window_close(struct sar_window *window)
{
    if (window == NULL)
        return;
    sar_storage_forget(window);
    close_shelf(&window->desks, window->ranks);
    for (int i = 0; i < SAR_SHELVES; i++)
        close_shelf(&window->shelves[i], window->ranks);
    free(window);
}
