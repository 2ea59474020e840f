/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts have no schemes: the report has "trees" in their place. Elements are those that a rank has read
 * from messages, or written to them; so all ranks count the same. */

#include "core/bcast_report.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/parallel.h"
#include "wire/piece.h"

static const char SCHEME[] = "trees", NONE[] = "none", MIXED[] = "mixed";

void sar_bcast_open(struct sar_bcast *b)
{
    sar_comm_state_reset_memory(b->comm_state);
    b->start = PMPI_Wtime();
    b->span = sar_span_begin("call", 0, 0);
    b->span.collective = "bcast";
}

/* Returns the number of elements, -1 if no message has told it. */
static MPI_Count count_elements(const struct sar_bcast *b)
{
    if (b->comm_state->comm.ranks > 1)
        return (MPI_Count)atomic_load(&b->moved);
    return b->nnz == b->nnz_max ? (MPI_Count)b->nnz : -1;
}

/* The format of the pieces that this rank wrote or read. */
static const char *wire_name(const struct sar_bcast *b)
{
    uint32_t used = atomic_load(&b->wires);
    if (used == 0)
        return NONE;
    return (used & (used - 1)) == 0 ? sar_wires[__builtin_ctz(used)]->name : MIXED;
}

static int threads_of(const struct sar_bcast *b)
{
    struct sar_parallel former = sar_comm_state_begin_work(b->comm_state);
    int threads = sar_parallel_granted();
    sar_parallel_end(former);
    return threads;
}

static void report(const struct sar_bcast *b)
{
    struct sar_comm_last *last = &b->comm_state->last;
    const struct sar_pipeline *p = &b->pieces;
    MPI_Count nnz = count_elements(b);
    const struct sar_vec_desc *desc = &b->args->sig.desc;
    MPIX_Sparse_report_t *r = &last->report;
    *r = (MPIX_Sparse_report_t){
        .threads = threads_of(b),
        .ranks = b->comm_state->comm.ranks,
        .nodes = b->comm_state->comm.nodes.n,
        .count = (MPI_Count)b->slots,
        .row = (MPI_Count)(desc->row_len * b->element_size / desc->element_size),
        .nnz_in = b->comm_state->comm.rank == b->root ? nnz : 0,
        .nnz_in_max = nnz,
        .nnz_in_sum = nnz,
        .nnz_out = nnz,
        .bytes_sent = (MPI_Count)p->bytes_sent,
        .bytes_received = (MPI_Count)p->bytes_received,
        .header_bytes_sent = (MPI_Count)p->messages_sent * SAR_PIECE_HEADER_BYTES,
        .messages_sent = (MPI_Count)p->messages_sent,
        .predicted_seconds = b->predicted,
        .measured_seconds = PMPI_Wtime() - b->start,
    };
    memcpy(r->scheme, SCHEME, sizeof SCHEME);
    memcpy(r->choice, SCHEME, sizeof SCHEME);
    memcpy(r->push_wire, NONE, sizeof NONE);
    snprintf(r->pull_wire, sizeof r->pull_wire, "%s", wire_name(b));
    memcpy(r->partition, NONE, sizeof NONE);
    snprintf(r->reason, sizeof r->reason, "a broadcast of %llu pieces over %d trees",
             (unsigned long long)sar_bcast_pieces(b), b->trees);
    last->reported = true;
    last->fallback = SAR_FALLBACK_NONE;
}

void sar_bcast_close(struct sar_bcast *b)
{
    struct sar_comm_state *state = b->comm_state;
    if (b->args->result.error.status == SAR_OK) {
        report(b);
        if (state->comm.rank == b->root)
            SAR_LOG(INFO, CORE, "call %u: %llu elements of %zu B, nnz %lld: %s", state->epoch,
                    (unsigned long long)b->slots, b->element_size, (long long)state->last.report.nnz_out,
                    state->last.report.reason);
    }
    sar_bcast_span_end(b, &b->span);
}
