/* SPDX-License-Identifier: BSD-3-Clause */
/* Forecasts: agreed numbers of a described call, the derivative of prices by beta, and slices of rows. */

#include "core/forecast.h"

#include <math.h>

#include "comm/agree.h"
#include "comm/thread_ratio.h"
#include "core/policy.h"
#include "scheme/engine/owner.h"

static struct sar_vec_desc desc_of(const struct sar_forecast *f)
{
    return (struct sar_vec_desc){ .count = f->count,
                                  .row_len = f->row,
                                  .element_size = f->row * sizeof(float),
                                  .index_size = sar_index_size(f->count),
                                  .dtype = SAR_FLOAT,
                                  .op = SAR_SUM,
                                  .kernels = sar_op_kernels_of(SAR_FLOAT, SAR_SUM) };
}

/* MPI_Allreduce is assumed optimal: a tree for small vectors, a ring for large ones; a copy on one rank. */
static struct sar_machine machine_of(const struct sar_forecast *f, const struct sar_vec_desc *desc,
                                     double nodes)
{
    struct sar_machine m = f->machine;
    double node_ranks = m.ranks / nodes;
    if (m.thread_ratio > 0)
        m.thread_ratio = sar_thread_ratio_of(m.thread_ratio, desc, f->density * (double)f->count);
    else
        m.thread_ratio = 1;
    m.gamma = sar_agreed_element_seconds(&f->machine, desc) * m.thread_ratio;
    m.dense_alpha = 2 * log2(nodes) * m.alpha + 2 * log2(node_ranks) * m.intra_alpha;
    m.dense_beta =
        2 * (nodes - 1) / nodes * m.beta / node_ranks + 2 * (node_ranks - 1) / node_ranks * m.intra_beta;
    if (m.ranks == 1)
        m.dense_beta = m.memory;
    return m;
}

struct sar_agreed sar_forecast_agreed(const struct sar_forecast *f, const struct sar_config *config)
{
    struct sar_vec_desc desc = desc_of(f);
    double nnz = f->density * (double)f->count;
    int node_ranks = f->node_ranks, nodes = (f->machine.ranks + node_ranks - 1) / node_ranks;
    bool travels = f->machine.ranks > 1;
    struct sar_policy policy = sar_policy_make(config, 0);
    policy.wire.precision = travels ? (enum sar_wire_precision)config->wire_values : SAR_PRECISION_FULL;
    return (struct sar_agreed){
        .desc = desc,
        .machine = machine_of(f, &desc, nodes),
        .topo.nodes = nodes,
        .topo.node_ranks = node_ranks < f->machine.ranks ? node_ranks : f->machine.ranks,
        .topo.shared_memory = node_ranks > 1 || !travels,
        .data.nnz_mean = nnz,
        .data.nnz_max = nnz,
        .data.densification = f->gamma,
        .call.dense_face = f->dense_face,
        .call.check_seconds = nodes > 1 ? sar_agree_seconds(f->machine.ranks, &f->machine) : 0,
        .call.speculates =
            config->speculate && nodes > 1 && sar_agree_in_one_round(f->machine.ranks, &f->machine),
        .call.native = true,
        .data.skewness = 1,
        .partition = policy.partition,
        .wire = policy.wire,
    };
}

/* Messages cost nothing, because their number may depend on the bytes; one node, so that no cost overlaps. */
static double seconds_at(const struct sar_scheme *scheme, const struct sar_agreed *agreed, double beta)
{
    struct sar_agreed a = *agreed;
    a.topo.nodes = 1;
    a.machine.alpha = a.machine.overhead = a.machine.intra_overhead = 0;
    a.machine.dense_alpha = 0;
    a.machine.dense_beta *= beta / a.machine.beta;
    a.machine.beta = beta;
    return scheme->seconds(&a);
}

/* Returns the ranks that push together in a scheme with sliced rows. */
static int group_ranks_of(const struct sar_scheme *scheme, const struct sar_agreed *agreed)
{
    return scheme == &sar_scheme_two_level ? agreed->topo.node_ranks : 1;
}

struct sar_forecast_slices sar_forecast_slices(const struct sar_scheme *scheme,
                                               const struct sar_agreed *agreed)
{
    struct sar_owner_cost_terms terms = sar_owner_columns_terms(agreed, group_ranks_of(scheme, agreed));
    struct sar_owner_estimate estimate = sar_owner_estimate(agreed, &terms);
    double headers = SAR_MSG_HEADER_BYTES * (1 - 1. / estimate.segments.n);
    bool relays = estimate.relay_limit > 0;
    double pull = relays ? estimate.mean_pull + estimate.deferred / estimate.peers * estimate.relayable
                         : estimate.pull.bytes;
    return (struct sar_forecast_slices){ .columns = sar_columns_max_slices(&terms.columns),
                                         .messages = (relays ? 3 : 2) * estimate.peers * estimate.segments.n,
                                         .push_bytes = estimate.push.bytes / estimate.segments.n + headers,
                                         .pull_bytes = pull / estimate.segments.n + headers };
}

double sar_forecast_bytes(const struct sar_scheme *scheme, const struct sar_agreed *agreed)
{
    const double step = 1e-4;
    double beta = agreed->machine.beta;
    struct sar_agreed sliced = *agreed;
    /* A copy costs time per byte, but sends none. */
    if (agreed->machine.ranks == 1)
        return 0;
    /* As many columns as a call takes, whose messages do cost. */
    if (agreed->desc.row_len > 1)
        sliced.partition.columns = (uint64_t)sar_forecast_slices(scheme, agreed).columns;
    double rise = seconds_at(scheme, &sliced, beta * (1 + step)) - seconds_at(scheme, &sliced, beta);
    return rise / (beta * step);
}
