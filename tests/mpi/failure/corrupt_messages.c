/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests truncated messages and flipped bits. No rank hangs or crashes. A rank that receives a wrong header
 * or length returns an error; all others return an error or the right result; the next call succeeds. A
 * PMPI_Isend of this program corrupts the messages. With a scheme's name as argument, tests only that
 * scheme. */

#include <mpix_sparse.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, TIMEOUT = 120 /* seconds */ };

enum how { CUT, CUT_HALF, CUT_ONE, FLIP_HEADER, FLIP_PAYLOAD };

static struct {
    enum how how;
    size_t where; /* bytes kept, or number of the bit */
    long message; /* number of this rank's message in a call; -1 for none */
    long sent;
    int peer; /* receiver of the corrupted message, or -1 */
    unsigned char *copy;
} corruption = { .message = -1 };

/* Corrupt a message of n bytes; returns the bytes to send, which is n if only a bit changed or nothing. */
static int corrupt(const void *buffer, int n)
{
    size_t bits = 8 * (size_t)n, header = 8 * (size_t)HEADER;
    size_t left = corruption.how == CUT        ? corruption.where
                  : corruption.how == CUT_HALF ? (size_t)n / 2
                                               : (size_t)n - 1;
    corruption.copy = get_memory((size_t)n, 1);
    memcpy(corruption.copy, buffer, (size_t)n);
    if (corruption.how <= CUT_ONE)
        return left < (size_t)n ? (int)left : n;
    if (corruption.how == FLIP_PAYLOAD && bits == header)
        return n;
    size_t bit = corruption.how == FLIP_HEADER ? corruption.where % header
                                               : header + corruption.where % (bits - header);
    corruption.copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
    return n;
}

/* The library calls this name. MPI's own function also has the MPI_ name. */
int PMPI_Isend(const void *buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    if (corruption.message < 0 || corruption.sent++ != corruption.message)
        return MPI_Isend(buffer, n, type, to, tag, comm, request);
    int left = corrupt(buffer, n);
    if (left != n || memcmp(corruption.copy, buffer, (size_t)n) != 0)
        corruption.peer = to;
    return MPI_Isend(corruption.copy, left, type, to, tag, comm, request);
}

static long corrupted; /* messages so far */

enum { BLOCK = 3 /* of reduce_scatter */ };

enum half { WHOLE, REDUCE_SCATTER, ALLGATHER, DENSE_SCATTER };

struct state {
    const struct tensor *tensor;
    const struct oracle *oracle;
    const struct oracle *owned; /* result of a reduce_scatter, and input of an allgather */
    MPI_Comm comm;
    bool dense;
    enum half half;
    MPIX_Sparse_result result;
};

static int call_half(struct state *s, MPI_Datatype type)
{
    const struct tensor *t = s->tensor;
    const struct oracle *owned = s->owned;
    bool scatters = s->half == REDUCE_SCATTER;
    struct tensor own = { .nnz = owned->nnz, .index = owned->index, .value = owned->value };
    void *indices = typed_indices(scatters ? t : &own, &index_types[0]);
    int code = scatters
                   ? MPIX_Sparse_reduce_scatter_coo(indices, t->value, (MPI_Count)t->nnz, MPI_INT32_T,
                                                    t->desc.count, BLOCK, type, MPI_SUM, s->comm, &s->result)
                   : MPIX_Sparse_allgather_coo(indices, owned->value, (MPI_Count)owned->nnz, MPI_INT32_T,
                                               t->desc.count, type, s->comm, &s->result);
    free(indices);
    return code;
}

static const struct oracle *expected_of(const struct state *s)
{
    return s->half == REDUCE_SCATTER ? s->owned : s->oracle;
}

static int call(struct state *s, float *out)
{
    const struct tensor *t = s->tensor;
    MPI_Datatype type = row_type(&t->desc);
    if (s->half == DENSE_SCATTER) {
        int scattered =
            MPIX_Sparse_reduce_scatter(s->oracle->mine, out, t->desc.count / ranks, type, MPI_SUM, s->comm);
        row_type_free(&t->desc, &type);
        return scattered;
    }
    void *indices = typed_indices(t, &index_types[0]);
    int code = s->half != WHOLE ? call_half(s, type)
               : s->dense ? MPIX_Sparse_allreduce(s->oracle->mine, out, t->desc.count, type, MPI_SUM, s->comm)
                          : MPIX_Sparse_allreduce_coo(indices, t->value, (MPI_Count)t->nnz, MPI_INT32_T,
                                                      t->desc.count, type, MPI_SUM, s->comm, &s->result);
    free(indices);
    row_type_free(&t->desc, &type);
    return code;
}

/* Checks the result of a reduce_scatter of dense buffers. */
static void check_part(const struct state *s, const float *out)
{
    const struct tensor_desc *desc = &s->oracle->desc;
    size_t part = (size_t)(desc->count / ranks);
    check(equal_numbers(desc, out, s->oracle->dense + (size_t)rank * part * element_bytes(desc), part),
          "expected the right part of the sums with a success, found others");
}

static void check_result(const struct state *s, int code, const float *out, uint64_t before)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    bool found_by_itself, told;
    if (code == MPI_SUCCESS) {
        if (s->half == DENSE_SCATTER)
            check_part(s, out);
        else if (s->dense)
            check(equal_numbers(&s->oracle->desc, out, s->oracle->dense, (size_t)s->oracle->desc.count),
                  "expected the right sums with a success, found others");
        else
            compare_result(expected_of(s), &index_types[0], s->result);
        return;
    }
    MPI_Error_string(code, text, &length);
    found_by_itself = strstr(text, "truncated or inconsistent") != NULL;
    told = strstr(text, "another rank") != NULL;
    check(found_by_itself || told, "expected an error that tells of messages or ranks, found '%s'", text);
    check(s->dense || result_hash(s->result, &s->oracle->desc, &index_types[0]) == before ||
              result_is_empty(s->result),
          "expected the result as it was or empty, found it changed");
}

static void call_and_check(struct state *s)
{
    if (s->half == DENSE_SCATTER) {
        float *out = get_memory((size_t)s->oracle->desc.count, element_bytes(&s->oracle->desc));
        check_success(call(s, out), "a call without damage");
        check_part(s, out);
        free(out);
    } else if (s->half != WHOLE) {
        check_success(call(s, NULL), "a call without damage");
        compare_result(expected_of(s), &index_types[0], s->result);
    } else if (s->dense)
        call_dense(s->oracle, false, s->comm);
    else
        call_coo(s->tensor, s->oracle, &index_types[0], s->comm, &s->result);
}

/* Corrupt message number `message` of a rank. Returns false if the rank sends fewer messages. */
static bool try_corruption(struct state *s, int rank_at_fault, long message, enum how how, size_t where)
{
    float *out = get_memory((size_t)s->oracle->desc.count, element_bytes(&s->oracle->desc));
    uint64_t before = s->dense ? 0 : result_hash(s->result, &s->oracle->desc, &index_types[0]);
    corruption.how = how;
    corruption.where = where;
    corruption.message = rank == rank_at_fault ? message : -1;
    corruption.sent = 0;
    corruption.peer = -1;
    int code = call(s, out);
    int peer = corruption.peer, more = corruption.sent > message;
    corruption.message = -1;
    MPI_Bcast(&peer, 1, MPI_INT, rank_at_fault, MPI_COMM_WORLD);
    MPI_Bcast(&more, 1, MPI_INT, rank_at_fault, MPI_COMM_WORLD);
    corrupted += peer >= 0;
    if (how != FLIP_PAYLOAD) {
        check_result(s, code, out, before);
        check(peer != rank || code != MPI_SUCCESS, "expected an error from whom the damaged message went to");
        check(peer >= 0 || code == MPI_SUCCESS, "expected success, as nothing was damaged");
    }
    call_and_check(s);
    free(corruption.copy);
    corruption.copy = NULL;
    free(out);
    return more != 0;
}

static const struct {
    enum how how;
    size_t where;
} ways[] = {
    { CUT, 0 },
    { CUT, 10 },
    { CUT, HEADER - 1 },
    { CUT, HEADER },
    { CUT_HALF, 0 },
    { CUT_ONE, 0 },
    { FLIP_HEADER, 5 },
    { FLIP_HEADER, 33 },
    { FLIP_HEADER, 49 },
    { FLIP_HEADER, 100 },
    { FLIP_HEADER, 130 },
    { FLIP_HEADER, 193 },
    { FLIP_HEADER, 260 },
    { FLIP_HEADER, 320 },
    { FLIP_HEADER, 400 },
    { FLIP_HEADER, 511 },
    { FLIP_PAYLOAD, 0 },
    { FLIP_PAYLOAD, 30 },
    { FLIP_PAYLOAD, 1031 },
    { FLIP_PAYLOAD, 70003 },
    { FLIP_PAYLOAD, 6007 },
};

enum { WAYS = sizeof ways / sizeof ways[0] };

static void try_messages(struct state *s, const char *settings, int rank_at_fault)
{
    bool more = true;
    for (long message = 0; more; message++) {
        for (size_t i = 0; i < WAYS; i++) {
            uint64_t bits = mix((uint64_t)message * WAYS + i + (uint64_t)(rank_at_fault + s->dense) * 1000);
            if ((oversubscribed || ranks > 4) && i > 0 && bits % (uint64_t)(2 * ranks) != 0)
                continue;
            check_case("way %zu to damage message %ld of rank %d, %s, %s", i, message, rank_at_fault,
                       s->half == REDUCE_SCATTER  ? "reduce_scatter"
                       : s->half == ALLGATHER     ? "allgather"
                       : s->half == DENSE_SCATTER ? "dense reduce_scatter"
                       : s->dense                 ? "dense"
                                                  : "COO",
                       settings);
            more = try_corruption(s, rank_at_fault, message, ways[i].how, ways[i].where);
        }
    }
}

/* Flip each bit of a header. */
static void try_headers(struct state *s)
{
    for (size_t bit = 0; bit < 8 * (size_t)HEADER; bit += oversubscribed || ranks > 4 ? 31 : 1) {
        check_case("bit %zu of a header", bit);
        try_corruption(s, ranks - 1, 0, FLIP_HEADER, bit);
    }
}

static void try_rows(const struct settings *settings, size_t row, bool headers)
{
    const struct tensor_desc desc = { FLOAT32, SUM, row, row == 1 ? 300 : 60 };
    struct tensor tensor;
    struct oracle oracle;
    tensor_draw(pattern_find("random 0.5"), &desc, 11, &tensor);
    oracle_make(&tensor, &oracle);
    struct oracle owned = oracle_owned(&oracle, BLOCK);
    struct state s = {
        .tensor = &tensor, .oracle = &oracle, .owned = &owned, .comm = settings_comm(settings)
    };
    bool halves = strcmp(settings->scheme, "recursive_halving") == 0; /* no allreduce */
    for (int dense = 0; dense < 2 && !halves; dense++) {
        check_alarm(TIMEOUT);
        s.dense = dense;
        call_and_check(&s);
        try_messages(&s, settings_text(settings), 0);
        if (ranks > 1)
            try_messages(&s, settings_text(settings), ranks - 1);
    }
    if (headers)
        try_headers(&s);
    s.dense = false;
    /* A scheme without the call would leave the choice to the model. If the choice changes from one call to
     * the next, messages sent beside the consistency check are discarded unread, damaged ones too. */
    bool balanced = strcmp(settings->scheme, "balanced") == 0;
    bool gathers = balanced || strcmp(settings->scheme, "allgather") == 0;
    for (int half = REDUCE_SCATTER; half <= DENSE_SCATTER; half++) {
        if (half == ALLGATHER ? !gathers : !balanced && !halves)
            continue;
        check_alarm(TIMEOUT);
        s.half = (enum half)half;
        s.dense = half == DENSE_SCATTER;
        call_and_check(&s);
        try_messages(&s, settings_text(settings), half % ranks);
    }
    check_success(MPIX_Sparse_result_free(&s.result), "MPIX_Sparse_result_free");
    tensor_free(&tensor);
    oracle_free(&oracle);
    oracle_free(&owned);
    MPI_Comm_free(&s.comm);
}

static void try_settings(const struct settings *settings, bool headers)
{
    try_rows(settings, 1, headers);
}

/* Rows whose columns several ranks own: index lists, and values alone. */
static void try_columns(const char *scheme)
{
    static const char *const columns[] = { "2", "3", "64" };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        setenv("MPIX_SPARSE_COLUMNS", columns[i], 1);
        try_rows(&(struct settings){ scheme, i == 0 ? "coo" : NULL, NULL, NULL, i == 0 ? NULL : "200" }, 24,
                 true);
    }
    unsetenv("MPIX_SPARSE_COLUMNS");
}

/* Messages of the pull, deferrals and relays; of single values and of slices. */
static void try_relays(void)
{
    setenv("MPIX_SPARSE_RELAY", "on", 1);
    try_settings(&(struct settings){ "balanced", "coo", "cyclic", "1", NULL }, true);
    try_settings(&(struct settings){ "balanced", NULL, NULL, "1", "200" }, false);
    setenv("MPIX_SPARSE_COLUMNS", "2", 1);
    try_rows(&(struct settings){ "balanced", "coo", NULL, "1", NULL }, 24, false);
    unsetenv("MPIX_SPARSE_COLUMNS");
    unsetenv("MPIX_SPARSE_RELAY");
}

/* Also between nodes; with more than two, a share has several owners in a group. */
static void try_node_columns(void)
{
    for (int nodes = 2; nodes < ranks; nodes++) {
        if (ranks % nodes != 0)
            continue;
        nodes_set(nodes);
        try_columns("two_level");
    }
    nodes_set(0);
}

/* Consecutive segments, among all ranks and between nodes. With five ranks, two of three nodes have an
 * additional rank. */
static void try_segments(void)
{
    try_settings(&(struct settings){ "balanced", "coo", NULL, "1", "200" }, false);
    for (int nodes = 2; nodes <= 3 && nodes < ranks; nodes++) {
        nodes_set(nodes);
        try_settings(&(struct settings){ "two_level", "coo", NULL, "1", "200" }, false);
    }
    nodes_set(0);
}

int main(int argc, char **argv)
{
    static const char *const schemes[] = { EVERY_SPARSE_SCHEME };
    static const char *const wires[] = { EVERY_WIRE };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    const char *only = argc > 1 ? argv[1] : NULL, *slowness = getenv("SAR_TEST_SLOWNESS");
    size_t share = slowness == NULL ? 1 : (size_t)atol(slowness);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        for (size_t j = 0; j < sizeof wires / sizeof wires[0]; j++)
            if ((only == NULL || strcmp(only, schemes[i]) == 0) && (i + j) % share == 0)
                try_settings(&(struct settings){ schemes[i], wires[j], NULL, NULL, NULL }, i == j);
    if (only == NULL) {
        try_settings(&(struct settings){ "balanced", NULL, "hierarchical", NULL, "200" }, true);
        try_settings(&(struct settings){ "balanced", "coo", "hierarchical", NULL, NULL }, false);
        try_settings(&(struct settings){ "recursive_halving", NULL, NULL, NULL, NULL }, false);
        try_settings(&(struct settings){ "recursive_halving", "coo", NULL, NULL, NULL }, false);
        try_segments();
        try_relays();
    }
    if (only == NULL || strcmp(only, "balanced") == 0)
        try_columns("balanced");
    if (only == NULL)
        try_node_columns();
    check_alarm(0);
    check_case("all");
    check(ranks == 1 || corrupted > 100, "expected more messages to pass through here than %ld", corrupted);
    return check_end("corrupt_messages");
}
