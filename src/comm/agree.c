/* SPDX-License-Identifier: BSD-3-Clause */
/* One allreduce of a sar_agree_msg of B bytes. The ranks do it in one of three ways:
 *
 * - All ranks share memory: each reads the messages of the others at a barrier of the group.
 *       time = that of the barrier
 * - Few ranks: each sends its message to every other rank, and merges all.
 *       time = ceil((p - 1) / 32) alpha + (p - 1) (overhead + B beta)
 * - An MPI_Iallreduce with an op of the library.
 *       time = log2(p) (alpha + overhead + B beta)
 *
 * The second is one MPI_Ialltoallv, so that MPI matches messages with calls. MPI libraries send its messages
 * directly, MPICH 32 at a time, while an allgather of short messages takes log2(p) stages. */

#include "comm/agree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/chunking.h"
#include "comm/shm/group.h"

_Static_assert(sizeof(struct sar_agree_msg) <= SAR_SHM_MSG_BYTES, "a check fits a message of a barrier");

static const char NAME[] = "consistency check";

enum {
    MAX_RANKS = 128, /* of one round */
    AT_A_TIME = 32   /* messages of an MPI_Ialltoallv in flight */
};

/* Memory of one round. */
struct sar_agree_direct {
    struct sar_agree_msg *all; /* by rank */
    int *counts, *zeros, *places;
};

static MPI_Op merge_op = MPI_OP_NULL;
static MPI_Datatype msg_type = MPI_DATATYPE_NULL;

struct sar_agree_msg sar_agree_msg_make(const struct sar_comm *comm, const int64_t field[SAR_AGREE_FIELDS])
{
    struct sar_agree_msg msg = { .status_rank = comm->rank };
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        msg.field[i] = (struct sar_agree_range){ field[i], field[i], comm->rank, comm->rank };
    return msg;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The lowest of the ranks with equal values is kept, so that the result does not depend on the order. */
static void merge_status(const struct sar_agree_msg *in, struct sar_agree_msg *inout)
{
    if (in->status < inout->status || (in->status == inout->status && in->status_rank > inout->status_rank))
        return;
    inout->status = in->status;
    inout->status_rank = in->status_rank;
    inout->status_value = in->status_value;
}

static void merge_range(const struct sar_agree_range *in, struct sar_agree_range *inout)
{
    if (in->min < inout->min || (in->min == inout->min && in->min_rank < inout->min_rank)) {
        inout->min = in->min;
        inout->min_rank = in->min_rank;
    }
    if (in->max > inout->max || (in->max == inout->max && in->max_rank < inout->max_rank)) {
        inout->max = in->max;
        inout->max_rank = in->max_rank;
    }
}

/* If two ranks have most elements, the greater quantiles win, so that the result does not depend on the
 * order. */
static void merge_spread(const struct sar_agree_msg *in, struct sar_agree_msg *inout)
{
    const struct sar_quantiles *from = &in->spread.quantiles, *to = &inout->spread.quantiles;
    inout->spread.equal_segments |= in->spread.equal_segments;
    inout->spread.not_owned |= in->spread.not_owned;
    if (in->nnz_max > inout->nnz_max || (in->nnz_max == inout->nnz_max && memcmp(from, to, sizeof *from) > 0))
        inout->spread.quantiles = *from;
}

/* The tag of a message is only read from the contribution of its sender. */
static void merge_early(const struct sar_agree_early *in, struct sar_agree_early *inout)
{
    inout->min = in->min < inout->min ? in->min : inout->min;
    inout->max = in->max > inout->max ? in->max : inout->max;
}

void sar_agree_msg_merge(const struct sar_agree_msg *in, struct sar_agree_msg *inout)
{
    merge_spread(in, inout);
    inout->nnz_sum += in->nnz_sum;
    inout->nnz_max = larger(in->nnz_max, inout->nnz_max);
    inout->may_block = (uint8_t)larger(in->may_block, inout->may_block);
    inout->dense_path = (uint8_t)larger(in->dense_path, inout->dense_path);
    inout->last_call_ns = larger(in->last_call_ns, inout->last_call_ns);
    inout->pre_scheme_ns =
        in->pre_scheme_ns < inout->pre_scheme_ns ? in->pre_scheme_ns : inout->pre_scheme_ns;
    if (in->pull.permille > inout->pull.permille ||
        (in->pull.permille == inout->pull.permille && in->pull.parts > inout->pull.parts))
        inout->pull = in->pull;
    merge_status(in, inout);
    merge_early(&in->early, &inout->early);
    for (int i = 0; i < SAR_AGREE_FIELDS; i++)
        merge_range(&in->field[i], &inout->field[i]);
}

static void merge_callback(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    const struct sar_agree_msg *from = in;
    struct sar_agree_msg *to = inout;
    for (int i = 0; i < *n; i++)
        sar_agree_msg_merge(&from[i], &to[i]);
}

enum sar_status sar_agree_setup(void)
{
    SAR_TRY(sar_mpi(PMPI_Type_contiguous((int)sizeof(struct sar_agree_msg), MPI_BYTE, &msg_type)));
    SAR_TRY(sar_mpi(PMPI_Type_commit(&msg_type)));
    return sar_mpi(PMPI_Op_create(merge_callback, 1, &merge_op));
}

void sar_agree_cleanup(void)
{
    if (merge_op != MPI_OP_NULL)
        PMPI_Op_free(&merge_op);
    if (msg_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&msg_type);
}

/* Seconds of a message beyond its latency. */
static double further_of(const struct sar_machine *machine)
{
    return machine->overhead + (double)sizeof(struct sar_agree_msg) * machine->beta;
}

static double stages_seconds(int ranks, const struct sar_machine *machine)
{
    return ceil(log2(ranks)) * (machine->alpha + further_of(machine));
}

static double round_seconds(int ranks, const struct sar_machine *machine)
{
    double latencies = ceil((ranks - 1) / (double)AT_A_TIME) * machine->alpha;
    return latencies + (ranks - 1) * further_of(machine);
}

/* Only beside one round can small calls send their first messages (core/speculate.c). */
bool sar_agree_in_one_round(int ranks, const struct sar_machine *machine)
{
    return ranks > 2 && ranks <= MAX_RANKS && round_seconds(ranks, machine) <= stages_seconds(ranks, machine);
}

double sar_agree_seconds(int ranks, const struct sar_machine *machine)
{
    return sar_agree_in_one_round(ranks, machine) ? round_seconds(ranks, machine)
                                                  : stages_seconds(ranks, machine);
}

enum sar_status sar_agree_open(struct sar_comm *comm, const struct sar_machine *machine)
{
    size_t n = (size_t)comm->ranks;
    if (sar_comm_single_node_group(comm) != NULL || !sar_agree_in_one_round(comm->ranks, machine))
        return SAR_OK;
    struct sar_agree_direct *d = calloc(1, sizeof *d + n * sizeof *d->all + 3 * n * sizeof *d->counts);
    if (d == NULL)
        return SAR_NO_MEMORY;
    d->all = (struct sar_agree_msg *)(d + 1);
    d->counts = (int *)(d->all + n);
    d->zeros = d->counts + n;
    d->places = d->zeros + n;
    for (int r = 0; r < comm->ranks; r++) {
        d->counts[r] = 1;
        d->places[r] = r;
    }
    comm->agree = d;
    return SAR_OK;
}

void sar_agree_close(struct sar_comm *comm)
{
    free(comm->agree);
    comm->agree = NULL;
}

/* Receives a message of any number of chunks, and discards it. The rank sent it before its agreement: the
 * wait is short. */
static enum sar_status discard(const struct sar_comm *comm, int rank, int tag)
{
    struct sar_chunked_recv message = { .incomplete = true };
    bool last = false;
    while (!last) {
        MPI_Status status;
        MPI_Request request;
        int bytes, found = 0, spins = 0;
        while (!found) {
            SAR_TRY(sar_mpi(PMPI_Iprobe(rank, tag, comm->mpi_comm, &found, &status)));
            if (!found)
                sar_comm_backoff(comm, &spins);
        }
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        last = sar_chunked_recv_is_last(&message, (uint64_t)bytes, comm->chunk);
        message.received += (uint64_t)bytes;
        SAR_TRY(sar_chunk_discard(bytes, rank, tag, comm->mpi_comm, &request));
        SAR_TRY(sar_mpi(PMPI_Wait(&request, MPI_STATUS_IGNORE)));
    }
    return SAR_OK;
}

enum sar_status sar_agree_discard_early(const struct sar_comm *comm)
{
    for (int r = 0; r < comm->ranks; r++) {
        const struct sar_agree_early *early = &comm->agree->all[r].early;
        if (r != comm->rank && early->min != 0)
            SAR_TRY(discard(comm, r, early->tag));
    }
    return SAR_OK;
}

static enum sar_status merge_all(const struct sar_comm *comm, struct sar_agree_msg *global)
{
    *global = comm->agree->all[0];
    for (int r = 1; r < comm->ranks; r++)
        sar_agree_msg_merge(&comm->agree->all[r], global);
    return sar_agree_early_equal(global) ? SAR_OK : sar_agree_discard_early(comm);
}

enum sar_status sar_agree_test(const struct sar_comm *comm, struct sar_agreement *agreement, bool block,
                               bool *done)
{
    const struct sar_shm_group *group = sar_comm_single_node_group(comm);
    if (group == NULL) {
        SAR_TRY(sar_collective_test(comm, &agreement->collective, block, done));
        return *done && comm->agree != NULL ? merge_all(comm, &agreement->global) : SAR_OK;
    }
    *done = sar_shm_barrier_test(comm, block);
    if (!*done)
        return SAR_OK;
    if (!sar_shm_barrier_kinds_match(group)) {
        sar_shm_group_reset_buffer(comm->shm_group);
        return SAR_CORRUPT;
    }
    agreement->global = *(const struct sar_agree_msg *)sar_shm_barrier_msg(group, 0);
    for (int r = 1; r < group->ranks; r++)
        sar_agree_msg_merge(sar_shm_barrier_msg(group, r), &agreement->global);
    return SAR_OK;
}

enum sar_status sar_agree_start(const struct sar_comm *comm, struct sar_agreement *agreement)
{
    if (sar_comm_single_node_group(comm) != NULL) {
        sar_shm_barrier_arrive(comm->shm_group, SAR_SHM_BARRIER_AGREE, NAME, &agreement->local,
                               sizeof agreement->local);
        return SAR_OK;
    }
    sar_watchdog_begin(comm, &agreement->collective, NAME);
    const struct sar_agree_direct *d = comm->agree;
    if (d != NULL)
        return sar_mpi(PMPI_Ialltoallv(&agreement->local, d->counts, d->zeros, msg_type, d->all, d->counts,
                                       d->places, msg_type, comm->mpi_comm, &agreement->collective.request));
    return sar_mpi(PMPI_Iallreduce(&agreement->local, &agreement->global, 1, msg_type, merge_op,
                                   comm->mpi_comm, &agreement->collective.request));
}
