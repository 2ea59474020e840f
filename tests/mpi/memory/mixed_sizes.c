/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests alternating large and small calls, as layers of a network make them. After warm-up no call allocates
 * memory that must be mapped and zeroed, neither by malloc nor shared. A few pieces are allowed, since the
 * needs of `balanced` depend on the order of arrival. Results are reused, or freed one by one, or freed at
 * the end of a round.
 *
 * Link with -Wl,--wrap= of malloc, calloc, realloc and mmap, and with the library's objects. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"

enum {
    COUNT = 1000000,
    STEP = 100,
    NNZ = COUNT / STEP,
    FEW = 100,       /* elements of a small call */
    WORTH = 1 << 15, /* smallest malloc that is counted */
    WARM_UP = 6,     /* rounds */
    ROUNDS = 20,
    SMALL_CALLS = 3 /* of a round */
};

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);

static int taken; /* number of such allocations */

static void note(size_t bytes)
{
    taken += bytes >= WORTH;
}

void *__wrap_malloc(size_t bytes)
{
    note(bytes);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    note(n * size);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    note(bytes);
    return __real_realloc(memory, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from)
{
    note(bytes);
    return __real_mmap(at, bytes, protection, flags, file, from);
}

enum results { HANDED_IN, FREED, FREED_LATER, IN_DENSE_BUFFERS, USAGES };

static const char *const usages[USAGES] = { "results handed in again", "results freed at once",
                                            "results freed each round", "dense buffers" };

struct layer {
    int32_t *index;
    float *value, *dense, *sum;
    int count, nnz;
    MPIX_Sparse_result result;
};

static void fill(struct layer *layer, int count, int nnz)
{
    *layer = (struct layer){ get_memory((size_t)nnz, sizeof(int32_t)),
                             get_memory((size_t)nnz, sizeof(float)),
                             get_memory((size_t)count, sizeof(float)),
                             get_memory((size_t)count, sizeof(float)),
                             count,
                             nnz,
                             MPIX_SPARSE_RESULT_NULL };
    for (int k = 0; k < nnz; k++) {
        layer->index[k] = k * (count / nnz) + (k % 4 == 0 ? 0 : rank % (count / nnz));
        layer->value[k] = layer->dense[layer->index[k]] = 1;
    }
}

static void drop(struct layer *layer)
{
    free(layer->index);
    free(layer->value);
    free(layer->dense);
    free(layer->sum);
}

static void free_result(struct layer *layer)
{
    if (layer->result != MPIX_SPARSE_RESULT_NULL)
        check_success(MPIX_Sparse_result_free(&layer->result), "MPIX_Sparse_result_free");
}

static void reduce(struct layer *layer, enum results usage, MPI_Comm comm)
{
    if (usage == IN_DENSE_BUFFERS)
        check_success(MPIX_Sparse_allreduce(layer->dense, layer->sum, layer->count, MPI_FLOAT, MPI_SUM, comm),
                      "MPIX_Sparse_allreduce");
    else
        check_success(MPIX_Sparse_allreduce_coo(layer->index, layer->value, layer->nnz, MPI_INT32_T,
                                                layer->count, MPI_FLOAT, MPI_SUM, comm, &layer->result),
                      "MPIX_Sparse_allreduce_coo");
    if (usage == FREED)
        free_result(layer);
}

static void play(struct layer *large, struct layer *small, enum results usage, MPI_Comm comm)
{
    for (int i = 0; i < SMALL_CALLS; i++)
        reduce(small, usage, comm);
    reduce(large, usage, comm);
    if (usage == FREED_LATER) {
        free_result(small);
        free_result(large);
    }
}

/* Without shared memory a result owns its memory, which is freed with it. */
static bool can_stay(const char *scheme, enum results usage)
{
    return usage == HANDED_IN || usage == IN_DENSE_BUFFERS || (ranks > 1 && strcmp(scheme, "shared") == 0);
}

static void try_usage(struct layer *large, struct layer *small, const char *scheme, enum results usage)
{
    MPI_Comm comm = settings_comm(&(struct settings){ .scheme = scheme });
    check_case("%s, %s", scheme, usages[usage]);
    for (int round = 0; round < WARM_UP; round++)
        play(large, small, usage, comm);
    taken = 0;
    for (int round = 0; round < ROUNDS; round++)
        play(large, small, usage, comm);
    int most = taken;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(most <= ROUNDS / 2, "expected to take hardly any memory, found %d pieces in %d rounds", most,
          ROUNDS);
    free_result(small);
    free_result(large);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "shared", "balanced" };
    struct layer large, small;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    nodes_set(1);
    fill(&large, COUNT, NNZ);
    fill(&small, FEW, 10);
    for (size_t i = 0; i < 2; i++)
        for (int usage = 0; usage < USAGES; usage++)
            if (can_stay(schemes[i], (enum results)usage))
                try_usage(&large, &small, schemes[i], (enum results)usage);
    drop(&large);
    drop(&small);
    return check_end("mixed_sizes");
}
