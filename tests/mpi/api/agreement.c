/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests both ways of the consistency check between nodes, in one round and in stages: results are equal, and
 * so are the errors of calls whose arguments differ.
 *
 * Link with the library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/comm_state.h"
#include "mpi_ext/attribute.h"

enum { COUNT = 5000, CALLS = 20 };

static float in[COUNT], out[CALLS][COUNT];

/* A communicator whose ranks are nodes of their own. Each message after the first costs `overhead`. Of three
 * ranks one round has no more messages than stages. */
static MPI_Comm open_comm(const char *overhead, bool in_one_round)
{
    struct sar_comm_state *state = NULL;
    char nodes[16];
    snprintf(nodes, sizeof nodes, "%d", ranks);
    setenv("MPIX_SPARSE_NODES", nodes, 1);
    setenv("MPIX_SPARSE_ALPHA", "1e-3", 1);
    setenv("MPIX_SPARSE_OVERHEAD", overhead, 1);
    MPI_Comm comm = comm_duplicate();
    check_success(sar_comm_state_get(comm, "a test", &state), "opening a communicator");
    check((state->comm.agree != NULL) == ((in_one_round && ranks > 2) || ranks == 3),
          "expected %s with an overhead of %s", in_one_round ? "one round" : "stages", overhead);
    return comm;
}

static void check_sums(const float *sums)
{
    for (int i = 0; i < COUNT; i++) {
        float expected = i % 50 == 0 ? (float)ranks : i % 50 <= ranks ? 1 : 0;
        check(sums[i] == expected, "element %d: expected %g, found %g", i, (double)expected, (double)sums[i]);
    }
}

static void check_calls(MPI_Comm comm)
{
    MPI_Request request[CALLS];
    check_success(MPIX_Sparse_allreduce(in, out[0], COUNT, MPI_FLOAT, MPI_SUM, comm), "a call");
    check_sums(out[0]);
    for (int i = 0; i < CALLS; i++)
        check_success(MPIX_Isparse_allreduce(in, out[i], COUNT, MPI_FLOAT, MPI_SUM, comm, &request[i]),
                      "a start");
    check_success(MPI_Waitall(CALLS, request, MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (int i = 0; i < CALLS; i++)
        check_sums(out[i]);
}

static void check_class(int code, const char *expected)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
    check(strcmp(text, expected) == 0, "expected class '%s', found '%s'", expected, text);
}

/* An error that does not come from a difference between ranks has another class. */
static void check_other_error(MPI_Comm comm)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    int code =
        MPIX_Sparse_allreduce_coo(NULL, NULL, -1, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm, &result);
    check_error(code, "argument nnz is -1", -1);
    check_class(code, "MPIX_Sparse: error");
}

static void check_mismatch(MPI_Comm comm)
{
    int last = rank == ranks - 1 && ranks > 1, code;
    int32_t index = 0;
    char expected[128];
    float value = 1;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    code = MPIX_Sparse_allreduce_coo(&index, &value, 1, MPI_INT32_T, COUNT + last, MPI_FLOAT, MPI_SUM, comm,
                                     &result);
    if (ranks == 1)
        check_success(code, "a call of one rank");
    snprintf(expected, sizeof expected,
             "argument count differs between ranks: %d on rank 0 and %d on rank %d", COUNT, COUNT + 1,
             ranks - 1);
    if (ranks > 1) {
        check_error(code, expected, -1);
        check_class(code, "MPIX_Sparse: calls differ between ranks");
    }
    MPIX_Sparse_result_free(&result);
}

int main(int argc, char **argv)
{
    static const char *const overheads[] = { "1e-9", "1e-2" };
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    for (int i = 0; i < COUNT; i++)
        in[i] = i % 50 == 0 || i % 50 == rank + 1 ? 1 : 0;
    for (int way = 0; way < 2; way++) {
        MPI_Comm comm = open_comm(overheads[way], way == 0);
        check_case("an overhead of %s s", overheads[way]);
        check_calls(comm);
        check_mismatch(comm);
        check_other_error(comm);
        check_calls(comm);
        MPI_Comm_free(&comm);
    }
    return check_end("agreement");
}
