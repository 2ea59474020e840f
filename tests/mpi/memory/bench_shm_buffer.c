/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the shared buffers of the benchmark's message replay. Each rank reads an equal share of the data of
 * all ranks of its node, at its own positions. If a rank cannot share memory, each reads only its own data.
 *
 * Link with -Wl,--wrap=perf_membw_read and --wrap=sar_shm_region_map, and with the library's objects. */

#include <string.h>

#include "bench/limits/membw.h"
#include "bench/limits/shm_buffer.h"
#include "check.h"

enum { BYTES = 100000, WRITTEN = 64000, MOST_RANKS = 64 };

void __wrap_perf_membw_read(const void *data, size_t bytes);
enum sar_status __real_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment);
enum sar_status __wrap_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment);

static size_t read_of[MOST_RANKS]; /* bytes */

void __wrap_perf_membw_read(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        check(at[i] < ranks, "expected a byte that a rank has written, found %u", (unsigned)at[i]);
        read_of[at[i]]++;
    }
}

static bool fails;

enum sar_status __wrap_sar_shm_region_map(const struct sar_shm_handle *name, struct sar_shm_region *segment)
{
    return fails ? SAR_NO_SHM : __real_sar_shm_region_map(name, segment);
}

static void check_reading(const struct perf_shm_buffer *shm_buffer, size_t bytes, bool shares)
{
    check_case("%zu bytes, %s", bytes, shares ? "of all" : "alone");
    memset(read_of, 0, sizeof read_of);
    perf_shm_buffer_read(shm_buffer, bytes, WRITTEN);
    for (int r = 0; r < ranks; r++) {
        size_t share = shares ? bytes / (size_t)ranks : 0;
        size_t expected = r != rank ? share : bytes - (size_t)(ranks - 1) * share;
        check(read_of[r] == expected, "expected %zu bytes of rank %d, found %zu", expected, r, read_of[r]);
    }
}

static void check_shm_buffer(bool shares)
{
    static const size_t sizes[] = { 0, 1, 1000, WRITTEN, 5 * WRITTEN + 7 };
    struct perf_world world = { .rank = rank, .ranks = ranks, .nodes = 1, .node_ranks = ranks };
    struct perf_shm_buffer shm_buffer;
    fails = !shares && rank == 0;
    perf_shm_buffer_open(&shm_buffer, &world, BYTES);
    memset(perf_shm_buffer_data(&shm_buffer), 255, BYTES);
    memset(perf_shm_buffer_data(&shm_buffer), rank, WRITTEN);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_reading(&shm_buffer, sizes[i], shares);
    MPI_Barrier(MPI_COMM_WORLD);
    perf_shm_buffer_close(&shm_buffer);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(60);
    if (ranks > MOST_RANKS)
        return check_skip("bench_shm_buffer", "more ranks than it has room for");
    check_shm_buffer(true);
    if (ranks > 1)
        check_shm_buffer(false);
    return check_end("bench_shm_buffer");
}
