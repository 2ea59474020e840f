/* SPDX-License-Identifier: BSD-3-Clause */
/* A result has two counts. `holders`, in the shared memory, counts the ranks that may still read the result.
 * `refs` counts the references of this process to the mapping: from the caller's results and from the group's
 * free list.
 *
 * The rank that acquires a result sets `holders` for all ranks, so that no rank finds it free before all have
 * attached. A result of a call that failed is never free again. The place of a result in the free list
 * follows from its handle. So all ranks have the same list, and a result that rank 0 finds free is mapped by
 * all others.
 *
 * A child of fork() has its parent's results in memory that the system does not copy. So a fork adds a holder
 * to every result in use: the memory is reused only after the child, too, has released it, and never if it
 * does not.
 *
 *     time = one atomic store for a result of the free list, else one region */

#include "comm/shm/result.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"

enum { HEADER_BYTES = 64, PAGE = 4096 };

struct sar_shm_result {
    struct sar_shm_region region; /* begins with a shared_header */
    struct sar_shm_handle handle;
    atomic_int refs;                     /* references of this process */
    bool is_holder;                      /* this process is a holder */
    bool forked;                         /* the child of the fork in progress is a holder */
    struct sar_shm_result *next, **link; /* in the list of all results; *link == this result */
};

struct shared_header {
    atomic_int holders;
};

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "processes share counts, and no locks");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sar_shm_result *all; /* results of this process, under the lock */
static atomic_int live_count;      /* number of results of this process */
int sar_shm_result_limit = 1 << 14;

static struct shared_header *header_of(const struct sar_shm_result *result)
{
    return result->region.memory;
}

static int holders(const struct sar_shm_result *result)
{
    return atomic_load_explicit(&header_of(result)->holders, memory_order_acquire);
}

static bool has_capacity(const struct sar_shm_result *result, size_t bytes)
{
    return result->region.bytes - HEADER_BYTES >= bytes;
}

/* Add a holder, unless there is none: then a rank that acquires the result may be about to set the number. */
static bool add_holder(struct shared_header *shared_header)
{
    int n = atomic_load(&shared_header->holders);
    while (n > 0 && !atomic_compare_exchange_weak(&shared_header->holders, &n, n + 1))
        continue;
    return n > 0;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (struct sar_shm_result *result = all; result != NULL; result = result->next)
        result->forked = add_holder(header_of(result));
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The child may have closed its copies of the file descriptors, and reused their numbers. */
static void in_child(void)
{
    for (struct sar_shm_result *result = all; result != NULL; result = result->next) {
        result->is_holder = result->forked;
        result->handle.fd = -1;
    }
    pthread_mutex_unlock(&lock);
}

static void register_atfork(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void list_add(struct sar_shm_result *result)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_atfork);
    atomic_init(&result->refs, 1);
    result->is_holder = true;
    pthread_mutex_lock(&lock);
    result->next = all;
    result->link = &all;
    if (all != NULL)
        all->link = &result->next;
    all = result;
    atomic_fetch_add(&live_count, 1);
    pthread_mutex_unlock(&lock);
}

static void list_remove(struct sar_shm_result *result)
{
    pthread_mutex_lock(&lock);
    *result->link = result->next;
    if (result->next != NULL)
        result->next->link = result->link;
    atomic_fetch_sub(&live_count, 1);
    pthread_mutex_unlock(&lock);
}

/* Systems limit the number of mappings of a process. A process without any left gets no memory at all. */
static enum sar_status check_limit(void)
{
    int limit = sar_shm_result_limit;
    if (atomic_load(&live_count) < limit)
        return SAR_OK;
    SAR_LOG(INFO, COMM, "no memory that ranks share: %d results are kept in some", limit);
    return SAR_MANY_RESULTS;
}

static void release_ref(struct sar_shm_result *result)
{
    if (atomic_fetch_sub(&result->refs, 1) != 1)
        return;
    list_remove(result);
    sar_shm_result_close_fd(result);
    sar_shm_region_unmap(&result->region);
    free(result);
}

static void add_to_free_list(struct sar_shm_group *group, struct sar_shm_result *result)
{
    struct sar_shm_result **entry = &group->free_list[result->handle.serial % SAR_SHM_FREE_RESULTS];
    if (*entry != NULL)
        release_ref(*entry);
    *entry = result;
}

/* Adds a result to the lists, or frees it if it got no region. */
static enum sar_status add_created(struct sar_shm_group *group, struct sar_shm_result *created,
                                   enum sar_status status, struct sar_shm_result **result)
{
    if (status != SAR_OK) {
        free(created);
        return status;
    }
    list_add(created);
    add_to_free_list(group, created);
    *result = created;
    return SAR_OK;
}

static enum sar_status create(struct sar_shm_group *group, size_t bytes, struct sar_shm_result **result)
{
    if (bytes > SIZE_MAX / 2)
        return SAR_NO_MEMORY;
    SAR_TRY(check_limit());
    struct sar_shm_result *created = calloc(1, sizeof *created);
    enum sar_status status = SAR_NO_MEMORY;
    if (created != NULL)
        status = sar_shm_region_create(bytes + bytes / 8 + PAGE, &created->region, &created->handle);
    return add_created(group, created, status, result);
}

enum sar_status sar_shm_result_acquire(struct sar_shm_group *group, struct sar_shm_result *returned,
                                       size_t bytes, struct sar_shm_result **result)
{
    struct sar_shm_result *found = NULL;
    if (returned != NULL && holders(returned) == group->ranks && has_capacity(returned, bytes)) {
        *result = returned;
        return SAR_OK;
    }
    for (int i = 0; i < SAR_SHM_FREE_RESULTS && found == NULL; i++) {
        struct sar_shm_result *candidate = group->free_list[i];
        if (candidate != NULL && holders(candidate) == 0 && has_capacity(candidate, bytes))
            found = candidate;
    }
    if (found == NULL)
        SAR_TRY(create(group, bytes, &found));
    atomic_store_explicit(&header_of(found)->holders, group->ranks, memory_order_release);
    *result = found;
    return SAR_OK;
}

enum sar_status sar_shm_result_attach(struct sar_shm_group *group, struct sar_shm_result *returned,
                                      const struct sar_shm_handle *handle, struct sar_shm_result **result)
{
    *result = NULL;
    for (int i = 0; i < SAR_SHM_FREE_RESULTS; i++)
        if (group->free_list[i] != NULL && sar_shm_handle_equal(&group->free_list[i]->handle, handle))
            *result = group->free_list[i];
    if (returned != NULL && sar_shm_handle_equal(&returned->handle, handle))
        *result = returned;
    if (*result != NULL)
        return SAR_OK;
    SAR_TRY(check_limit());
    struct sar_shm_result *created = calloc(1, sizeof *created);
    if (created == NULL)
        return SAR_NO_MEMORY;
    created->handle = *handle;
    created->handle.fd = -1;
    return add_created(group, created, sar_shm_region_map(handle, &created->region), result);
}

struct sar_shm_handle sar_shm_result_handle(const struct sar_shm_result *result)
{
    return result->handle;
}

void *sar_shm_result_memory(const struct sar_shm_result *result)
{
    return (unsigned char *)result->region.memory + HEADER_BYTES;
}

void sar_shm_result_close_fd(struct sar_shm_result *result)
{
    sar_shm_handle_close_fd(&result->handle);
}

void sar_shm_result_retain(struct sar_shm_result *result)
{
    atomic_fetch_add(&result->refs, 1);
}

void sar_shm_result_release(struct sar_shm_result *result)
{
    if (result->is_holder)
        atomic_fetch_sub_explicit(&header_of(result)->holders, 1, memory_order_release);
    release_ref(result);
}

void sar_shm_result_drop_free_list(struct sar_shm_group *group)
{
    for (int i = 0; i < SAR_SHM_FREE_RESULTS; i++) {
        if (group->free_list[i] != NULL)
            release_ref(group->free_list[i]);
        group->free_list[i] = NULL;
    }
}
