/* SPDX-License-Identifier: BSD-3-Clause */
/* Two counts: of the ranks that hold it, in the storage itself, and of those in this process that need the
 * mapping, results and the window's spares. Who chooses sets the former for all ranks, so that it is never
 * found to be free before all of them have taken hold; one that a call which failed left to nobody never is.
 * Where a spare stands follows from its name, so that what rank 0 finds free all others have, too.
 *
 * A child of fork() has its parent's results, in memory that is not copied for it. So a fork adds a holder to
 * all storage that somebody holds: what a child may still read is used again only once the child, too, has
 * let go, and never where it does not. */

#include "net/storage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

enum { HEAD = 64, PAGE = 4096 };

struct sar_storage {
    struct sar_segment segment; /* begins with a head */
    struct sar_segment_name name;
    atomic_int uses; /* in this process */
    bool held;       /* this process counts among the holders */
    bool inherited;  /* by the child of a fork under way, which counts, too */
    struct sar_storage *next, **link;
};

struct head {
    atomic_int holders;
};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "processes share counts, and no locks");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_storage *all; /* of this process */
static atomic_int alive;        /* how many */
int sar_storage_most = 1 << 14;

static struct head *head_of(const struct sar_storage *storage)
{
    return storage->segment.memory;
}

static int holders(const struct sar_storage *storage)
{
    return atomic_load_explicit(&head_of(storage)->holders, memory_order_acquire);
}

static bool holds(const struct sar_storage *storage, size_t bytes)
{
    return storage->segment.bytes - HEAD >= bytes;
}

/* Add a holder, unless there is none: then whoever chooses may be about to set how many there are. */
static bool join(struct head *head)
{
    int n = atomic_load(&head->holders);
    while (n > 0 && !atomic_compare_exchange_weak(&head->holders, &n, n + 1))
        continue;
    return n > 0;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (struct sar_storage *storage = all; storage != NULL; storage = storage->next)
        storage->inherited = join(head_of(storage));
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child may have closed the files that it was given, and have others by their numbers. */
static void in_child(void)
{
    for (struct sar_storage *storage = all; storage != NULL; storage = storage->next) {
        storage->held = storage->inherited;
        storage->name.file = -1;
    }
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void enlist(struct sar_storage *storage)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    atomic_init(&storage->uses, 1);
    storage->held = true;
    pthread_mutex_lock(&lock);
    storage->next = all;
    storage->link = &all;
    if (all != NULL)
        all->link = &storage->next;
    all = storage;
    atomic_fetch_add(&alive, 1);
    pthread_mutex_unlock(&lock);
}

static void strike_out(struct sar_storage *storage)
{
    pthread_mutex_lock(&lock);
    *storage->link = storage->next;
    if (storage->next != NULL)
        storage->next->link = storage->link;
    atomic_fetch_sub(&alive, 1);
    pthread_mutex_unlock(&lock);
}

/* Systems limit the mappings of a process, which wants some for itself: without any left it gets no memory
 * at all. */
static enum sar_status check_number(void)
{
    int most = sar_storage_most;
    if (atomic_load(&alive) < most)
        return SAR_OK;
    SAR_LOG(INFO, NET, "no memory that ranks share: %d results are kept in some", most);
    return SAR_NO_SEGMENT;
}

static void drop(struct sar_storage *storage)
{
    if (atomic_fetch_sub(&storage->uses, 1) != 1)
        return;
    strike_out(storage);
    sar_storage_seal(storage);
    sar_segment_unmap(&storage->segment);
    free(storage);
}

static void become_spare(struct sar_window *window, struct sar_storage *storage)
{
    struct sar_storage **place = &window->spares[storage->name.serial % SAR_SPARES];
    if (*place != NULL)
        drop(*place);
    *place = storage;
}

static enum sar_status make(struct sar_window *window, size_t bytes, struct sar_storage **storage)
{
    if (bytes > SIZE_MAX / 2)
        return SAR_NO_MEMORY;
    SAR_TRY(check_number());
    struct sar_storage *made = calloc(1, sizeof *made);
    enum sar_status status = SAR_NO_MEMORY;
    if (made != NULL)
        status = sar_segment_make(bytes + bytes / 8 + PAGE, &made->segment, &made->name);
    if (status != SAR_OK) {
        free(made);
        return status;
    }
    enlist(made);
    become_spare(window, made);
    *storage = made;
    return SAR_OK;
}

enum sar_status sar_storage_choose(struct sar_window *window, struct sar_storage *back, size_t bytes,
                                   struct sar_storage **storage)
{
    struct sar_storage *found = NULL;
    if (back != NULL && holders(back) == window->ranks && holds(back, bytes)) {
        *storage = back;
        return SAR_OK;
    }
    for (int i = 0; i < SAR_SPARES && found == NULL; i++) {
        struct sar_storage *spare = window->spares[i];
        if (spare != NULL && holders(spare) == 0 && holds(spare, bytes))
            found = spare;
    }
    if (found == NULL)
        SAR_TRY(make(window, bytes, &found));
    atomic_store_explicit(&head_of(found)->holders, window->ranks, memory_order_release);
    *storage = found;
    return SAR_OK;
}

enum sar_status sar_storage_find(struct sar_window *window, struct sar_storage *back,
                                 const struct sar_segment_name *name, struct sar_storage **storage)
{
    struct sar_segment segment;
    *storage = NULL;
    for (int i = 0; i < SAR_SPARES; i++)
        if (window->spares[i] != NULL && sar_segment_same(&window->spares[i]->name, name))
            *storage = window->spares[i];
    if (back != NULL && sar_segment_same(&back->name, name))
        *storage = back;
    if (*storage != NULL)
        return SAR_OK;
    SAR_TRY(check_number());
    struct sar_storage *made = calloc(1, sizeof *made);
    enum sar_status status = made == NULL ? SAR_NO_MEMORY : sar_segment_map(name, &segment);
    if (status != SAR_OK) {
        free(made);
        return status;
    }
    *made = (struct sar_storage){ .segment = segment, .name = *name };
    made->name.file = -1;
    enlist(made);
    become_spare(window, made);
    *storage = made;
    return SAR_OK;
}

struct sar_segment_name sar_storage_name(const struct sar_storage *storage)
{
    return storage->name;
}

void *sar_storage_memory(const struct sar_storage *storage)
{
    return (unsigned char *)storage->segment.memory + HEAD;
}

void sar_storage_seal(struct sar_storage *storage)
{
    sar_segment_seal(&storage->name);
}

void sar_storage_keep(struct sar_storage *storage)
{
    atomic_fetch_add(&storage->uses, 1);
}

void sar_storage_let_go(struct sar_storage *storage)
{
    if (storage->held)
        atomic_fetch_sub_explicit(&head_of(storage)->holders, 1, memory_order_release);
    drop(storage);
}

void sar_storage_forget(struct sar_window *window)
{
    for (int i = 0; i < SAR_SPARES; i++) {
        if (window->spares[i] != NULL)
            drop(window->spares[i]);
        window->spares[i] = NULL;
    }
}
