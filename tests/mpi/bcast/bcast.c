/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests MPIX_Sparse_bcast_delta and MPIX_Sparse_bcast_coo: types of all sizes, roots, shares of changes, in
 * place and not, formats, and calls with an invalid argument on one rank. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "check.h"

static MPI_Comm comm;

/* Types by their size, and a row of three. */
static struct {
    MPI_Datatype type;
    size_t bytes;
} types[] = { { MPI_BYTE, 1 },   { MPI_CHAR, 1 },    { MPI_UINT16_T, 2 },          { MPI_FLOAT, 4 },
              { MPI_DOUBLE, 8 }, { MPI_INT64_T, 8 }, { MPI_C_DOUBLE_COMPLEX, 16 }, { MPI_DATATYPE_NULL, 6 } };

enum { ROW = 7 /* of types */ };

/* True if byte b of the vectors differs in the new version. */
static bool byte_changes(size_t element, size_t count, double share, uint64_t seed)
{
    if (share < 0) /* the last element alone */
        return element + 1 == count;
    return (double)(mix(seed * 7919 + element) >> 11) < share * (double)(1LL << 53);
}

static void make_versions(unsigned char *before, unsigned char *after, size_t count, size_t bytes,
                          double share, uint64_t seed)
{
    for (size_t i = 0; i < count * bytes; i++)
        before[i] = (unsigned char)(mix(seed + i) >> 8);
    memcpy(after, before, count * bytes);
    for (size_t i = 0; i < count; i++)
        if (byte_changes(i, count, share, seed))
            after[i * bytes + (size_t)(mix(seed ^ i) % bytes)] ^=
                (unsigned char)(1 + mix(seed + 3 * i) % 255);
}

static void check_delta(int type, size_t count, double share, int root, bool in_place)
{
    size_t bytes = count * types[type].bytes;
    unsigned char *before = get_memory(bytes + 1, 1), *after = get_memory(bytes + 1, 1),
                  *buf = get_memory(bytes + 1, 1);
    const void *old_version = in_place && rank != root ? MPI_IN_PLACE : before;
    make_versions(before, after, count, types[type].bytes, share, count + (size_t)type);
    memcpy(buf, rank == root ? after : before, in_place || rank == root ? bytes : 0);
    buf[bytes] = 0x5a;
    check_case("delta: type %d, %zu elements, %g changed, root %d, in place %d", type, count, share, root,
               in_place);
    check_success(MPIX_Sparse_bcast_delta(old_version, buf, (MPI_Count)count, types[type].type, root, comm),
                  "MPIX_Sparse_bcast_delta");
    check(memcmp(buf, after, bytes) == 0, "expected the new version, found other bits");
    check(buf[bytes] == 0x5a, "expected nothing written behind the vector");
    free(before);
    free(after);
    free(buf);
}

static void check_deltas(void)
{
    static const size_t counts[] = { 0, 1, 2, 63, 1000, 70001 };
    static const double shares[] = { 0, -1, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1 };
    int n = 0;
    for (int type = 0; type <= ROW; type++)
        for (size_t c = 0; c < LENGTH(counts); c++)
            for (size_t s = 0; s < LENGTH(shares); s++, n++)
                check_delta(type, counts[c], shares[s], n % ranks, n % 3 != 0);
    check_delta(2, 3000017, 0.01, ranks - 1, true);
    check_delta(3, 2000003, 0.3, 0, false);
}

/* Numbers that are equal, or NaNs, and differ in their bits. */
static void check_bits(void)
{
    uint32_t before[] = { 0x80000000u, 0, 0x7fc00000u, 0x7fc00000u, 0x7f800001u, 1, 0x3f800000u };
    uint32_t after[] = { 0, 0x80000000u, 0x7fc00001u, 0xffc00000u, 0x7fc00001u, 0, 0x3f800000u }, buf[7];
    memcpy(buf, rank == 0 ? after : before, sizeof buf);
    check_case("delta: signs of zero and NaNs");
    check_success(MPIX_Sparse_bcast_delta(rank == 0 ? before : MPI_IN_PLACE, buf, 7, MPI_FLOAT, 0, comm),
                  "MPIX_Sparse_bcast_delta");
    check(memcmp(buf, after, sizeof buf) == 0, "expected the bits of the new version");
}

/* A rank whose old version is another one, in an element that changes, and others that have the right one. */
static void check_stale(void)
{
    int before[1000], after[1000], last = ranks - 1;
    for (int i = 0; i < 1000; i++)
        after[i] = (before[i] = i) + (i % 10 == 0);
    check_case("delta: another old version");
    if (rank == last && last != 0)
        before[500] = -1;
    int code = rank == 0 ? MPIX_Sparse_bcast_delta(before, after, 1000, MPI_INT, 0, comm)
                         : MPIX_Sparse_bcast_delta(MPI_IN_PLACE, before, 1000, MPI_INT, 0, comm);
    if (rank == last && last != 0)
        check_error(code, "old_version is not the old version of the root", -1);
    else
        check_success(code, "MPIX_Sparse_bcast_delta");
}

/* Elements i of the root at index 7 i mod count; the last value of an index counts. */
static void check_coo(int type, MPI_Datatype indextype, size_t index_bytes, size_t count, size_t nnz,
                      int root)
{
    size_t bytes = types[type].bytes;
    unsigned char *indices = get_memory(nnz + 1, index_bytes), *values = get_memory(nnz + 1, bytes);
    unsigned char *dense = get_memory(count + 1, bytes), *present = get_memory(count + 1, 1);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const void *got_indices, *got_values;
    MPI_Count got;
    size_t k = 0;
    check_case("coo: type %d, %zu of %zu elements, root %d", type, nnz, count, root);
    for (size_t i = 0; i < nnz; i++) {
        uint64_t index = mix(i + nnz) % count;
        memcpy(indices + i * index_bytes, &index, index_bytes);
        for (size_t j = 0; j < bytes; j++)
            values[i * bytes + j] = (unsigned char)mix(i * bytes + j);
        memcpy(dense + index * bytes, values + i * bytes, bytes);
        present[index] = 1;
    }
    for (int call = 0; call < 2; call++) /* into a new result, and into the same one */
        check_success(MPIX_Sparse_bcast_coo(rank == root ? indices : NULL, values,
                                            rank == root ? (MPI_Count)nnz : -1, indextype, (MPI_Count)count,
                                            types[type].type, root, comm, &result),
                      "MPIX_Sparse_bcast_coo");
    MPIX_Sparse_result_get(result, &got, &got_indices, &got_values);
    for (size_t i = 0; i < count; i++) {
        uint64_t index = 0;
        if (!present[i])
            continue;
        check(k < (size_t)got, "expected more elements");
        memcpy(&index, (const unsigned char *)got_indices + k * index_bytes, index_bytes);
        check(index == i, "expected index %zu, found %llu", i, (unsigned long long)index);
        check(memcmp((const unsigned char *)got_values + k++ * bytes, dense + i * bytes, bytes) == 0,
              "expected the last value of index %zu", i);
    }
    check((size_t)got == k, "expected %zu elements, found %lld", k, (long long)got);
    MPIX_Sparse_result_free(&result);
    free(indices);
    free(values);
    free(dense);
    free(present);
}

static void check_coos(void)
{
    static const size_t counts[] = { 1, 100, 50000 };
    int n = 0;
    for (int type = 0; type <= ROW; type++)
        for (size_t c = 0; c < LENGTH(counts); c++)
            for (size_t nnz = 0; nnz <= counts[c]; nnz = nnz * 13 + 1, n++)
                check_coo(type, n % 2 ? MPI_INT32_T : MPI_UINT64_T, n % 2 ? 4 : 8, counts[c], nnz, n % ranks);
}

static void check_formats(void)
{
    static const char *const wires[] = { EVERY_WIRE };
    for (size_t i = 0; i < LENGTH(wires); i++) {
        struct settings settings = { .wire = wires[i] };
        comm = settings_comm(&settings);
        check_delta(2, 300007, 0.01, 0, true);
        check_delta(4, 40007, 0.2, ranks - 1, false);
        check_coo(3, MPI_INT32_T, 4, 60000, 3000, 0);
        MPI_Comm_free(&comm);
    }
}

static void check_rejected(void)
{
    int one[2] = { 1, 1 }, two[2] = { 2, 2 };
    int32_t index = 5;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int at = ranks - 1;
    bool here = rank == at;
    check_case("invalid arguments on rank %d", at);
    check_error(MPIX_Sparse_bcast_delta(one, two, here ? -1 : 2, MPI_INT, 0, comm), "count is -1", at);
    check_error(MPIX_Sparse_bcast_delta(one, two, 2, here ? MPI_DOUBLE_INT : MPI_INT, 0, comm), "datatype",
                at);
    check_error(MPIX_Sparse_bcast_delta(one, two, 2, MPI_INT, here ? ranks : 0, comm), "root is", at);
    check_error(MPIX_Sparse_bcast_delta(here ? NULL : one, two, 2, MPI_INT, 0, comm), "old_version is null",
                at);
    check_error(MPIX_Sparse_bcast_delta(one, here ? NULL : two, 2, MPI_INT, 0, comm), "new_version is null",
                at);
    check_error(MPIX_Sparse_bcast_delta(here ? two : one, two, 2, MPI_INT, 0, comm),
                "old_version is the other buffer", at);
    check_error(MPIX_Sparse_bcast_delta(rank == 0 ? MPI_IN_PLACE : one, two, 2, MPI_INT, 0, comm),
                "old_version is MPI_IN_PLACE", 0);
    check_error(MPIX_Sparse_bcast_coo(&index, one, 1, MPI_INT32_T, 5, MPI_INT, at, comm, &result),
                "holds 5, which is outside", at);
    check_error(MPIX_Sparse_bcast_coo(&index, one, -3, MPI_INT32_T, 9, MPI_INT, at, comm, &result),
                "nnz is -3", at);
    check_error(MPIX_Sparse_bcast_coo(&index, one, 1, here ? MPI_FLOAT : MPI_INT32_T, 9, MPI_INT, 0, comm,
                                      &result),
                "indextype", at);
    check_error(MPIX_Sparse_bcast_coo(&index, one, 1, MPI_INT32_T, 9, MPI_INT, 0, comm,
                                      here ? NULL : &result),
                "result is null", at);
    check(result == MPIX_SPARSE_RESULT_NULL, "expected no result");
    check(two[0] == 2 && two[1] == 2, "expected the new version unchanged");
    if (ranks == 1)
        return;
    check_error(MPIX_Sparse_bcast_delta(one, two, 2, MPI_INT, here ? 1 : 0, comm),
                "root differs between ranks", -1);
    check_error(MPIX_Sparse_bcast_delta(one, two, here ? 1 : 2, MPI_INT, 0, comm),
                "count differs between ranks", -1);
    check_error(here ? MPIX_Sparse_bcast_delta(one, two, 2, MPI_INT, 0, comm)
                     : MPIX_Sparse_bcast_coo(&index, one, 1, MPI_INT32_T, 9, MPI_INT, 0, comm, &result),
                "ranks call different functions", -1);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(300);
    MPI_Type_contiguous(3, MPI_UINT16_T, &types[ROW].type);
    MPI_Type_commit(&types[ROW].type);
    comm = comm_duplicate();
    check_deltas();
    check_bits();
    check_stale();
    check_coos();
    check_rejected();
    MPI_Comm_free(&comm);
    check_formats();
    MPI_Type_free(&types[ROW].type);
    return check_end("bcast");
}
