/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "wire/wire.h"

const struct sar_wire *const sar_wires[] = { &sar_wire_coo, &sar_wire_hash_bitmap, &sar_wire_dense, NULL };

const struct sar_wire *sar_wire_find(const char *name)
{
    for (size_t i = 0; sar_wires[i] != NULL; i++)
        if (strcmp(sar_wires[i]->name, name) == 0)
            return sar_wires[i];
    return NULL;
}

static double price_of(const struct sar_wire *wire, const struct sar_layout *layout, uint64_t nnz,
                       struct sar_wire_price price)
{
    return (double)wire->bytes(layout, nnz) * price.beta + wire->work(layout, (double)nnz) * price.gamma;
}

const struct sar_wire *sar_wire_cheapest(const struct sar_layout *layout, uint64_t nnz,
                                         struct sar_wire_price price)
{
    const struct sar_wire *best = sar_wires[0];
    for (size_t i = 1; sar_wires[i] != NULL; i++)
        if (price_of(sar_wires[i], layout, nnz, price) < price_of(best, layout, nnz, price))
            best = sar_wires[i];
    return best;
}
