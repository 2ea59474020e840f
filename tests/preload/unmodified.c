/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that does not use the library. Its values are small integers, so every order of reduction gives
 * the same bits. It prints a hash of each rank's results, which tests/preload/run compares with a run under
 * libmpix_sparse_preload. */

#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

enum { COUNT = 20000, ROUNDS = 12, WIDEST = 16 };

static int world_rank;
static unsigned char in[COUNT * WIDEST], out[COUNT * WIDEST];

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

/* Print one line for the results of all ranks. */
static void say(const char *what, uint64_t mine)
{
    uint64_t all[64] = { 0 };
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (world_rank != 0)
        return;
    printf("%s", what);
    for (int r = 0; r < ranks; r++)
        printf(" %016llx", (unsigned long long)all[r]);
    printf("\n");
}

static uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    return x ^ (x >> 16);
}

struct type_desc {
    const char *name;
    MPI_Datatype type;
    char letter; /* f float, d double, else an integer */
    int size;
};

static void put(const struct type_desc *type_desc, size_t i, int value)
{
    float f = (float)value;
    double d = value;
    int64_t wide = value;
    int32_t narrow = value;
    const void *from = type_desc->letter == 'f'   ? (const void *)&f
                       : type_desc->letter == 'd' ? (const void *)&d
                       : type_desc->size == 8     ? (const void *)&wide
                                                  : (const void *)&narrow;
    memcpy(in + i * (size_t)type_desc->size, from, (size_t)type_desc->size);
}

/* One element in `every` is not zero. */
static void fill(const struct type_desc *type_desc, int count, uint32_t every, int round)
{
    memset(in, 0, sizeof in);
    for (int i = 0; i < count; i++) {
        uint32_t draw = mix((uint32_t)i + 77777u * (uint32_t)(world_rank + 1) + 1013u * (uint32_t)round);
        if (draw % every == 0)
            put(type_desc, (size_t)i, (int)(draw >> 8) % 3 + 1);
    }
}

static const struct type_desc type_descs[] = {
    { "float", MPI_FLOAT, 'f', 4 },       { "double", MPI_DOUBLE, 'd', 8 },
    { "int", MPI_INT, 'i', 4 },           { "int64", MPI_INT64_T, 'i', 8 },
    { "unsigned", MPI_UNSIGNED, 'i', 4 }, { "uint64", MPI_UINT64_T, 'i', 8 },
};

static const struct {
    const char *name;
    MPI_Op op;
} ops[] = { { "sum", MPI_SUM }, { "max", MPI_MAX }, { "min", MPI_MIN }, { "prod", MPI_PROD } };

enum { KINDS = sizeof type_descs / sizeof type_descs[0], OPS = sizeof ops / sizeof ops[0] };

static uint64_t reduce(const struct type_desc *type_desc, MPI_Op op, int count, uint32_t every, int in_place,
                       MPI_Comm comm)
{
    uint64_t h = 1;
    for (int round = 0; round < ROUNDS; round++) {
        fill(type_desc, count, every, round);
        memset(out, 0x55, sizeof out);
        if (in_place)
            memcpy(out, in, sizeof out);
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, type_desc->type, op, comm);
        h = hash(h, out, sizeof out);
    }
    return h;
}

static void test_types_and_ops(void)
{
    static const uint32_t every[] = { 1, 200, 1 };
    char what[64];
    for (int k = 0; k < KINDS; k++)
        for (int o = 0; o < OPS; o++)
            for (int s = 0; s < 3; s++) {
                snprintf(what, sizeof what, "%s %s %u", type_descs[k].name, ops[o].name, (unsigned)every[s]);
                say(what,
                    reduce(&type_descs[k], ops[o].op, COUNT, every[s], (k + o + s) % 2, MPI_COMM_WORLD));
            }
}

static void test_odd_counts(void)
{
    static const int counts[] = { 0, 1, 2, 3, 7, 63, 64, 65, 255, 257, 4097 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        say("count",
            reduce(&type_descs[0], MPI_SUM, counts[i], i % 2 ? 1 : 50, (int)i % 3 == 0, MPI_COMM_WORLD));
    for (int count = 100; count < 300; count++) { /* entries that occur once */
        fill(&type_descs[2], count, 20, count);
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    say("once", hash(1, out, sizeof out));
}

static void add_pairs(void *from, void *to, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++)
        ((int *)to)[i] = 2 * ((int *)to)[i] + ((const int *)from)[i] * 2;
}

/* Calls that the library does not take must return MPI's results. */
static void test_others(void)
{
    MPI_Op op;
    MPI_Datatype row, gapped;
    MPI_Op_create(add_pairs, 1, &op);
    MPI_Type_contiguous(4, MPI_INT, &row);
    MPI_Type_vector(2, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&row);
    MPI_Type_commit(&gapped);
    fill(&type_descs[2], COUNT, 10, 1);
    for (int round = 0; round < ROUNDS; round++) {
        memset(out, 0, sizeof out);
        MPI_Allreduce(in, out, COUNT, MPI_INT, op, MPI_COMM_WORLD);
        say("user op", hash(1, out, sizeof out));
        MPI_Allreduce(in, out, COUNT / 4, row, op, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, COUNT / 4, gapped, op, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_BXOR, MPI_COMM_WORLD);
        say("bxor", hash(1, out, sizeof out));
        MPI_Allreduce(in, out, COUNT / 2, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
        say("maxloc", hash(1, out, sizeof out));
        MPI_Allreduce(in, out, COUNT, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD);
        say("short", hash(1, out, sizeof out));
    }
    MPI_Type_free(&gapped);
    MPI_Type_free(&row);
    MPI_Op_free(&op);
}

static void test_communicators(void)
{
    MPI_Comm half, twin;
    uint64_t h = 1;
    for (int i = 0; i < 20; i++) { /* many entries */
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        MPI_Comm_split(twin, world_rank % 2, -world_rank, &half);
        h = h * 3 + reduce(&type_descs[i % KINDS], MPI_SUM, 1000, i % 2 ? 1 : 100, 0, half);
        MPI_Comm_free(&half);
        h = h * 3 + reduce(&type_descs[i % KINDS], MPI_MAX, 1000, i % 2 ? 1 : 100, 1, twin);
        MPI_Comm_free(&twin);
    }
    say("churn", h);
    say("self", reduce(&type_descs[0], MPI_SUM, COUNT, 100, 0, MPI_COMM_SELF));
}

static void test_intercommunicator(void)
{
    MPI_Comm half, inter;
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 5, &inter);
    say("inter", reduce(&type_descs[0], MPI_SUM, COUNT, 100, 0, inter));
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Several pending calls, completed in orders that differ between ranks. */
static void test_nonblocking(void)
{
    enum { FLIGHTS = 4, PIECE = COUNT / FLIGHTS };
    MPI_Request requests[FLIGHTS];
    uint64_t h = reduce(&type_descs[0], MPI_SUM, PIECE, 200, 0, MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        fill(&type_descs[0], COUNT, round % 2 ? 1 : 200, round);
        for (int i = 0; i < FLIGHTS; i++)
            MPI_Iallreduce((float *)(void *)in + i * PIECE, (float *)(void *)out + i * PIECE, PIECE,
                           MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < FLIGHTS; i++)
            MPI_Wait(&requests[(i + world_rank) % FLIGHTS], MPI_STATUS_IGNORE);
        h = hash(h, out, sizeof out);
    }
    say("nonblocking", h);
}

static void test_large_count(void)
{
#ifdef HAVE_MPI_LARGE_COUNT
    uint64_t h = 1;
    for (int round = 0; round < ROUNDS; round++) {
        fill(&type_descs[1], COUNT, 300, round);
        MPI_Allreduce_c(in, out, (MPI_Count)COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        h = hash(h, out, sizeof out);
    }
    say("large count", h);
#endif
}

#ifdef HAVE_MPI_ALLREDUCE_INIT
enum { PARTS = 3, SHARE = COUNT / PARTS };

/* Start in orders that differ between ranks, or all at once. */
static void start(MPI_Request *requests, int round)
{
    if (round % 2)
        MPI_Startall(PARTS, requests);
    else
        for (int i = 0; i < PARTS; i++)
            MPI_Start(&requests[(i + world_rank) % PARTS]);
}

static void finish_one_by_one(MPI_Request *requests)
{
    for (int i = 0; i < PARTS + 1; i++)
        MPI_Wait(&requests[(i + world_rank) % (PARTS + 1)], MPI_STATUS_IGNORE);
}

static void finish_by_testing(MPI_Request *requests)
{
    for (int i = 0, done; i < PARTS + 1; i += done)
        MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
}

static void finish_all(MPI_Request *requests)
{
    int done = 0;
    while (!done)
        MPI_Testall(PARTS + 1, requests, &done, MPI_STATUSES_IGNORE);
}

static void finish_some(MPI_Request *requests, int waits)
{
    int which[PARTS + 1], some;
    for (int done = 0; done<PARTS + 1; done += some> 0 ? some : 0)
        if (waits)
            MPI_Waitsome(PARTS + 1, requests, &some, which, MPI_STATUSES_IGNORE);
        else
            MPI_Testsome(PARTS + 1, requests, &some, which, MPI_STATUSES_IGNORE);
}

static void finish_any(MPI_Request *requests)
{
    int which, done = 0;
    MPI_Waitany(PARTS + 1, requests, &which, MPI_STATUS_IGNORE);
    for (int more = PARTS; more > 0; more -= done)
        MPI_Testany(PARTS + 1, requests, &which, &done, MPI_STATUS_IGNORE);
}

/* The last request is a message from this rank to itself. */
static void finish(MPI_Request *requests, int way)
{
    switch (way) {
    case 0: MPI_Waitall(PARTS + 1, requests, MPI_STATUSES_IGNORE); break;
    case 1: finish_one_by_one(requests); break;
    case 2: finish_by_testing(requests); break;
    case 3: finish_all(requests); break;
    case 4: finish_some(requests, 1); break;
    case 5: finish_some(requests, 0); break;
    default: finish_any(requests);
    }
}

/* MPICH 4.0.2 considers persistent allreduces active for ever after the last four of these ways. They only
 * run if the library takes all starts. */
static int ways(void)
{
    return getenv("SAR_ALL_WAYS") != NULL ? 7 : 3;
}

static void test_persistent(void)
{
    MPI_Request requests[PARTS + 1];
    uint64_t h = 1;
    int word = 1, got = 0;
    for (int i = 0; i < PARTS; i++)
        MPI_Allreduce_init((float *)(void *)in + i * SHARE, (float *)(void *)out + i * SHARE, SHARE,
                           MPI_FLOAT, i == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[i]);
    for (int round = 0; round < 28; round++) {
        fill(&type_descs[0], COUNT, round < 14 ? 300 : 1, round);
        start(requests, round / 7);
        MPI_Irecv(&got, 1, MPI_INT, world_rank, 9, MPI_COMM_WORLD, &requests[PARTS]);
        MPI_Send(&word, 1, MPI_INT, world_rank, 9, MPI_COMM_WORLD);
        finish(requests, round % ways());
        h = hash(h, out, sizeof out);
        h += (uint64_t)(requests[0] == MPI_REQUEST_NULL) + (requests[PARTS] != MPI_REQUEST_NULL);
    }
    for (int i = 0; i < PARTS; i++)
        MPI_Request_free(&requests[i]);
    say("persistent", h);
}
#else
static void test_persistent(void)
{
}
#endif

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    test_types_and_ops();
    test_odd_counts();
    test_others();
    test_communicators();
    test_intercommunicator();
    test_nonblocking();
    test_large_count();
    test_persistent();
    MPI_Finalize();
    return 0;
}
