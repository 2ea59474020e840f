/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine constants, each the least of a few tries on this rank and then the most over all ranks: the least
 * is what the machine can do, the most is what a collective waits for. All ranks send at once, as they do
 * in a call, so that beta holds what they take from each other. */

#include "net/machine.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/trace.h"
#include "hash/murmur3.h"
#include "tensor/reduce.h"

/* Bytes of each rank, beyond the caches. Simulated ranks (bench/smpi.h), thousands in one process, have
 * fewer: what they take there is charged by the byte. */
#ifndef SAR_MACHINE_VAST
#define SAR_MACHINE_VAST (16 << 20)
#endif

/* Seconds that no message takes less than: where messages of a simulated network are free, as all constants
 * are to be above 0. */
static const double LEAST_OVERHEAD = 1e-9;
static const double LEAST_SHARE = 1. / 16; /* of a long message that its bytes take */

enum {
    TRIES = 5,
    SMALL = 8,         /* bytes that cost nothing but their message */
    LARGE = 256 << 10, /* bytes whose transfer can be told from what a message costs */
    BURST = 16,        /* messages at once */
    VAST = SAR_MACHINE_VAST,
    SAMPLE = 16 << 10, /* elements of the reduction that is timed */
    SPACING = 50,      /* slots from one of them to the next */
    KNOWN = 16         /* groups whose constants are remembered */
};

struct bench {
    const struct sar_net *net;
    const int *ring; /* ranks that send round, in their order */
    int round, at;   /* how many these are, and this rank's place */
    int step, steps; /* places to the next that it sends to, and how many there are */
    struct sar_arena arena, large;
    unsigned char *out, *in; /* LARGE bytes each */
    unsigned char *vast;     /* in `large`, for as long as it is written */
    struct sar_shape shape;
    struct sar_run runs[2], sum;
    struct sar_arena scratch;
};

/* Every rank to the next one of its node. */
static void turn_nodes(struct bench *b)
{
    const struct sar_nodes *nodes = &b->net->nodes;
    int node = nodes->node[b->net->rank], place = nodes->place[b->net->rank];
    b->ring = nodes->ranks + nodes->first[node];
    b->round = sar_nodes_size(nodes, node);
    b->at = place;
    b->step = 1;
    b->steps = b->round - 1;
}

/* Every rank to one of the next node, where there are several. */
static void turn_all(struct bench *b)
{
    const struct sar_nodes *nodes = &b->net->nodes;
    b->ring = nodes->ranks;
    b->round = b->net->ranks;
    b->at = nodes->first[nodes->node[b->net->rank]] + nodes->place[b->net->rank];
    b->step = nodes->n == 1 ? 1 : nodes->most;
    b->steps = nodes->n == 1 ? b->round - 1 : nodes->n - 1;
}

/* Places to the rank that message i goes to: each next one in turn. */
static int distance(const struct bench *b, int i)
{
    return b->step * (1 + i % (b->steps > 0 ? b->steps : 1)) % b->round;
}

static int next(const struct bench *b, int i)
{
    return b->ring[(b->at + distance(b, i)) % b->round];
}

/* From which message i comes. */
static int previous(const struct bench *b, int i)
{
    return b->ring[(b->at + b->round - distance(b, i)) % b->round];
}

static void shift(struct bench *b, int bytes)
{
    PMPI_Sendrecv(b->out, bytes, MPI_BYTE, next(b, 0), 0, b->in, bytes, MPI_BYTE, previous(b, 0), 0,
                  b->net->comm, MPI_STATUS_IGNORE);
}

static void shift_small(struct bench *b)
{
    shift(b, SMALL);
}

static void shift_large(struct bench *b)
{
    shift(b, LARGE);
}

/* Small messages at once, to as many ranks as there are. */
static void burst(struct bench *b, int messages)
{
    MPI_Request requests[2 * BURST];
    MPI_Status statuses[2 * BURST];
    for (int i = 0; i < messages; i++) {
        PMPI_Irecv(b->in + (size_t)i * SMALL, SMALL, MPI_BYTE, previous(b, i), 0, b->net->comm,
                   &requests[2 * i]);
        PMPI_Isend(b->out, SMALL, MPI_BYTE, next(b, i), 0, b->net->comm, &requests[2 * i + 1]);
    }
    PMPI_Waitall(2 * messages, requests, statuses);
}

static void send_one(struct bench *b)
{
    burst(b, 1);
}

static void send_many(struct bench *b)
{
    burst(b, BURST);
}

/* What is timed is told like work of calls, for who charges it in a simulation. */
static void end_span(const struct bench *b, struct sar_span *span)
{
    sar_span_end(span, &(struct sar_scene){ b->net->number, 0, -1, -1, 0, 0 });
}

static void reduce_runs(struct bench *b)
{
    struct sar_span span = sar_span_begin("measure", 0, 0);
    sar_arena_reset(&b->scratch);
    sar_reduce(&b->shape, b->runs, 2, &b->scratch, &b->sum);
    span.work = sar_work_on("reduce", 2 * SAMPLE, b->shape.element_size, b->shape.count);
    end_span(b, &span);
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
    struct sar_span span = sar_span_begin("measure", 0, 0);
    memset(b->vast, b->net->rank, VAST);
    span.work = sar_work_on("wipe", VAST, 1, 0);
    end_span(b, &span);
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
    SAR_TRY(sar_arena_take(&b->large, VAST, 1, &vast));
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

/* Of a byte among LARGE: without what comes once. Where something else kept small ones from being fast, a
 * part of it all the same. */
static double seconds_of_byte(double small, double large)
{
    return fmax(large - small, large * LEAST_SHARE) / LARGE;
}

static double overhead_of(struct bench *b)
{
    double one = least_seconds(b, send_one), many = least_seconds(b, send_many);
    return fmax((many - one) / (BURST - 1), LEAST_OVERHEAD);
}

static void measure(struct bench *b, struct sar_machine *m)
{
    turn_all(b);
    m->alpha = m->near_alpha = least_seconds(b, shift_small);
    m->beta = m->near_beta = seconds_of_byte(m->alpha, least_seconds(b, shift_large));
    m->overhead = m->near_overhead = overhead_of(b);
    if (b->net->nodes.n > 1 && b->net->nodes.most > 1) {
        turn_nodes(b);
        m->near_alpha = least_seconds(b, shift_small);
        m->near_beta = seconds_of_byte(m->near_alpha, least_seconds(b, shift_large));
        m->near_overhead = overhead_of(b);
    }
    m->gamma = least_seconds(b, reduce_runs) / (2.0 * SAMPLE);
    m->memory = least_seconds(b, write_memory) / VAST;
    sar_arena_free(&b->large);
    m->dense_alpha = least_seconds(b, dense_small);
    m->dense_beta = seconds_of_byte(m->dense_alpha, least_seconds(b, dense_large));
}

static enum sar_status agree(const struct sar_net *net, struct sar_machine *m)
{
#define ADDRESS(constant) &m->constant,
    double *figures[] = { SAR_MACHINE_CONSTANTS(ADDRESS) };
    enum { FIGURES = sizeof figures / sizeof figures[0] };
    double most[FIGURES];
    for (int i = 0; i < FIGURES; i++)
        most[i] = *figures[i];
    SAR_TRY(sar_net_maximum(net, most, FIGURES));
    for (int i = 0; i < FIGURES; i++)
        *figures[i] = most[i];
    return SAR_OK;
}

static enum sar_status measure_all(const struct sar_net *net, struct sar_machine *machine)
{
    struct bench b = { .net = net };
    struct sar_machine measured = { .ranks = net->ranks };
    enum sar_status status = sar_net_worst(net, set_up(&b));
    if (status == SAR_OK) {
        measure(&b, &measured);
        status = agree(net, &measured);
        *machine = measured;
    }
    sar_arena_free(&b.arena);
    sar_arena_free(&b.large);
    sar_arena_free(&b.scratch);
    return status;
}

/* What was measured last for some groups of processes, on what nodes. Ranks whose threads measured for two
 * communicators of a group at once may have kept different ones. */
static struct known {
    uint64_t group; /* 0 where there is nothing */
    struct sar_machine machine;
} known[KNOWN];
static unsigned known_next;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* A hash of the group's processes in their order, and of their nodes; 0 where one has no name that all
 * communicators know. */
static uint64_t group_of(const struct sar_net *net)
{
    MPI_Group mine, world;
    uint64_t hash = (uint64_t)net->ranks;
    bool nameless = false;
    if (!sar_net_world_is_up())
        return 0;
    PMPI_Comm_group(net->comm, &mine);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < net->ranks; r++) {
        int named = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(mine, 1, &r, world, &named);
        hash = sar_mix64(hash ^ (uint64_t)(uint32_t)named << 32 ^ (uint64_t)(uint32_t)net->nodes.node[r]);
        nameless |= named == MPI_UNDEFINED;
    }
    PMPI_Group_free(&mine);
    PMPI_Group_free(&world);
    return nameless ? 0 : hash;
}

static bool recall(uint64_t group, struct sar_machine *machine)
{
    bool found = false;
    pthread_mutex_lock(&known_lock);
    for (int i = 0; i < KNOWN && group != 0 && !found; i++) {
        found = known[i].group == group;
        if (found)
            *machine = known[i].machine;
    }
    pthread_mutex_unlock(&known_lock);
    return found;
}

static void remember(uint64_t group, const struct sar_machine *machine)
{
    unsigned at = 0;
    pthread_mutex_lock(&known_lock);
    while (at < KNOWN && known[at].group != group)
        at++;
    if (at == KNOWN)
        at = known_next++ % KNOWN;
    known[at] = (struct known){ group, *machine };
    pthread_mutex_unlock(&known_lock);
}

enum sar_status sar_machine_measure(const struct sar_net *net, struct sar_machine *machine)
{
    uint64_t group = group_of(net);
    double missing = !recall(group, machine);
    SAR_TRY(sar_net_maximum(net, &missing, 1));
    if (missing == 0)
        return agree(net, machine);
    SAR_TRY(measure_all(net, machine));
    remember(group, machine);
    return SAR_OK;
}

void sar_machine_forget(void)
{
    pthread_mutex_lock(&known_lock);
    memset(known, 0, sizeof known);
    pthread_mutex_unlock(&known_lock);
}
