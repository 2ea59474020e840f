/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the cost of dense calls that cannot gain. Counts collectives and messages requested from MPI, and
 * bytes of the caller's buffers read by the library. The price of an element is high, so that full vectors
 * count as too dense. Also tests arguments that are wrong on one rank. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "vector/dense.h"

enum { CALLS = 100, MOST = 1 << 18 };

static struct {
    int agreements, reductions, messages;
    size_t looked_at;
} counted;

int __real_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int __real_PMPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                           MPI_Request *request);
int __real_PMPI_Ialltoallv(const void *in, const int *counts, const int *places, MPI_Datatype type, void *out,
                           const int *each, const int *at, MPI_Datatype types, MPI_Comm comm,
                           MPI_Request *request);
int __real_PMPI_Isend(const void *out, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
size_t __real_sar_dense_estimate_nonzero(const struct sar_vec_desc *shape, const void *buf, size_t sample,
                                         struct sar_quantiles *quantiles);
int __wrap_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int __wrap_PMPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                           MPI_Request *request);
int __wrap_PMPI_Ialltoallv(const void *in, const int *counts, const int *places, MPI_Datatype type, void *out,
                           const int *each, const int *at, MPI_Datatype types, MPI_Comm comm,
                           MPI_Request *request);
int __wrap_PMPI_Isend(const void *out, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
size_t __wrap_sar_dense_estimate_nonzero(const struct sar_vec_desc *shape, const void *buf, size_t sample,
                                         struct sar_quantiles *quantiles);

int __wrap_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int agreements = counted.agreements; /* the yielding version makes a nonblocking call of its own */
    int code = __real_PMPI_Allreduce(in, out, n, type, op, comm);
    counted.agreements = agreements;
    counted.reductions++;
    return code;
}

int __wrap_PMPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                           MPI_Request *request)
{
    counted.agreements++;
    return __real_PMPI_Iallreduce(in, out, n, type, op, comm, request);
}

/* Agreements in one round are made so. */
int __wrap_PMPI_Ialltoallv(const void *in, const int *counts, const int *places, MPI_Datatype type, void *out,
                           const int *each, const int *at, MPI_Datatype types, MPI_Comm comm,
                           MPI_Request *request)
{
    counted.agreements++;
    return __real_PMPI_Ialltoallv(in, counts, places, type, out, each, at, types, comm, request);
}

int __wrap_PMPI_Isend(const void *out, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    counted.messages++;
    return __real_PMPI_Isend(out, n, type, to, tag, comm, request);
}

size_t __wrap_sar_dense_estimate_nonzero(const struct sar_vec_desc *shape, const void *buf, size_t sample,
                                         struct sar_quantiles *quantiles)
{
    counted.looked_at += sample * shape->element_size;
    return __real_sar_dense_estimate_nonzero(shape, buf, sample, quantiles);
}

static float in[MOST], out[MOST];

static void call(int count, MPI_Op op, MPI_Comm comm)
{
    memset(out, 0x77, sizeof out);
    check_success(MPIX_Sparse_allreduce(in, out, count, MPI_FLOAT, op, comm), "MPIX_Sparse_allreduce");
}

static void call_often(int count, MPI_Comm comm)
{
    memset(&counted, 0, sizeof counted);
    for (int i = 0; i < CALLS; i++) {
        in[i % count] = (float)(i + 1);
        call(count, MPI_SUM, comm);
        check(out[i % count] == (float)(ranks * (i + 1)), "expected %d, found %g", ranks * (i + 1),
              (double)out[i % count]);
    }
}

static void check_counts(int agreements, size_t looked_at)
{
    check(counted.agreements == agreements, "expected %d agreements in %d calls, found %d", agreements, CALLS,
          counted.agreements);
    check(counted.reductions == CALLS, "expected %d calls of MPI_Allreduce, found %d", CALLS,
          counted.reductions);
    check(counted.messages == 0, "expected no messages of the library's own, found %d", counted.messages);
    check(counted.looked_at <= looked_at, "expected at most %zu bytes looked at, found %zu", looked_at,
          counted.looked_at);
}

/* Consistency checks come after 1, 3, 7, 15 … calls. */
static void try_dense(MPI_Comm comm)
{
    static const int counts[] = { 5000, 20000, MOST };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t bytes = (size_t)counts[i] * sizeof(float), sample = bytes <= 65536 ? bytes : bytes / 16;
        check_case("%d elements, all present", counts[i]);
        call_often(counts[i], comm);
        check_counts(6, 6 * sample);
    }
}

static void try_small(MPI_Comm comm)
{
    static const int counts[] = { 1, 2, 100, 4096 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_case("%d elements", counts[i]);
        call_often(counts[i], comm);
        check_counts(0, 0);
    }
}

static void try_unsupported(MPI_Comm comm)
{
    static char from[MOST], to[MOST];
    check_case("an op that no scheme takes");
    memset(&counted, 0, sizeof counted);
    for (int i = 0; i < CALLS; i++)
        check_success(MPIX_Sparse_allreduce(from, to, MOST, MPI_INT8_T, MPI_LOR, comm),
                      "MPIX_Sparse_allreduce");
    check_counts(0, 0);
}

static bool runs_dense(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    return strcmp(report.scheme, "dense") == 0;
}

/* The library detects a tensor that becomes sparse, and one that becomes dense again. */
static void try_change(MPI_Comm comm)
{
    int calls = 0;
    check_case("a tensor that becomes sparse");
    memset(in, 0, sizeof in);
    do {
        call(MOST, MPI_SUM, comm);
        check(++calls <= 64, "expected a sparse scheme after 63 calls at the latest");
    } while (runs_dense(comm));
    for (int i = 0; i < 10; i++) {
        call(MOST, MPI_SUM, comm);
        check(!runs_dense(comm), "expected that it stays");
    }
    for (int i = 0; i < MOST; i++)
        in[i] = 1;
    call(MOST, MPI_SUM, comm);
    check(runs_dense(comm), "expected dense at once");
}

/* An error on the last rank reaches all ranks if the call has a consistency check, as calls of a new size
 * have. */
static void try_wrong(MPI_Comm comm)
{
    bool wrong = rank == ranks - 1;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    check_case("a negative count on rank %d", ranks - 1);
    check_error(MPIX_Sparse_allreduce(in, out, wrong ? -5 : MOST / 2, MPI_FLOAT, MPI_SUM, comm), "count",
                ranks - 1);
    check_case("no datatype on rank %d", ranks - 1);
    check_error(MPIX_Sparse_allreduce(in, out, MOST / 2, wrong ? MPI_DATATYPE_NULL : MPI_FLOAT, MPI_SUM,
                                      comm),
                "datatype", ranks - 1);
    check_case("no op on rank %d", ranks - 1);
    check_error(MPIX_Sparse_allreduce(in, out, MOST / 2, MPI_FLOAT, wrong ? MPI_OP_NULL : MPI_SUM, comm),
                "op", ranks - 1);
    call(MOST / 2, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks == 1)
        return check_skip("fallback_cost", "one rank has nothing to agree on");
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    setenv("MPIX_SPARSE_LEARN", "off", 1);
    setenv("MPIX_SPARSE_NODES", "2", 1);    /* shared memory cannot be counted */
    setenv("MPIX_SPARSE_ALPHA", "1e-9", 1); /* far below what MPI_Allreduce is measured to take */
    setenv("MPIX_SPARSE_BETA", "1e-8", 1);
    setenv("MPIX_SPARSE_GAMMA", "1e-6", 1);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    call(0, MPI_SUM, comm);
    for (int i = 0; i < MOST; i++)
        in[i] = 1;
    try_small(comm);
    try_dense(comm);
    try_unsupported(comm);
    try_change(comm);
    try_wrong(comm);
    MPI_Comm_free(&comm);
    return check_end("fallback_cost");
}
