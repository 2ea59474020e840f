/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests info hints of communicators: set, read back, dropped by duplicates, refused if a value is wrong or
 * differs between ranks. Also tests precedence: environment, communicator, plan. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 100 };

static float in[COUNT] = { 1 }, out[COUNT];

/* An info object with one hint, or with none. */
static MPI_Info hint(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (key != NULL)
        MPI_Info_set(info, key, value);
    return info;
}

static int set_hint(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info = hint(key, value);
    int code = MPIX_Sparse_comm_set_info(comm, info);
    MPI_Info_free(&info);
    return code;
}

/* NULL: the info object has no such key. */
static void check_hint(MPI_Comm comm, const char *key, const char *expected)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found;
    check_success(MPIX_Sparse_comm_get_info(comm, &info), "MPIX_Sparse_comm_get_info");
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    check(found == (expected != NULL) && (expected == NULL || strcmp(value, expected) == 0),
          "expected %s to be '%s', found '%s'", key, expected == NULL ? "absent" : expected, value);
    MPI_Info_free(&info);
}

static void check_report(MPI_Comm comm, const char *scheme, const char *asked_by)
{
    MPIX_Sparse_report_t report;
    check(out[0] == (float)ranks, "expected %d, found %g", ranks, (double)out[0]);
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(strcmp(report.scheme, scheme) == 0, "expected %s, found %s", scheme, report.scheme);
    check(strstr(report.reason, asked_by) != NULL, "expected '%s' in the reason, found '%s'", asked_by,
          report.reason);
}

static void check_call(MPI_Comm comm, const char *scheme, const char *asked_by)
{
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check_report(comm, scheme, asked_by);
}

static MPIX_Sparse_plan make_plan(MPI_Comm comm, const char *key, const char *value)
{
    MPIX_Sparse_plan plan;
    MPI_Info info = hint(key, value);
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    MPI_Info_free(&info);
    return plan;
}

static void check_plan(MPI_Comm comm, MPIX_Sparse_plan plan, const char *scheme, const char *asked_by)
{
    MPI_Request request;
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_report(comm, scheme, asked_by);
}

static void try_precedence(void)
{
    MPI_Comm comm = comm_duplicate();
    check_case("environment, then communicator, then plan");
    check_hint(comm, "mpix_sparse_scheme", NULL);
    setenv("MPIX_SPARSE_SCHEME", "ring", 1);
    check_call(comm, "ring", "(environment)");
    unsetenv("MPIX_SPARSE_SCHEME");
    check_hint(comm, "mpix_sparse_scheme", "ring");
    check_hint(comm, "mpix_sparse_wire", "auto");
    MPIX_Sparse_plan before = make_plan(comm, NULL, NULL);
    check_success(set_hint(comm, "mpix_sparse_scheme", "omni"), "MPIX_Sparse_comm_set_info");
    check_call(comm, "omni", "(info of the communicator)");
    check_success(set_hint(comm, "mpix_sparse_wire", "coo/bitmap"), "MPIX_Sparse_comm_set_info");
    check_hint(comm, "mpix_sparse_scheme", "omni");
    check_hint(comm, "mpix_sparse_wire", "coo/bitmap");
    MPIX_Sparse_plan plain = make_plan(comm, NULL, NULL);
    MPIX_Sparse_plan hinted = make_plan(comm, "mpix_sparse_scheme", "allgather");
    check_plan(comm, before, "ring", "(environment)");
    check_plan(comm, plain, "omni", "(info of the communicator)");
    check_plan(comm, hinted, "allgather", "(info of the plan)");
    check_call(comm, "omni", "(info of the communicator)");
    MPIX_Sparse_plan_free(&before);
    MPIX_Sparse_plan_free(&plain);
    MPIX_Sparse_plan_free(&hinted);
    MPI_Comm_free(&comm);
}

/* MPI 4 does not copy hints to duplicates. */
static void try_duplicates(void)
{
    MPI_Comm comm = comm_duplicate(), copy;
    check_case("a duplicate has no hints");
    check_success(set_hint(comm, "mpix_sparse_scheme", "ring"), "MPIX_Sparse_comm_set_info");
    MPI_Comm_dup(comm, &copy);
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, copy), "MPIX_Sparse_allreduce");
    check_hint(copy, "mpix_sparse_scheme", "auto");
    check_hint(comm, "mpix_sparse_scheme", "ring");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
}

/* Settings that the communicator's state depends on. */
static void try_deep_settings(void)
{
    MPI_Comm comm = comm_duplicate();
    MPI_Info info = hint("mpix_sparse_chunk", "8192");
    check_case("hints on chunks, constants and the seed");
    MPI_Info_set(info, "mpix_sparse_alpha", "1e-05");
    MPI_Info_set(info, "mpix_sparse_seed", "77");
    MPI_Info_set(info, "mpix_sparse_scheme", "balanced");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    check_hint(comm, "mpix_sparse_chunk", "8192");
    check_hint(comm, "mpix_sparse_alpha", "1e-05");
    check_hint(comm, "mpix_sparse_seed", "77");
    check_call(comm, "balanced", "(info of the communicator)");
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

static void check_refused(MPI_Comm comm, int code, const char *says)
{
    char sentence[MPI_MAX_ERROR_STRING] = "";
    int length;
    check_error(code, says, -1);
    MPI_Error_string(code, sentence, &length);
    check_equal_on_ranks(hash_bytes(sentence, (size_t)length, 0), "the sentence");
    check_hint(comm, "mpix_sparse_scheme", "ring");
    check_call(comm, "ring", "(info of the communicator)");
}

static void try_refusals(void)
{
    MPI_Comm comm = comm_duplicate();
    MPI_Info info;
    bool last = rank == ranks - 1;
    check_case("hints that are wrong");
    check_success(set_hint(comm, "mpix_sparse_scheme", "ring"), "MPIX_Sparse_comm_set_info");
    check_refused(comm, set_hint(comm, "mpix_sparse_grain", "3"), "mpix_sparse_grain is '3'");
    check_refused(comm, set_hint(comm, "mpix_sparse_threads", "x"), "mpix_sparse_threads is 'x'");
    check_refused(comm, set_hint(comm, "mpix_sparse_threads", "100000"), "mpix_sparse_threads is '100000'");
    check_refused(comm, set_hint(comm, "mpix_sparse_scheme", "nonsense"),
                  "mpix_sparse_scheme names 'nonsense'");
    check_refused(comm, set_hint(comm, "mpix_sparse_wire", last ? "nonsense" : "coo"),
                  "mpix_sparse_wire names 'nonsense'");
    check_refused(comm, set_hint(comm, "mpix_sparse_wire", "coo,bitmap"),
                  "lists all names; a pair is push/pull, such as coo/bitmap");
    check_refused(comm, set_hint(comm, "mpix_sparse_calibration", "file.json"),
                  "mpix_sparse_calibration cannot be a hint here");
    check_refused(comm, set_hint(comm, "mpix_sparse_nodes", "5"), "mpix_sparse_nodes cannot be a hint here");
    if (ranks > 1) {
        check_refused(comm, set_hint(comm, "mpix_sparse_scheme", last ? "omni" : "dense"),
                      "mpix_sparse_scheme is 'dense' on rank 0 and 'omni' on rank");
        check_refused(comm, set_hint(comm, last ? NULL : "mpix_sparse_learn", "off"),
                      "mpix_sparse_learn is 'off' on rank 0 and 'on' on rank");
    }
    check_success(set_hint(comm, "mpix_sparse_no_knob", "1"), "a key that is no setting");
    check_success(set_hint(comm, "mpix_sparse_learn", last ? "no" : "0"), "one value in two spellings");
    check_success(MPIX_Sparse_comm_set_info(comm, MPI_INFO_NULL), "no hints");
    check_error(MPIX_Sparse_comm_get_info(comm, NULL), "argument info_used is null", -1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_error(MPIX_Sparse_comm_set_info(MPI_COMM_NULL, MPI_INFO_NULL), "MPI_COMM_NULL", -1);
    check_error(MPIX_Sparse_comm_get_info(MPI_COMM_NULL, &info), "MPI_COMM_NULL", -1);
    MPI_Comm_free(&comm);
}

/* Rank 0 is warned of a key that does nothing, in these words, and of no other (NULL). */
static void try_useless(bool plan, const char *key, const char *value, const char *warning)
{
    MPI_Comm comm = comm_duplicate();
    char text[512] = "", expected[128];
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    check_case("the key %s of a %s", key, plan ? "plan" : "communicator");
    check(log != NULL && dup2(fileno(log), STDERR_FILENO) >= 0, "no file for warnings");
    if (plan) {
        MPIX_Sparse_plan made = make_plan(comm, key, value);
        MPIX_Sparse_plan_free(&made);
    } else {
        check_success(set_hint(comm, key, value), "MPIX_Sparse_comm_set_info");
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(log);
    text[fread(text, 1, sizeof text - 1, log)] = '\0';
    fclose(log);
    snprintf(expected, sizeof expected, "hint %s %s\n", key, warning == NULL ? "" : warning);
    bool found = warning == NULL ? strstr(text, "hint") != NULL : strstr(text, expected) != NULL;
    check(found == (warning != NULL && rank == 0), "the log has '%s'", text);
    MPI_Comm_free(&comm);
}

/* A new hint applies after pending calls, which finish under the settings that they started with. */
static void try_in_flight(void)
{
    MPI_Comm comm = comm_duplicate();
    MPI_Request request;
    check_case("hints while a call is in flight");
    check_success(set_hint(comm, "mpix_sparse_scheme", "ring"), "MPIX_Sparse_comm_set_info");
    check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                  "MPIX_Isparse_allreduce");
    check_success(set_hint(comm, "mpix_sparse_scheme", "omni"), "MPIX_Sparse_comm_set_info");
    check_report(comm, "ring", "(info of the communicator)");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    check_call(comm, "omni", "(info of the communicator)");
    MPI_Comm_free(&comm);
}

/* True if MPI itself stores our key for a communicator. */
static bool is_kept(MPI_Comm comm)
{
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL + 1];
    int found;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, "mpix_sparse_scheme", MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    return found != 0;
}

/* The library uses keys that MPI stores. */
static void try_mpi(bool with_dup)
{
    MPI_Info info = hint("mpix_sparse_scheme", "ring");
    MPI_Comm comm;
    check_case(with_dup ? "MPI_Comm_dup_with_info" : "MPI_Comm_set_info");
    if (with_dup) {
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    } else {
        comm = comm_duplicate();
        MPI_Comm_set_info(comm, info);
    }
    if (is_kept(comm))
        check_call(comm, "ring", "(info of the communicator)");
    else
        check_success(MPIX_Sparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm), "a call");
    check_hint(comm, "mpix_sparse_scheme", is_kept(comm) ? "ring" : "auto");
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    unsetenv("MPIX_SPARSE_LOG_FILE"); /* warnings are read from the standard error */
    try_precedence();
    try_duplicates();
    try_deep_settings();
    try_refusals();
    static const char nearest[] = "is not a setting of this library; did you mean mpix_sparse_scheme";
    for (int plan = 0; plan < 2; plan++) {
        try_useless(plan, "mpix_sparse_sheme", "ring", nearest);
        try_useless(plan, "MPIX_SPARSE_SCHEME", "ring", nearest);
        try_useless(plan, "mpix_sparse_qqqqqqqqq", "ring",
                    "is not a setting of this library; mpix_sparse_info -c lists all");
        try_useless(plan, "mpix_sparse_log_file", "log",
                    "has no effect; set MPIX_SPARSE_LOG_FILE in the environment");
        try_useless(plan, "mpix_sparse_scheme", "ring", NULL);
        try_useless(plan, "somebody_else", "ring", NULL);
    }
    try_in_flight();
    try_mpi(false);
    try_mpi(true);
    return check_end("hints");
}
