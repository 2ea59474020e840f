/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests communicators of MPI sessions: without MPI_Init, in consecutive sessions, in two concurrent sessions,
 * and with MPI_Init and MPI_Finalize while a session is open.
 *
 * MPICH 4.0.2 fails in two cases even without the library. MPI_Session_init crashes after the last session
 * was closed, so one session stays open here. MPI_Test of an MPI_Iallreduce crashes on one rank. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { COUNT = 200, SESSIONS = 3 };

#ifdef HAVE_MPI_SESSION_INIT
static MPI_Comm open_comm(MPI_Session session, const char *name)
{
    MPI_Group group;
    MPI_Comm comm;
    check_success(MPI_Group_from_session_pset(session, "mpi://WORLD", &group), "MPI_Group_from_session_pset");
    check_success(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
                  "MPI_Comm_create_from_group");
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    return comm;
}

static MPI_Session open_session(void)
{
    MPI_Session session;
    check_success(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), "MPI_Session_init");
    return session;
}

static void use_dense(MPI_Comm comm, int round)
{
    float in[COUNT] = { 0 }, out[COUNT];
    MPI_Request request;
    in[rank] = 1;
    in[COUNT - 1] = (float)round;
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(out[rank] == 1 && out[COUNT - 1] == (float)(ranks * round), "expected 1 and %d, found %g and %g",
          ranks * round, (double)out[rank], (double)out[COUNT - 1]);
    out[0] = -1;
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                  "MPIX_Isparse_allreduce");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check(out[0] == 1, "expected 1, found %g", (double)out[0]);
}

static void use_plan(MPI_Comm comm)
{
    const int32_t index = 7;
    const double value = 2;
    double sums[COUNT];
    MPIX_Sparse_plan plan;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Request request;
    check_success(MPIX_Sparse_allreduce_coo_init(MPI_INT32_T, COUNT, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL,
                                                 &plan),
                  "MPIX_Sparse_allreduce_coo_init");
    for (int i = 0; i < 5; i++) {
        check_success(MPIX_Sparse_plan_start_coo(plan, &index, &value, 1, &result, &request),
                      "MPIX_Sparse_plan_start_coo");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_success(MPIX_Sparse_result_dense(result, sums), "MPIX_Sparse_result_dense");
        check(sums[7] == 2 * ranks && sums[8] == 0, "expected %d and 0, found %g and %g", 2 * ranks, sums[7],
              sums[8]);
    }
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
}

/* Error codes of an earlier session are invalid. */
static void use_wrongly(MPI_Comm comm)
{
    float in[1] = { 0 };
    int code;
    MPI_Add_error_class(&code);
    check_error(MPIX_Sparse_allreduce(in, NULL, 1, MPI_FLOAT, MPI_SUM, comm), "argument recvbuf is null", 0);
    check_error(MPIX_Sparse_allreduce(in, in + 1, -1, MPI_FLOAT, MPI_SUM, comm), "argument count is -1", 0);
    check_error(MPIX_Sparse_result_free(NULL), "argument result is null", -1);
}

static void use(MPI_Comm comm)
{
    use_dense(comm, 1);
    use_plan(comm);
    use_wrongly(comm);
    use_dense(comm, 2);
}

/* A failed first use leaves no state of the library. */
static void fail(MPI_Comm comm)
{
    float in = 1, out;
    setenv("MPIX_SPARSE_SCHEME", "nonsense", 1);
    check_error(MPIX_Sparse_allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, comm), "nonsense", -1);
    unsetenv("MPIX_SPARSE_SCHEME");
}

static void try_sessions(void)
{
    for (int i = 0; i < SESSIONS; i++) {
        check_case("session %d without MPI_Init", i);
        MPI_Session session = open_session();
        MPI_Comm comm = open_comm(session, "first");
        if (i % 2 == 1)
            fail(comm);
        use(comm);
        MPI_Comm_free(&comm);
        comm = open_comm(session, "second");
        use(comm);
        MPI_Comm_free(&comm);
        check_success(MPI_Session_finalize(&session), "MPI_Session_finalize");
    }
}

static void try_two_sessions(void)
{
    check_case("two sessions at once");
    MPI_Session sessions[] = { open_session(), open_session() };
    MPI_Comm comms[] = { open_comm(sessions[0], "left"), open_comm(sessions[1], "right") };
    use(comms[0]);
    use(comms[1]);
    MPI_Comm_free(&comms[0]);
    check_success(MPI_Session_finalize(&sessions[0]), "MPI_Session_finalize");
    use(comms[1]);
    MPI_Comm_free(&comms[1]);
    check_success(MPI_Session_finalize(&sessions[1]), "MPI_Session_finalize");
}

/* A session from before MPI_Init until after MPI_Finalize. */
static void try_world(int *argc, char ***argv)
{
    check_case("a session around MPI_Init and MPI_Finalize");
    MPI_Session session = open_session();
    MPI_Comm comm = open_comm(session, "around");
    use(comm);
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    use(MPI_COMM_WORLD);
    use(comm);
    MPI_Finalize();
    use(comm);
    MPI_Comm_free(&comm);
    check_success(MPI_Session_finalize(&session), "MPI_Session_finalize");
}

int main(int argc, char **argv)
{
    setenv("MPIX_SPARSE_SEED", "20210", 1);
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    MPI_Session around = open_session();
    MPI_Comm comm = open_comm(around, "all");
    MPI_Comm_free(&comm);
#ifdef MPICH_VERSION
    if (ranks == 1) {
        puts("# sessions: not on one rank of MPICH");
        check_success(MPI_Session_finalize(&around), "MPI_Session_finalize");
        return 0;
    }
#endif
    try_sessions();
    try_two_sessions();
    try_world(&argc, &argv);
    check_success(MPI_Session_finalize(&around), "MPI_Session_finalize");
    if (rank == 0)
        printf("# sessions: on %d ranks\n", ranks);
    return 0;
}
#else
int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    return check_skip("sessions", "this MPI has no sessions");
}
#endif
