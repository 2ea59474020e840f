/* SPDX-License-Identifier: BSD-3-Clause */
#include "scheme/agreed.h"

#include <math.h>

#include "base/config.h"
#include "wire/message.h"

enum { LARGEST_GRAIN = 256, ROW_PASSES = 4 };

static const double ROUNDING_WORK = 0.15; /* of a value, at both ends together */

/* A row's further values pass through memory, from where they stand into a message, out of another, into a
 * sum and on. */
double sar_element_seconds(const struct sar_machine *machine, const struct sar_shape *shape)
{
    double bytes = shape->row > 1 ? (double)(shape->element_size - shape->element_size / shape->row) : 0;
    return machine->gamma + ROW_PASSES * bytes * machine->memory;
}

double sar_gamma_at(const struct sar_gamma *gamma, double k)
{
    int i = 1;
    if (k <= 1)
        return 1;
    while (i < gamma->entries - 1 && gamma->ranks[i] < k)
        i++;
    if (i >= gamma->entries || k >= gamma->ranks[gamma->entries - 1])
        return gamma->ratio[gamma->entries - 1];
    double low = log(gamma->ranks[i - 1]), high = log(gamma->ranks[i]), part = (log(k) - low) / (high - low);
    return exp(log(gamma->ratio[i - 1]) * (1 - part) + log(gamma->ratio[i]) * part);
}

struct sar_gamma sar_gamma_independent(double density, int ranks)
{
    struct sar_gamma gamma = { 0 };
    for (int64_t k = 1; k <= ranks; k = k < ranks && 2 * k > ranks ? ranks : 2 * k) {
        gamma.ranks[gamma.entries] = (int)k;
        gamma.ratio[gamma.entries++] = density > 0 ? -expm1((double)k * log1p(-density)) / density : 1;
    }
    return gamma;
}

double sar_agreed_union(const struct sar_agreed *agreed, double k)
{
    double elements = agreed->nnz_mean * sar_gamma_at(&agreed->gamma, k);
    return fmin(elements, (double)agreed->shape.count);
}

struct sar_layout sar_agreed_layout(const struct sar_agreed *agreed, uint64_t span, unsigned index_size)
{
    size_t size = agreed->shape.element_size;
    return (struct sar_layout){ .span = span,
                                .element_size = agreed->values == SAR_VALUES_FULL ? size : size / 2,
                                .index_size = index_size,
                                .zero_is_absent = agreed->dense_face,
                                .values = agreed->values };
}

static bool fewest(const struct sar_agreed *agreed, bool pull)
{
    return pull ? agreed->pull_smallest : agreed->push_smallest;
}

/* What was asked for goes before the scheme's own format; NULL leaves it to the price. */
static const struct sar_wire *fixed_wire(const struct sar_agreed *agreed, bool pull,
                                         const struct sar_wire *own)
{
    const struct sar_wire *forced = pull ? agreed->pull_wire : agreed->push_wire;
    return forced != NULL || fewest(agreed, pull) ? forced : own;
}

static struct sar_wire_price price_of(const struct sar_agreed *agreed, bool pull)
{
    return (struct sar_wire_price){ agreed->machine.beta, fewest(agreed, pull) ? 0 : agreed->machine.gamma };
}

const struct sar_wire *sar_agreed_wire(const struct sar_agreed *agreed, bool pull, const struct sar_wire *own,
                                       const struct sar_layout *layout, const struct sar_run *run)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, own);
    return fixed != NULL ? fixed : sar_wire_cheapest(layout, run, price_of(agreed, pull));
}

/* What coding costs a device is not known, and little beside what bytes cost. */
const struct sar_wire *sar_agreed_device_wire(const struct sar_agreed *agreed, bool pull,
                                              const struct sar_layout *layout, size_t nnz)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, NULL);
    return fixed != NULL ? fixed : sar_wire_of_devices(layout, nnz);
}

static bool suits_devices(const struct sar_agreed *agreed, bool pull)
{
    const struct sar_wire *fixed = fixed_wire(agreed, pull, NULL);
    return !fewest(agreed, pull) && (fixed == NULL || fixed->packing != SAR_PACKING_NONE);
}

bool sar_agreed_suits_devices(const struct sar_agreed *agreed)
{
    return agreed->values == SAR_VALUES_FULL && suits_devices(agreed, false) && suits_devices(agreed, true);
}

struct sar_cost sar_agreed_cost_in(const struct sar_agreed *agreed, bool pull, const struct sar_wire *own,
                                   const struct sar_layout *layout, double nnz)
{
    const struct sar_wire *wire = fixed_wire(agreed, pull, own);
    if (wire == NULL)
        wire = sar_wire_likely(layout, nnz, price_of(agreed, pull));
    double rounding = layout->values == SAR_VALUES_FULL ? 0 : ROUNDING_WORK * (double)agreed->shape.row;
    return (struct sar_cost){ SAR_HEADER_BYTES + sar_wire_expected(wire, layout, nnz),
                              wire->work(layout, nnz) + rounding * nnz };
}

struct sar_cost sar_agreed_cost(const struct sar_agreed *agreed, bool pull, const struct sar_layout *layout,
                                double nnz)
{
    return sar_agreed_cost_in(agreed, pull, NULL, layout, nnz);
}

static bool has_levels(const struct sar_agreed *agreed)
{
    return agreed->nodes > 1 && agreed->nodes < agreed->machine.ranks;
}

static struct sar_link far_link(const struct sar_agreed *agreed)
{
    return (struct sar_link){ agreed->machine.alpha, agreed->machine.overhead, agreed->machine.beta };
}

static struct sar_link near_link(const struct sar_agreed *agreed)
{
    return (struct sar_link){ agreed->machine.near_alpha, agreed->machine.near_overhead,
                              agreed->machine.near_beta };
}

struct sar_link sar_agreed_link(const struct sar_agreed *agreed, int distance)
{
    return has_levels(agreed) && distance < agreed->node_ranks ? near_link(agreed) : far_link(agreed);
}

static double exchange(struct sar_link link, double messages, double bytes)
{
    double transfer = bytes * link.beta;
    if (messages < 1)
        return 0;
    return link.alpha + fmax(transfer, (messages - 1) * link.overhead + transfer / messages);
}

double sar_agreed_far_exchange(const struct sar_agreed *agreed, double messages, double bytes)
{
    return exchange(far_link(agreed), messages, bytes);
}

double sar_agreed_exchange(const struct sar_agreed *agreed, double messages, double bytes)
{
    double others = agreed->machine.ranks - 1, near = agreed->node_ranks - 1, far = others - near;
    if (!has_levels(agreed))
        return sar_agreed_far_exchange(agreed, messages, bytes);
    return exchange(far_link(agreed), messages * far / others, bytes * far / others) +
           exchange(near_link(agreed), messages * near / others, bytes * near / others);
}

/* A part's load is a sum over independent lines, each of which gives it one of p places by chance: its
 * variance is that of the loads of a line's places, over all lines: at most their mean square, and for one
 * group less as lines are full. */
double sar_agreed_fullest(const struct sar_agreed *agreed, double together, double groups)
{
    double parts = agreed->machine.ranks, count = (double)agreed->shape.count;
    double each = sar_agreed_union(agreed, together), all = groups * each;
    if (all == 0)
        return 1;
    double shared = groups > 1 ? 2 - sar_agreed_union(agreed, 2 * together) / each : 0;
    double place = 1 + (groups - 1) * shared - each / count;
    return fmin(1 + sqrt(2 * log(parts) * parts * fmax(place, 0) / all), count / each);
}

double sar_agreed_fullest_push(const struct sar_agreed *agreed)
{
    double fullest = sar_agreed_fullest(agreed, 1, agreed->machine.ranks);
    return agreed->nnz_max > 0 ? fmax(fullest * agreed->nnz_mean / agreed->nnz_max, 1) : 1;
}

struct sar_map sar_agreed_map(const struct sar_agreed *agreed)
{
    double ranks = agreed->machine.ranks, nnz = fmax(agreed->nnz_mean, 1);
    enum sar_partition kind =
        agreed->partition < 0 ? SAR_PARTITION_HASH : (enum sar_partition)agreed->partition;
    unsigned grain = LARGEST_GRAIN;
    while (grain > 1 && 1 + sqrt(2 * ranks * log(ranks) * grain / nnz) > agreed->imbalance)
        grain /= 2;
    if (agreed->grain != SAR_AUTO)
        grain = (unsigned)agreed->grain;
    return sar_map_make(kind, agreed->shape.count, (uint32_t)agreed->machine.ranks, grain, agreed->seed);
}
