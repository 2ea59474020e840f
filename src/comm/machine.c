/* SPDX-License-Identifier: BSD-3-Clause */
/* Machine constants are measured when a communicator is opened, in some milliseconds, unless they are in the
 * cache or in a calibration file. Each constant is the minimum of a few trials on each rank, which is the
 * machine's ability, and then the maximum over all ranks, which is the time that a collective takes. All
 * ranks send at once, as in a call, so that beta includes contention. */

#include "comm/machine.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/trace.h"
#include "comm/collective.h"
#include "hash/murmur3.h"
#include "vector/reduce.h"

/* Bytes that each rank writes to measure memory; more than the caches have. A simulation (bench/sim/smpi.h)
 * runs thousands of ranks in one process, and sets fewer. */
#ifndef SAR_MACHINE_MEMORY_BYTES
#define SAR_MACHINE_MEMORY_BYTES (16 << 20)
#endif

static const double MIN_OVERHEAD = 1e-9; /* seconds; constants must be above 0 in simulations, too */
static const double MIN_BANDWIDTH_SHARE = 1. / 16; /* least share of beta in the time of a LARGE message */

enum {
    TRIALS = 5,
    SMALL_TRIALS =
        15,    /* of small messages, which take little time, and much more where ranks share processors */
    SMALL = 8, /* bytes of a message whose time is alpha */
    LARGE = 256 << 10, /* bytes of a message to measure beta by */
    BURST = 16,        /* messages sent at once to measure overhead */
    MEMORY_BYTES = SAR_MACHINE_MEMORY_BYTES,
    REDUCE_RUNS = 3,         /* runs of the reduction that is timed: there are faster ways for two */
    REDUCE_COUNT = 16 << 10, /* elements of each */
    REDUCE_STRIDE = 50,      /* slots from one element to the next */
    CACHED_GROUPS = 16       /* groups of processes in the cache */
};

struct bench {
    const struct sar_comm *comm;
    const int *send_order;    /* ranks in a circle, in which messages are sent */
    int order_len, order_pos; /* ranks in the circle, and the position of this rank */
    int step, steps;          /* positions from one receiver to the next, and number of receivers */
    struct sar_arena arena, large;
    unsigned char *out, *in; /* LARGE bytes each */
    unsigned char *memory;   /* MEMORY_BYTES in `large` */
    struct sar_vec_desc desc;
    struct sar_spvec runs[REDUCE_RUNS], sum;
    struct sar_arena scratch;
};

/* Each rank sends to the next ranks of its node if `intra_node` or there is one node, else to ranks of the
 * next nodes. */
static void set_send_order(struct bench *b, bool intra_node)
{
    const struct sar_nodes *nodes = &b->comm->nodes;
    int rank = b->comm->rank, node = nodes->node[rank], first = intra_node ? nodes->first[node] : 0;
    bool to_next_ranks = intra_node || nodes->n == 1;
    b->send_order = nodes->ranks + first;
    b->order_len = intra_node ? sar_nodes_size(nodes, node) : b->comm->ranks;
    b->order_pos = nodes->first[node] + nodes->local_rank[rank] - first;
    b->step = to_next_ranks ? 1 : nodes->max_ranks;
    b->steps = to_next_ranks ? b->order_len - 1 : nodes->n - 1;
}

/* Positions from this rank to the receiver of message i; receivers take turns. */
static int distance(const struct bench *b, int i)
{
    return b->step * (1 + i % (b->steps > 0 ? b->steps : 1)) % b->order_len;
}

static int next(const struct bench *b, int i)
{
    return b->send_order[(b->order_pos + distance(b, i)) % b->order_len];
}

static int previous(const struct bench *b, int i)
{
    return b->send_order[(b->order_pos + b->order_len - distance(b, i)) % b->order_len];
}

static void shift(struct bench *b, int bytes)
{
    PMPI_Sendrecv(b->out, bytes, MPI_BYTE, next(b, 0), 0, b->in, bytes, MPI_BYTE, previous(b, 0), 0,
                  b->comm->mpi_comm, MPI_STATUS_IGNORE);
}

/* Small messages at once, to as many different ranks as there are, and a reply to each. That takes two
 * latencies at least, also if ranks start at different times: a reply cannot be there already. */
static void echo(struct bench *b, int messages)
{
    MPI_Request requests[4 * BURST];
    MPI_Comm comm = b->comm->mpi_comm;
    for (int i = 0; i < messages; i++) {
        unsigned char *in = b->in + (size_t)i * 2 * SMALL;
        PMPI_Irecv(in, SMALL, MPI_BYTE, previous(b, i), 0, comm, &requests[i]);
        PMPI_Irecv(in + SMALL, SMALL, MPI_BYTE, next(b, i), 1, comm, &requests[messages + i]);
        PMPI_Isend(b->out, SMALL, MPI_BYTE, next(b, i), 0, comm, &requests[2 * messages + i]);
    }
    PMPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < messages; i++)
        PMPI_Isend(b->out, SMALL, MPI_BYTE, previous(b, i), 1, comm, &requests[3 * messages + i]);
    PMPI_Waitall(3 * messages, requests + messages, MPI_STATUSES_IGNORE);
}

/* A simulation charges measured work in the same way as the work of calls. */
static void end_span(const struct bench *b, struct sar_span *span)
{
    sar_span_end(span, &(struct sar_span_context){ b->comm->id, 0, -1, -1, 0, 0 });
}

static void reduce_runs(struct bench *b, int runs)
{
    struct sar_span span = sar_span_begin("measure", 0, 0);
    sar_arena_reset(&b->scratch);
    sar_reduce(&b->desc, b->runs, (size_t)runs, &b->scratch, &b->sum);
    span.work =
        sar_span_work_make("reduce", (uint64_t)runs * REDUCE_COUNT, b->desc.element_size, b->desc.count);
    span.work.format = "three"; /* costs of its own: gamma is the unit of work on formats, see doc/model.md */
    end_span(b, &span);
}

static void allreduce_dense(struct bench *b, int count)
{
    PMPI_Allreduce(b->out, b->in, count, MPI_FLOAT, MPI_SUM, b->comm->mpi_comm);
}

static void write_memory(struct bench *b, int bytes)
{
    struct sar_span span = sar_span_begin("measure", 0, 0);
    memset(b->memory, b->comm->rank, (size_t)bytes);
    span.work = sar_span_work_make("wipe", (uint64_t)bytes, 1, 0);
    end_span(b, &span);
}

static double min_seconds(struct bench *b, void (*action)(struct bench *, int), int size)
{
    double min = 1e9;
    int trials = action == echo ? SMALL_TRIALS : TRIALS;
    action(b, size);
    for (int i = 0; i < trials; i++) {
        double start = PMPI_Wtime();
        action(b, size);
        double seconds = PMPI_Wtime() - start;
        min = seconds < min ? seconds : min;
    }
    return min;
}

static enum sar_status set_up(struct bench *b)
{
    void *out, *in, *memory;
    SAR_TRY(sar_arena_alloc_zeroed(&b->arena, LARGE, 1, &out));
    SAR_TRY(sar_arena_alloc_zeroed(&b->arena, LARGE, 1, &in));
    SAR_TRY(sar_arena_alloc(&b->large, MEMORY_BYTES, 1, &memory));
    b->memory = memory;
    b->out = out;
    b->in = in;
    b->desc = (struct sar_vec_desc){ .count = REDUCE_COUNT * REDUCE_STRIDE,
                                     .row_len = 1,
                                     .element_size = 4,
                                     .index_size = 4,
                                     .kernels = sar_op_kernels_of(SAR_FLOAT, SAR_SUM) };
    for (uint32_t r = 0; r < REDUCE_RUNS; r++) {
        SAR_TRY(sar_spvec_alloc(&b->desc, REDUCE_COUNT, &b->arena, &b->runs[r]));
        for (uint32_t i = 0; i < REDUCE_COUNT; i++) {
            ((uint32_t *)b->runs[r].index)[i] = i * REDUCE_STRIDE + (r * i) % REDUCE_STRIDE;
            ((float *)b->runs[r].value)[i] = 1;
        }
    }
    return sar_spvec_alloc(&b->desc, (size_t)REDUCE_RUNS * REDUCE_COUNT, &b->arena, &b->sum);
}

/* Time of a byte in a LARGE message, less the time of a SMALL one. At least a share of the former, since
 * noise may slow down the small message. */
static double seconds_of_byte(double small, double large)
{
    return fmax(large - small, large * MIN_BANDWIDTH_SHARE) / LARGE;
}

/* Sets the constants of messages within a node, with messages in the send order. */
static void measure_messages(struct bench *b, struct sar_machine *m)
{
    double one = min_seconds(b, echo, 1) / 2, many = min_seconds(b, echo, BURST) / 2;
    m->intra_alpha = one;
    m->intra_beta = seconds_of_byte(m->intra_alpha, min_seconds(b, shift, LARGE));
    m->intra_overhead = fmax((many - one) / (BURST - 1), MIN_OVERHEAD);
}

static void measure(struct bench *b, struct sar_machine *m)
{
    set_send_order(b, false);
    measure_messages(b, m);
    m->alpha = m->intra_alpha;
    m->beta = m->intra_beta;
    m->overhead = m->intra_overhead;
    if (b->comm->nodes.n > 1 && b->comm->nodes.max_ranks > 1) {
        set_send_order(b, true);
        measure_messages(b, m);
    }
    m->gamma = min_seconds(b, reduce_runs, REDUCE_RUNS) / ((double)REDUCE_RUNS * REDUCE_COUNT);
    m->memory = min_seconds(b, write_memory, MEMORY_BYTES) / MEMORY_BYTES;
    sar_arena_free(&b->large);
    m->dense_alpha = min_seconds(b, allreduce_dense, 1);
    m->dense_beta = seconds_of_byte(m->dense_alpha, min_seconds(b, allreduce_dense, LARGE / 4));
}

static enum sar_status reduce_max(const struct sar_comm *comm, struct sar_machine *m)
{
#define ADDRESS(constant, key) &m->constant,
    double *constants[] = { SAR_MACHINE_CONSTANTS(ADDRESS) };
    enum { CONSTANTS = sizeof constants / sizeof constants[0] };
    double max[CONSTANTS];
    for (int i = 0; i < CONSTANTS; i++)
        max[i] = *constants[i];
    SAR_TRY(sar_comm_max(comm, max, CONSTANTS));
    for (int i = 0; i < CONSTANTS; i++)
        *constants[i] = max[i];
    return SAR_OK;
}

static enum sar_status measure_all(const struct sar_comm *comm, struct sar_machine *machine)
{
    struct bench b = { .comm = comm };
    struct sar_machine measured = { .ranks = comm->ranks };
    enum sar_status status = sar_comm_max_status(comm, set_up(&b));
    if (status == SAR_OK) {
        measure(&b, &measured);
        status = reduce_max(comm, &measured);
        *machine = measured;
    }
    sar_arena_free(&b.arena);
    sar_arena_free(&b.large);
    sar_arena_free(&b.scratch);
    return status;
}

/* Constants of the groups of processes measured last. If threads measure for two communicators of one group
 * at once, ranks may cache different ones; sar_machine_measure therefore takes the maximum of cached
 * constants, too. */
static struct cached {
    uint64_t group; /* hash of the group, or 0 for an empty entry */
    struct sar_machine machine;
} cached[CACHED_GROUPS];
static unsigned cache_next;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

/* A hash of the group's processes in their order, and of their nodes. 0, which is not cached, if a process
 * has no rank in MPI_COMM_WORLD. */
static uint64_t group_of(const struct sar_comm *comm)
{
    MPI_Group group, world;
    uint64_t hash = (uint64_t)comm->ranks;
    bool unidentified = false;
    if (!sar_mpi_world_is_up())
        return 0;
    PMPI_Comm_group(comm->mpi_comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < comm->ranks; r++) {
        int world_rank = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(group, 1, &r, world, &world_rank);
        hash =
            sar_mix64(hash ^ (uint64_t)(uint32_t)world_rank << 32 ^ (uint64_t)(uint32_t)comm->nodes.node[r]);
        unidentified |= world_rank == MPI_UNDEFINED;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return unidentified ? 0 : hash;
}

static bool cache_find(uint64_t group, struct sar_machine *machine)
{
    bool found = false;
    pthread_mutex_lock(&cache_lock);
    for (int i = 0; i < CACHED_GROUPS && group != 0 && !found; i++) {
        found = cached[i].group == group;
        if (found)
            *machine = cached[i].machine;
    }
    pthread_mutex_unlock(&cache_lock);
    return found;
}

static void cache_store(uint64_t group, const struct sar_machine *machine)
{
    unsigned at = 0;
    pthread_mutex_lock(&cache_lock);
    while (at < CACHED_GROUPS && cached[at].group != group)
        at++;
    if (at == CACHED_GROUPS)
        at = cache_next++ % CACHED_GROUPS;
    cached[at] = (struct cached){ group, *machine };
    pthread_mutex_unlock(&cache_lock);
}

enum sar_status sar_machine_measure(const struct sar_comm *comm, struct sar_machine *machine)
{
    uint64_t group = group_of(comm);
    double missing = !cache_find(group, machine);
    SAR_TRY(sar_comm_max(comm, &missing, 1));
    if (missing == 0)
        return reduce_max(comm, machine);
    SAR_TRY(measure_all(comm, machine));
    cache_store(group, machine);
    return SAR_OK;
}

void sar_machine_forget(void)
{
    pthread_mutex_lock(&cache_lock);
    memset(cached, 0, sizeof cached);
    pthread_mutex_unlock(&cache_lock);
}
