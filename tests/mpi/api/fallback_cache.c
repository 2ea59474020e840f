/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the path of calls that pass to MPI_Allreduce. The library makes no other MPI call, takes no lock,
 * searches no loaded libraries, and does not read cached arguments. Cached facts are dropped together with
 * the object that they describe.
 *
 * Link with the library's objects, and --wrap for the functions wrapped here. */

#include <link.h>
#include <mpix_sparse.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "core/comm_state.h"

static _Thread_local int reductions, starts, questions, looks, searches;
static int contexts;

#define COUNT_CALLS(function, parameters, arguments, counter) \
    int __real_##function parameters;                         \
    int __wrap_##function parameters;                         \
    int __wrap_##function parameters                          \
    {                                                         \
        (counter)++;                                          \
        return __real_##function arguments;                   \
    }

COUNT_CALLS(PMPI_Allreduce, (const void *i, void *o, int n, MPI_Datatype t, MPI_Op p, MPI_Comm c),
            (i, o, n, t, p, c), reductions)
COUNT_CALLS(PMPI_Iallreduce,
            (const void *i, void *o, int n, MPI_Datatype t, MPI_Op p, MPI_Comm c, MPI_Request *r),
            (i, o, n, t, p, c, r), starts)
COUNT_CALLS(PMPI_Comm_dup, (MPI_Comm c, MPI_Comm *d), (c, d), contexts)
COUNT_CALLS(PMPI_Comm_get_attr, (MPI_Comm c, int k, void *v, int *f), (c, k, v, f), questions)
COUNT_CALLS(PMPI_Comm_test_inter, (MPI_Comm c, int *f), (c, f), questions)
COUNT_CALLS(PMPI_Type_get_envelope, (MPI_Datatype t, int *i, int *a, int *d, int *c), (t, i, a, d, c),
            questions)
COUNT_CALLS(PMPI_Type_get_extent, (MPI_Datatype t, MPI_Aint *l, MPI_Aint *e), (t, l, e), questions)
COUNT_CALLS(PMPI_Type_size_x, (MPI_Datatype t, MPI_Count *s), (t, s), questions)
COUNT_CALLS(pthread_mutex_lock, (pthread_mutex_t * m), (m), questions)
COUNT_CALLS(dl_iterate_phdr, (int (*f)(struct dl_phdr_info *, size_t, void *), void *d), (f, d), searches)
COUNT_CALLS(sar_comm_state_get_opt, (MPI_Comm c, const char *f, struct sar_comm_state **x), (c, f, x), looks)

enum { CALLS = 100, COUNT = 64, LARGE = 1 << 15, TENSORS = SAR_TENSOR_STATES_MAX + 1 };

static double standing[2 * COUNT];

struct call_desc {
    const char *name;
    MPI_Datatype type;
    MPI_Op op;
    bool in_place;
};

static void call(const struct call_desc *call_desc, int calls, double *in, double *out, MPI_Comm comm)
{
    for (int i = 0; i < calls; i++)
        check_success(MPIX_Sparse_allreduce(call_desc->in_place ? MPI_IN_PLACE : in, out, COUNT,
                                            call_desc->type, call_desc->op, comm),
                      "MPIX_Sparse_allreduce");
}

static void measure(const struct call_desc *call_desc, double *in, double *out, MPI_Comm comm)
{
    call(call_desc, 2, in, out, comm);
    reductions = questions = looks = searches = 0;
    call(call_desc, CALLS, in, out, comm);
    int asked = questions + searches;
    check(reductions == CALLS && asked == 0 && looks == 0,
          "expected %d calls of MPI_Allreduce and nothing else, found %d, %d and %d", CALLS, reductions,
          asked, looks);
}

/* Alternating buffers cost one search of the mapped memory, and nothing else. */
static void measure_turns(double *in[2], double *out, int most, MPI_Comm comm)
{
    const struct call_desc call_desc = { "float", MPI_FLOAT, MPI_SUM, false };
    call(&call_desc, 2, in[0], out, comm);
    reductions = questions = looks = searches = 0;
    for (int i = 0; i < CALLS; i++)
        call(&call_desc, 1, in[i % 2], out, comm);
    int asked = questions, searched = searches;
    check(reductions == CALLS && asked == 0 && looks == 0 && searched <= most * CALLS,
          "expected %d calls of MPI_Allreduce and at most %d searches, found %d, %d, %d and %d", CALLS,
          most * CALLS, reductions, searched, asked, looks);
}

static void try_turns(MPI_Comm comm)
{
    double here[COUNT] = { 0 }, there[COUNT] = { 0 }, out[COUNT];
    size_t bytes = 3 * COUNT * sizeof *here;
    double *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check_case("buffers that take turns");
    measure_turns((double *[]){ here, there }, out, 0, comm);
    check(mapped != MAP_FAILED, "expected memory");
    check_case("buffers that take turns in memory that was mapped");
    measure_turns((double *[]){ mapped, mapped + COUNT }, mapped + 2 * COUNT, 1, comm);
    munmap(mapped, bytes);
}

static void try_start(MPI_Comm comm)
{
    float in[COUNT] = { 1 }, out[COUNT];
    MPI_Request request;
    check_case("nonblocking calls");
    for (int i = 0; i < CALLS; i++) {
        if (i == 1)
            starts = questions = looks = searches = 0;
        check_success(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request),
                      "MPIX_Isparse_allreduce");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(starts == CALLS - 1 && looks == 0 && out[0] == (float)ranks,
          "expected %d calls of MPI_Iallreduce and nothing else, found %d and %d", CALLS - 1, starts, looks);
    check_error(MPIX_Isparse_allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, NULL), "request is null",
                -1);
}

static float large[LARGE], sum[LARGE];

static bool was_handed_over(int count, MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    check(report.count == count, "expected a report of %d elements, found one of %lld", count,
          (long long)report.count);
    bool handed = strncmp(report.reason, "handed", 6) == 0;
    check(!handed || (report.predicted_seconds == -1 && report.measured_seconds == -1),
          "a time of a call that was passed to MPI");
    return handed;
}

static bool call_large(int count, MPI_Comm comm)
{
    check_success(MPIX_Sparse_allreduce(large, sum, count, MPI_FLOAT, MPI_SUM, comm),
                  "MPIX_Sparse_allreduce");
    check(sum[count - 1] == (float)ranks, "expected %d, found %g", ranks, (double)sum[count - 1]);
    return was_handed_over(count, comm);
}

/* A communicator that always chooses dense, because the price of an element is high. */
static MPI_Comm make_settled(void)
{
    MPI_Comm comm;
    setenv("MPIX_SPARSE_LEARN", "off", 1);
    setenv("MPIX_SPARSE_GAMMA", "1e-6", 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_success(MPIX_Sparse_allreduce(large, sum, 0, MPI_FLOAT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    unsetenv("MPIX_SPARSE_LEARN");
    unsetenv("MPIX_SPARSE_GAMMA");
    return comm;
}

/* Calls after a consistency check, which comes after 1, 3, 7, 15 ... calls. */
static void try_following(void)
{
    int handed_over = 0;
    MPI_Comm comm = make_settled();
    for (int i = 0; i < LARGE; i++)
        large[i] = 1;
    check_case("large dense vectors");
    looks = 0;
    for (int i = 0; i < CALLS; i++)
        handed_over += call_large(LARGE, comm);
    check(handed_over == CALLS - 6 && looks <= 7,
          "expected %d calls handed over and 7 looks, found %d and %d", CALLS - 6, handed_over, looks);
    check_case("a large dense vector that was forgotten");
    for (int i = 1; i <= TENSORS; i++)
        call_large(LARGE - i, comm);
    check(!call_large(LARGE, comm), "expected that it is agreed on");
    MPI_Comm_free(&comm);
}

/* Buffers in all memory that is known to be the host's without a search. */
static void try_kinds(MPI_Comm comm)
{
    static const struct call_desc call_descs[] = {
        { "float", MPI_FLOAT, MPI_SUM, false },
        { "double in place", MPI_DOUBLE, MPI_MAX, true },
        { "pairs", MPI_2INT, MPI_MAXLOC, false },
        { "logical and of int", MPI_INT, MPI_LAND, false },
        { "long double", MPI_LONG_DOUBLE, MPI_SUM, true },
        { "complex", MPI_C_FLOAT_COMPLEX, MPI_PROD, false },
    };
    double local[2 * COUNT] = { 0 }, result[2 * COUNT];
    double *heap = sbrk(2 * COUNT * sizeof *heap); /* a region that no sanitizer instruments */
    for (size_t i = 0; i < sizeof call_descs / sizeof *call_descs; i++) {
        check_case("%s, from the stack to the heap", call_descs[i].name);
        measure(&call_descs[i], local, heap, comm);
        check_case("%s, from the heap to the program's own memory", call_descs[i].name);
        measure(&call_descs[i], heap, standing, comm);
        check_case("%s, from the program's own memory to the stack", call_descs[i].name);
        measure(&call_descs[i], standing, result, comm);
    }
}

/* A wrong argument is reported after a thousand right calls with the same arguments. */
static void try_wrong(MPI_Comm comm)
{
    const struct call_desc call_desc = { "float", MPI_FLOAT, MPI_SUM, false };
    double in[COUNT] = { 0 }, out[COUNT];
    MPI_Comm freed = comm;
    check_case("a wrong call after good ones");
    call(&call_desc, 3, in, out, comm);
    check_error(MPIX_Sparse_allreduce(in, NULL, COUNT, MPI_FLOAT, MPI_SUM, comm), "recvbuf is null", -1);
    call(&call_desc, 3, in, out, comm);
    check_error(MPIX_Sparse_allreduce(in, in, COUNT, MPI_FLOAT, MPI_SUM, comm), "sendbuf", -1);
    call(&call_desc, 3, in, out, comm);
    check_error(MPIX_Sparse_allreduce(in, MPI_IN_PLACE, COUNT, MPI_FLOAT, MPI_SUM, comm), "recvbuf", -1);
    call(&call_desc, 3, in, out, comm);
    MPI_Comm_dup(comm, &freed);
    call(&call_desc, 3, in, out, freed);
    call(&call_desc, 3, in, out, comm);
    MPI_Comm_free(&freed);
    call(&call_desc, 3, in, out, comm);
}

static void try_hints(MPI_Comm comm)
{
    const struct call_desc call_desc = { "float", MPI_FLOAT, MPI_SUM, false };
    double in[COUNT] = { 0 }, out[COUNT];
    MPI_Info info;
    check_case("hints between calls");
    call(&call_desc, 3, in, out, comm);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_forward", "0");
    MPI_Info_set(info, "mpix_sparse_scheme", "allgather");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    MPI_Info_free(&info);
    reductions = 0;
    call(&call_desc, 3, in, out, comm);
    check(reductions == 0, "expected that no call goes to MPI_Allreduce, %d did", reductions);
}

/* MPI gives a new communicator the handle of a freed one. */
static MPI_Comm renew(MPI_Comm *comm)
{
    MPI_Comm old = *comm, made;
    MPI_Comm_free(comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
    if (made != old && rank == 0)
        check_case("another handle: nothing to be seen here");
    return made;
}

static void use_new(MPI_Comm comm)
{
    const struct call_desc call_desc = { "float", MPI_FLOAT, MPI_SUM, false };
    double in[COUNT] = { 0 }, out[COUNT];
    contexts = 0;
    call(&call_desc, 3, in, out, comm);
    check(contexts == 1, "expected that a new communicator gets a context, %d were made", contexts);
}

static void try_stale(void)
{
    MPI_Comm comm;
    check_case("a communicator with the handle of one that was freed");
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    for (int i = 0; i < 4; i++) {
        use_new(comm);
        comm = renew(&comm);
    }
    use_new(comm);
    MPI_Comm_free(&comm);
}

struct errand {
    MPI_Comm comm;
    pthread_barrier_t barrier;
};

static void *use_twice(void *of)
{
    struct errand *errand = of;
    use_new(errand->comm);
    pthread_barrier_wait(&errand->barrier);
    pthread_barrier_wait(&errand->barrier);
    use_new(errand->comm);
    return NULL;
}

/* One thread frees an object that another thread has cached. */
static void try_stale_in_thread(int provided)
{
    struct errand errand;
    pthread_t thread;
    check_case("a handle that another thread frees and makes anew");
    if (provided < MPI_THREAD_MULTIPLE)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &errand.comm);
    pthread_barrier_init(&errand.barrier, NULL, 2);
    check(pthread_create(&thread, NULL, use_twice, &errand) == 0, "expected a thread");
    pthread_barrier_wait(&errand.barrier);
    errand.comm = renew(&errand.comm);
    pthread_barrier_wait(&errand.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&errand.barrier);
    MPI_Comm_free(&errand.comm);
}

int main(int argc, char **argv)
{
    int provided = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    unsetenv("MPIX_SPARSE_FORWARD");
    unsetenv("MPIX_SPARSE_LOG"); /* level trace logs each call, which takes locks */
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    try_kinds(comm);
    try_turns(comm);
    try_start(comm);
    try_wrong(comm);
    try_hints(comm);
    MPI_Comm_free(&comm);
    if (ranks > 1)
        try_following();
    try_stale();
    try_stale_in_thread(provided);
    return check_end("fallback_cache");
}
