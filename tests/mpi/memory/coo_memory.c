/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the memory of coordinate calls on one node, beyond inputs and results. It must be at most one and a
 * half times the size of inputs and results, for any order, index type, element size and overlap. Counts all
 * bytes allocated by malloc, and every touched page of shared memory, freed or not. All ranks of the node
 * share one result.
 *
 * With the argument `all` the program prints the memory of each case; a second argument is the bytes of a
 * rank.
 *
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=ftruncate, and with the
 * library's objects. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "malloc_count.h"

enum {
    BYTES = 3 << 20, /* approximate input of a rank */
    CALLS = 2,       /* the first call allocates, later ones reuse */
    FILES = 64,
    TIMEOUT = 600 /* seconds */
};

int __real_ftruncate(int file, off_t bytes);
int __wrap_ftruncate(int file, off_t bytes);

/* All shared memory made since the current case began. */
static int files[FILES], files_n;

int __wrap_ftruncate(int file, off_t bytes)
{
    check(files_n < FILES, "expected at most %d segments, found more", (int)FILES);
    files[files_n++] = dup(file);
    return __real_ftruncate(file, bytes);
}

static int64_t touched(void)
{
    int64_t bytes = 0;
    struct stat found;
    for (int i = 0; i < files_n; i++)
        bytes += fstat(files[i], &found) == 0 ? (int64_t)found.st_blocks * 512 : 0;
    return bytes;
}

static void forget_files(void)
{
    while (files_n > 0)
        close(files[--files_n]);
}

enum order { SORTED, UNSORTED, DUPLICATES, OUTLIERS, ORDERS };
enum common { ALL, QUARTER, NOTHING, ON_ONE_RANK, COMMONS };

enum { EACH = 3 /* repetitions of an index in input with duplicates */ };

static const char *const orders[ORDERS] = { "sorted", "unsorted", "each index three times",
                                            "close but for outliers" };
static const char *const commons[COMMONS] = { "all in common", "a quarter in common", "nothing in common",
                                              "all on one rank" };

static const struct index {
    const char *name;
    uint64_t count;
    size_t bytes;
} indices[] = {
    { "32-bit indices", (uint64_t)1 << 30, 4 },
    { "64-bit indices below 2^30", (uint64_t)1 << 30, 8 },
    { "64-bit indices below 2^33", (uint64_t)1 << 33, 8 },
    { "64-bit indices below 2^50", (uint64_t)1 << 50, 8 },
};

static const struct element {
    const char *name;
    size_t bytes;
    int row;
} elements[] = {
    { "16-bit floats", 2, 1 }, { "floats", 4, 1 },        { "doubles", 8, 1 },
    { "rows of 3", 12, 3 },    { "rows of 64", 256, 64 },
};

enum { INDICES = sizeof indices / sizeof *indices, ELEMENTS = sizeof elements / sizeof *elements };

struct setting {
    enum order order;
    enum common common;
    const struct index *index;
    const struct element *element;
};

struct input {
    void *index, *value;
    size_t nnz, different;
    MPI_Datatype type;
};

/* The k-th distinct index of this rank. */
static uint64_t index_of(const struct setting *s, const struct input *in, size_t k)
{
    uint64_t step = s->order == OUTLIERS ? 8 : s->index->count / in->different;
    bool own = s->common == NOTHING || (s->common == QUARTER && k % 4 != 0);
    uint64_t index = k * step + (own ? (uint64_t)rank : 0);
    return s->order == OUTLIERS && k + 4 > in->different ? s->index->count - 8 * (in->different - k) : index;
}

/* A permutation of the numbers below a power of two. */
static size_t shuffled(size_t i, size_t n)
{
    return (i * 0x9e3779b1u + 12345) & (n - 1);
}

static void fill(const struct setting *s, struct input *in, size_t nnz)
{
    bool none = s->common == ON_ONE_RANK && rank != 0;
    size_t repeated = s->order == DUPLICATES ? EACH : 1;
    in->different = nnz;
    in->nnz = none ? 0 : nnz * repeated;
    in->index = get_memory(nnz * repeated, s->index->bytes);
    in->value = get_memory(nnz * repeated, s->element->bytes);
    for (size_t i = 0; i < nnz * repeated; i++) {
        size_t k = s->order == SORTED ? i : shuffled(i, nnz);
        uint64_t index = index_of(s, in, k);
        memcpy((char *)in->index + i * s->index->bytes, &index, s->index->bytes);
    }
    MPI_Datatype base = s->element->bytes == 2   ? MPI_INT16_T
                        : s->element->bytes == 8 ? MPI_DOUBLE
                                                 : MPI_FLOAT;
    MPI_Type_contiguous(s->element->row, base, &in->type);
    MPI_Type_commit(&in->type);
}

static void drop(struct input *in)
{
    MPI_Type_free(&in->type);
    free(in->index);
    free(in->value);
}

/* The largest power of two that fits. */
static size_t nnz_of(const struct setting *s, size_t bytes)
{
    size_t nnz = 1024, each = s->index->bytes + s->element->bytes;
    each *= s->order == DUPLICATES ? EACH : 1;
    while (2 * nnz * each <= bytes)
        nnz *= 2;
    return nnz;
}

static int64_t elements_of_result(const struct setting *s, size_t nnz)
{
    int64_t n = (int64_t)nnz, outliers = s->order == OUTLIERS ? 3 : 0;
    switch (s->common) {
    case NOTHING: return ranks * (n - outliers) + outliers;
    case QUARTER: return n / 4 + (n - n / 4 - outliers) * ranks + outliers;
    default: return n;
    }
}

/* Bytes allocated in a call by all ranks together. */
static int64_t taken(const struct setting *s, const struct input *in, MPI_Comm comm, int64_t result_elements,
                     MPIX_Sparse_result *result)
{
    int64_t before = malloc_count_begin(), bytes;
    MPI_Count nnz;
    check_success(MPIX_Sparse_allreduce_coo(in->index, in->value, (MPI_Count)in->nnz,
                                            s->index->bytes == 4 ? MPI_INT32_T : MPI_INT64_T,
                                            (MPI_Count)s->index->count, in->type, MPI_SUM, comm, result),
                  "MPIX_Sparse_allreduce_coo");
    bytes = malloc_count_peak() - before + touched();
    check_success(MPIX_Sparse_result_get(*result, &nnz, NULL, NULL), "MPIX_Sparse_result_get");
    check(nnz == result_elements, "expected %lld elements, found %lld", (long long)result_elements,
          (long long)nnz);
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return bytes;
}

/* Check the memory of calls, beyond the result, in units of all inputs and the result. */
static void try_setting(const struct setting *s, size_t room, bool tells)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Comm comm = settings_comm(&(struct settings){ .scheme = "shared" });
    struct input in;
    fill(s, &in, nnz_of(s, room));
    size_t each = s->index->bytes + s->element->bytes;
    int64_t nnz = elements_of_result(s, in.different), result_elements = nnz * (int64_t)each;
    int64_t inputs = (int64_t)(in.nnz * each), most = 0;
    MPI_Allreduce(MPI_IN_PLACE, &inputs, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int call = 0; call < CALLS; call++) {
        int64_t bytes = taken(s, &in, comm, nnz, &result);
        most = bytes > most ? bytes : most;
    }
    double ratio = (double)(most - result_elements) / (double)(inputs + ranks * result_elements);
    if (tells && rank == 0)
        printf("%5.2f %s %s, %s, %s, %s\n", ratio, ratio > 1.5 ? "!" : " ", s->element->name, s->index->name,
               orders[s->order], commons[s->common]);
    check(tells || ratio <= 1.5, "expected at most 1.5 times inputs and results, found %.2f", ratio);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
    drop(&in);
    forget_files();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(TIMEOUT);
    bool tells = argc > 1 && strcmp(argv[1], "all") == 0;
    size_t room = argc > 2 ? strtoull(argv[2], NULL, 10) : BYTES;
    setenv("MPIX_SPARSE_ELEMENT", "fp16", 1);
    nodes_set(1);
    for (int k = 0; k < ORDERS * COMMONS * INDICES * ELEMENTS; k++) {
        struct setting s = { (enum order)(k % ORDERS), (enum common)(k / ORDERS % COMMONS),
                             &indices[k / ORDERS / COMMONS % INDICES],
                             &elements[k / ORDERS / COMMONS / INDICES] };
        check_case("%s, %s, %s, %s", s.element->name, s.index->name, orders[s.order], commons[s.common]);
        try_setting(&s, room, tells);
    }
    return check_end("coo_memory");
}
