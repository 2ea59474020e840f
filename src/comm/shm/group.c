/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier: each rank has a control region with two slots. To arrive, a rank writes its message to a slot,
 * and then the number of the barrier. A rank is behind the barrier once it has read that number in the slots
 * of all ranks. It may then arrive at the next barrier while others still read, hence two slots in turn: no
 * rank arrives at the barrier after the next before all ranks have arrived at the next. The number comes with
 * the kind of the message.
 *
 *     time = one store and p-1 loads of other ranks' cache lines: some 100 ns for each rank */

#include "comm/shm/group.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "comm/shm/numa.h"

enum { SLOTS = 2, KINDS = 2 };

struct slot {
    atomic_uint_least64_t arrival; /* number of the barrier, times KINDS, plus the kind of the message */
    unsigned char msg[SAR_SHM_MSG_BYTES];
};

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share barrier numbers, and no locks");

struct control {
    struct slot slots[SLOTS];
    uint64_t token;
    _Alignas(SAR_ALIGNMENT) atomic_uint_least64_t cacheline;
};

_Static_assert(sizeof(struct control) <= SAR_SHM_CONTROL_BYTES, "the small buffers begin behind the control");

static struct control *control_of(const struct sar_shm_group *group, int rank)
{
    return rank == group->rank ? group->control.own.memory : group->control.attached[rank].memory;
}

static struct slot *slot_of(const struct sar_shm_group *group, int rank)
{
    return &control_of(group, rank)->slots[group->barrier_seq % SLOTS];
}

/* Returns the value of slot.arrival at this rank's last barrier. */
static uint64_t own_arrival(const struct sar_shm_group *group)
{
    return group->barrier_seq * KINDS + (uint64_t)group->barrier_kind;
}

void sar_shm_barrier_arrive(struct sar_shm_group *group, enum sar_shm_barrier_kind kind, const char *name,
                            const void *msg, size_t bytes)
{
    group->barrier_seq++;
    group->barrier_kind = kind;
    group->kinds_differ = false;
    group->barrier_name = name;
    group->timer = (struct sar_wait_timer){ 0 };
    group->n_arrived = 0;
    struct slot *slot = slot_of(group, group->rank);
    memcpy(slot->msg, msg, bytes);
    atomic_store_explicit(&slot->arrival, own_arrival(group), memory_order_release);
}

static bool all_arrived(struct sar_shm_group *group)
{
    for (; group->n_arrived < group->ranks; group->n_arrived++) {
        struct slot *slot = slot_of(group, group->n_arrived);
        uint64_t arrival = atomic_load_explicit(&slot->arrival, memory_order_acquire);
        if (arrival / KINDS != group->barrier_seq)
            return false;
        group->kinds_differ |= arrival != own_arrival(group);
    }
    return true;
}

static bool is_late(const void *arg, int rank)
{
    const struct sar_comm *comm = arg;
    const struct sar_nodes *nodes = &comm->nodes;
    return nodes->node[rank] == nodes->node[comm->rank] &&
           atomic_load(&slot_of(comm->shm_group, nodes->local_rank[rank])->arrival) / KINDS !=
               comm->shm_group->barrier_seq;
}

static void watch(const struct sar_comm *comm)
{
    struct sar_shm_group *group = comm->shm_group;
    if (comm->stall_limit <= 0 || comm->watchdog == NULL)
        return;
    double waited = sar_wait_timer_elapsed(&group->timer);
    if (waited > 0 && sar_wait_timer_must_warn(&group->timer, waited, comm->stall_limit))
        sar_watchdog_warn(comm, group->barrier_name, waited, is_late, comm);
}

static void spin_wait(const struct sar_comm *comm, int *spins)
{
    if (++*spins % SAR_CACHELINE_SPINS_TO_PROBE == 0)
        sar_comm_mpi_progress(comm);
    if (comm->oversubscribed || *spins > SAR_CACHELINE_SPINS_TO_YIELD)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

bool sar_shm_barrier_test(const struct sar_comm *comm, bool block)
{
    struct sar_shm_group *group = comm->shm_group;
    int spins = 0;
    if (group == NULL)
        return true;
    while (!all_arrived(group)) {
        watch(comm);
        if (!block)
            return false;
        spin_wait(comm, &spins);
    }
    if (group->timer.warned > 0)
        sar_watchdog_end_wait(comm, &group->timer, group->barrier_name);
    return true;
}

const void *sar_shm_barrier_msg(const struct sar_shm_group *group, int rank)
{
    return slot_of(group, rank)->msg;
}

atomic_uint_least64_t *sar_shm_group_cacheline(const void *group, int rank)
{
    return &control_of(group, rank)->cacheline;
}

uint64_t *sar_shm_control_token(void *control)
{
    return &((struct control *)control)->token;
}

enum sar_status sar_shm_buffer_grow(struct sar_shm_buffer *buffer, size_t bytes,
                                    struct sar_shm_region *old_region)
{
    struct sar_shm_region created;
    struct sar_shm_handle handle;
    *old_region = (struct sar_shm_region){ NULL, 0, false };
    if (bytes <= buffer->own.bytes)
        return SAR_OK;
    size_t ample = bytes <= SIZE_MAX / 2 ? bytes + bytes / 4 : bytes;
    SAR_TRY(sar_shm_region_create(ample < SAR_SHM_MIN_BUFFER_BYTES ? SAR_SHM_MIN_BUFFER_BYTES : ample,
                                  &created, &handle));
    sar_numa_bind(created.memory, created.bytes);
    sar_shm_handle_close_fd(&buffer->handle);
    *old_region = buffer->own;
    buffer->own = created;
    buffer->handle = handle;
    return SAR_OK;
}

enum sar_status sar_shm_buffer_reserve(struct sar_shm_buffer *buffer, size_t bytes)
{
    struct sar_shm_region old_region;
    enum sar_status status = sar_shm_buffer_grow(buffer, bytes, &old_region);
    sar_shm_region_unmap(&old_region);
    return status;
}

/* A buffer is announced again until all ranks have mapped it: a call may fail before they do. */
bool sar_shm_buffer_announce(struct sar_shm_group *group, struct sar_shm_buffer *buffer)
{
    if (group->ranks == 1)
        sar_shm_handle_close_fd(&buffer->handle);
    if (!sar_shm_handle_is_open(&buffer->handle))
        return false;
    buffer->announced = group->barrier_seq + 1;
    return group->announcing = true;
}

void sar_shm_group_close_announced(struct sar_shm_group *group)
{
    group->announcing = false;
    for (int i = 0; i < SAR_SHM_BUFFERS; i++) {
        struct sar_shm_buffer *buffer = &group->buffers[i];
        if (!sar_shm_handle_is_open(&buffer->handle))
            continue;
        if (buffer->announced + 1 == group->barrier_seq)
            sar_shm_handle_close_fd(&buffer->handle);
        else
            group->announcing |= buffer->announced == group->barrier_seq;
    }
}

static void discard_own(struct sar_shm_buffer *buffer)
{
    sar_shm_handle_close_fd(&buffer->handle);
    sar_shm_region_unmap(&buffer->own);
    buffer->handle = (struct sar_shm_handle){ 0 };
}

void sar_shm_group_discard_announced(struct sar_shm_group *group)
{
    group->announcing = group->shm_failed = false;
    for (int i = 0; i < SAR_SHM_BUFFERS; i++)
        if (sar_shm_handle_is_open(&group->buffers[i].handle))
            discard_own(&group->buffers[i]);
}

void sar_shm_group_set_error(struct sar_shm_group *group, enum sar_status status)
{
    group->shm_error = status;
}

enum sar_status sar_shm_group_error(const struct sar_shm_group *group)
{
    return group != NULL ? group->shm_error : SAR_OK;
}

void sar_shm_group_set_failed(struct sar_shm_group *group, bool failed)
{
    group->shm_failed = failed;
}

bool sar_shm_group_failed(const struct sar_shm_group *group)
{
    return group != NULL && group->shm_failed;
}

struct sar_shm_buffer *sar_shm_group_input_buffer(struct sar_shm_group *group)
{
    return &group->buffers[group->buffer_index];
}

void sar_shm_group_flip_buffer(struct sar_shm_group *group)
{
    group->buffer_index = 1 - group->buffer_index;
}

void sar_shm_group_reset_buffer(struct sar_shm_group *group)
{
    group->buffer_index = 0;
}

enum sar_status sar_shm_buffer_attach(struct sar_shm_buffer *buffer, int rank,
                                      const struct sar_shm_handle *handle, void **memory)
{
    struct sar_shm_region *attached = &buffer->attached[rank];
    if (sar_shm_handle_equal(handle, &buffer->handle)) {
        *memory = buffer->own.memory;
        return SAR_OK;
    }
    if (attached->memory == NULL || !sar_shm_handle_equal(handle, &buffer->attached_handle[rank])) {
        struct sar_shm_region mapped;
        SAR_TRY(sar_shm_region_map(handle, &mapped));
        sar_shm_region_unmap(attached);
        *attached = mapped;
        buffer->attached_handle[rank] = *handle;
    }
    *memory = attached->memory;
    return SAR_OK;
}

enum sar_status sar_shm_buffer_open(struct sar_shm_buffer *buffer, int ranks)
{
    buffer->attached = calloc((size_t)ranks, sizeof *buffer->attached);
    buffer->attached_handle = calloc((size_t)ranks, sizeof *buffer->attached_handle);
    return buffer->attached == NULL || buffer->attached_handle == NULL ? SAR_NO_MEMORY : SAR_OK;
}

void sar_shm_buffer_close(struct sar_shm_buffer *buffer, int ranks)
{
    for (int r = 0; buffer->attached != NULL && r < ranks; r++)
        sar_shm_region_unmap(&buffer->attached[r]);
    free(buffer->attached);
    free(buffer->attached_handle);
    discard_own(buffer);
}
