/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of formats, and the choice of the cheapest one. */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "wire/wire.h"

/* In units of gamma, by the costs `assemble` of bench/results/costs.json. */
static const double MERGE_WORK = 0.21, BLOCK_WORK = 2.1;

/* Message headers hold positions in this list, so a format that is optional comes last. */
const struct sar_wire *const sar_wires[] = {
    &sar_wire_coo,
    &sar_wire_elias_fano,
    &sar_wire_hash_bitmap,
    &sar_wire_bitmap,
    &sar_wire_block,
    &sar_wire_dense,
#ifdef HAVE_STREAMVBYTE
    &sar_wire_packed,
#endif
    NULL,
};

const struct sar_wire *sar_wire_find(const char *name)
{
    for (size_t i = 0; sar_wires[i] != NULL; i++)
        if (strcmp(sar_wires[i]->name, name) == 0)
            return sar_wires[i];
    return NULL;
}

uint16_t sar_wire_number(const struct sar_wire *wire)
{
    uint16_t i = 0;
    while (sar_wires[i] != wire)
        i++;
    return i;
}

const struct sar_wire *sar_wire_of_number(uint16_t number)
{
    return number < sizeof sar_wires / sizeof *sar_wires - 1 ? sar_wires[number] : NULL;
}

uint64_t sar_wire_bytes(const struct sar_wire *wire, const struct sar_wire_layout *layout,
                        const struct sar_spvec *vec)
{
    uint64_t min_bytes = wire->min_bytes(layout, vec->nnz);
    return wire->exact_bytes == NULL || min_bytes > (uint64_t)PTRDIFF_MAX ? min_bytes
                                                                          : wire->exact_bytes(layout, vec);
}

/* nnz may be a mean, which is no integer: interpolate between the integers around it. */
double sar_wire_expected(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz)
{
    if (wire->expected_bytes != NULL)
        return wire->expected_bytes(layout, nnz);
    double below = floor(nnz), bytes = (double)wire->min_bytes(layout, (uint64_t)below);
    if (nnz > below)
        bytes += (nnz - below) * ((double)wire->min_bytes(layout, (uint64_t)below + 1) - bytes);
    return bytes;
}

/* Returns the slots that are scanned. */
static double scanned(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz)
{
    return (double)layout->slots * (wire->scanned_share == NULL ? 1 : wire->scanned_share(layout, nnz));
}

double sar_wire_cost(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz)
{
    return wire->nnz_cost * nnz + wire->slot_cost * scanned(wire, layout, nnz);
}

double sar_wire_merge_work(double nnz, double blocks)
{
    return MERGE_WORK * nnz + BLOCK_WORK * blocks;
}

double sar_wire_pull_cost(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz,
                          unsigned block)
{
    double placing = wire->pulls_bits ? 0 : sar_wire_merge_work(nnz, (double)layout->slots / block);
    return wire->pull_nnz_cost * nnz + wire->pull_slot_cost * scanned(wire, layout, nnz) + placing;
}

/* Work has no price where values are rounded: who asks for that wants few bytes. */
static double seconds_of_work(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz,
                              struct sar_wire_price price)
{
    if (layout->precision != SAR_PRECISION_FULL)
        return 0;
    return price.gamma * (price.block > 0 ? sar_wire_pull_cost(wire, layout, nnz, price.block)
                                          : sar_wire_cost(wire, layout, nnz));
}

/* Counts the exact bytes, which reads all indices, only if the format's fewest bytes would win. */
const struct sar_wire *sar_wire_cheapest(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                         struct sar_wire_price price)
{
    const struct sar_wire *best = NULL;
    double min_cost = INFINITY;
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        const struct sar_wire *wire = sar_wires[i];
        double work = seconds_of_work(wire, layout, (double)vec->nnz, price);
        if (best != NULL && (double)wire->min_bytes(layout, vec->nnz) * price.beta + work >= min_cost)
            continue;
        double cost = (double)sar_wire_bytes(wire, layout, vec) * price.beta + work;
        if (best == NULL || cost < min_cost) {
            best = wire;
            min_cost = cost;
        }
    }
    return best;
}

const struct sar_wire *sar_wire_for_devices(const struct sar_wire_layout *layout, size_t nnz)
{
    const struct sar_wire *best = &sar_wire_coo;
    for (size_t i = 0; sar_wires[i] != NULL; i++)
        if (sar_wires[i]->codec_id != SAR_CODEC_NONE &&
            sar_wires[i]->min_bytes(layout, nnz) < best->min_bytes(layout, nnz))
            best = sar_wires[i];
    return best;
}

const struct sar_wire *sar_wire_cheapest_expected(const struct sar_wire_layout *layout, double nnz,
                                                  struct sar_wire_price price)
{
    const struct sar_wire *best = NULL;
    double min_cost = INFINITY;
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        double cost = sar_wire_expected(sar_wires[i], layout, nnz) * price.beta +
                      seconds_of_work(sar_wires[i], layout, nnz, price);
        if (best == NULL || cost < min_cost) {
            best = sar_wires[i];
            min_cost = cost;
        }
    }
    return best;
}
