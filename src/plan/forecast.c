/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/forecast.h"

#include <math.h>
#include <string.h>

static struct sar_shape shape_of(const struct sar_forecast *f)
{
    return (struct sar_shape){ .count = f->count,
                               .row = f->row,
                               .element_size = f->row * sizeof(float),
                               .index_size = sar_index_size(f->count),
                               .base = SAR_FLOAT,
                               .op = SAR_SUM,
                               .kernels = sar_kernels_of(SAR_FLOAT, SAR_SUM) };
}

/* Of MPI_Allreduce the best that an MPI can do: a tree for what is small, a ring for what is large; of one
 * rank a copy. */
static struct sar_machine machine_of(const struct sar_forecast *f, const struct sar_shape *shape,
                                     double nodes)
{
    struct sar_machine m = f->machine;
    double each = m.ranks / nodes;
    m.gamma = sar_element_seconds(&f->machine, shape);
    m.dense_alpha = 2 * log2(nodes) * m.alpha + 2 * log2(each) * m.near_alpha;
    m.dense_beta = 2 * (nodes - 1) / nodes * m.beta / each + 2 * (each - 1) / each * m.near_beta;
    if (m.ranks == 1)
        m.dense_beta = m.memory;
    return m;
}

struct sar_agreed sar_forecast_agreed(const struct sar_forecast *f, const struct sar_config *config)
{
    struct sar_shape shape = shape_of(f);
    double nnz = f->density * (double)f->count;
    int each = f->node_ranks, nodes = (f->machine.ranks + each - 1) / each;
    bool travels = f->machine.ranks > 1;
    return (struct sar_agreed){
        .shape = shape,
        .machine = machine_of(f, &shape, nodes),
        .nodes = nodes,
        .node_ranks = each < f->machine.ranks ? each : f->machine.ranks,
        .share_memory = each > 1 || !travels,
        .nnz_mean = nnz,
        .nnz_max = nnz,
        .gamma = f->gamma,
        .dense_face = f->dense_face,
        .native = true,
        .values = travels ? (enum sar_values)config->wire_values : SAR_VALUES_FULL,
        .imbalance = config->imbalance,
        .skewness = 1,
        .segment = config->segment,
        .throttle = config->throttle,
        .partition = sar_partition_find(config->partition),
        .grain = config->grain,
        .push_wire = sar_wire_find(config->push_wire),
        .pull_wire = sar_wire_find(config->pull_wire),
        .push_smallest = strcmp(config->push_wire, "smallest") == 0,
        .pull_smallest = strcmp(config->pull_wire, "smallest") == 0,
    };
}

/* Without messages, since their number may follow the bytes, and with nothing hidden behind anything. */
static double seconds_at(const struct sar_scheme *scheme, const struct sar_agreed *agreed, double beta)
{
    struct sar_agreed a = *agreed;
    a.nodes = 1;
    a.machine.alpha = a.machine.overhead = a.machine.near_overhead = 0;
    a.machine.dense_alpha = 0;
    a.machine.dense_beta *= beta / a.machine.beta;
    a.machine.beta = beta;
    return scheme->seconds(&a);
}

double sar_forecast_bytes(const struct sar_scheme *scheme, const struct sar_agreed *agreed)
{
    const double step = 1e-4;
    double beta = agreed->machine.beta;
    if (agreed->machine.ranks == 1)
        return 0; /* a copy takes time by the byte, but sends none */
    double rise = seconds_at(scheme, agreed, beta * (1 + step)) - seconds_at(scheme, agreed, beta);
    return rise / (beta * step);
}
