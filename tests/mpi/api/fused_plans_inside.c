/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the cost and failures of plans started together: far fewer messages than one by one, and no
 * allocation after warm-up. A failure names the plans on all ranks, and the next start succeeds.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=PMPI_Isend, and with the library's
 * objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "layers.h"
#include "malloc_fail.h"

enum { FEW = 6, TIMEOUT = 120 /* seconds */ };

int __real_PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);
int __wrap_PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request);

/* Number of the message to corrupt, -1 for none; messages so far. */
static long corrupt_at = -1, sent;

/* A corrupted message is one byte shorter. */
int __wrap_PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                      MPI_Request *request)
{
    return __real_PMPI_Isend(buffer, sent++ == corrupt_at ? n - 1 : n, type, to, tag, comm, request);
}

/* Count messages of a repeated start; `malloc_fail_calls` counts its allocations. */
static long count(struct layer *layers, int n, void (*start)(struct layer *, int))
{
    for (int i = 0; i < 3; i++)
        start(layers, n);
    malloc_fail_calls = sent = 0;
    start(layers, n);
    return sent;
}

static void start_all(struct layer *layers, int n)
{
    start_together(layers, n, 0);
}

/* The layers are of 8 sorts. A few are too large to fuse; empty ones cost nothing. */
static void try_counts(MPI_Comm comm, const char *fuse, bool fused)
{
    check_case("messages, fuse %s", fuse);
    check_alarm(TIMEOUT);
    struct layer *layers = make_layers(LAYERS, LAYERS, comm, "balanced", fuse);
    fill_layers(layers, LAYERS, 0, true);
    long alone = count(layers, LAYERS, start_one_by_one), together = count(layers, LAYERS, start_all);
    check(alone == LAYERS * 2 * (ranks - 1), "expected %d messages, found %ld", LAYERS * 2 * (ranks - 1),
          alone);
    check(ranks == 1 || (fused ? 5 * together <= alone : 2 * together > alone),
          "expected %s messages than %ld, found %ld", fused ? "far fewer" : "about as many", alone, together);
    free_layers(layers, LAYERS);
}

/* A communicator's memory follows the needs of its calls; memory of a fused start stays. */
static void try_steady(MPI_Comm comm)
{
    check_case("a group again and again");
    struct layer *layers = make_layers(FEW, ALIKE, comm, "balanced", "100000");
    fill_layers(layers, FEW, 0, true);
    long messages = count(layers, FEW, start_all);
    check(messages == (ranks > 1 ? 1 : FEW) * 2 * (ranks - 1), "expected the messages of one call, found %ld",
          messages);
    check(malloc_fail_calls == 0, "expected no allocation, found %ld", malloc_fail_calls);
    free_layers(layers, FEW);
}

/* With expensive messages all layers count as small; with free messages only empty ones do. */
static void try_model(const char *alpha, bool fused)
{
    setenv("MPIX_SPARSE_ALPHA", alpha, 1);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    unsetenv("MPIX_SPARSE_ALPHA");
    try_counts(comm, "auto", fused);
    MPI_Comm_free(&comm);
}

/* Start with an injected failure: all ranks return one error, or the right result. */
static bool start_badly(struct layer *layers, int n)
{
    MPIX_Sparse_plan plans[LAYERS];
    MPI_Request requests[LAYERS];
    char text[MPI_MAX_ERROR_STRING];
    int length, code = MPI_SUCCESS;
    name_plans(layers, n, plans);
    check_success(MPIX_Sparse_plan_start_all(n, plans, requests), "MPIX_Sparse_plan_start_all");
    for (int i = 0; i < n; i++) {
        code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        malloc_fail_at = corrupt_at = -1;
        MPI_Error_string(code, text, &length);
        check(code == MPI_SUCCESS || strstr(text, "plans[") != NULL, "expected a plan's name, found '%s'",
              text);
        check(code != MPI_SUCCESS || memcmp(layers[i].out, layers[i].expected, layers[i].bytes) == 0,
              "expected with a success the right sums in layer %d", i);
    }
    return code == MPI_SUCCESS;
}

/* Each allocation of a first start fails once, on one rank. */
static void try_alloc_failures(MPI_Comm comm)
{
    int refused = 1;
    for (long which = 0; refused; which++) {
        check_case("allocation %ld of a first start fails", which);
        check_alarm(TIMEOUT);
        struct layer *layers = make_layers(FEW, ALIKE, comm, "balanced", "100000");
        fill_layers(layers, FEW, 0, true);
        start_one_by_one(layers, FEW);
        malloc_fail_at = rank == ranks - 1 ? which : -1;
        malloc_fail_calls = 0;
        bool good = start_badly(layers, FEW);
        refused = malloc_fail_calls > which;
        malloc_fail_at = -1;
        MPI_Bcast(&refused, 1, MPI_INT, ranks - 1, MPI_COMM_WORLD);
        check(good || refused, "expected success with enough memory");
        fill_layers(layers, FEW, 0, true);
        start_one_by_one(layers, FEW);
        start_together(layers, FEW, 1);
        check_layers(layers, FEW);
        free_layers(layers, FEW);
    }
}

/* Corrupt a message of a fused start that skips the consistency check. */
static void try_corrupted(MPI_Comm comm)
{
    check_case("a message of a group is cut short");
    check_alarm(TIMEOUT);
    struct layer *layers = make_layers(FEW, ALIKE, comm, "balanced", "100000");
    for (unsigned round = 0; round < 8; round++) {
        bool corrupted = round % 2 == 1 && round > 3 && ranks > 1;
        fill_layers(layers, FEW, 3 * round, true);
        start_one_by_one(layers, FEW);
        sent = 0;
        corrupt_at = corrupted && rank == 0 ? (long)round % (ranks - 1) : -1;
        int good = start_badly(layers, FEW), all;
        MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        check(!all == corrupted, "expected a%s in round %u", corrupted ? "n error" : " success", round);
    }
    free_layers(layers, FEW);
}

int main(int argc, char **argv)
{
    check_begin(
        &argc, &argv,
        MPI_THREAD_MULTIPLE); /* MPI libraries without generalized request polling need the progress thread */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    try_counts(comm, "12000", ranks > 1);
    try_counts(comm, "0", false);
    try_steady(comm);
    try_alloc_failures(comm);
    try_corrupted(comm);
    MPI_Comm_free(&comm);
    try_model("1", ranks > 1);
    try_model("1e-30", false);
    return check_end("fused_plans_inside");
}
