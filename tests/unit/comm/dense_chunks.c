/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests how a reduction of many elements is split into MPI calls, which count with int. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>

#include "generate.h"
#include "comm/dense_allreduce.h"

static const MPI_Aint extents[] = {
    0, 1, 2, 3, 4, 8, 12, 16, 4096, 1000003, (MPI_Aint)1 << 30, (MPI_Aint)1 << 33
};

static const uint64_t counts[] = { 0,
                                   1,
                                   5,
                                   INT_MAX,
                                   (uint64_t)1 << 31,
                                   ((uint64_t)1 << 31) + 7,
                                   UINT32_MAX,
                                   ((uint64_t)1 << 32) + 1,
                                   ((uint64_t)1 << 36) + 3 };

/* Each piece fits an int, is at most 1 GiB unless it is one element, and is not empty. Together they cover
 * all elements. */
static void check_pieces(uint64_t count, MPI_Aint extent)
{
    uint64_t done = 0, pieces = 0, most = (uint64_t)SAR_DENSE_ALLREDUCE_CHUNK_BYTES;
    while (done < count && pieces++ < 1000) {
        uint64_t n = sar_dense_allreduce_chunk_count(count - done, extent);
        assert_true(n > 0 && n <= INT_MAX);
        assert_true(n == 1 || n * (uint64_t)extent <= most);
        assert_true(n == count - done || extent == 0 || (n + 1) * (uint64_t)extent > most);
        done += n;
    }
    assert_true(done == count || pieces > 999);
}

static void test_pieces(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (size_t e = 0; e < LENGTH(extents); e++)
            check_pieces(counts[c], extents[e]);
}

static void test_known_pieces(void **state)
{
    (void)state;
    assert_int_equal(sar_dense_allreduce_chunk_count(((uint64_t)1 << 31) + 7, 1), 1 << 30);
    assert_int_equal(sar_dense_allreduce_chunk_count(((uint64_t)1 << 31) + 7, 8), 1 << 27);
    assert_int_equal(sar_dense_allreduce_chunk_count(((uint64_t)1 << 31) + 7, 16), 1 << 26);
    assert_int_equal(sar_dense_allreduce_chunk_count(7, 8), 7);
    assert_int_equal(sar_dense_allreduce_chunk_count(7, (MPI_Aint)1 << 31), 1);
    assert_int_equal(sar_dense_allreduce_chunk_count((uint64_t)1 << 40, 0), 1 << 30);
    assert_int_equal(sar_dense_allreduce_chunk_count((uint64_t)1 << 40, -4), 1 << 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_known_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
