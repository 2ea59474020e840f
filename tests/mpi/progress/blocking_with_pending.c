/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests progress of a pending call during a blocking call. One rank blocks on one communicator with a call
 * pending on another. The other ranks start the blocking call only after the pending call is complete, so the
 * first rank must progress both. */

#include <mpix_sparse.h>

#include "check.h"

enum { COUNT = 5000, ROUNDS = 3 };

static float in[COUNT], out[COUNT], other[COUNT];

static void call(MPI_Comm *comm)
{
    check_success(MPIX_Sparse_allreduce(in, other, COUNT, MPI_FLOAT, MPI_SUM, *comm),
                  "MPIX_Sparse_allreduce");
}

static void make_plan(MPI_Comm *comm)
{
    MPIX_Sparse_plan plan;
    check_success(MPIX_Sparse_allreduce_init(in, other, COUNT, MPI_FLOAT, MPI_SUM, *comm, MPI_INFO_NULL,
                                             &plan),
                  "MPIX_Sparse_allreduce_init");
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
}

static void profile(MPI_Comm *comm)
{
    MPIX_Sparse_profile_t found;
    check_success(MPIX_Sparse_profile(in, COUNT, MPI_FLOAT, *comm, &found), "MPIX_Sparse_profile");
}

static void set_hints(MPI_Comm *comm)
{
    check_success(MPIX_Sparse_comm_set_info(*comm, MPI_INFO_NULL), "MPIX_Sparse_comm_set_info");
}

static void free_comm(MPI_Comm *comm)
{
    MPI_Comm_free(comm);
}

/* The call to make, on a used communicator or on a new one. */
static const struct {
    const char *name;
    void (*make)(MPI_Comm *comm);
    bool used;
} blocking[] = {
    { "a call", call, true },
    { "a first call", call, false },
    { "a plan", make_plan, true },
    { "a first plan", make_plan, false },
    { "a profile", profile, true },
    { "hints", set_hints, true },
    { "first hints", set_hints, false },
    { "MPI_Comm_free", free_comm, true },
};

static void try(MPI_Comm comm, int way, int early)
{
    MPI_Request request;
    MPI_Comm second = comm_duplicate();
    check_case("%s on rank %d while a call is in flight elsewhere", blocking[way].name, early);
    if (blocking[way].used)
        call(&second);
    out[0] = 0;
    int code = MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    check_success(code, "MPIX_Isparse_allreduce");
    if (rank != early)
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    blocking[way].make(&second);
    if (rank == early)
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check(out[0] == (float)ranks, "expected %d, found %g", ranks, (double)out[0]);
    if (second != MPI_COMM_NULL)
        MPI_Comm_free(&second);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(100);
    in[0] = 1;
    MPI_Comm comm = settings_comm(&(struct settings){ "balanced", NULL, NULL, NULL, NULL });
    for (size_t way = 0; way < sizeof blocking / sizeof blocking[0]; way++)
        for (int round = 0; round < ROUNDS; round++)
            try(comm, (int)way, round % 2 == 0 ? 0 : ranks - 1);
    MPI_Comm_free(&comm);
    return check_end("blocking_with_pending");
}
