/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests each argument error of the collective calls: on the first rank, on the last rank, and on all. Every
 * rank must return an error within SOON. The error names the argument, the rank, and both values if ranks
 * differ. The error handler runs once, outputs stay unchanged, and the next call succeeds. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { COUNT = 100, NNZ = 3, MOST_RANKS = 16 };

static const double SOON = 1, SOON_IF_OVERSUBSCRIBED = 5; /* seconds */

enum api { COO, DENSE, REDUCE_SCATTER, ALLGATHER, DENSE_SCATTER, APIS };

static const char *const api_names[APIS] = { "COO", "dense", "reduce_scatter", "allgather",
                                             "dense reduce_scatter" };

/* All arguments of the calls. */
struct arguments {
    enum api api;
    const void *indices, *values, *sendbuf;
    void *recvbuf;
    MPI_Count nnz, count, block;
    MPI_Datatype indextype, datatype;
    MPI_Op op;
    MPIX_Sparse_result *result;
};

static int32_t indices[NNZ] = { 5, 3, 99 }, own_indices[NNZ];
/* Buffers large enough for any wrong count or datatype of a case. A reduce_scatter has COUNT elements a
 * rank. */
static float values[4 * NNZ] = { 1, 2, 3 }, sendbuf[MOST_RANKS * 2 * COUNT], recvbuf[MOST_RANKS * 2 * COUNT];
static MPIX_Sparse_result result;
static MPI_Datatype pair_type;
static MPI_Op user_op;

static void index_negative(struct arguments *a)
{
    static const int32_t bad[NNZ] = { 5, -1, 99 };
    a->indices = bad;
}

static void index_is_count(struct arguments *a)
{
    static const int32_t bad[NNZ] = { COUNT, 3, 99 };
    a->indices = bad;
}

static void index_long(struct arguments *a)
{
    static const int64_t bad[NNZ] = { 5, 3, INT64_C(4294967299) };
    a->indices = bad;
    a->indextype = MPI_INT64_T;
}

static void index_long_negative(struct arguments *a)
{
    static const int64_t bad[NNZ] = { 5, -7, 99 };
    a->indices = bad;
    a->indextype = MPI_INT64_T;
}

static void indices_null(struct arguments *a)
{
    a->indices = NULL;
}

static void values_null(struct arguments *a)
{
    a->values = NULL;
}

static void result_null(struct arguments *a)
{
    a->result = NULL;
}

static void nnz_negative(struct arguments *a)
{
    a->nnz = -1;
}

static void indextype_null(struct arguments *a)
{
    a->indextype = MPI_DATATYPE_NULL;
}

static void indextype_float(struct arguments *a)
{
    a->indextype = MPI_FLOAT;
}

static void indextype_narrow(struct arguments *a)
{
    a->count = (MPI_Count)1 << 32;
}

static void count_negative(struct arguments *a)
{
    a->count = -1;
}

static void count_other(struct arguments *a)
{
    a->count = COUNT + 1;
}

static void count_vast(struct arguments *a)
{
    a->count = INT64_MAX / 2;
    a->indextype = MPI_INT64_T;
}

static void datatype_null(struct arguments *a)
{
    a->datatype = MPI_DATATYPE_NULL;
}

static void datatype_char(struct arguments *a)
{
    a->datatype = MPI_CHAR;
}

static void datatype_pair(struct arguments *a)
{
    a->datatype = pair_type;
}

static void datatype_other(struct arguments *a)
{
    a->datatype = MPI_INT32_T;
}

static void op_null(struct arguments *a)
{
    a->op = MPI_OP_NULL;
}

static void op_places(struct arguments *a)
{
    a->op = MPI_MINLOC;
}

static void op_users(struct arguments *a)
{
    a->op = user_op;
}

static void op_other(struct arguments *a)
{
    a->op = MPI_MAX;
}

static void sendbuf_null(struct arguments *a)
{
    a->sendbuf = NULL;
}

static void sendbuf_shared(struct arguments *a)
{
    a->sendbuf = a->recvbuf;
}

static void sendbuf_in_place(struct arguments *a)
{
    a->sendbuf = MPI_IN_PLACE;
}

static void recvbuf_null(struct arguments *a)
{
    a->recvbuf = NULL;
}

static void recvbuf_in_place(struct arguments *a)
{
    a->recvbuf = MPI_IN_PLACE;
}

static void indices_in_place(struct arguments *a)
{
    a->indices = MPI_IN_PLACE;
}

static void values_strided(struct arguments *a)
{
    a->values = MPIX_SPARSE_STRIDED;
}

static void sendbuf_strided(struct arguments *a)
{
    a->sendbuf = MPIX_SPARSE_STRIDED;
}

static void function_other(struct arguments *a)
{
    static const enum api others[APIS] = {
        [COO] = DENSE, [DENSE] = COO, [REDUCE_SCATTER] = ALLGATHER, [ALLGATHER] = COO, [DENSE_SCATTER] = DENSE
    };
    a->api = others[a->api];
}

static void block_zero(struct arguments *a)
{
    a->block = 0;
}

/* Four blocks of 2^32 elements. */
static void block_long(struct arguments *a)
{
    a->indextype = MPI_UINT64_T;
    a->nnz = 0;
    a->block = (MPI_Count)1 << 32;
    a->count = (MPI_Count)4 * ranks << 32;
}

static void block_other(struct arguments *a)
{
    a->block = 8;
}

static void index_twice(struct arguments *a)
{
    static const int32_t bad[NNZ] = { 5, 3, 5 };
    a->indices = bad;
}

static void index_of_next(struct arguments *a)
{
    static const int32_t bad[NNZ] = { 5, 3, 98 };
    a->indices = bad;
}

enum {
    ANYWHERE,
    ON_ONE_RANK,  /* valid if all ranks do it */
    BETWEEN_RANKS /* no rank is at fault alone */
};

static const struct fault {
    const char *name;
    enum api api;
    void (*corrupt)(struct arguments *arguments);
    const char *says;
    int where;
    const char *right, *wrong; /* if ranks differ: value of the other ranks and of the rank at fault */
} faults[] = {
    { "index -1", COO, index_negative, "indices holds -1", ANYWHERE, NULL, NULL },
    { "index = count", COO, index_is_count, ", count 100)", ANYWHERE, NULL, NULL },
    { "64-bit index beyond 32 bits", COO, index_long, "indices holds 4294967299", ANYWHERE, NULL, NULL },
    { "64-bit index -7", COO, index_long_negative, "indices holds -7", ANYWHERE, NULL, NULL },
    { "null indices", COO, indices_null, "indices is null", ANYWHERE, NULL, NULL },
    { "null values", COO, values_null, "values is null", ANYWHERE, NULL, NULL },
    { "indices in place", COO, indices_in_place, "indices is MPI_IN_PLACE", ANYWHERE, NULL, NULL },
    { "strided values", COO, values_strided, "values is not contiguous", ANYWHERE, NULL, NULL },
    { "null result", COO, result_null, "result is null", ANYWHERE, NULL, NULL },
    { "nnz -1", COO, nnz_negative, "nnz is -1", ANYWHERE, NULL, NULL },
    { "null indextype", COO, indextype_null, "indextype", ANYWHERE, NULL, NULL },
    { "indextype float", COO, indextype_float, "indextype is float", ANYWHERE, NULL, NULL },
    { "indextype too narrow", COO, indextype_narrow, "indextype is int32", ANYWHERE, NULL, NULL },
    { "count -1", COO, count_negative, "count is -1", ANYWHERE, NULL, NULL },
    { "vast count", COO, count_vast, "count is 4611686018427387903", ANYWHERE, NULL, NULL },
    { "another count", COO, count_other, "count differs between ranks", ON_ONE_RANK, "100", "101" },
    { "null datatype", COO, datatype_null, "datatype", ANYWHERE, NULL, NULL },
    { "datatype char", COO, datatype_char, "datatype", ANYWHERE, NULL, NULL },
    { "datatype struct", COO, datatype_pair, "datatype", ANYWHERE, NULL, NULL },
    { "another datatype", COO, datatype_other, "datatype differs between ranks", ON_ONE_RANK, "float",
      "int32" },
    { "null op", COO, op_null, "argument op", ANYWHERE, NULL, NULL },
    { "op MPI_MINLOC", COO, op_places, "op is MPI_MINLOC", ANYWHERE, NULL, NULL },
    { "a user's op", COO, op_users, "op is a user-defined op", ANYWHERE, NULL, NULL },
    { "another op", COO, op_other, "op differs between ranks", ON_ONE_RANK, "MPI_SUM", "MPI_MAX" },
    { "another function", COO, function_other, "different functions", ON_ONE_RANK,
      "MPIX_Sparse_allreduce_coo", "MPIX_Sparse_allreduce" },
    { "null sendbuf", DENSE, sendbuf_null, "sendbuf is null", ANYWHERE, NULL, NULL },
    { "strided sendbuf", DENSE, sendbuf_strided, "sendbuf is not contiguous", ANYWHERE, NULL, NULL },
    { "sendbuf = recvbuf", DENSE, sendbuf_shared, "sendbuf", ANYWHERE, NULL, NULL },
    { "in place on one rank", DENSE, sendbuf_in_place, "sendbuf differs between ranks", ON_ONE_RANK,
      "a buffer", "MPI_IN_PLACE" },
    { "null recvbuf", DENSE, recvbuf_null, "recvbuf is null", ANYWHERE, NULL, NULL },
    { "recvbuf in place", DENSE, recvbuf_in_place, "recvbuf", ANYWHERE, NULL, NULL },
    { "count -1", DENSE, count_negative, "count is -1", ANYWHERE, NULL, NULL },
    { "another count", DENSE, count_other, "count differs between ranks", ON_ONE_RANK, "100", "101" },
    { "null datatype", DENSE, datatype_null, "datatype", ANYWHERE, NULL, NULL },
    { "another datatype", DENSE, datatype_other, "datatype differs between ranks", ON_ONE_RANK, "float",
      "int32" },
    { "null op", DENSE, op_null, "argument op", ANYWHERE, NULL, NULL },
    { "another op", DENSE, op_other, "op differs between ranks", ON_ONE_RANK, "MPI_SUM", "MPI_MAX" },
    { "another function", DENSE, function_other, "different functions", ON_ONE_RANK, "MPIX_Sparse_allreduce",
      "MPIX_Sparse_allreduce_coo" },
    { "index -1", REDUCE_SCATTER, index_negative, "indices holds -1", ANYWHERE, NULL, NULL },
    { "null result", REDUCE_SCATTER, result_null, "result is null", ANYWHERE, NULL, NULL },
    { "block 0", REDUCE_SCATTER, block_zero, "block is 0", ANYWHERE, NULL, NULL },
    { "block 2^32", REDUCE_SCATTER, block_long, "block is 4294967296", ANYWHERE, NULL, NULL },
    { "another block", REDUCE_SCATTER, block_other, "block differs between ranks", ON_ONE_RANK, "7", "8" },
    { "another count", REDUCE_SCATTER, count_other, "count differs between ranks", ON_ONE_RANK, "100",
      "101" },
    { "another op", REDUCE_SCATTER, op_other, "op differs between ranks", ON_ONE_RANK, "MPI_SUM", "MPI_MAX" },
    { "a user's op", REDUCE_SCATTER, op_users, "op is a user-defined op", ANYWHERE, NULL, NULL },
    { "another function", REDUCE_SCATTER, function_other, "different functions", ON_ONE_RANK,
      "MPIX_Sparse_reduce_scatter_coo", "MPIX_Sparse_allgather_coo" },
    { "an index twice", ALLGATHER, index_twice, "indices holds an index that occurs twice", ANYWHERE, NULL,
      NULL },
    { "an index of another rank", ALLGATHER, index_of_next, "indices holds an index that occurs twice",
      BETWEEN_RANKS, NULL, NULL },
    { "null values", ALLGATHER, values_null, "values is null", ANYWHERE, NULL, NULL },
    { "datatype struct", ALLGATHER, datatype_pair, "datatype", ANYWHERE, NULL, NULL },
    { "another datatype", ALLGATHER, datatype_other, "datatype differs between ranks", ON_ONE_RANK, "float",
      "int32" },
    { "another function", ALLGATHER, function_other, "different functions", ON_ONE_RANK,
      "MPIX_Sparse_allgather_coo", "MPIX_Sparse_allreduce_coo" },
    { "recvcount -1", DENSE_SCATTER, count_negative, "recvcount is -1", ANYWHERE, NULL, NULL },
    { "vast recvcount", DENSE_SCATTER, count_vast, "recvcount is 4611686018427387903", ANYWHERE, NULL, NULL },
    { "another recvcount", DENSE_SCATTER, count_other, "recvcount differs between ranks", ON_ONE_RANK, "100",
      "101" },
    { "null sendbuf", DENSE_SCATTER, sendbuf_null, "sendbuf is null", ANYWHERE, NULL, NULL },
    { "sendbuf = recvbuf", DENSE_SCATTER, sendbuf_shared, "sendbuf", ANYWHERE, NULL, NULL },
    { "in place on one rank", DENSE_SCATTER, sendbuf_in_place, "sendbuf differs between ranks", ON_ONE_RANK,
      "a buffer", "MPI_IN_PLACE" },
    { "null recvbuf", DENSE_SCATTER, recvbuf_null, "recvbuf is null", ANYWHERE, NULL, NULL },
    { "null datatype", DENSE_SCATTER, datatype_null, "datatype", ANYWHERE, NULL, NULL },
    { "another datatype", DENSE_SCATTER, datatype_other, "datatype differs between ranks", ON_ONE_RANK,
      "float", "int32" },
    { "null op", DENSE_SCATTER, op_null, "argument op", ANYWHERE, NULL, NULL },
    { "another op", DENSE_SCATTER, op_other, "op differs between ranks", ON_ONE_RANK, "MPI_SUM", "MPI_MAX" },
    { "another function", DENSE_SCATTER, function_other, "different functions", ON_ONE_RANK,
      "MPIX_Sparse_reduce_scatter", "MPIX_Sparse_allreduce" },
};

enum { FAULTS = sizeof faults / sizeof faults[0] };

/* Calls of the error handler, and its last code. */
static int handled, handled_code;

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    handled++;
    handled_code = *code;
}

/* No two ranks have the same indices in an allgather. */
static struct arguments good_arguments(enum api api)
{
    for (int i = 0; i < NNZ; i++)
        own_indices[i] = (rank * NNZ + i) % COUNT;
    return (struct arguments){
        api,         api == ALLGATHER ? own_indices : indices,
        values,      sendbuf,
        recvbuf,     NNZ,
        COUNT,       7,
        MPI_INT32_T, MPI_FLOAT,
        MPI_SUM,     &result,
    };
}

static int call(const struct arguments *a, MPI_Comm comm)
{
    switch (a->api) {
    case DENSE: return MPIX_Sparse_allreduce(a->sendbuf, a->recvbuf, a->count, a->datatype, a->op, comm);
    case DENSE_SCATTER:
        return MPIX_Sparse_reduce_scatter(a->sendbuf, a->recvbuf, a->count, a->datatype, a->op, comm);
    case REDUCE_SCATTER:
        return MPIX_Sparse_reduce_scatter_coo(a->indices, a->values, a->nnz, a->indextype, a->count, a->block,
                                              a->datatype, a->op, comm, a->result);
    case ALLGATHER:
        return MPIX_Sparse_allgather_coo(a->indices, a->values, a->nnz, a->indextype, a->count, a->datatype,
                                         comm, a->result);
    default:
        return MPIX_Sparse_allreduce_coo(a->indices, a->values, a->nnz, a->indextype, a->count, a->datatype,
                                         a->op, comm, a->result);
    }
}

static uint64_t outputs(void)
{
    static const struct tensor_desc desc = { FLOAT32, SUM, 1, COUNT };
    uint64_t hash = result_hash(result, &desc, &index_types[0]);
    return hash_bytes(recvbuf, sizeof recvbuf, hash ^ (uint64_t)(uintptr_t)result);
}

static void check_good_calls(MPI_Comm comm)
{
    for (int api = APIS - 1; api >= 0; api--) {
        struct arguments a = good_arguments((enum api)api);
        check_success(call(&a, comm), "a correct call after the wrong one");
    }
    check(recvbuf[3] == 2.0f * (float)ranks, "expected %d, found %g", 2 * ranks, (double)recvbuf[3]);
}

/* The error names the first of the ranks with the right value. */
static void check_values(int code, const struct fault *fault, int wrong)
{
    char words[128];
    snprintf(words, sizeof words, "%s on rank %d", fault->wrong, wrong);
    check_error(code, words, -1);
    snprintf(words, sizeof words, "%s on rank %d", fault->right, wrong == 0 ? 1 : 0);
    check_error(code, words, -1);
}

/* `wrong` is the rank at fault, or -1 for all ranks. */
static void try_fault(const struct fault *fault, int wrong, MPI_Comm comm, bool counts)
{
    struct arguments a = good_arguments(fault->api);
    uint64_t before = outputs();
    check_case("%s, %s, on rank %d", fault->name, api_names[fault->api], wrong);
    if (wrong < 0 || wrong == rank)
        fault->corrupt(&a);
    handled = 0;
    double start = MPI_Wtime();
    int code = call(&a, comm);
    double seconds = MPI_Wtime() - start;
    check(seconds < (oversubscribed ? SOON_IF_OVERSUBSCRIBED : SOON),
          "expected the error soon, found it after %g s", seconds);
    check_error(code, fault->says, fault->where == BETWEEN_RANKS ? -1 : wrong < 0 ? 0 : wrong);
    if (fault->where == ON_ONE_RANK)
        check_values(code, fault, wrong);
    check(!counts || (handled == 1 && handled_code == code), "expected one call of the handler, found %d",
          handled);
    check(outputs() == before || (fault->where == BETWEEN_RANKS && result_is_empty(result)),
          "expected outputs as they were, found them changed");
    check_good_calls(comm);
}

static void try_faults(MPI_Comm comm, bool counts)
{
    check_good_calls(comm);
    for (int i = 0; i < FAULTS; i++) {
        if (faults[i].where == ANYWHERE || (faults[i].where == BETWEEN_RANKS && ranks > 1))
            try_fault(&faults[i], -1, comm, counts);
        if (ranks == 1 || faults[i].where == BETWEEN_RANKS)
            continue;
        try_fault(&faults[i], 0, comm, counts);
        try_fault(&faults[i], ranks - 1, comm, counts);
    }
}

static void add_pairs(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
}

int main(int argc, char **argv)
{
    MPI_Comm returning, counting;
    MPI_Errhandler handler;
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (ranks > MOST_RANKS)
        return check_skip("argument_errors", "buffers for fewer ranks");
    sendbuf[3] = 2;
    MPI_Type_contiguous(2, MPI_CHAR, &pair_type);
    MPI_Type_commit(&pair_type);
    MPI_Op_create(add_pairs, 1, &user_op);
    returning = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    try_faults(returning, false);
    counting = settings_comm(&(struct settings){ "balanced", NULL, NULL, NULL, NULL });
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(counting, handler);
    try_faults(counting, true);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&returning);
    MPI_Comm_free(&counting);
    MPI_Type_free(&pair_type);
    MPI_Op_free(&user_op);
    return check_end("argument_errors");
}
