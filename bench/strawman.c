/* SPDX-License-Identifier: BSD-3-Clause */
#include "strawman.h"

#include <math.h>
#include <string.h>

/* The paper's x[p][q] = idx for all in parallel; as in the library, a cell holds a position plus 1. */
static void fill(const struct perf_strawman *how, const struct sar_hash_input *input, uint32_t *cell)
{
    uint32_t cells = (uint32_t)(how->cells * how->parts);

    for (size_t i = 0; i < input->nnz; i++) {
        uint64_t index = sar_hash_index(input, i);
        uint32_t hash = input->index_size == 4 ? sar_murmur3((uint32_t)index, how->seed)
                                               : sar_murmur3_wide(index, how->seed);
        cell[sar_hash_range(hash, cells)] = (uint32_t)i + 1;
    }
}

/* nonzero(x[p]), part after part. */
static void collect(const struct perf_strawman *how, const uint32_t *cell, struct sar_hash_output *out)
{
    size_t n = 0;

    for (uint32_t p = 0; p < how->parts; p++) {
        out->first[p] = n;
        for (size_t i = p * how->cells; i < (p + 1) * how->cells; i++)
            if (cell[i] != 0)
                out->position[n++] = cell[i] - 1;
    }
    out->first[how->parts] = n;
}

static void gather(const void *from, size_t size, const struct sar_hash_output *out, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)to + i * size, (const char *)from + out->position[i] * size, size);
}

enum sar_status perf_strawman_hash(const struct perf_strawman *how, const struct sar_hash_input *input,
                                   struct sar_arena *arena, struct sar_hash_output *out)
{
    struct sar_hash_output made = { 0 };
    void *cell, *first, *position;

    SAR_TRY(sar_arena_take_zeroed(arena, how->cells * how->parts, sizeof(uint32_t), &cell));
    SAR_TRY(sar_arena_take(arena, (size_t)how->parts + 1, sizeof *made.first, &first));
    SAR_TRY(sar_arena_take(arena, input->nnz, sizeof *made.position, &position));
    SAR_TRY(sar_arena_take(arena, input->nnz, input->index_size, &made.index));
    SAR_TRY(sar_arena_take(arena, input->nnz, input->value_size, &made.value));
    made.first = first;
    made.position = position;
    fill(how, input, cell);
    collect(how, cell, &made);
    gather(input->index, input->index_size, &made, made.first[how->parts], made.index);
    gather(input->value, input->value_size, &made, made.first[how->parts], made.value);
    *out = made;
    return SAR_OK;
}

double perf_strawman_loss(double c)
{
    return 1 + c * expm1(-1 / c);
}
