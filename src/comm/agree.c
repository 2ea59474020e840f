/* SPDX-License-Identifier: BSD-3-Clause */
/* One allreduce of a sar_agree_msg, with an op of the library.
 *
 *     time = log2(p) alpha
 *
 * If all ranks share memory, each reads the messages of the others at a barrier of the group: no MPI message,
 * and time = that of the barrier. */

#include "comm/agree.h"

#include <string.h>

#include "comm/shm/group.h"

_Static_assert(sizeof(struct sar_agree_msg) <= SAR_SHM_MSG_BYTES, "a check fits a message of a barrier");

static const char NAME[] = "consistency check";

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
    if (in->nnz_max > inout->nnz_max || (in->nnz_max == inout->nnz_max && memcmp(from, to, sizeof *from) > 0))
        inout->spread.quantiles = *from;
}

void sar_agree_msg_merge(const struct sar_agree_msg *in, struct sar_agree_msg *inout)
{
    merge_spread(in, inout);
    inout->nnz_sum += in->nnz_sum;
    inout->nnz_max = larger(in->nnz_max, inout->nnz_max);
    inout->may_block = (int32_t)larger(in->may_block, inout->may_block);
    inout->dense_path = (int32_t)larger(in->dense_path, inout->dense_path);
    inout->last_call_ns = larger(in->last_call_ns, inout->last_call_ns);
    inout->pre_scheme_ns =
        in->pre_scheme_ns < inout->pre_scheme_ns ? in->pre_scheme_ns : inout->pre_scheme_ns;
    if (in->pull.permille > inout->pull.permille ||
        (in->pull.permille == inout->pull.permille && in->pull.parts > inout->pull.parts))
        inout->pull = in->pull;
    merge_status(in, inout);
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

enum sar_status sar_agree_test(const struct sar_comm *comm, struct sar_agreement *agreement, bool block,
                               bool *done)
{
    const struct sar_shm_group *group = sar_comm_single_node_group(comm);
    if (group == NULL)
        return sar_collective_test(comm, &agreement->collective, block, done);
    *done = sar_shm_barrier_test(comm, block);
    if (!*done)
        return SAR_OK;
    agreement->global = *(const struct sar_agree_msg *)sar_shm_barrier_msg(group, 0);
    for (int r = 1; r < group->ranks; r++)
        sar_agree_msg_merge(sar_shm_barrier_msg(group, r), &agreement->global);
    return SAR_OK;
}

enum sar_status sar_agree_start(const struct sar_comm *comm, struct sar_agreement *agreement)
{
    if (sar_comm_single_node_group(comm) != NULL) {
        sar_shm_barrier_arrive(comm->shm_group, NAME, &agreement->local, sizeof agreement->local);
        return SAR_OK;
    }
    sar_watchdog_begin(comm, &agreement->collective, NAME);
    return sar_mpi(PMPI_Iallreduce(&agreement->local, &agreement->global, 1, msg_type, merge_op,
                                   comm->mpi_comm, &agreement->collective.request));
}
