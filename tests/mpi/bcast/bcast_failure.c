/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests broadcasts whose messages are truncated or have a flipped bit, whose allocations fail, and in which
 * MPI fails to test requests. No rank hangs. A rank that succeeds has the right data, and the next call
 * succeeds. A PMPI_Isend of this program damages the messages. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "array_length.h"
#include "check.h"
#include "malloc_fail.h"

enum { COUNT = 60000, HEADER = 32, NO_MESSAGE = -1 };

/** The message of this rank that is damaged, and how: bytes that are left, or a bit that flips. */
static struct {
    long message, sent;
    bool cut, hit;
    size_t where;
    unsigned char *copy;
} damage = { .message = NO_MESSAGE };

/* The library calls this name. MPI's own function also has the MPI_ name. */
int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm to_comm,
               MPI_Request *request)
{
    size_t bytes = (size_t)n;
    if (damage.message == NO_MESSAGE || damage.sent++ != damage.message)
        return MPI_Isend(buffer, n, type, to, tag, to_comm, request);
    damage.hit = !damage.cut || damage.where < bytes;
    damage.copy = get_memory(bytes, 1);
    memcpy(damage.copy, buffer, bytes);
    size_t left = damage.cut && damage.where < bytes ? damage.where : bytes;
    if (!damage.cut)
        damage.copy[damage.where / 8 % bytes] ^= (unsigned char)(1 << damage.where % 8);
    return MPI_Isend(damage.copy, (int)left, type, to, tag, to_comm, request);
}

static int tests_to_fail; /* of several requests at once */

int PMPI_Testsome(int n, MPI_Request requests[], int *completed, int indices[], MPI_Status statuses[])
{
    return tests_to_fail > 0 && tests_to_fail-- > 0 ? MPI_ERR_OTHER
                                                    : MPI_Testsome(n, requests, completed, indices, statuses);
}

int PMPI_Waitany(int n, MPI_Request requests[], int *completed, MPI_Status *status)
{
    return tests_to_fail > 0 && tests_to_fail-- > 0 ? MPI_ERR_OTHER
                                                    : MPI_Waitany(n, requests, completed, status);
}

static MPI_Comm comm;
static uint16_t before[COUNT], after[COUNT], buf[COUNT];
static int32_t indices[COUNT];
static MPIX_Sparse_result result;

static unsigned one_in = 4; /* numbers changes; few changes are listed before they are sent */

static void reset(void)
{
    size_t k = 0;
    for (int i = 0; i < COUNT; i++) {
        bool changed = mix((uint64_t)i) % one_in == 0;
        before[i] = (uint16_t)mix((uint64_t)i + COUNT);
        after[i] = (uint16_t)(before[i] ^ (changed ? 0x41 : 0));
        if (changed)
            indices[k++] = i;
    }
    memcpy(buf, rank == 0 ? after : before, sizeof buf);
}

static int nnz(void)
{
    int n = 0;
    for (int i = 0; i < COUNT; i++)
        n += before[i] != after[i];
    return n;
}

/* Returns the code; a call that succeeds has the right data. */
static int call(bool delta)
{
    int code;
    reset();
    if (delta) {
        code = MPIX_Sparse_bcast_delta(rank == 0 ? before : MPI_IN_PLACE, buf, COUNT, MPI_UINT16_T, 0, comm);
        if (code == MPI_SUCCESS)
            check(memcmp(buf, after, sizeof buf) == 0, "expected the new version with a success");
        return code;
    }
    code = MPIX_Sparse_bcast_coo(indices, after, nnz(), MPI_INT32_T, COUNT, MPI_UINT16_T, 0, comm, &result);
    if (code == MPI_SUCCESS) {
        const void *got;
        MPI_Count n;
        MPIX_Sparse_result_get(result, &n, &got, NULL);
        check(n == nnz() && memcmp(got, indices, (size_t)n * sizeof *indices) == 0,
              "expected the indices of the root with a success");
    }
    return code;
}

static void check_again(bool delta)
{
    check_success(call(delta), "the next call");
}

/* Damages message number `message` of a rank. Returns false if the rank sends fewer. */
static bool try_damage(bool delta, int at, long message, bool cut, size_t where)
{
    damage.message = rank == at ? message : NO_MESSAGE;
    damage.sent = 0;
    damage.hit = false;
    damage.cut = cut;
    damage.where = where;
    int hit, code = call(delta), failures = code != MPI_SUCCESS;
    damage.message = NO_MESSAGE;
    hit = damage.hit;
    MPI_Bcast(&hit, 1, MPI_INT, at, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    bool header = cut || where < 8 * (size_t)HEADER;
    check(!hit || !header || failures > 0, "expected an error from a rank that got a damaged message");
    check(!hit || !delta || failures > 0, "expected the hash of a delta to tell of a flipped bit");
    if (code != MPI_SUCCESS)
        check_error(code, "truncated or inconsistent", -1);
    check_again(delta);
    free(damage.copy);
    damage.copy = NULL;
    return hit;
}

static void try_damages(bool delta)
{
    static const size_t cuts[] = { 0, 1, 31, 32, 200 };
    for (int at = 0; at < ranks; at++)
        for (long message = 0, hit = 1; hit && message < 12; message++) {
            hit = 0;
            for (size_t i = 0; i < LENGTH(cuts); i++) {
                check_case("%s: message %ld of rank %d cut to %zu", delta ? "delta" : "coo", message, at,
                           cuts[i]);
                hit |= try_damage(delta, at, message, true, cuts[i]);
            }
            for (size_t bit = (size_t)message; bit < 8 * (size_t)HEADER + 400; bit += 37) {
                check_case("%s: bit %zu of message %ld of rank %d", delta ? "delta" : "coo", bit, message,
                           at);
                hit |= try_damage(delta, at, message, false, bit);
            }
        }
}

/* The request that is complete by then still counts. */
static void try_failing_tests(bool delta)
{
    for (int tests = 1; tests < 6; tests++) {
        check_case("%s: MPI fails to test requests %d times", delta ? "delta" : "coo", tests);
        tests_to_fail = tests;
        int code = call(delta);
        if (ranks > 1)
            check_error(code, "an MPI function failed", -1);
        tests_to_fail = 0;
        check_again(delta);
    }
}

/* One allocation fails on one rank. Ranks agree, or only that rank fails. */
static void try_alloc_failures(bool delta, int at)
{
    int refused = 1, failed = 0;
    for (long which = 0; refused; which++) {
        MPI_Comm fresh, old = comm;
        MPI_Comm_dup(comm, &fresh);
        MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);
        comm = fresh;
        check_case("%s: allocation %ld of rank %d", delta ? "delta" : "coo", which, at);
        check_success(MPIX_Sparse_bcast_delta(MPI_BOTTOM, MPI_BOTTOM, 0, MPI_INT, 0, fresh),
                      "the first call");
        malloc_fail_calls = 0;
        malloc_fail_at = rank == at ? which : -1;
        int code = call(delta);
        refused = malloc_fail_at >= 0 && malloc_fail_calls > malloc_fail_at;
        malloc_fail_at = -1;
        if (code != MPI_SUCCESS)
            failed++;
        MPI_Bcast(&refused, 1, MPI_INT, at, MPI_COMM_WORLD);
        check_again(delta);
        MPIX_Sparse_result_free(&result);
        MPI_Comm_free(&comm);
        comm = old;
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(failed > 0 || ranks == 1, "expected some allocation that a call of several ranks needs");
}

int main(int argc, char **argv)
{
    setenv("MPIX_SPARSE_STALL", "0", 1);
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(300);
    comm = comm_duplicate();
    for (int delta = 0; delta < 2; delta++) {
        check_again(delta);
        try_damages(delta);
        try_failing_tests(delta);
        try_alloc_failures(delta, 0);
        if (ranks > 1)
            try_alloc_failures(delta, ranks - 1);
    }
    one_in = 1000;
    try_alloc_failures(true, 0);
    MPIX_Sparse_result_free(&result);
    MPI_Comm_free(&comm);
    return check_end("bcast_failure");
}
