/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine constants, each the least of a few tries on this rank and then the most over all ranks: the least
 * is what the machine can do, the most is what a collective waits for. All ranks send at once, as they do
 * in a call, so that beta holds what they take from each other. */

#include "net/machine.h"

#include <string.h>

#include "base/arena.h"
#include "tensor/reduce.h"

enum {
    TRIES = 5,
    SMALL = 8,         /* bytes that cost nothing but their message */
    LARGE = 256 << 10, /* bytes that cost nothing but their transfer */
    VAST = 16 << 20,   /* bytes, of each rank, beyond the caches */
    SAMPLE = 16 << 10, /* elements of the reduction that is timed */
    SPACING = 50       /* slots from one of them to the next */
};

struct bench {
    const struct sar_net *net;
    struct sar_arena arena;
    unsigned char *out, *in; /* LARGE bytes each */
    unsigned char *vast;
    struct sar_shape shape;
    struct sar_run runs[2], sum;
    struct sar_arena scratch;
};

/* Every rank sends to the next and receives from the one before. */
static void shift(struct bench *b, int bytes)
{
    int ranks = b->net->ranks, next = (b->net->rank + 1) % ranks,
        previous = (b->net->rank + ranks - 1) % ranks;
    PMPI_Sendrecv(b->out, bytes, MPI_BYTE, next, 0, b->in, bytes, MPI_BYTE, previous, 0, b->net->comm,
                  MPI_STATUS_IGNORE);
}

static void shift_small(struct bench *b)
{
    shift(b, SMALL);
}

static void shift_large(struct bench *b)
{
    shift(b, LARGE);
}

static void reduce_runs(struct bench *b)
{
    sar_arena_reset(&b->scratch);
    sar_reduce(&b->shape, b->runs, 2, &b->scratch, &b->sum);
}

static void dense_small(struct bench *b)
{
    PMPI_Allreduce(b->out, b->in, 1, MPI_FLOAT, MPI_SUM, b->net->comm);
}

static void dense_large(struct bench *b)
{
    PMPI_Allreduce(b->out, b->in, LARGE / 4, MPI_FLOAT, MPI_SUM, b->net->comm);
}

static void write_memory(struct bench *b)
{
    memset(b->vast, b->net->rank, VAST);
}

static double least_seconds(struct bench *b, void (*action)(struct bench *))
{
    double least = 1e9;
    action(b);
    for (int i = 0; i < TRIES; i++) {
        double start = PMPI_Wtime();
        action(b);
        double seconds = PMPI_Wtime() - start;
        least = seconds < least ? seconds : least;
    }
    return least;
}

static enum sar_status set_up(struct bench *b)
{
    void *out, *in, *vast;
    SAR_TRY(sar_arena_take_zeroed(&b->arena, LARGE, 1, &out));
    SAR_TRY(sar_arena_take_zeroed(&b->arena, LARGE, 1, &in));
    SAR_TRY(sar_arena_take(&b->arena, VAST, 1, &vast));
    b->vast = vast;
    b->out = out;
    b->in = in;
    b->shape = (struct sar_shape){ .count = SAMPLE * SPACING,
                                   .row = 1,
                                   .element_size = 4,
                                   .index_size = 4,
                                   .kernels = sar_kernels_of(SAR_FLOAT, SAR_SUM) };
    for (uint32_t r = 0; r < 2; r++) {
        SAR_TRY(sar_run_take(&b->shape, SAMPLE, &b->arena, &b->runs[r]));
        for (uint32_t i = 0; i < SAMPLE; i++) {
            ((uint32_t *)b->runs[r].index)[i] = i * SPACING + (r * i) % SPACING;
            ((float *)b->runs[r].value)[i] = 1;
        }
    }
    return sar_run_take(&b->shape, (size_t)2 * SAMPLE, &b->arena, &b->sum);
}

enum sar_status sar_machine_measure(const struct sar_net *net, struct sar_machine *machine)
{
    struct bench b = { .net = net };
    enum sar_status status = sar_net_worst(net, set_up(&b));
    if (status == SAR_OK) {
        double small = least_seconds(&b, shift_small), dense = least_seconds(&b, dense_small);
        double figures[] = { small,
                             least_seconds(&b, shift_large) / LARGE,
                             least_seconds(&b, reduce_runs) / (2.0 * SAMPLE),
                             least_seconds(&b, write_memory) / VAST,
                             dense,
                             least_seconds(&b, dense_large) / LARGE };
        status = sar_net_maximum(net, figures, sizeof figures / sizeof figures[0]);
        *machine = (struct sar_machine){ net->ranks, figures[0], figures[1], figures[2],
                                         figures[3], figures[4], figures[5] };
    }
    sar_arena_free(&b.arena);
    sar_arena_free(&b.scratch);
    return status;
}
