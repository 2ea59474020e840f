/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions from agreed numbers: formats of messages, their cost, times of exchanges, loads of parts. */

#include "scheme/engine/agreed.h"

#include <math.h>

#include "base/config.h"
#include "wire/message.h"

enum {
    MAX_GRAIN = 256, /* elements of a block */
    ROW_PASSES = 2   /* times that the bytes of a row are read and written: copied and encoded, or summed */
};

const char *const sar_collective_names[SAR_COLLECTIVES] = { "allreduce", "reduce_scatter", "allgather" };

static const double ROUNDING_WORK = 0.15; /* elements of one value for each value, at both ends together */

const char *sar_agreed_sparse_unsupported(const struct sar_agreed *agreed)
{
    return agreed->call.native ? NULL : "type or op";
}

/* gamma covers the first value of a row; the other values cost memory bandwidth. */
double sar_agreed_element_seconds(const struct sar_machine *machine, const struct sar_vec_desc *desc)
{
    double bytes = desc->row_len > 1 ? (double)(desc->element_size - desc->element_size / desc->row_len) : 0;
    return machine->gamma + ROW_PASSES * bytes * machine->memory;
}

double sar_agreed_value_seconds(const struct sar_agreed *agreed)
{
    struct sar_machine machine = agreed->machine;
    machine.gamma = 0;
    return fmax(agreed->machine.gamma -
                    sar_agreed_thread_ratio(agreed) * sar_agreed_element_seconds(&machine, &agreed->desc),
                0);
}

double sar_densification_at(const struct sar_densification *gamma, double k)
{
    int i = 1;
    if (k <= 1)
        return 1;
    while (i < gamma->points - 1 && gamma->ranks[i] < k)
        i++;
    if (i >= gamma->points || k >= gamma->ranks[gamma->points - 1])
        return gamma->ratio[gamma->points - 1];
    double low = log(gamma->ranks[i - 1]), high = log(gamma->ranks[i]), part = (log(k) - low) / (high - low);
    return exp(log(gamma->ratio[i - 1]) * (1 - part) + log(gamma->ratio[i]) * part);
}

struct sar_densification sar_densification_disjoint(int ranks)
{
    return (struct sar_densification){ .points = 2, .ranks = { 1, ranks }, .ratio = { 1, ranks } };
}

struct sar_densification sar_densification_independent(double density, int ranks)
{
    struct sar_densification gamma = { 0 };
    for (int64_t k = 1; k <= ranks; k = k < ranks && 2 * k > ranks ? ranks : 2 * k) {
        gamma.ranks[gamma.points] = (int)k;
        gamma.ratio[gamma.points++] = density > 0 ? -expm1((double)k * log1p(-density)) / density : 1;
    }
    return gamma;
}

double sar_agreed_union_nnz(const struct sar_agreed *agreed, double k)
{
    double nnz = agreed->data.nnz_mean * sar_densification_at(&agreed->data.densification, k);
    return fmin(nnz, (double)agreed->desc.count);
}

double sar_agreed_segment_imbalance(const struct sar_agreed *agreed, uint32_t n)
{
    const double *at = agreed->data.segment_imbalance;
    double before = 1;
    uint32_t segments = 1;
    for (int i = 0; i < SAR_IMBALANCE_POINTS && n > segments; i++, segments *= 2) {
        if (n <= 2 * segments)
            return fmax(before + (at[i] - before) * ((double)n / segments - 1), 1);
        before = fmax(at[i], 1);
    }
    return before;
}

struct sar_wire_layout sar_agreed_layout(const struct sar_agreed *agreed, uint64_t slots, unsigned index_size)
{
    size_t size = agreed->desc.element_size;
    return (struct sar_wire_layout){ .slots = slots,
                                     .element_size =
                                         agreed->wire.precision == SAR_PRECISION_FULL ? size : size / 2,
                                     .row_len = agreed->desc.row_len,
                                     .index_size = index_size,
                                     .zero_is_absent = agreed->call.dense_face,
                                     .precision = agreed->wire.precision };
}

static bool wants_smallest(const struct sar_agreed *agreed, bool pull)
{
    return pull ? agreed->wire.pull_smallest : agreed->wire.push_smallest;
}

/* Returns the format that settings or the scheme prescribe, or NULL: choose by price. Settings come first. */
static const struct sar_wire *fixed_wire(const struct sar_agreed *agreed, bool pull,
                                         const struct sar_wire_policy *policy)
{
    const struct sar_wire *forced = pull ? agreed->wire.pull : agreed->wire.push;
    return forced != NULL || wants_smallest(agreed, pull) || policy == NULL ? forced : policy->preferred;
}

static struct sar_wire_price price_of(const struct sar_agreed *agreed, bool pull,
                                      const struct sar_wire_policy *policy)
{
    double weight = policy == NULL || policy->work_weight <= 0 ? 1 : policy->work_weight;
    double unit = wants_smallest(agreed, pull) ? 0 : weight * sar_agreed_value_seconds(agreed);
    return (struct sar_wire_price){ agreed->machine.beta, unit, policy == NULL ? 0 : policy->block };
}

const struct sar_wire *sar_agreed_wire(const struct sar_agreed *agreed, bool pull,
                                       const struct sar_wire_policy *policy,
                                       const struct sar_wire_layout *layout, const struct sar_spvec *vec)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, policy);
    return fixed != NULL ? fixed : sar_wire_cheapest(layout, vec, price_of(agreed, pull, policy));
}

const struct sar_wire *sar_agreed_expected_wire(const struct sar_agreed *agreed, bool pull,
                                                const struct sar_wire_policy *policy,
                                                const struct sar_wire_layout *layout, double nnz)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, policy);
    return fixed != NULL ? fixed : sar_wire_cheapest_expected(layout, nnz, price_of(agreed, pull, policy));
}

/* Choose by bytes alone: the cost of coding on a device is unknown, and small beside that of the bytes. */
const struct sar_wire *sar_agreed_device_wire(const struct sar_agreed *agreed, bool pull,
                                              const struct sar_wire_layout *layout, size_t nnz)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, NULL);
    return fixed != NULL ? fixed : sar_wire_for_devices(layout, nnz);
}

static bool direction_allows_device(const struct sar_agreed *agreed, bool pull)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, NULL);
    return !wants_smallest(agreed, pull) && (fixed == NULL || fixed->codec_id != SAR_CODEC_NONE);
}

bool sar_agreed_allows_device(const struct sar_agreed *agreed)
{
    return agreed->wire.precision == SAR_PRECISION_FULL && direction_allows_device(agreed, false) &&
           direction_allows_device(agreed, true);
}

/* Returns the work of one value, in rows: the rows' gamma counts every value's bytes. */
static double value_work(const struct sar_agreed *agreed)
{
    return agreed->machine.gamma > 0 ? sar_agreed_value_seconds(agreed) / agreed->machine.gamma : 0;
}

/* Returns the work of rounding a row, or a slice of it, in values. */
static double rounding_work(const struct sar_wire_layout *layout)
{
    return layout->precision == SAR_PRECISION_FULL ? 0 : ROUNDING_WORK * (double)layout->row_len;
}

struct sar_cost sar_agreed_cost_with(const struct sar_agreed *agreed, bool pull,
                                     const struct sar_wire_policy *policy,
                                     const struct sar_wire_layout *layout, double nnz)
{
    const struct sar_wire *wire = sar_agreed_expected_wire(agreed, pull, policy, layout, nnz);
    unsigned block = policy == NULL ? 0 : policy->block;
    double work = block > 0 ? sar_wire_pull_cost(wire, layout, nnz, block) : sar_wire_cost(wire, layout, nnz);
    return (struct sar_cost){ SAR_MSG_HEADER_BYTES + sar_wire_expected(wire, layout, nnz),
                              (work + rounding_work(layout) * nnz) * value_work(agreed) };
}

struct sar_cost sar_agreed_cost(const struct sar_agreed *agreed, bool pull,
                                const struct sar_wire_layout *layout, double nnz)
{
    return sar_agreed_cost_with(agreed, pull, NULL, layout, nnz);
}

static bool has_levels(const struct sar_agreed *agreed)
{
    return agreed->topo.nodes > 1 && agreed->topo.nodes < agreed->machine.ranks;
}

static struct sar_link inter_link(const struct sar_agreed *agreed)
{
    return (struct sar_link){ agreed->machine.alpha, agreed->machine.overhead, agreed->machine.beta };
}

static struct sar_link intra_link(const struct sar_agreed *agreed)
{
    return (struct sar_link){ agreed->machine.intra_alpha, agreed->machine.intra_overhead,
                              agreed->machine.intra_beta };
}

struct sar_link sar_agreed_link(const struct sar_agreed *agreed, int distance)
{
    return has_levels(agreed) && distance < agreed->topo.node_ranks ? intra_link(agreed) : inter_link(agreed);
}

static double exchange(struct sar_link link, double messages, double bytes)
{
    double transfer = bytes * link.beta;
    if (messages < 1)
        return 0;
    return link.alpha + fmax(transfer, (messages - 1) * link.overhead + transfer / messages);
}

double sar_agreed_inter_exchange(const struct sar_agreed *agreed, double messages, double bytes)
{
    return exchange(inter_link(agreed), messages, bytes);
}

double sar_agreed_exchange(const struct sar_agreed *agreed, double messages, double bytes)
{
    double others = agreed->machine.ranks - 1, intra = agreed->topo.node_ranks - 1, inter = others - intra;
    if (!has_levels(agreed))
        return sar_agreed_inter_exchange(agreed, messages, bytes);
    return exchange(inter_link(agreed), messages * inter / others, bytes * inter / others) +
           exchange(intra_link(agreed), messages * intra / others, bytes * intra / others);
}

double sar_max_of_normal(double n)
{
    static const double means[] = { 0,     0.564, 1.029, 1.424, 1.766, 2.070, 2.344, 2.595,
                                    2.827, 3.044, 3.248, 3.442, 3.626, 3.802, 3.971 }; /* of 2^i */
    const int last = (int)(sizeof means / sizeof *means) - 2;
    double at = n > 1 ? log2(n) : 0;
    int i = at < last ? (int)at : last;
    return means[i] + (at - i) * (means[i + 1] - means[i]);
}

/* The load of a part is a sum over independent stripes, each of which gives it one of its p blocks by
 * chance. The variance of the load is the sum, over stripes, of the variance of the loads of a stripe's
 * blocks: at most their mean square, and less for one group as stripes fill up. */
double sar_agreed_max_load(const struct sar_agreed *agreed, double parts, double together, double groups)
{
    double count = (double)agreed->desc.count;
    double union_nnz = sar_agreed_union_nnz(agreed, together), total = groups * union_nnz;
    if (total == 0)
        return 1;
    double shared = groups > 1 ? 2 - sar_agreed_union_nnz(agreed, 2 * together) / union_nnz : 0;
    double excess = 1 + (groups - 1) * shared - union_nnz / count;
    double deviation = sqrt(parts * fmax(excess, 0) / total);
    return fmin(1 + sar_max_of_normal(parts) * deviation, count / union_nnz);
}

double sar_agreed_max_push_load(const struct sar_agreed *agreed, double parts)
{
    double max_load = sar_agreed_max_load(agreed, parts, 1, agreed->machine.ranks);
    return agreed->data.nnz_max > 0 ? fmax(max_load * agreed->data.nnz_mean / agreed->data.nnz_max, 1) : 1;
}

struct sar_partition_map sar_agreed_partition_map_of(const struct sar_agreed *agreed, uint32_t parts)
{
    double p = parts, nnz = fmax(agreed->data.nnz_mean, 1);
    enum sar_partition_kind kind =
        agreed->partition.kind < 0 ? SAR_PARTITION_HASH : (enum sar_partition_kind)agreed->partition.kind;
    unsigned grain =
        MAX_GRAIN; /* the limit is for the bound of the Zen paper's Theorem 2, not for the mean */
    while (grain > 1 && 1 + sqrt(2 * p * log(p) * grain / nnz) > agreed->partition.max_imbalance)
        grain /= 2;
    if (kind == SAR_PARTITION_HIERARCHICAL)
        grain = 1;
    if (agreed->partition.grain != SAR_AUTO)
        grain = (unsigned)agreed->partition.grain;
    return sar_partition_map_make(kind, agreed->desc.count, parts, grain, agreed->partition.seed);
}

struct sar_partition_map sar_agreed_block_map(const struct sar_agreed *agreed)
{
    return sar_partition_map_of_blocks(agreed->desc.count, (uint32_t)agreed->machine.ranks,
                                       agreed->call.block);
}

struct sar_partition_map sar_agreed_partition_map(const struct sar_agreed *agreed)
{
    return sar_agreed_partition_map_of(agreed, (uint32_t)agreed->machine.ranks);
}
