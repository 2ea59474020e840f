/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement: one allreduce of a ballot, with an op of our own, tells every rank the worst status, the sum and
 * maximum of nnz, and for each argument that must be equal its least and largest value and who has them.
 *
 *     time = log2(p) alpha
 *
 * Ranks that share a window read each other's ballots in it. */

#include "net/agree.h"

#include "net/roll.h"
#include "net/window.h"

_Static_assert(sizeof(struct sar_ballot) <= SAR_CARD, "ballots are handed over at meetings");

static const char WHAT[] = "agreement on a call";

static MPI_Op merge_op = MPI_OP_NULL;
static MPI_Datatype ballot_type = MPI_DATATYPE_NULL;

struct sar_ballot sar_ballot_make(const struct sar_net *net, const int64_t field[SAR_FIELDS])
{
    struct sar_ballot ballot = { .status_rank = net->rank };
    for (int i = 0; i < SAR_FIELDS; i++) {
        ballot.field[i].low = ballot.field[i].high = field[i];
        ballot.field[i].low_rank = ballot.field[i].high_rank = net->rank;
    }
    return ballot;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of equal values the lowest rank is named, so that the outcome does not depend on the order. */
static void merge_status(const struct sar_ballot *in, struct sar_ballot *inout)
{
    if (in->status < inout->status || (in->status == inout->status && in->status_rank > inout->status_rank))
        return;
    inout->status = in->status;
    inout->status_rank = in->status_rank;
    inout->status_value = in->status_value;
}

static void merge_field(const struct sar_ballot *in, struct sar_ballot *inout, int i)
{
    bool lower = in->field[i].low < inout->field[i].low;
    bool higher = in->field[i].high > inout->field[i].high;
    if (lower ||
        (in->field[i].low == inout->field[i].low && in->field[i].low_rank < inout->field[i].low_rank)) {
        inout->field[i].low = in->field[i].low;
        inout->field[i].low_rank = in->field[i].low_rank;
    }
    if (higher ||
        (in->field[i].high == inout->field[i].high && in->field[i].high_rank < inout->field[i].high_rank)) {
        inout->field[i].high = in->field[i].high;
        inout->field[i].high_rank = in->field[i].high_rank;
    }
}

void sar_ballot_merge(const struct sar_ballot *in, struct sar_ballot *inout)
{
    inout->nnz_sum += in->nnz_sum;
    inout->nnz_max = larger(in->nnz_max, inout->nnz_max);
    inout->busy = larger(in->busy, inout->busy);
    inout->staged = larger(in->staged, inout->staged);
    inout->seconds = larger(in->seconds, inout->seconds);
    inout->entry = in->entry < inout->entry ? in->entry : inout->entry;
    merge_status(in, inout);
    for (int i = 0; i < SAR_FIELDS; i++)
        merge_field(in, inout, i);
}

static void merge_callback(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    const struct sar_ballot *from = in;
    struct sar_ballot *to = inout;
    for (int i = 0; i < *n; i++)
        sar_ballot_merge(&from[i], &to[i]);
}

enum sar_status sar_agree_setup(void)
{
    SAR_TRY(sar_mpi(PMPI_Type_contiguous((int)sizeof(struct sar_ballot), MPI_BYTE, &ballot_type)));
    SAR_TRY(sar_mpi(PMPI_Type_commit(&ballot_type)));
    return sar_mpi(PMPI_Op_create(merge_callback, 1, &merge_op));
}

void sar_agree_cleanup(void)
{
    if (merge_op != MPI_OP_NULL)
        PMPI_Op_free(&merge_op);
    if (ballot_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&ballot_type);
}

static void count_ballots(const struct sar_window *window, struct sar_ballot *all)
{
    *all = *(const struct sar_ballot *)sar_window_card(window, 0);
    for (int r = 1; r < window->ranks; r++)
        sar_ballot_merge(sar_window_card(window, r), all);
}

enum sar_status sar_agree_test(const struct sar_net *net, struct sar_agreement *agreement, bool block,
                               bool *done)
{
    if (sar_net_common_window(net) == NULL)
        return sar_net_test(net, &agreement->collective, block, done);
    *done = sar_window_met(net, block);
    if (*done)
        count_ballots(net->window, &agreement->all);
    return SAR_OK;
}

enum sar_status sar_agree_start(const struct sar_net *net, struct sar_agreement *agreement)
{
    if (sar_net_common_window(net) != NULL) {
        sar_window_arrive(net->window, WHAT, &agreement->mine, sizeof agreement->mine);
        return SAR_OK;
    }
    sar_roll_begin(net, &agreement->collective, WHAT);
    return sar_mpi(PMPI_Iallreduce(&agreement->mine, &agreement->all, 1, ballot_type, merge_op, net->comm,
                                   &agreement->collective.request));
}
