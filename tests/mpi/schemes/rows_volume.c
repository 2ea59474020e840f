/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the bytes that each rank sends of vectors of rows, exactly, in schemes that divide the vector: each
 * sends whole rows of its parts and nothing else. Expected bytes follow from the formats' formulas in
 * doc/formats.md and from the positions of all ranks' rows, which every rank knows:
 *
 *     coo    z (s + 4)                          z rows of s bytes
 *     block  b (B s + 4) + ceil(b B / 8)        b blocks in use, of B rows that have at most 256 values
 *     dense  n s + ceil(n / 8)                  n slots
 *
 * A failure means that a scheme sends more or less than its authors' program would. Runs on any number of
 * ranks. */

#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tensors.h"

enum { HEADER = 64, INDEX = 4, BLOCK_VALUES = 256, LEAST_ROW = 16, NODES = 2 };
enum wire { COO, BLOCK, DENSE };

/* The vectors; rows of 512 floats are embeddings. */
static const struct tensor_desc descs[] = {
    { FLOAT32, SUM, 1, 5000 },  { FLOAT32, SUM, 3, 1500 },  { FLOAT32, SUM, 16, 1000 },
    { FLOAT64, SUM, 16, 1003 }, { FLOAT32, SUM, 100, 211 }, { FLOAT32, SUM, 300, 150 },
    { FLOAT32, SUM, 512, 101 },
};

/* The vector of the current case; `bytes` of a row in a message. `values` of a row, which is one of `pieces`
 * pieces of a row of desc. */
static struct {
    struct tensor_desc desc;
    long count, bytes, values, pieces;
} vec;

/* Messages and bytes of payload that this rank sends. */
struct volume {
    long long messages, payload;
};

/* All ranks have every 29th row and its neighbour; each also has rows of its own, more of them in the first
 * half. */
static bool has(int r, long i)
{
    long count = vec.count / vec.pieces;
    i /= vec.pieces;
    return i % 29 == 3 || i % 29 == 4 || (i * 5 + r * 7) % (i < count / 2 ? 31 : 83) == 0;
}

static bool any_has(int first, int n, long i)
{
    bool any = false;
    for (int r = first; r < first + n; r++)
        any |= has(r % ranks, i);
    return any;
}

/* Contiguous parts, or blocks of `grain` rows in turn. */
struct parts {
    long *begin; /* of each rank's part, and the end */
    long grain;  /* 0: contiguous */
};

static int part_of(const struct parts *p, long i)
{
    int part = ranks - 1;
    if (p->grain > 0)
        return (int)(i / p->grain % ranks);
    while (i < p->begin[part])
        part--;
    return part;
}

/* Position in the part. */
static long slot_of(const struct parts *p, long i)
{
    return p->grain > 0 ? i / p->grain / ranks * p->grain + i % p->grain : i - p->begin[part_of(p, i)];
}

/* The largest power of two of rows that have at most 256 values together, or one row. */
static long block_rows(long values)
{
    long n = 1;
    while (values < LEAST_ROW && 2 * n * values <= BLOCK_VALUES)
        n *= 2;
    return n;
}

/* Bytes of the rows of a part that any of n ranks has, starting from one rank around the ring. `values` of
 * each row are sent, in `bytes` bytes. */
static long long message_of(enum wire wire, const struct parts *p, int part, int first, int n, long values,
                            long bytes)
{
    long long rows = 0, blocks = 0, block = block_rows(values), slots = 0;
    long long last = -1;
    for (long i = 0; i < vec.count; i++) {
        if (part_of(p, i) != part)
            continue;
        slots++;
        if (!any_has(first, n, i))
            continue;
        rows++;
        blocks += slot_of(p, i) / block != last;
        last = slot_of(p, i) / block;
    }
    if (wire == BLOCK)
        return blocks * (block * bytes + INDEX) + (blocks * block + 7) / 8;
    return wire == COO ? rows * (bytes + INDEX) : slots * bytes + (slots + 7) / 8;
}

static long long part_bytes(enum wire wire, const struct parts *p, int part, int first, int n)
{
    return message_of(wire, p, part, first, n, vec.values, vec.bytes);
}

static struct parts equal_parts(void)
{
    struct parts p = { get_memory((size_t)ranks + 1, sizeof *p.begin), 0 };
    long most = (vec.count + ranks - 1) / ranks;
    for (int r = 1; r <= ranks; r++)
        p.begin[r] = r * most < vec.count ? r * most : vec.count;
    return p;
}

/* One part, of rank 0. */
static struct parts whole(void)
{
    struct parts p = { get_memory((size_t)ranks + 1, sizeof *p.begin), 0 };
    for (int r = 1; r <= ranks; r++)
        p.begin[r] = vec.count;
    return p;
}

/* Ok-Topk: the means over ranks of the bounds that divide each rank's rows equally. */
static struct parts balanced_parts(void)
{
    struct parts p = { get_memory((size_t)ranks + 1, sizeof *p.begin), 0 };
    for (int r = 0; r < ranks; r++) {
        long n = 0;
        for (long i = 0; i < vec.count; i++)
            n += has(r, i);
        for (long i = 0, k = 0; i < vec.count; k += has(r, i++))
            for (int b = 1; b < ranks && has(r, i); b++)
                p.begin[b] += n * b / ranks == k ? i : 0;
    }
    for (int b = 1; b < ranks; b++)
        p.begin[b] /= ranks;
    p.begin[ranks] = vec.count;
    return p;
}

/* Push to owners, and pull from them. */
static struct volume owners(struct parts p, enum wire wire)
{
    struct volume v = { 2 * (ranks - 1), 0 };
    for (int j = 0; j < ranks; j++)
        v.payload +=
            j == rank ? (ranks - 1) * part_bytes(wire, &p, rank, 0, ranks) : part_bytes(wire, &p, j, rank, 1);
    free(p.begin);
    return v;
}

static struct volume range_blocks(void)
{
    return owners(equal_parts(), BLOCK);
}

/* OmniReduce: rows of more than 256 values are divided into pieces. */
static struct volume pieces_in_blocks(bool contiguous)
{
    long n = vec.desc.row > BLOCK_VALUES ? 2 : 1; /* 300 and 512 have two equal pieces */
    vec.pieces = n;
    vec.count *= n;
    vec.bytes /= n;
    vec.values /= n;
    struct volume v =
        contiguous ? range_blocks() : owners((struct parts){ NULL, block_rows(vec.values) }, BLOCK);
    vec.pieces = 1;
    vec.count /= n;
    vec.bytes *= n;
    vec.values *= n;
    return v;
}

static struct volume omni_cyclic(void)
{
    return pieces_in_blocks(false);
}

static struct volume omni_range(void)
{
    return pieces_in_blocks(true);
}

static struct volume range_coo(void)
{
    return owners(equal_parts(), COO);
}

static struct volume balanced_coo(void)
{
    return owners(balanced_parts(), COO);
}

/* SparCML: the push as above, and Bruck's allgather of sums: n parts a step, from the rank's own on. */
static struct volume split(bool dense)
{
    struct parts p = equal_parts();
    struct volume v = { ranks - 1, 0 };
    for (int j = 0; j < ranks; j++)
        v.payload += j == rank ? 0 : part_bytes(COO, &p, j, rank, 1);
    for (int parts = 1, n; parts < ranks; parts += n, v.messages++) {
        long slots = 0;
        n = parts < ranks - parts ? parts : ranks - parts;
        for (int i = rank; i < rank + n; i++) {
            slots += p.begin[i % ranks + 1] - p.begin[i % ranks];
            v.payload += dense ? 0 : part_bytes(COO, &p, i % ranks, 0, ranks);
        }
        v.payload += dense ? slots * vec.bytes + (slots + 7) / 8 : 0;
    }
    free(p.begin);
    return v;
}

static struct volume split_coo(void)
{
    return split(false);
}

static struct volume split_dense(void)
{
    return split(true);
}

/* Step i sends the part that started i ranks before, with the rows of these ranks; later with all. */
static struct volume ring(void)
{
    struct parts p = equal_parts();
    struct volume v = { 2 * (ranks - 1), 0 };
    for (int i = 0; i < 2 * (ranks - 1); i++) {
        int part = (rank + 2 * ranks - i) % ranks;
        v.payload += part_bytes(COO, &p, part, part, i < ranks ? i + 1 : ranks);
    }
    free(p.begin);
    return v;
}

/* Positions are a power of two. The first `pairs` have two ranks: the even rank sends its rows to the odd
 * one, which takes part and returns the result. */
static struct volume doubling(void)
{
    struct parts p = whole();
    struct volume v = { 0, 0 };
    int size = 1, pairs;
    while (2 * size <= ranks)
        size *= 2;
    pairs = ranks - size;
    int position = rank < 2 * pairs ? rank / 2 : rank - pairs;
    bool sends = rank < 2 * pairs && rank % 2 == 0, receives = rank < 2 * pairs && rank % 2 == 1;
    for (int d = 1; d < size && !sends; d *= 2, v.messages++) {
        int low = position / d * d, high = low + d;
        int first = low < pairs ? 2 * low : low + pairs, end = high < pairs ? 2 * high : high + pairs;
        v.payload += part_bytes(COO, &p, 0, first, end - first);
    }
    if (sends || receives) {
        v.payload += part_bytes(COO, &p, 0, sends ? rank : 0, sends ? 1 : ranks);
        v.messages++;
    }
    free(p.begin);
    return v;
}

static struct volume gathered(enum wire wire)
{
    struct parts p = whole();
    struct volume v = { ranks - 1, (ranks - 1) * part_bytes(wire, &p, 0, rank, 1) };
    free(p.begin);
    return v;
}

static struct volume gathered_coo(void)
{
    return gathered(COO);
}

static struct volume gathered_blocks(void)
{
    return gathered(BLOCK);
}

static struct volume gathered_dense(void)
{
    return gathered(DENSE);
}

/* Values of a row that a rank owns of as many slices as ranks. */
static long slice_values(int r)
{
    long row = (long)vec.desc.row;
    return row * (r + 1) / ranks - row * r / ranks;
}

/* Blocks count the values of the slice. The pull has the sums' values alone: all ranks know their rows.
 * Without slices, ranks own rows in turn. */
static struct volume sliced_blocks(void)
{
    struct parts p = whole();
    struct volume v = { 2 * (ranks - 1), 0 };
    long units = (long)vec.desc.row * (long)base_types[vec.desc.base].size / 16, rows = 0;
    if (vec.desc.row == 1 || units < ranks) {
        free(p.begin);
        return vec.desc.row == 1 ? owners((struct parts){ NULL, 1 }, BLOCK) : (struct volume){ -1, -1 };
    }
    for (long i = 0; i < vec.count; i++)
        rows += any_has(0, ranks, i);
    for (int j = 0; j < ranks; j++) {
        long values = slice_values(j), bytes = values * vec.bytes / (long)vec.desc.row;
        v.payload +=
            j == rank ? (ranks - 1) * rows * bytes : message_of(BLOCK, &p, 0, rank, 1, values, bytes);
    }
    free(p.begin);
    return v;
}

/* On two nodes: a rank sends one slice of the rows that its node has, and the sums' values of its own slice.
 * Slices of the ranks of one position lie side by side. */
static struct volume node_slices(void)
{
    struct parts p = whole();
    struct volume v = { 2, 0 };
    int node_ranks = ranks / NODES, peer = (rank + node_ranks) % ranks;
    long units = (long)vec.desc.row * (long)base_types[vec.desc.base].size / 16, rows = 0;
    if (ranks % NODES != 0 || node_ranks == 1 || vec.desc.row == 1 || units < ranks) {
        free(p.begin);
        return (struct volume){ -1, -1 };
    }
    for (long i = 0; i < vec.count; i++)
        rows += any_has(0, ranks, i);
    for (int r = 0; r < ranks; r++) {
        long values = slice_values(r % node_ranks * NODES + r / node_ranks);
        long bytes = values * vec.bytes / (long)vec.desc.row;
        if (r == rank)
            v.payload += rows * bytes;
        if (r == peer)
            v.payload += message_of(COO, &p, 0, rank / node_ranks * node_ranks, node_ranks, values, bytes);
    }
    free(p.begin);
    return v;
}

static const struct scheme {
    struct settings settings;
    const char *variable, *value; /* one more setting, or NULL */
    struct volume (*expected)(void);
} schemes[] = {
    { { "omni", NULL, NULL, NULL, NULL }, NULL, NULL, omni_cyclic },
    { { "omni", NULL, "range", NULL, NULL }, NULL, NULL, omni_range },
    { { "omni", NULL, NULL, NULL, NULL }, "MPIX_SPARSE_WIRE_VALUES", "bf16", omni_cyclic },
    { { "omni", NULL, "range", NULL, NULL }, "MPIX_SPARSE_WIRE_VALUES", "fp16", omni_range },
    { { "sparse_ps", NULL, NULL, NULL, NULL }, NULL, NULL, range_coo },
    { { "sparse_ps", "block", NULL, NULL, NULL }, NULL, NULL, range_blocks },
    { { "oktopk", "coo", NULL, NULL, NULL }, "MPIX_SPARSE_RECOMPUTE", "1", balanced_coo },
    { { "split_allgather", "coo", NULL, NULL, NULL }, NULL, NULL, split_coo },
    { { "split_dense", "coo/auto", NULL, NULL, NULL }, NULL, NULL, split_dense },
    { { "ring", "coo", NULL, NULL, NULL }, NULL, NULL, ring },
    { { "recursive_doubling", "coo", NULL, NULL, NULL }, NULL, NULL, doubling },
    { { "allgather", "coo", NULL, NULL, NULL }, NULL, NULL, gathered_coo },
    { { "allgather", "block", NULL, NULL, NULL }, NULL, NULL, gathered_blocks },
    { { "allgather", "dense", NULL, NULL, NULL }, NULL, NULL, gathered_dense },
    { { "balanced", "block", "cyclic", "1", NULL }, "MPIX_SPARSE_COLUMNS", "1024", sliced_blocks },
    { { "two_level", "coo", NULL, NULL, NULL }, "MPIX_SPARSE_COLUMNS", "1024", node_slices },
};

enum { SCHEMES = sizeof schemes / sizeof schemes[0], DESCS = sizeof descs / sizeof descs[0] };

static MPI_Comm open_comm(const struct scheme *scheme)
{
    if (scheme->variable != NULL)
        setenv(scheme->variable, scheme->value, 1);
    nodes_set(scheme->expected == node_slices && ranks > NODES ? NODES : ranks);
    MPI_Comm comm = settings_comm(&scheme->settings);
    if (scheme->variable != NULL)
        unsetenv(scheme->variable);
    return comm;
}

/* Small whole numbers, whose sums have few bits. */
static void draw(struct tensor *t)
{
    *t = (struct tensor){ .desc = vec.desc };
    for (long i = 0; i < vec.count; i++) {
        if (!has(rank, i))
            continue;
        void *row = tensor_add(t, (uint64_t)i);
        for (size_t k = 0; k < vec.desc.row; k++) {
            long number = 1 + (i + (long)k + rank) % 7;
            if (vec.desc.base == FLOAT64)
                ((double *)row)[k] = (double)number;
            else
                ((float *)row)[k] = (float)number;
        }
    }
}

static void run(const struct scheme *scheme, const struct tensor *t, const struct oracle *o, MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    bool narrow = scheme->value != NULL && strstr(scheme->value, "16") != NULL && ranks > 1;
    vec.bytes = (long)element_bytes(&vec.desc) / (narrow && vec.desc.base == FLOAT32 ? 2 : 1);
    check_case("%ld rows of %zu %s, %s, %s=%s", vec.count, vec.desc.row, base_types[vec.desc.base].name,
               settings_text(&scheme->settings), scheme->variable == NULL ? "-" : scheme->variable,
               scheme->value == NULL ? "-" : scheme->value);
    call_coo(t, o, &index_types[0], comm, &result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    struct volume expected = scheme->expected();
    if (expected.messages < 0)
        return;
    long long payload = (long long)(report.bytes_sent - report.header_bytes_sent);
    check(strcmp(report.scheme, scheme->settings.scheme) == 0, "expected %s to run, found %s",
          scheme->settings.scheme, report.scheme);
    check((long long)report.messages_sent == expected.messages, "expected %lld messages, found %lld",
          expected.messages, (long long)report.messages_sent);
    check(payload == expected.payload, "expected %lld bytes of payload, found %lld", expected.payload,
          payload);
    check((long long)report.bytes_sent == expected.payload + HEADER * expected.messages,
          "expected %lld bytes, found %lld", expected.payload + HEADER * expected.messages,
          (long long)report.bytes_sent);
}

int main(int argc, char **argv)
{
    MPI_Comm comms[SCHEMES];
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < SCHEMES; i++)
        comms[i] = open_comm(&schemes[i]);
    for (int d = 0; d < DESCS; d++) {
        struct tensor t;
        struct oracle o;
        vec.desc = descs[d];
        vec.count = (long)vec.desc.count;
        vec.values = (long)vec.desc.row;
        vec.pieces = 1;
        draw(&t);
        oracle_make(&t, &o);
        for (int i = 0; i < SCHEMES; i++)
            run(&schemes[i], &t, &o, comms[i]);
        oracle_free(&o);
        tensor_free(&t);
    }
    for (int i = 0; i < SCHEMES; i++)
        MPI_Comm_free(&comms[i]);
    return check_end("rows_volume");
}
