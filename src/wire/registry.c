/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "wire/wire.h"

/* Headers give places in this list: what some builds lack comes last. */
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

uint64_t sar_wire_bytes(const struct sar_wire *wire, const struct sar_layout *layout,
                        const struct sar_run *run)
{
    uint64_t least = wire->least(layout, run->nnz);
    return wire->bytes == NULL || least > (uint64_t)PTRDIFF_MAX ? least : wire->bytes(layout, run);
}

/* A mean is no whole number: it lies between the two next to it. */
double sar_wire_expected(const struct sar_wire *wire, const struct sar_layout *layout, double nnz)
{
    if (wire->expected != NULL)
        return wire->expected(layout, nnz);
    double below = floor(nnz), bytes = (double)wire->least(layout, (uint64_t)below);
    if (nnz > below)
        bytes += (nnz - below) * ((double)wire->least(layout, (uint64_t)below + 1) - bytes);
    return bytes;
}

/* Indices are only looked at where the fewest bytes they might take would win. */
const struct sar_wire *sar_wire_cheapest(const struct sar_layout *layout, const struct sar_run *run,
                                         struct sar_wire_price price)
{
    const struct sar_wire *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        const struct sar_wire *wire = sar_wires[i];
        double work = wire->work(layout, (double)run->nnz) * price.gamma;
        if (best != NULL && (double)wire->least(layout, run->nnz) * price.beta + work >= least)
            continue;
        double cost = (double)sar_wire_bytes(wire, layout, run) * price.beta + work;
        if (best == NULL || cost < least) {
            best = wire;
            least = cost;
        }
    }
    return best;
}

const struct sar_wire *sar_wire_of_devices(const struct sar_layout *layout, size_t nnz)
{
    const struct sar_wire *best = &sar_wire_coo;
    for (size_t i = 0; sar_wires[i] != NULL; i++)
        if (sar_wires[i]->packing != SAR_PACKING_NONE &&
            sar_wires[i]->least(layout, nnz) < best->least(layout, nnz))
            best = sar_wires[i];
    return best;
}

const struct sar_wire *sar_wire_likely(const struct sar_layout *layout, double nnz,
                                       struct sar_wire_price price)
{
    const struct sar_wire *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        double cost = sar_wire_expected(sar_wires[i], layout, nnz) * price.beta +
                      sar_wires[i]->work(layout, nnz) * price.gamma;
        if (best == NULL || cost < least) {
            best = sar_wires[i];
            least = cost;
        }
    }
    return best;
}
