/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "shape.h"

enum { WORDS = 8 }; /* of a cache line */

/* Where sums end up, so that what they are made of must be read. */
static volatile uint64_t sink;

void perf_read(const void *data, size_t bytes)
{
    uint64_t word[WORDS], sum[WORDS] = { 0 }, all = 0;
    const char *at = data, *end = at + bytes / sizeof word * sizeof word;

    for (; at < end; at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int k = 0; k < WORDS; k++)
            sum[k] ^= word[k];
    }
    memset(word, 0, sizeof word);
    memcpy(word, at, bytes % sizeof word);
    for (int k = 0; k < WORDS; k++)
        all ^= sum[k] ^ word[k];
    sink = all;
}

static bool is_dense(const struct perf_case *c)
{
    return c->options->interface == PERF_DENSE;
}

int perf_memory_sharers(const struct perf_case *c)
{
    return (c->world->ranks + c->world->nodes - 1) / c->world->nodes;
}

void perf_memory_open(struct perf_memory *memory, const struct perf_case *c, const struct perf_tensor *tensor,
                      int sharers)
{
    *memory = (struct perf_memory){ .bytes = c->index_bytes + c->element_bytes };
    memory->nnz_out = (size_t)perf_shape_union(c, &tensor->first, NULL);
    if (!is_dense(c)) {
        memory->part_bytes = memory->nnz_out * memory->bytes / (size_t)sharers;
        memory->part = perf_block_make(memory->part_bytes, 0);
    } else if (c->options->in_place) {
        memory->present = perf_alloc(memory->nnz_out, sizeof *memory->present);
        perf_shape_union(c, &tensor->first, memory->present);
    }
}

void perf_memory_close(struct perf_memory *memory)
{
    perf_block_free(&memory->part);
    free(memory->present);
    memory->present = NULL;
}

void perf_memory_read(const struct perf_case *c, const struct perf_step *step, const void *recv)
{
    if (is_dense(c)) {
        perf_read(c->options->in_place ? recv : step->dense.data, perf_case_bytes(c));
        return;
    }
    perf_read(step->index.data, step->nnz * c->index_bytes);
    perf_read(step->values.data, step->nnz * c->element_bytes);
}

/* Elements of a size that the compiler knows. */
static void write_words(const struct perf_memory *memory, uint32_t *recv)
{
    for (size_t i = 0; i < memory->nnz_out; i++)
        recv[memory->present[i]] = 0;
}

static void write_elements(const struct perf_memory *memory, size_t bytes, char *recv)
{
    for (size_t i = 0; i < memory->nnz_out; i++)
        memset(recv + memory->present[i] * bytes, 0, bytes);
}

void perf_memory_write(const struct perf_memory *memory, const struct perf_case *c, void *recv)
{
    if (!is_dense(c))
        memset(memory->part.data, 0, memory->part_bytes);
    else if (!c->options->in_place)
        memset(recv, 0, perf_case_bytes(c));
    else if (c->element_bytes == sizeof(uint32_t))
        write_words(memory, recv);
    else
        write_elements(memory, c->element_bytes, recv);
}
