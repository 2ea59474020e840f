/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests errors other than those of allreduce arguments: communicators that support no call, bad settings,
 * null outputs, arguments of the profile. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 100, NNZ = 3 };

static const int32_t indices[NNZ] = { 5, 3, 99 };
static const float values[NNZ] = { 1, 2, 3 };
static float sendbuf[COUNT], recvbuf[COUNT];
static MPIX_Sparse_result result;

static int call_dense(MPI_Comm comm)
{
    return MPIX_Sparse_allreduce(sendbuf, recvbuf, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

static int call_coo(MPI_Comm comm)
{
    return MPIX_Sparse_allreduce_coo(indices, values, NNZ, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                     &result);
}

static void check_good_calls(MPI_Comm comm)
{
    check_success(call_dense(comm), "a correct call on dense buffers");
    check_success(call_coo(comm), "a correct call on coordinates");
    check(recvbuf[3] == 2.0f * (float)ranks, "expected %d, found %g", 2 * ranks, (double)recvbuf[3]);
}

/* Number of calls of the error handler. */
static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled++;
}

/* All four functions refuse the communicator; each calls the error handler once. */
static void check_refused(MPI_Comm comm)
{
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    handled = 0;
    check_error(call_dense(comm), "argument comm", -1);
    check_error(call_coo(comm), "argument comm", -1);
    check_error(MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, comm, &profile), "argument comm", -1);
    check_error(MPIX_Sparse_get_report(comm, &report), "argument comm", -1);
    check(handled == 4, "expected four calls of the error handler, found %d", handled);
}

/* These handles have no error handler, so MPI_COMM_WORLD's is called. MPICH detects stale handles; other
 * libraries crash. */
static void try_no_comm(MPI_Errhandler handler)
{
    MPI_Errhandler old;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &old);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    check_case("MPI_COMM_NULL");
    check_refused(MPI_COMM_NULL);
#ifdef MPICH_VERSION
    for (int used = 0; used < 2; used++) {
        MPI_Comm comm, stale;
        check_case("a freed communicator that was %s", used ? "used" : "not used");
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (used)
            check_good_calls(comm);
        stale = comm;
        MPI_Comm_free(&comm);
        handled = 0;
        check_error(call_dense(stale), "argument comm", -1);
        check_error(call_coo(stale), "argument comm", -1);
        check(handled >= 2, "expected two calls of the world's error handler, and MPI's own, found %d",
              handled);
    }
#endif
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, old);
    MPI_Errhandler_free(&old);
}

static void try_intercommunicator(MPI_Errhandler handler)
{
    MPI_Comm half, both;
    MPIX_Sparse_profile_t profile;
    MPIX_Sparse_report_t report;
    check_case("an intercommunicator");
    if (ranks == 1)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    MPI_Comm_set_errhandler(both, handler);
    handled = 0;
    check_error(call_coo(both), "argument comm", -1);
    check_error(MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, both, &profile), "argument comm", -1);
    check_error(MPIX_Sparse_get_report(both, &report), "argument comm", -1);
    check(handled == 3, "expected three calls of the error handler, found %d", handled);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static const struct bad_setting {
    const char *name, *value;
} bad_settings[] = {
    { "MPIX_SPARSE_SCHEME", "nonsense" }, { "MPIX_SPARSE_GRAIN", "3" },
    { "MPIX_SPARSE_GRAIN", "512" },       { "MPIX_SPARSE_GRAIN", " " },
    { "MPIX_SPARSE_COLUMNS", "0" },       { "MPIX_SPARSE_COLUMNS", "all" },
    { "MPIX_SPARSE_RELAY", "yes" },       { "MPIX_SPARSE_RELAY", "2" },
    { "MPIX_SPARSE_WIRE", "nonsense" },   { "MPIX_SPARSE_WIRE", "coo/" },
    { "MPIX_SPARSE_WIRE", "coo/x" },      { "MPIX_SPARSE_SEED", "-1" },
    { "MPIX_SPARSE_IMBALANCE", "0.5" },   { "MPIX_SPARSE_PARTITION", "nonsense" },
    { "MPIX_SPARSE_LEARN", "maybe" },     { "MPIX_SPARSE_ALPHA", "-1" },
    { "MPIX_SPARSE_PROFILE_EVERY", "0" }, { "MPIX_SPARSE_EXPLAIN", "perhaps" },
    { "MPIX_SPARSE_BETA", "1 s" },        { "MPIX_SPARSE_MODEL", "x" },
    { "MPIX_SPARSE_LOG", "loud" },        { "MPIX_SPARSE_LOG", "info:attic" },
    { "MPIX_SPARSE_STALL", "-1" },        { "MPIX_SPARSE_STALL", "nan" },
};

/* Rank 0's environment applies to all ranks, and other ranks' is ignored. After a refused first use the
 * communicator is as good as new. */
static void try_setting(const struct bad_setting *setting, int target, bool then_good)
{
    char kept[64] = "";
    const char *old = getenv(setting->name);
    snprintf(kept, sizeof kept, "%s", old == NULL ? "" : old);
    check_case("%s=%s on rank %d", setting->name, setting->value, target);
    MPI_Comm comm = comm_duplicate();
    if (rank == target)
        setenv(setting->name, setting->value, 1);
    if (target == 0) {
        check_error(call_dense(comm), setting->name, -1);
        const char *half = strchr(setting->value, '/');
        check_error(call_coo(comm), half != NULL ? half + 1 : setting->value, -1);
        unsetenv(setting->name);
    }
    if (then_good)
        check_good_calls(comm);
    unsetenv(setting->name);
    if (kept[0] != '\0')
        setenv(setting->name, kept, 1);
    MPI_Comm_free(&comm);
}

/* A successful first use takes long, so only some are run. */
static void try_settings(void)
{
    for (size_t i = 0; i < sizeof bad_settings / sizeof bad_settings[0]; i++)
        try_setting(&bad_settings[i], 0, i % 4 == 0);
    if (ranks > 1)
        try_setting(&bad_settings[0], ranks - 1, true);
}

static void try_outputs(void)
{
    MPIX_Sparse_report_t report;
    check_case("null outputs");
    MPI_Comm comm = comm_duplicate();
    check_error(MPIX_Sparse_get_report(comm, &report), "no completed call", -1);
    check_error(MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, comm, NULL), "argument profile is null", -1);
    check_error(MPIX_Sparse_get_report(comm, &report), "no completed call", -1);
    check_good_calls(comm);
    check_error(MPIX_Sparse_get_report(comm, NULL), "argument report is null", -1);
    check_error(MPIX_Sparse_get_version(NULL), "argument version is null", -1);
    check_error(MPIX_Sparse_result_get(MPIX_SPARSE_RESULT_NULL, NULL, NULL, NULL), "result is null", -1);
    check_error(MPIX_Sparse_result_dense(MPIX_SPARSE_RESULT_NULL, recvbuf), "result is null", -1);
    check_error(MPIX_Sparse_result_dense(result, NULL), "recvbuf is null", -1);
    check_error(MPIX_Sparse_result_dense(result, MPI_IN_PLACE), "recvbuf is MPI_IN_PLACE", -1);
    check_error(MPIX_Sparse_result_free(NULL), "result is null", -1);
    check_success(MPIX_Sparse_result_get(result, NULL, NULL, NULL), "MPIX_Sparse_result_get without outputs");
    MPI_Comm_free(&comm);
}

/* Rank `wrong` is at fault; all ranks if it is -1. */
static void try_profile(int wrong, MPI_Comm comm)
{
    MPIX_Sparse_profile_t profile, before;
    bool mine = wrong < 0 || wrong == rank;
    int named = wrong < 0 ? 0 : wrong;
    check_case("profile with a wrong argument on rank %d", wrong);
    memset(&profile, 0x5a, sizeof profile);
    before = profile;
    check_error(MPIX_Sparse_profile(mine ? NULL : values, NNZ, MPI_FLOAT, comm, &profile), "buf is null",
                named);
    check_error(MPIX_Sparse_profile(values, mine ? -1 : NNZ, MPI_FLOAT, comm, &profile), "count is -1",
                named);
    check_error(MPIX_Sparse_profile(values, NNZ, mine ? MPI_CHAR : MPI_FLOAT, comm, &profile), "datatype",
                named);
    check_error(MPIX_Sparse_profile(values, NNZ, mine ? MPI_DATATYPE_NULL : MPI_FLOAT, comm, &profile),
                "datatype", named);
    check_error(MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, comm, mine ? NULL : &profile), "null", named);
    if (wrong >= 0) {
        MPI_Count count = mine ? 2 : NNZ;
        check_error(MPIX_Sparse_profile(values, count, MPI_FLOAT, comm, &profile), "count differs", named);
        int code = mine ? call_dense(comm) : MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, comm, &profile);
        check_error(code, "different functions", named);
    }
    check(memcmp(&profile, &before, sizeof profile) == 0, "expected the profile as it was, found it changed");
    check_success(MPIX_Sparse_profile(values, NNZ, MPI_FLOAT, comm, &profile), "MPIX_Sparse_profile");
}

/* Elements of more bytes than an int can count. */
static void try_long_element(MPI_Comm comm)
{
    enum { NUMBERS = 1 << 29 };
    MPI_Datatype type;
    check_case("an element of 4 GiB");
    MPI_Type_contiguous(NUMBERS, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    check_error(MPIX_Sparse_allreduce_coo(NULL, NULL, 0, MPI_INT32_T, 1, type, MPI_SUM, comm, &result),
                "a type of 4294967296 bytes", 0);
    MPI_Type_free(&type);
}

static void try_long_double(MPI_Comm comm)
{
    check_case("a type without kernels");
    check_error(MPIX_Sparse_allreduce_coo(NULL, NULL, 0, MPI_INT32_T, 1, MPI_LONG_DOUBLE, MPI_SUM, comm,
                                          &result),
                "datatype is MPI_LONG_DOUBLE (no integer, no float of up to 8 bytes", 0);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    sendbuf[3] = 2;
    MPI_Comm_create_errhandler(handle, &handler);
    try_no_comm(handler);
    try_intercommunicator(handler);
    try_settings();
    try_outputs();
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    try_long_double(comm);
    try_long_element(comm);
    try_profile(-1, comm);
    if (ranks > 1) {
        try_profile(0, comm);
        try_profile(ranks - 1, comm);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    return check_end("rejected_calls");
}
