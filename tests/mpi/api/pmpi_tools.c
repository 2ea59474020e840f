/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests PMPI tools that intercept MPI and this library, as a tracer does. The tool sees each call of the
 * program once, and no call that the library makes itself. */

#include <mpix_sparse.h>
#include <stdatomic.h>

#include "check.h"

static atomic_int inner, outer;      /* intercepted calls of MPI, and of the library */
static _Atomic(const char *) latest; /* name of an MPI function */

static void see(const char *name)
{
    latest = name;
    atomic_fetch_add(&inner, 1);
}

#define SEE(name, parameters, arguments) \
    int MPI_##name parameters            \
    {                                    \
        see("MPI_" #name);               \
        return PMPI_##name arguments;    \
    }

#define MESSAGE void *b, int n, MPI_Datatype t, int r, int tag, MPI_Comm c
#define CONST_MESSAGE const void *b, int n, MPI_Datatype t, int r, int tag, MPI_Comm c
#define PASS_MESSAGE b, n, t, r, tag, c
SEE(Send, (CONST_MESSAGE), (PASS_MESSAGE))
SEE(Recv, (MESSAGE, MPI_Status *s), (PASS_MESSAGE, s))
SEE(Isend, (CONST_MESSAGE, MPI_Request *q), (PASS_MESSAGE, q))
SEE(Irecv, (MESSAGE, MPI_Request *q), (PASS_MESSAGE, q))
SEE(Sendrecv,
    (const void *b, int n, MPI_Datatype t, int r, int tag, void *i, int m, MPI_Datatype u, int f, int g,
     MPI_Comm c, MPI_Status *s),
    (b, n, t, r, tag, i, m, u, f, g, c, s))
SEE(Probe, (int r, int tag, MPI_Comm c, MPI_Status *s), (r, tag, c, s))
SEE(Iprobe, (int r, int tag, MPI_Comm c, int *f, MPI_Status *s), (r, tag, c, f, s))
SEE(Get_count, (const MPI_Status *s, MPI_Datatype t, int *n), (s, t, n))

SEE(Wait, (MPI_Request * q, MPI_Status *s), (q, s))
SEE(Waitall, (int n, MPI_Request q[], MPI_Status s[]), (n, q, s))
SEE(Waitany, (int n, MPI_Request q[], int *i, MPI_Status *s), (n, q, i, s))
SEE(Test, (MPI_Request * q, int *f, MPI_Status *s), (q, f, s))
SEE(Testall, (int n, MPI_Request q[], int *f, MPI_Status s[]), (n, q, f, s))
SEE(Testsome, (int n, MPI_Request q[], int *m, int i[], MPI_Status s[]), (n, q, m, i, s))

#define REDUCTION const void *i, void *o, int n, MPI_Datatype t, MPI_Op p
SEE(Barrier, (MPI_Comm c), (c))
SEE(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
SEE(Reduce, (REDUCTION, int r, MPI_Comm c), (i, o, n, t, p, r, c))
SEE(Allreduce, (REDUCTION, MPI_Comm c), (i, o, n, t, p, c))
SEE(Iallreduce, (REDUCTION, MPI_Comm c, MPI_Request *q), (i, o, n, t, p, c, q))
SEE(Allgather, (const void *i, int n, MPI_Datatype t, void *o, int m, MPI_Datatype u, MPI_Comm c),
    (i, n, t, o, m, u, c))
SEE(Iallgather,
    (const void *i, int n, MPI_Datatype t, void *o, int m, MPI_Datatype u, MPI_Comm c, MPI_Request *q),
    (i, n, t, o, m, u, c, q))

SEE(Comm_rank, (MPI_Comm c, int *r), (c, r))
SEE(Comm_size, (MPI_Comm c, int *n), (c, n))
SEE(Comm_dup, (MPI_Comm c, MPI_Comm *d), (c, d))
SEE(Comm_split_type, (MPI_Comm c, int k, int key, MPI_Info i, MPI_Comm *d), (c, k, key, i, d))
SEE(Comm_free, (MPI_Comm * c), (c))
SEE(Comm_set_attr, (MPI_Comm c, int k, void *v), (c, k, v))
SEE(Comm_get_attr, (MPI_Comm c, int k, void *v, int *f), (c, k, v, f))
SEE(Comm_set_errhandler, (MPI_Comm c, MPI_Errhandler e), (c, e))
SEE(Comm_call_errhandler, (MPI_Comm c, int e), (c, e))
SEE(Type_commit, (MPI_Datatype * t), (t))
SEE(Type_free, (MPI_Datatype * t), (t))
SEE(Type_get_extent, (MPI_Datatype t, MPI_Aint *l, MPI_Aint *e), (t, l, e))
SEE(Op_create, (MPI_User_function * f, int k, MPI_Op *p), (f, k, p))
SEE(Info_get, (MPI_Info i, const char *k, int n, char *v, int *f), (i, k, n, v, f))
SEE(Grequest_complete, (MPI_Request q), (q))

#define SEE_OURS(name, parameters, arguments) \
    int MPIX_##name parameters                \
    {                                         \
        atomic_fetch_add(&outer, 1);          \
        return PMPIX_##name arguments;        \
    }

#define DENSE const void *i, void *o, MPI_Count n, MPI_Datatype t, MPI_Op p, MPI_Comm c
#define COO                                                                                           \
    const void *i, const void *v, MPI_Count z, MPI_Datatype u, MPI_Count n, MPI_Datatype t, MPI_Op p, \
        MPI_Comm c, MPIX_Sparse_result *r
SEE_OURS(Sparse_allreduce, (DENSE), (i, o, n, t, p, c))
SEE_OURS(Isparse_allreduce, (DENSE, MPI_Request *q), (i, o, n, t, p, c, q))
SEE_OURS(Sparse_allreduce_coo, (COO), (i, v, z, u, n, t, p, c, r))
SEE_OURS(Isparse_allreduce_coo, (COO, MPI_Request *q), (i, v, z, u, n, t, p, c, r, q))
SEE_OURS(Sparse_allreduce_init, (DENSE, MPI_Info f, MPIX_Sparse_plan *l), (i, o, n, t, p, c, f, l))
SEE_OURS(Sparse_plan_start, (MPIX_Sparse_plan l, MPI_Request *q), (l, q))
SEE_OURS(Sparse_plan_start_all, (int n, MPIX_Sparse_plan l[], MPI_Request q[]), (n, l, q))
SEE_OURS(Sparse_plan_free, (MPIX_Sparse_plan * l), (l))
SEE_OURS(Sparse_profile, (const void *b, MPI_Count n, MPI_Datatype t, MPI_Comm c, MPIX_Sparse_profile_t *p),
         (b, n, t, c, p))
SEE_OURS(Sparse_get_report, (MPI_Comm c, MPIX_Sparse_report_t *r), (c, r))
SEE_OURS(Sparse_comm_set_info, (MPI_Comm c, MPI_Info i), (c, i))
SEE_OURS(Sparse_result_free, (MPIX_Sparse_result * r), (r))

/* Check the calls intercepted since the last check. */
static void check_seen(const char *what, int calls)
{
    int ours = atomic_exchange(&outer, 0), theirs = atomic_exchange(&inner, 0);
    check(ours == calls, "%s: expected that a tool sees %d calls of the library, it saw %d", what, calls,
          ours);
    check(theirs == 0, "%s: expected that a tool sees no call of MPI, it saw %d, the last %s", what, theirs,
          theirs == 0 ? "-" : latest);
}

enum { COUNT = 2000 };

static const int32_t indices[] = { 3, 1999 };
static float in[COUNT], out[COUNT];

/* PMPI_Wait, since the tool would intercept MPI_Wait. */
static void finish(int code, MPI_Request *request)
{
    check_success(code, "starting a call");
    check_success(PMPI_Wait(request, MPI_STATUS_IGNORE), "PMPI_Wait");
}

static void try_blocking(MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_seen("MPIX_Sparse_allreduce", 1);
    check_success(MPIX_Sparse_allreduce_coo(indices, in, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                            &result),
                  "MPIX_Sparse_allreduce_coo");
    check_seen("MPIX_Sparse_allreduce_coo", 1);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check_seen("MPIX_Sparse_result_free", 1);
    check_error(MPIX_Sparse_allreduce_coo(indices, in, -1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                          &result),
                "nnz is -1", 0);
    check_seen("a call that fails", 1);
}

static void try_nonblocking(MPI_Comm comm)
{
    MPI_Request request;
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    finish(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request), &request);
    check_seen("MPIX_Isparse_allreduce", 1);
    finish(MPIX_Isparse_allreduce_coo(indices, in, 2, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, &result,
                                      &request),
           &request);
    check_seen("MPIX_Isparse_allreduce_coo", 1);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    for (int i = 0; i < 8; i++)
        finish(MPIX_Sparse_plan_start(plan, &request), &request);
    finish(MPIX_Sparse_plan_start_all(1, &plan, &request), &request);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_seen("a plan", 11);
    MPIX_Sparse_result_free(&result);
    atomic_store(&outer, 0);
}

static void try_result_access(MPI_Comm comm)
{
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_profile(in, COUNT, MPI_FLOAT, comm, &profile), "MPIX_Sparse_profile");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check_success(MPIX_Sparse_comm_set_info(comm, MPI_INFO_NULL), "MPIX_Sparse_comm_set_info");
    check_seen("looking", 3);
}

/* From the first use of a communicator, which measures the machine, until its end. */
static void try_all(const char *scheme)
{
    MPI_Comm comm;
    check_case("tools and scheme %s", scheme);
    settings_set(&(struct settings){ scheme, NULL, NULL, NULL, NULL });
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    atomic_store(&inner, 0);
    try_blocking(comm);
    try_nonblocking(comm);
    try_result_access(comm);
    PMPI_Comm_free(&comm);
    check_seen("MPI_Comm_free", 0);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_SPARSE_SCHEME, "dense", "auto" };
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < COUNT; i += 100)
        in[i] = (float)(rank + 1);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        try_all(schemes[i]);
    return check_end("pmpi_tools");
}
