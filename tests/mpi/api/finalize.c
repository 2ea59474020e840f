/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests MPI_Finalize with communicators, plans and results still in use. MPI_Finalize returns, and plans and
 * results can be read and freed afterwards. The last rank comes late. Even ranks have a communicator
 * more, so that the library's lists of communicators are in other orders there. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <time.h>

#include "check.h"

enum { COUNT = 64, COMMS = 4 };

static float in[COUNT] = { 1 }, out[COUNT];

static void run(MPIX_Sparse_plan plan)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

/* MPI is finalized, so a failed check can only print. */
static int complain(const char *what)
{
    fprintf(stderr, "FAIL: after MPI_Finalize: %s\n", what);
    return 1;
}

static int try_afterwards(MPIX_Sparse_plan plans[], MPIX_Sparse_result *result)
{
    MPI_Request request;
    MPI_Count nnz = 0;
    int version, code = MPIX_Sparse_plan_start(plans[0], &request);
    if (code == MPI_SUCCESS)
        return complain("a plan was started");
    if (MPIX_Sparse_result_get(*result, &nnz, NULL, NULL) != MPI_SUCCESS || nnz != 1)
        return complain("a result was lost");
    for (int i = 0; i < COMMS; i++)
        if (MPIX_Sparse_plan_free(&plans[i]) != MPI_SUCCESS)
            return complain("a plan was not freed");
    if (MPIX_Sparse_result_free(result) != MPI_SUCCESS)
        return complain("a result was not freed");
    return MPIX_Sparse_get_version(&version) == MPI_SUCCESS ? 0 : complain("there is no version");
}

/* MPI calls it before the library's own callback, which was set earlier. */
static int come_late(MPI_Comm comm, int key, void *value, void *extra)
{
    struct timespec time = { 0, 500000000 };
    (void)comm, (void)key, (void)value, (void)extra;
    nanosleep(&time, NULL);
    return MPI_SUCCESS;
}

static void be_late_to_finalize(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, come_late, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

int main(int argc, char **argv)
{
    const int32_t index = 3;
    MPI_Comm comms[COMMS] = { MPI_COMM_NULL, MPI_COMM_WORLD, MPI_COMM_SELF };
    MPIX_Sparse_plan plans[COMMS];
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 0 : MPI_UNDEFINED, rank, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[3]);
    if (comms[0] == MPI_COMM_NULL)
        comms[0] = MPI_COMM_SELF;
    for (int i = 0; i < COMMS; i++) {
        check_case("communicator %d of those that stay", i);
        check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comms[i], MPI_INFO_NULL,
                                                 &plans[i]),
                      "MPIX_Sparse_allreduce_init");
        run(plans[i]);
        check_success(MPIX_Sparse_allreduce_coo(&index, in, 1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM,
                                                comms[i], &result),
                      "MPIX_Sparse_allreduce_coo");
    }
    if (rank == ranks - 1)
        be_late_to_finalize();
    int status = check_end("finalize");
    return status != 0 ? status : try_afterwards(plans, &result);
}
