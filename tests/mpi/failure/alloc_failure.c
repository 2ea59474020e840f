/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests allocation failures. Every allocation of the library fails once, on one rank: the first of a call,
 * the second, and so on until a call succeeds. No rank hangs. Each rank returns the right result, or an error
 * about memory or another rank, and the next call succeeds.
 *
 * Rows that are divided by columns fail in the same way.
 *
 * Shared memory consists of mapped files. These fail too, and the next call must share memory again. With a
 * scheme's name as argument, tests only that scheme and few sizes.
 *
 * Link with -Wl,--wrap= of malloc, calloc, realloc, memfd_create, mmap and sar_comm_state_suspend_shm, and
 * with the library's objects, not the shared library: MPI's own allocations must succeed, since MPI does not
 * survive their failure. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "core/comm_state.h"
#include "malloc_fail.h"
#include "patterns.h"
#include "scheme/engine/owner.h"
#include "tensors.h"

enum { TIMEOUT = 280 /* seconds */ };

int __real_memfd_create(const char *name, unsigned flags);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);
int __wrap_memfd_create(const char *name, unsigned flags);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return malloc_fail_next() ? -1 : __real_memfd_create(name, flags);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from)
{
    return malloc_fail_next() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, from);
}

void __real_sar_comm_state_suspend_shm(struct sar_comm_state *context);
void __wrap_sar_comm_state_suspend_shm(struct sar_comm_state *context);

void __wrap_sar_comm_state_suspend_shm(struct sar_comm_state *context)
{
    __real_sar_comm_state_suspend_shm(context);
    context->no_shm_calls = 1;
}

enum api { COO, COO_REUSED, DENSE, DENSE_IN_PLACE, DENSE_SCATTER, PROFILE, REDUCE_SCATTER, ALLGATHER, APIS };

static const char *const api_names[APIS] = {
    "COO",     "COO into an old result", "dense",    "dense in place", "dense reduce_scatter",
    "profile", "reduce_scatter",         "allgather"
};

/* Scratch memory comes in blocks, so each size lets another step need a new block. */
static const int64_t sizes[] = { 600, 800, 1100, 1500, 2200, 3000, 4700, 6500, 9000, 14000, 20000, 30000 };

enum { BLOCK = 7 /* of reduce_scatter */ };

enum { SIZES = sizeof sizes / sizeof sizes[0], FEW_SIZES = 5 };

struct vector {
    struct tensor tensor;
    struct oracle oracle;
    const struct index_type *type;
    void *indices;
    struct oracle owned; /* of reduce_scatter: this rank's part of the result, which allgather sends */
    void *owned_indices;
};

static struct vector small, large;
static size_t row = 1; /* values of an element */

struct state {
    MPI_Comm comm;
    enum api api;
    MPIX_Sparse_result result;
    float *out;
    MPIX_Sparse_profile_t profile;
};

static void make_vector(struct vector *v, const char *name, int64_t count)
{
    tensor_draw(pattern_find(name), &(struct tensor_desc){ FLOAT32, SUM, row, count }, 17, &v->tensor);
    oracle_make(&v->tensor, &v->oracle);
    v->type = &index_types[strcmp(name, "shuffled") == 0 ? 2 : 0];
    v->indices = typed_indices(&v->tensor, v->type);
    v->owned = oracle_owned(&v->oracle, BLOCK);
    v->owned_indices =
        typed_indices(&(struct tensor){ .nnz = v->owned.nnz, .index = v->owned.index }, v->type);
}

static void free_vector(struct vector *v)
{
    free(v->indices);
    free(v->owned_indices);
    oracle_free(&v->owned);
    tensor_free(&v->tensor);
    oracle_free(&v->oracle);
}

static int call(struct state *s, const struct vector *v)
{
    const struct tensor_desc *k = &v->tensor.desc;
    MPI_Datatype type = row_type(k);
    int code;
    if (s->api == PROFILE)
        code = MPIX_Sparse_profile(v->oracle.mine, k->count, type, s->comm, &s->profile);
    else if (s->api == DENSE_IN_PLACE)
        code = MPIX_Sparse_allreduce(MPI_IN_PLACE, s->out, k->count, type, MPI_SUM, s->comm);
    else if (s->api == DENSE)
        code = MPIX_Sparse_allreduce(v->oracle.mine, s->out, k->count, type, MPI_SUM, s->comm);
    else if (s->api == DENSE_SCATTER)
        code = MPIX_Sparse_reduce_scatter(v->oracle.mine, s->out, k->count / ranks, type, MPI_SUM, s->comm);
    else if (s->api == REDUCE_SCATTER)
        code = MPIX_Sparse_reduce_scatter_coo(v->indices, v->tensor.value, (MPI_Count)v->tensor.nnz,
                                              v->type->type, k->count, BLOCK, type, MPI_SUM, s->comm,
                                              &s->result);
    else if (s->api == ALLGATHER)
        code = MPIX_Sparse_allgather_coo(v->owned_indices, v->owned.value, (MPI_Count)v->owned.nnz,
                                         v->type->type, k->count, type, s->comm, &s->result);
    else
        code = MPIX_Sparse_allreduce_coo(v->indices, v->tensor.value, (MPI_Count)v->tensor.nnz, v->type->type,
                                         k->count, type, MPI_SUM, s->comm, &s->result);
    row_type_free(k, &type);
    return code;
}

static void check_right(const struct state *s, const struct vector *v)
{
    size_t part = (size_t)v->oracle.desc.count / (size_t)ranks;
    if (s->api == PROFILE)
        check(s->profile.ranks == ranks && s->profile.density > 0, "expected a profile, found none");
    else if (s->api == DENSE || s->api == DENSE_IN_PLACE)
        check(equal_numbers(&v->oracle.desc, s->out, v->oracle.dense, (size_t)v->oracle.desc.count),
              "expected the right sums, found others");
    else if (s->api == DENSE_SCATTER)
        check(equal_numbers(&v->oracle.desc, s->out,
                            v->oracle.dense + (size_t)rank * part * element_bytes(&v->oracle.desc), part),
              "expected the right part of the sums, found another");
    else
        compare_result(s->api == REDUCE_SCATTER ? &v->owned : &v->oracle, v->type, s->result);
}

static void call_and_check(struct state *s, const struct vector *v)
{
    memcpy(s->out, v->oracle.mine, (size_t)v->oracle.desc.count * element_bytes(&v->oracle.desc));
    check_success(call(s, v), "a call with enough memory");
    check_right(s, v);
}

static void check_result(const struct state *s, int code, bool mine)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) {
        check_right(s, &large);
        return;
    }
    MPI_Error_string(code, text, &length);
    bool own = strstr(text, "out of memory") != NULL, other = strstr(text, "another rank") != NULL;
    bool memory = own || strstr(text, "shared memory") != NULL;
    check(memory || (other && !mine), "expected an error that tells of memory%s, found '%s'",
          mine ? "" : " or of another rank", text);
}

/* Fail one allocation on rank `target` in a call of the large vector. Returns false if the call made fewer
 * allocations. */
static bool fail_alloc(struct state *s, int target, long which)
{
    bool reuses = s->api == COO_REUSED || s->api >= REDUCE_SCATTER;
    uint64_t before = reuses ? result_hash(s->result, &small.oracle.desc, small.type) : 0;
    if (s->api == COO)
        check_success(MPIX_Sparse_result_free(&s->result), "MPIX_Sparse_result_free");
    memcpy(s->out, large.oracle.mine, (size_t)large.oracle.desc.count * element_bytes(&large.oracle.desc));
    malloc_fail_at = rank == target ? which : -1;
    malloc_fail_calls = 0;
    int code = call(s, &large);
    int refused = malloc_fail_at >= 0 && malloc_fail_calls > malloc_fail_at;
    malloc_fail_at = -1;
    check_result(s, code, refused);
    if (code != MPI_SUCCESS && reuses)
        check(result_hash(s->result, &small.oracle.desc, small.type) == before || result_is_empty(s->result),
              "expected the result as it was or empty, found it changed");
    check(code == MPI_SUCCESS || s->api != COO || s->result == MPIX_SPARSE_RESULT_NULL,
          "expected no result after an error");
    MPI_Bcast(&refused, 1, MPI_INT, target, MPI_COMM_WORLD);
    check(refused || code == MPI_SUCCESS, "expected success with enough memory everywhere");
    return refused != 0;
}

/* Returns false if a scheme has no part in a collective: another would run, which other settings test. */
static bool serves(const char *scheme, enum api api)
{
    bool balanced = scheme == NULL || strcmp(scheme, "balanced") == 0;
    if (scheme != NULL && strcmp(scheme, "recursive_halving") == 0)
        return api == REDUCE_SCATTER || api == DENSE_SCATTER;
    if (api == DENSE_SCATTER)
        return balanced || strcmp(scheme, "dense") == 0;
    return api < REDUCE_SCATTER || balanced || strcmp(scheme, "allgather") == 0;
}

/* A communicator keeps its scratch memory until some calls have not needed it: two small calls release it. */
static void try_in_use(MPI_Comm comm, const struct settings *settings, int target)
{
    const struct tensor_desc *desc = &large.oracle.desc;
    struct state s = { .comm = comm, .out = get_memory((size_t)desc->count, element_bytes(desc)) };
    for (int api = 0; api < APIS; api++) {
        /* A profile allocates the same for any size. */
        bool refused = api != PROFILE || (desc->count == sizes[0] && row == 1);
        if (!serves(settings->scheme, (enum api)api))
            continue;
        s.api = (enum api)api;
        for (long which = 0; refused; which++) {
            check_case("allocation %ld on rank %d, %s of %lld, %s", which, target, api_names[api],
                       (long long)desc->count, settings_text(settings));
            check_alarm(TIMEOUT);
            call_and_check(&s, &small);
            call_and_check(&s, &small);
            refused = fail_alloc(&s, target, which);
        }
    }
    check_success(MPIX_Sparse_result_free(&s.result), "MPIX_Sparse_result_free");
    free(s.out);
}

/* Ascending indices are used in place. Others need memory to be sorted in, which later steps then reuse. Rank
 * 1 can keep its neighbour's elements, and return the result. */
static void try_size(MPI_Comm comm, int64_t size, const struct settings *settings)
{
    for (int sorted = 0; sorted < 2; sorted++) {
        make_vector(&large, sorted ? "random 0.5" : "shuffled", size);
        try_in_use(comm, settings, 0);
        if (ranks > 2)
            try_in_use(comm, settings, 1);
        if (ranks > 1)
            try_in_use(comm, settings, ranks - 1);
        free_vector(&large);
    }
}

static void try_first_use(const struct settings *settings, enum api api, int target)
{
    bool refused = true;
    struct state s = { .api = api, .out = get_memory((size_t)large.oracle.desc.count, sizeof *s.out) };
    for (long which = 0; refused; which++) {
        check_case("allocation %ld on rank %d, %s, first use, %s", which, target, api_names[api],
                   settings_text(settings));
        check_alarm(TIMEOUT);
        settings_set(settings);
        s.comm = comm_duplicate();
        refused = fail_alloc(&s, target, which);
        if (which % 4 == 0)
            call_and_check(&s, &large);
        MPI_Comm_free(&s.comm);
    }
    settings_set(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    check_success(MPIX_Sparse_result_free(&s.result), "MPIX_Sparse_result_free");
    free(s.out);
}

static void try_relays(void)
{
    struct settings settings = { "balanced", NULL, "cyclic", "1", "200" };
    setenv("MPIX_SPARSE_RELAY", "on", 1);
    MPI_Comm comm = settings_comm(&settings);
    unsetenv("MPIX_SPARSE_RELAY");
    try_size(comm, sizes[0], &settings);
    MPI_Comm_free(&comm);
}

static void try_few_sizes(struct settings settings)
{
    MPI_Comm comm = settings_comm(&settings);
    for (size_t j = 0; j < FEW_SIZES; j++)
        try_size(comm, sizes[j], &settings);
    MPI_Comm_free(&comm);
}

/* Rows with several owners, in slices; with two groups they are reduced in flight. */
static void try_columns(const char *scheme, int nodes)
{
    enum { ROW = 24, COUNTS = 3 };
    static const int64_t counts[COUNTS] = { 60, 150, 400 };
    const struct settings settings = { scheme, nodes % 2 == 0 ? "coo" : NULL, NULL, NULL, "200" };
    row = ROW;
    make_vector(&small, "random 0.5", 20);
    setenv("MPIX_SPARSE_PROFILE_EVERY", "1000000", 1);
    for (int groups = 1; groups <= 2; groups++) {
        char columns[16];
        snprintf(columns, sizeof columns, "%d", groups == 1 ? ranks : (ranks + 1) / 2);
        setenv("MPIX_SPARSE_COLUMNS", columns, 1);
        nodes_set(nodes);
        sar_owner_always_in_flight = groups == 2;
        MPI_Comm comm = settings_comm(&settings);
        for (int i = 0; i < COUNTS; i++)
            if (!oversubscribed || i == groups)
                try_size(comm, counts[i], &settings);
        MPI_Comm_free(&comm);
    }
    sar_owner_always_in_flight = false;
    unsetenv("MPIX_SPARSE_COLUMNS");
    nodes_set(0);
    free_vector(&small);
    row = 1;
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { "dense", EVERY_SPARSE_SCHEME, NULL };
    static const char *const wires[] = { EVERY_WIRE };
    enum { SCHEMES = sizeof schemes / sizeof schemes[0] };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    const char *only = argc > 1 ? argv[1] : NULL;
    make_vector(&small, "random 0.5", 20);
    for (size_t i = 0; i < SCHEMES; i++) {
        if (only != NULL && (schemes[i] == NULL || strcmp(only, schemes[i]) != 0))
            continue;
        struct settings settings = { schemes[i], wires[i % 7], NULL, NULL, i % 2 == 0 ? NULL : "200" };
        /* A profile allocates so much memory that the scheme needs no more. */
        setenv("MPIX_SPARSE_PROFILE_EVERY", schemes[i] == NULL ? "1" : "1000000", 1);
        sar_owner_always_in_flight = i % 2 != 0;
        MPI_Comm comm = settings_comm(&settings);
        for (size_t j = 0; j < (only == NULL ? SIZES : FEW_SIZES); j++)
            if (!oversubscribed || (i + j + (size_t)ranks) % 4 == 0)
                try_size(comm, sizes[j], &settings);
        MPI_Comm_free(&comm);
        make_vector(&large, "shuffled", sizes[only == NULL ? SIZES - 1 : FEW_SIZES - 1]);
        if (i > 0 && (!oversubscribed || i == 3))
            try_first_use(&settings, i % 2 == 0 ? COO : DENSE, (int)i % ranks);
        free_vector(&large);
    }
    sar_owner_always_in_flight = false;
    if (only == NULL) {
        try_relays();
        try_few_sizes((struct settings){ "balanced", NULL, "hierarchical", NULL, "200" });
        try_few_sizes((struct settings){ "recursive_halving", NULL, NULL, NULL, NULL });
    }
    free_vector(&small);
    if (only == NULL || strcmp(only, "balanced") == 0)
        try_columns("balanced", ranks);
    if (only == NULL)
        try_columns("two_level", ranks % 2 == 0 && ranks > 2 ? 2 : 1);
    check_alarm(0);
    return check_end("alloc_failure");
}
