/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests shared memory with ranks as threads of one process, so that the thread sanitizer checks them. Data
 * written to messages and buffers before a barrier are visible to all ranks after it. All ranks find equal
 * cuts of parts.
 *
 * Link with -Wl,--wrap=PMPI_Iprobe: there is no MPI here. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "comm/shm/group.h"
#include "vector/multiselect.h"

enum { RANKS = 4, BARRIERS = 2000, MOST = 200, CONTENT = 1000 };

int __wrap_PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status);
int __wrap_PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    (void)source;
    (void)tag;
    (void)comm;
    (void)status;
    *flag = 0;
    return MPI_SUCCESS;
}

struct message {
    uint64_t number, nnz;
};

struct rank {
    struct sar_shm_group window;
    struct sar_comm net;
    pthread_t thread;
    uint64_t wrong;
    size_t cut[RANKS]; /* middle of all vectors, as this rank finds it */
};

static struct rank all[RANKS];

static uint32_t *shm_buffer_of(int rank, unsigned turn)
{
    return all[rank].window.buffers[turn].own.memory;
}

/* Write ascending numbers; the rank and the barrier define how many. */
static size_t fill(int rank, uint64_t barrier)
{
    size_t nnz = (size_t)(barrier * 7 + (uint64_t)rank * 31) % MOST;
    for (size_t i = 0; i < nnz; i++)
        shm_buffer_of(rank, barrier % 2)[i] = (uint32_t)(i * RANKS + (size_t)rank + barrier);
    return nnz;
}

static void cut_in_half(struct rank *mine, uint64_t barrier)
{
    const struct sar_vec_desc shape = { .count = UINT32_MAX, .index_size = 4, .element_size = 4 };
    struct sar_spvec runs[RANKS];
    size_t spare[2 * RANKS], total = 0, below = 0;
    for (int r = 0; r < RANKS; r++) {
        const struct message *message = sar_shm_barrier_msg(&mine->window, r);
        uint32_t *index = shm_buffer_of(r, barrier % 2);
        mine->wrong += message->number != barrier * CONTENT + (uint64_t)r;
        runs[r] = (struct sar_spvec){ index, NULL, (size_t)message->nnz };
        total += runs[r].nnz;
    }
    sar_multiselect(&shape, runs, RANKS, (struct sar_multiselect_target){ total / 2, 0 }, mine->cut, spare);
    for (int r = 0; r < RANKS; r++)
        below += mine->cut[r];
    mine->wrong += below > total / 2 || below + RANKS < total / 2;
}

/* Two buffers alternate, since ranks do not wait for readers of the last one. */
static void *run(void *rank)
{
    struct rank *mine = rank;
    for (uint64_t barrier = 1; barrier <= BARRIERS; barrier++) {
        size_t nnz = fill(mine->window.rank, barrier);
        struct message message = { barrier * CONTENT + (uint64_t)mine->window.rank, nnz };
        sar_shm_barrier_arrive(&mine->window, SAR_SHM_BARRIER_SCHEME, "test", &message, sizeof message);
        mine->wrong += !sar_shm_barrier_test(&mine->net, true);
        cut_in_half(mine, barrier);
    }
    return NULL;
}

static void open_rank(int r)
{
    struct sar_shm_group *window = &all[r].window;
    window->rank = r;
    window->ranks = RANKS;
    window->control.attached = calloc(RANKS, sizeof *window->control.attached);
    assert_non_null(window->control.attached);
    assert_int_equal(sar_shm_buffer_reserve(&window->control, 1), SAR_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sar_shm_buffer_reserve(&window->buffers[i], MOST * sizeof(uint32_t)), SAR_OK);
    all[r].net = (struct sar_comm){ .shm_group = window, .rank = r, .ranks = RANKS, .oversubscribed = true };
}

static void close_rank(int r)
{
    struct sar_shm_group *window = &all[r].window;
    free(window->control.attached);
    sar_shm_handle_close_fd(&window->control.handle);
    sar_shm_region_unmap(&window->control.own);
    for (int i = 0; i < 2; i++) {
        sar_shm_handle_close_fd(&window->buffers[i].handle);
        sar_shm_region_unmap(&window->buffers[i].own);
    }
}

static void test_barriers(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        open_rank(r);
    for (int r = 0; r < RANKS * RANKS; r++)
        all[r / RANKS].window.control.attached[r % RANKS] = all[r % RANKS].window.control.own;
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_create(&all[r].thread, NULL, run, &all[r]), 0);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(pthread_join(all[r].thread, NULL), 0);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(all[r].wrong, 0);
        assert_memory_equal(all[r].cut, all[0].cut, sizeof all[0].cut);
    }
    for (int r = 0; r < RANKS; r++)
        close_rank(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_barriers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
