/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests automatic selection over many calls on one communicator. While the library profiles, tries schemes
 * and measures them, every result is right and all ranks select the same scheme, whatever one rank's data
 * are. Reports name formats if messages were sent. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { CALLS = 240, TENSORS = 5 };

static void check_same_choice(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check_equal_on_ranks(hash_bytes(report.scheme, strlen(report.scheme), 1), "the scheme");
    check_equal_on_ranks(hash_bytes(report.choice, strlen(report.choice), 1), "the choice");
    check_equal_on_ranks(hash_bytes(report.reason, strlen(report.reason), 1), "the reason");
    check_equal_on_ranks(hash_bytes(report.partition, strlen(report.partition), 1), "the partition");
    check_equal_on_ranks((uint64_t)report.grain, "the grain");
    uint64_t bits;
    memcpy(&bits, &report.predicted_seconds, sizeof bits);
    check_equal_on_ranks(bits, "the predicted time");
    check(report.measured_seconds > 0, "expected a measured time, found %g", report.measured_seconds);
}

/* A few tensors alternate, with densities that change from call to call. */
static void try_mixture(const struct settings *settings)
{
    static const struct tensor_desc descs[TENSORS] = { { FLOAT32, SUM, 1, 5000 },
                                                       { FLOAT64, MAX, 1, 300 },
                                                       { INT32, SUM, 4, 999 },
                                                       { FLOAT32, PROD, 1, 5000 },
                                                       { UINT64, SUM, 1, 20000 } };
    MPI_Comm comm = settings_comm(settings);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (uint64_t i = 0; i < CALLS; i++) {
        uint64_t bits = mix(i);
        struct pattern pattern = *pattern_find(bits % 3 == 0 ? "shuffled" : "random 0.1");
        const struct tensor_desc *desc = &descs[bits / 8 % TENSORS];
        struct tensor tensor;
        struct oracle oracle;
        pattern.density = pow(10, -(double)(bits >> 32 & 0xff) / 64);
        check_case("call %d, density %g, %s", (int)i, pattern.density, settings_text(settings));
        tensor_draw(&pattern, desc, i, &tensor);
        oracle_make(&tensor, &oracle);
        if (bits >> 8 & 1)
            call_coo(&tensor, &oracle, &index_types[i % INDEX_TYPES], comm, &result);
        else
            call_dense(&oracle, bits >> 9 & 1, comm);
        check_same_choice(comm);
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

/* One rank has no elements, or all; the other ranks have the opposite. */
static void try_contrast(bool dense)
{
    const struct tensor_desc desc = { FLOAT32, SUM, 1, 40000 };
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < 50; i++) {
        struct pattern pattern = *pattern_find("random 0.1");
        struct tensor tensor;
        struct oracle oracle;
        pattern.density = (i % 4 < 2) == (rank == i % ranks) ? 1 : i % 2 == 0 ? 0 : 1e-3;
        check_case("contrast, call %d, %s interface", i, dense ? "dense" : "COO");
        tensor_draw(&pattern, &desc, (uint64_t)i, &tensor);
        oracle_make(&tensor, &oracle);
        if (dense)
            call_dense(&oracle, false, comm);
        else
            call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        check_same_choice(comm);
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

/* More tensors than the library tracks. */
static void try_many_tensors(void)
{
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    for (int i = 0; i < 150; i++) {
        struct tensor_desc desc = { FLOAT32, SUM, 1, 100 + i % 50 };
        struct tensor tensor;
        struct oracle oracle;
        check_case("tensor %d of many", i);
        tensor_draw(pattern_find("random 0.1"), &desc, (uint64_t)i, &tensor);
        oracle_make(&tensor, &oracle);
        call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        if (i % 5 == 0)
            check_same_choice(comm);
        tensor_free(&tensor);
        oracle_free(&oracle);
    }
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

/* The paper's model, and a model with given constants, select without measurements. */
static void try_models(void)
{
    setenv("MPIX_SPARSE_MODEL", "paper", 1);
    try_mixture(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_MODEL");
    setenv("MPIX_SPARSE_ALPHA", "1e-5", 1);
    setenv("MPIX_SPARSE_BETA", "1e-6", 1);
    setenv("MPIX_SPARSE_LEARN", "off", 1);
    try_mixture(&(struct settings){ NULL, "smallest", NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_ALPHA");
    unsetenv("MPIX_SPARSE_BETA");
    unsetenv("MPIX_SPARSE_LEARN");
}

static bool is_none(const char *name)
{
    return strcmp(name, "none") == 0;
}

/* Reports name the formats of messages; a rank that sends no message names none. */
static void check_formats(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    bool none = is_none(report.push_wire) && is_none(report.pull_wire);
    check(none == (report.messages_sent == 0), "expected formats of %lld messages, found %s and %s",
          (long long)report.messages_sent, report.push_wire, report.pull_wire);
}

static void try_formats(const char *scheme, int nodes)
{
    const struct tensor_desc desc = { FLOAT32, SUM, 1, 5000 };
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    struct tensor tensor;
    struct oracle oracle;
    nodes_set(nodes);
    check_case("formats of %s on %d nodes", scheme, nodes);
    MPI_Comm comm = settings_comm(&(struct settings){ .scheme = scheme });
    tensor_draw(pattern_find("random 0.1"), &desc, 1, &tensor);
    oracle_make(&tensor, &oracle);
    call_coo(&tensor, &oracle, &index_types[0], comm, &result);
    check_formats(comm);
    call_dense(&oracle, false, comm);
    check_formats(comm);
    tensor_free(&tensor);
    oracle_free(&oracle);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

static void try_all_formats(void)
{
    static const char *const schemes[] = { EVERY_SPARSE_SCHEME };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        for (int nodes = 1; nodes <= 3; nodes++)
            try_formats(schemes[i], nodes);
    nodes_set(0);
}

#ifdef HAVE_MPIX_GREQUEST_START
/* No scheme is on trial while the program computes during calls, since their times are unknown. The first
 * call may be a trial. Without MPIX_Grequest_start, calls run in another thread and their times are known. */
static void try_overlapped(void)
{
    enum { OVERLAPPED = 20, COUNT = 100000 };
    static float in[COUNT], out[COUNT];
    MPIX_Sparse_report_t report;
    nodes_set(ranks);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    for (int i = rank; i < COUNT; i += 100)
        in[i] = 1;
    for (int i = 0; i < OVERLAPPED; i++) {
        struct timespec computing = { .tv_nsec = 5000000 };
        MPI_Request request;
        check_case("overlapped call %d", i);
        check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                      "MPIX_Isparse_allreduce");
        nanosleep(&computing, NULL);
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        check(i == 0 || strcmp(report.choice, report.scheme) == 0, "expected %s, found %s", report.choice,
              report.scheme);
    }
    MPI_Comm_free(&comm);
    nodes_set(0);
}
#endif

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    try_mixture(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    setenv("MPIX_SPARSE_PROFILE_EVERY", "2", 1);
    try_mixture(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_PROFILE_EVERY");
    try_contrast(false);
    try_contrast(true);
    try_many_tensors();
    try_models();
    try_all_formats();
#ifdef HAVE_MPIX_GREQUEST_START
    if (ranks > 1) /* the call of one rank is complete when it has started */
        try_overlapped();
#endif
    return check_end("auto_selection");
}
