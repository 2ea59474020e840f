/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of the cells of hierarchical hashing. The library and the plug-in for devices contain this file. */

#include "hash/hierarchical.h"

/* SERIAL_SHARE: r1 / r2. LEAST_SERIAL: smallest r2. With few occurrences, the number in one part may exceed
 * the mean by a large factor. */
enum { SERIAL_SHARE = 10, LEAST_SERIAL = 16 };

/* Most parallel cells of a part, since sar_hash_range takes 32 bits. Occurrences beyond that go to serial
 * memory. */
static const size_t most_parallel = UINT32_MAX;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t serial_for(size_t parallel)
{
    return parallel / SERIAL_SHARE > LEAST_SERIAL ? parallel / SERIAL_SHARE : LEAST_SERIAL;
}

struct sar_hierarchical_params sar_hierarchical_params_make(size_t nnz, uint32_t parts, uint32_t seed)
{
    struct sar_hierarchical_params params = { .hashes = 3,
                                              .cell_size = nnz < UINT32_MAX ? 4 : 8,
                                              .seed = seed };
    size_t twice = 2 * (nnz / parts + (nnz % parts != 0));
    params.parallel_cells = smaller(twice, most_parallel);
    params.serial_cells = serial_for(twice);
    return params;
}

/* In run n > 0 a part has total << n parallel cells, and a tenth of that number of serial cells. In run 4 the
 * serial cells alone suffice for the total, so that run cannot overflow. */
enum sar_status sar_hash_layout(const struct sar_hierarchical_params *params, uint32_t parts, unsigned run,
                                const unsigned long long *totals, size_t *first, size_t *serial)
{
    size_t cell = 0;
    for (uint32_t p = 0; p < parts; p++) {
        size_t scaled = run == 0 ? params->parallel_cells : (size_t)totals[p] << run;
        size_t parallel = smaller(scaled, most_parallel);
        size_t appended = run == 0 ? params->serial_cells : serial_for(scaled);
        if (appended > SIZE_MAX - parallel || cell > SIZE_MAX - parallel - appended)
            return SAR_NO_MEMORY;
        first[p] = cell;
        serial[p] = cell + parallel;
        cell += parallel + appended;
    }
    first[parts] = cell;
    return SAR_OK;
}

bool sar_hash_overflowed(const struct sar_hash_memory *memory, uint32_t parts)
{
    for (uint32_t p = 0; p < parts; p++) {
        if (memory->serial_count[p] > memory->first[p + 1] - memory->first_serial[p])
            return true;
    }
    return false;
}
