/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests enqueued calls. They copy elements that fit the capacity, else the whole vector, and give the bits of
 * calls on host memory. They copy no more bytes than that, and allocate nothing when repeated. If a CUDA call
 * fails, no rank hangs, and none takes a wrong result for right. */

#include <cuda_runtime_api.h>
#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device_memory.h"

enum { COUNT = 24000, ROOM = COUNT / 2 /* for floats */, MOST_BYTES = COUNT * 12 };

/* Types, with their capacity in elements; each element has a 4-byte index. */
static struct elem_type {
    const char *name;
    MPI_Datatype type;
    size_t size, values; /* bytes of a basic type; basic values in an element */
    bool real;
    int room;
} elem_types[] = {
    { "floats", MPI_FLOAT, 4, 1, true, ROOM },
    { "doubles", MPI_DOUBLE, 8, 1, true, COUNT * 8 / 12 },
    { "integers of 8 bytes", MPI_INT64_T, 8, 1, false, COUNT * 8 / 12 },
    { "rows of 3 floats", MPI_DATATYPE_NULL, 4, 3, true, COUNT * 12 / 16 },
};

/* A vector: its number of elements; the shift of their positions between ranks; the seed of the values; and
 * whether values are few, so that sums are exact in any order. */
struct vector {
    const struct elem_type *elem_type;
    int nnz, separate, round;
    bool coarse;
};

static MPI_Comm comm;
static cudaStream_t stream;
static int failures; /* errors reported to the communicator's handler */

static size_t bytes_of(const struct vector *v)
{
    return COUNT * v->elem_type->size * v->elem_type->values;
}

/* Elements are as far from each other as possible. */
static bool is_present(const struct vector *v, int i)
{
    long at = (i + (long)rank * v->separate) % COUNT;
    return (at + 1) * v->nnz / COUNT != at * v->nnz / COUNT;
}

static void set_value(const struct vector *v, void *to, uint64_t key)
{
    uint64_t bits = mix(key * 64 + (uint64_t)(rank + 8 * v->round));
    double number = v->coarse ? (double)(bits % 9 + 1) : (double)(bits >> 11) / 4503599627370496.0 + 1e-3;
    float single = (float)number;
    int64_t integer = (int64_t)(bits % 1000 + 1);
    if (!v->elem_type->real)
        memcpy(to, &integer, sizeof integer);
    else if (v->elem_type->size == sizeof number)
        memcpy(to, &number, sizeof number);
    else
        memcpy(to, &single, sizeof single);
}

static void fill(const struct vector *v, unsigned char *to)
{
    size_t size = v->elem_type->size, element = size * v->elem_type->values;
    memset(to, 0, bytes_of(v));
    for (int i = 0; i < COUNT; i++)
        for (size_t j = 0; is_present(v, i) && j < v->elem_type->values; j++)
            set_value(v, to + (size_t)i * element + j * size, (uint64_t)i * 4 + j);
}

/* A call and its vectors; out is NULL for in place. */
struct job {
    struct vector vector;
    bool in_place;
    unsigned char *in, *out, *host;
};

static void begin(struct job *job)
{
    size_t bytes = bytes_of(&job->vector);
    job->host = get_memory(bytes, 1);
    fill(&job->vector, job->host);
    job->in = to_device(job->host, bytes);
    memset(job->host, 0x7e, bytes);
    job->out = job->in_place ? NULL : to_device(job->host, bytes);
}

static int enqueue(const struct job *job)
{
    return MPIX_Sparse_allreduce_enqueue(job->in_place ? MPI_IN_PLACE : job->in,
                                         job->in_place ? job->in : job->out, COUNT,
                                         job->vector.elem_type->type, MPI_SUM, comm, stream);
}

static bool is_right(struct job *job, const unsigned char *expected)
{
    to_host(job->host, job->in_place ? job->in : job->out, bytes_of(&job->vector));
    return memcmp(job->host, expected, bytes_of(&job->vector)) == 0;
}

static void end(struct job *job)
{
    require(cudaFree(job->in));
    require(cudaFree(job->out));
    free(job->host);
}

/* Result of the same call on host memory. */
static const unsigned char *expected_of(const struct job *job)
{
    static unsigned char in[MOST_BYTES], out[MOST_BYTES];
    fill(&job->vector, in);
    check_success(MPIX_Sparse_allreduce(in, out, COUNT, job->vector.elem_type->type, MPI_SUM, comm),
                  "a call on the host's memory");
    return out;
}

static void run(const struct vector *v, bool in_place)
{
    struct job job = { .vector = *v, .in_place = in_place };
    begin(&job);
    const unsigned char *expected = expected_of(&job);
    check_success(enqueue(&job), "MPIX_Sparse_allreduce_enqueue");
    require(cudaStreamSynchronize(stream));
    check(is_right(&job, expected), "expected the bits of the call on the host's memory");
    end(&job);
}

/* Numbers of elements up to the capacity, and one more; also for the result if ranks have different
 * elements. */
static void check_results(const char *scheme, const struct elem_type *elem_type)
{
    const int numbers[] = {
        0, COUNT / 100, elem_type->room / 3, elem_type->room - 1, elem_type->room, elem_type->room + 1, COUNT
    };
    comm = settings_comm(&(struct settings){ .scheme = scheme });
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (int how = 0; how < 4; how++) {
            struct vector v = { elem_type, numbers[i], how / 2 * 17, how, scheme == NULL };
            check_case("%s, %d %s, %d apart%s", scheme == NULL ? "any" : scheme, v.nnz, elem_type->name,
                       v.separate, how % 2 == 0 ? "" : ", in place");
            run(&v, how % 2 != 0);
        }
    MPI_Comm_free(&comm);
}

/* A communicator on which elements cost so much that full vectors, and the calls after them, go to MPI. */
static MPI_Comm dense_comm(void)
{
    setenv("MPIX_SPARSE_FORWARD", "63", 1);
    setenv("MPIX_SPARSE_LEARN", "off", 1);
    setenv("MPIX_SPARSE_GAMMA", "1e-6", 1);
    nodes_set(2);
    MPI_Comm made = settings_comm(&(struct settings){ .scheme = NULL });
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    unsetenv("MPIX_SPARSE_LEARN");
    unsetenv("MPIX_SPARSE_GAMMA");
    nodes_set(0);
    return made;
}

/* Later calls of full vectors pass to MPI, even after a vector has become sparse. */
static void check_turns(void)
{
    enum { ROUNDS = 24 };
    static unsigned char in[MOST_BYTES], out[MOST_BYTES];
    int unseen = 0;
    comm = dense_comm();
    for (int round = 0; round < ROUNDS; round++) {
        struct job job = { .vector = { &elem_types[0], COUNT, 0, round, true },
                           .in_place = round / 2 % 2 != 0 };
        if (round % 2 != 0)
            job.vector.nnz = COUNT / 50;
        check_case("calls that follow on dense ones, %d", round);
        begin(&job);
        check_success(enqueue(&job), "MPIX_Sparse_allreduce_enqueue");
        require(cudaStreamSynchronize(stream));
        MPIX_Sparse_report_t report;
        check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
        unseen += round % 2 != 0 && strstr(report.reason, "handed to MPI_Allreduce") != NULL;
        fill(&job.vector, in);
        MPI_Allreduce(in, out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        check(is_right(&job, out), "expected MPI's sums");
        end(&job);
    }
    check(ranks == 1 || unseen > 0, "expected some calls of few elements to be MPI's");
    MPI_Comm_free(&comm);
}

/* Several calls queued in the stream before any wait. */
static void check_flight(void)
{
    enum { CALLS = 6 };
    struct job jobs[CALLS];
    check_case("calls in flight");
    comm = settings_comm(&(struct settings){ .scheme = "balanced" });
    for (int i = 0; i < CALLS; i++) {
        jobs[i] = (struct job){ .vector = { &elem_types[0], i % 3 == 2 ? COUNT : (i + 1) * 300, 5, i, false },
                                .in_place = i % 2 != 0 };
        begin(&jobs[i]);
    }
    for (int i = 0; i < CALLS; i++)
        check_success(enqueue(&jobs[i]), "MPIX_Sparse_allreduce_enqueue");
    require(cudaStreamSynchronize(stream));
    for (int i = 0; i < CALLS; i++) {
        check(is_right(&jobs[i], expected_of(&jobs[i])), "expected other bits of call %d", i);
        end(&jobs[i]);
    }
    MPI_Comm_free(&comm);
}

/* Bytes copied, or touched by kernels, in a repeated call. */
static long passed(int nnz, bool in_place)
{
    long bytes = 0;
    struct vector v = { &elem_types[0], nnz, 0, 0, false };
    for (int round = 0; round < 2; round++) {
        struct job job = { .vector = v, .in_place = in_place };
        begin(&job);
        tell_runtime("fake_cuda_watch", 1);
        bytes = count_of("fake_cuda_copied") + count_of("fake_cuda_touched");
        check_success(enqueue(&job), "MPIX_Sparse_allreduce_enqueue");
        require(cudaStreamSynchronize(stream));
        bytes = count_of("fake_cuda_copied") + count_of("fake_cuda_touched") - bytes;
        tell_runtime("fake_cuda_watch", 0);
        check(is_right(&job, expected_of(&job)), "expected the bits of the call on the host's memory");
        end(&job);
    }
    return bytes;
}

/* In units of pages the number is slightly larger, since arrays start and end within a page. */
static void check_bytes(void)
{
    enum { SPARSE = COUNT / 100, PAGES = 8 * 4096 };
    comm = settings_comm(&(struct settings){ .scheme = "balanced" });
    for (int in_place = 0; in_place < 2; in_place++) {
        check_case("bytes that pass%s", in_place ? ", in place" : "");
        long most = 2 * SPARSE * 8 + PAGES, few = passed(SPARSE, in_place != 0);
        long all = passed(COUNT, in_place != 0), vector = COUNT * 4;
        check(few <= most, "expected at most %ld bytes to pass for %d elements, found %ld", most, SPARSE,
              few);
        check(all == 0 || (all >= 2 * vector && all <= 2 * vector + PAGES),
              "expected a vector of %ld bytes to pass twice, found %ld bytes", vector, all);
        check(all == 0 || few > 2 * SPARSE * 4, "expected the values of %d elements to pass, found %ld bytes",
              SPARSE, few);
    }
    MPI_Comm_free(&comm);
}

static void check_steady(void)
{
    enum { ROUNDS = 10, WARM = 4 };
    long before = 0;
    check_case("calls of one tensor");
    comm = settings_comm(&(struct settings){ .scheme = "balanced" });
    struct job job = { .vector = { &elem_types[0], 700, 3, 0, false }, .in_place = false };
    begin(&job);
    const unsigned char *expected = expected_of(&job);
    for (int round = 0; round < ROUNDS; round++) {
        before = round < WARM ? count_of("fake_cuda_allocations") : before;
        long stops = count_of("fake_cuda_stops"), waits = count_of("fake_cuda_waits");
        check_success(enqueue(&job), "MPIX_Sparse_allreduce_enqueue");
        check(count_of("fake_cuda_stops") == stops && count_of("fake_cuda_waits") == waits,
              "expected nobody to wait for the device");
        require(cudaStreamSynchronize(stream));
    }
    check(is_right(&job, expected), "expected the bits of the call on the host's memory");
    check(count_of("fake_cuda_allocations") == before, "expected no allocation later on, found %ld",
          count_of("fake_cuda_allocations") - before);
    end(&job);
    MPI_Comm_free(&comm);
}

/* Runs in a thread of CUDA. */
static void note(MPI_Comm *where, int *code, ...)
{
    (void)where, (void)code;
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

/* Make a call in which the n-th CUDA call fails on one rank; 0 for none. Returns true if that failed. */
static bool fails(struct job *job, long n, const unsigned char *expected)
{
    begin(job);
    __atomic_store_n(&failures, 0, __ATOMIC_RELAXED);
    tell_runtime("fake_cuda_refuse", n % ranks == rank ? n : 0);
    int code = enqueue(job);
    tell_runtime("fake_cuda_refuse", 0);
    require(cudaStreamSynchronize(stream));
    bool failed = code != MPI_SUCCESS || __atomic_load_n(&failures, __ATOMIC_RELAXED) != 0;
    check(failed || is_right(job, expected), "expected an error or the bits of a call that does not fail");
    end(job);
    return failed;
}

/* A result that cannot be packed is copied, so the call does not fail. */
static void check_refusals(bool in_place)
{
    MPI_Errhandler handler;
    long calls = 0, most, failed = 0;
    static unsigned char expected[MOST_BYTES];
    comm = settings_comm(&(struct settings){ .scheme = "balanced" });
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    struct job job = { .vector = { &elem_types[0], 500, 7, 1, false }, .in_place = in_place };
    memcpy(expected, expected_of(&job), bytes_of(&job.vector));
    for (int round = 0; round < 2; round++) {
        calls = count_of("fake_cuda_calls");
        check(!fails(&job, 0, expected), "expected success of a call before");
        calls = count_of("fake_cuda_calls") - calls;
    }
    MPI_Allreduce(&calls, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    for (long n = 1; n <= most; n++) {
        check_case("call %ld of CUDA fails%s", n, in_place ? ", in place" : "");
        failed += fails(&job, n, expected);
        check(!fails(&job, 0, expected), "expected success of a call behind");
    }
    check(most == 0 || (failed > 0 && failed < most), "expected some of %ld calls to fail, found %ld", most,
          failed);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "balanced", "dense", "recursive_doubling", "shared", NULL };
    int level = check_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_alarm(240);
    if (level != MPI_THREAD_MULTIPLE)
        return check_skip("enqueued", "this MPI has no MPI_THREAD_MULTIPLE");
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MPI_Type_contiguous(3, MPI_FLOAT, &elem_types[3].type);
    MPI_Type_commit(&elem_types[3].type);
    for (size_t s = 0; s < sizeof schemes / sizeof schemes[0]; s++)
        check_results(schemes[s], &elem_types[0]);
    for (size_t k = 1; k < sizeof elem_types / sizeof elem_types[0]; k++)
        check_results("balanced", &elem_types[k]);
    check_turns();
    check_flight();
    check_bytes();
    check_steady();
    check_refusals(false);
    check_refusals(true);
    MPI_Type_free(&elem_types[3].type);
    require(cudaStreamDestroy(stream));
    check(count_of("fake_cuda_taken") == 0, "expected nothing to be left on the device, found %ld arrays",
          count_of("fake_cuda_taken"));
    return check_end("enqueued");
}
