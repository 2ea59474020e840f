/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's driver of Algorithm 1: run, look for overflow, run again with more memory, extract. */

#include "hash/hierarchical.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* LEAST_SERIAL: a part of few occurrences may be far from its mean. */
enum { SERIAL_SHARE = 10, LEAST_SERIAL = 16 };

/* sar_hash_range takes 32 bits. A part with more occurrences fills up its serial memory instead. */
static const size_t most_parallel = UINT32_MAX;

struct job {
    const struct sar_hash_memory *memory;
    const struct sar_map *map;
    const struct sar_hash_input *input;
    unsigned long long *totals;
};

/* For sorting with qsort, which gives its comparison no context. */
struct entry {
    uint64_t index;
    size_t position;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t serial_for(size_t parallel)
{
    return parallel / SERIAL_SHARE > LEAST_SERIAL ? parallel / SERIAL_SHARE : LEAST_SERIAL;
}

struct sar_hierarchical sar_hierarchical_defaults(size_t nnz, uint32_t parts, uint32_t seed)
{
    struct sar_hierarchical how = { .hashes = 3, .cell_size = nnz < UINT32_MAX ? 4 : 8, .seed = seed };
    size_t twice = 2 * (nnz / parts + (nnz % parts != 0));
    how.parallel = least(twice, most_parallel);
    how.serial = serial_for(twice);
    return how;
}

/* Serial memory has a tenth of a part's total, doubled with each run: the fourth rerun holds the total in
 * serial memory alone. */
enum sar_status sar_hash_layout(const struct sar_hierarchical *how, uint32_t parts, unsigned run,
                                const unsigned long long *totals, size_t *first, size_t *serial)
{
    size_t cell = 0;
    for (uint32_t p = 0; p < parts; p++) {
        size_t scaled = run == 0 ? how->parallel : (size_t)totals[p] << run;
        size_t parallel = least(scaled, most_parallel);
        size_t appended = run == 0 ? how->serial : serial_for(scaled);
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
        if (memory->appends[p] > memory->first[p + 1] - memory->serial[p])
            return true;
    }
    return false;
}

static void hash_range(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    for (size_t i = begin; i < end; i++)
        sar_hash_one(job->memory, job->map, job->input, i);
}

static void count_range(void *context, size_t begin, size_t end)
{
    const struct job *job = context;
    for (size_t i = begin; i < end; i++)
        sar_hash_count(job->map, job->input, i, job->totals);
}

static void each(const struct sar_hierarchical *how, sar_range_fn *body, struct job *job)
{
    if (how->each != NULL)
        how->each(job->input->nnz, body, job);
    else
        body(job, 0, job->input->nnz);
}

static enum sar_status take_memory(const struct job *job, unsigned run, struct sar_arena *arena,
                                   struct sar_hash_memory *memory)
{
    uint32_t parts = job->map->parts;
    void *first, *serial, *appends;
    SAR_TRY(sar_arena_take(arena, (size_t)parts + 1, sizeof(size_t), &first));
    SAR_TRY(sar_arena_take(arena, parts, sizeof(size_t), &serial));
    SAR_TRY(sar_arena_take_zeroed(arena, parts, sizeof *memory->appends, &appends));
    SAR_TRY(sar_hash_layout(&memory->how, parts, run, job->totals, first, serial));
    memory->first = first;
    memory->serial = serial;
    memory->appends = appends;
    return sar_arena_take_zeroed(arena, memory->first[parts], memory->how.cell_size, &memory->cells);
}

/* Leave every occurrence in a cell. */
static enum sar_status fill_cells(struct job *job, struct sar_arena *arena, struct sar_hash_memory *memory,
                                  unsigned *reruns)
{
    uint32_t parts = job->map->parts;
    for (unsigned run = 0;; run++) {
        assert(run <= SAR_MOST_RERUNS);
        SAR_TRY(take_memory(job, run, arena, memory));
        each(&memory->how, hash_range, job);
        if (!sar_hash_overflowed(memory, parts)) {
            *reruns = run;
            return SAR_OK;
        }
        if (job->totals == NULL) {
            void *totals;
            SAR_TRY(sar_arena_take_zeroed(arena, parts, sizeof *job->totals, &totals));
            job->totals = totals;
            each(&memory->how, count_range, job);
        }
    }
}

/* The paper's nonzero(x[p]). */
static void collect(const struct sar_hash_memory *memory, uint32_t parts, struct sar_hash_output *out)
{
    size_t n = 0;
    for (uint32_t p = 0; p < parts; p++) {
        out->first[p] = n;
        for (size_t i = memory->first[p]; i < memory->first[p + 1]; i++) {
            bool narrow = memory->how.cell_size == 4;
            uint64_t mark = narrow ? ((uint32_t *)memory->cells)[i] : ((uint64_t *)memory->cells)[i];
            if (mark != 0)
                out->position[n++] = (size_t)(mark - 1);
        }
        out->serial += (size_t)memory->appends[p];
    }
    out->first[parts] = n;
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

static enum sar_status sort(const struct job *job, struct sar_arena *arena, struct sar_hash_output *out)
{
    void *memory;
    size_t nnz = job->input->nnz;
    SAR_TRY(sar_arena_take(arena, nnz, sizeof(struct entry), &memory));
    struct entry *entries = memory;
    for (size_t i = 0; i < nnz; i++)
        entries[i] = (struct entry){ sar_hash_index(job->input, out->position[i]), out->position[i] };
    for (uint32_t p = 0; p < job->map->parts; p++)
        qsort(entries + out->first[p], out->first[p + 1] - out->first[p], sizeof *entries, compare);
    for (size_t i = 0; i < nnz; i++)
        out->position[i] = entries[i].position;
    return SAR_OK;
}

static void gather(const void *from, size_t size, const size_t *position, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++)
        memcpy((char *)to + i * size, (const char *)from + position[i] * size, size);
}

static enum sar_status extract(const struct job *job, struct sar_arena *arena, struct sar_hash_output *out)
{
    const struct sar_hash_input *input = job->input;
    void *first, *position;
    SAR_TRY(sar_arena_take(arena, (size_t)job->map->parts + 1, sizeof *out->first, &first));
    SAR_TRY(sar_arena_take(arena, input->nnz, sizeof *out->position, &position));
    SAR_TRY(sar_arena_take(arena, input->nnz, input->index_size, &out->index));
    if (input->value != NULL)
        SAR_TRY(sar_arena_take(arena, input->nnz, input->value_size, &out->value));
    out->first = first;
    out->position = position;
    collect(job->memory, job->map->parts, out);
    assert(out->first[job->map->parts] == input->nnz);
    if (job->memory->how.sorted)
        SAR_TRY(sort(job, arena, out));
    gather(input->index, input->index_size, out->position, input->nnz, out->index);
    if (input->value != NULL)
        gather(input->value, input->value_size, out->position, input->nnz, out->value);
    return SAR_OK;
}

enum sar_status sar_hierarchical_hash(const struct sar_hierarchical *how, const struct sar_map *map,
                                      const struct sar_hash_input *input, struct sar_arena *arena,
                                      struct sar_hash_output *out)
{
    assert(how->hashes >= 1 && how->hashes <= SAR_MOST_HASHES);
    assert(how->cell_size == 8 || input->nnz < UINT32_MAX);
    struct sar_hash_memory memory = { .how = *how };
    memory.wide_key = how->paper ? map->count > UINT32_MAX : how->cell_size == 8;
    struct job job = { .memory = &memory, .map = map, .input = input };
    struct sar_hash_output made = { 0 };
    SAR_TRY(fill_cells(&job, arena, &memory, &made.reruns));
    SAR_TRY(extract(&job, arena, &made));
    *out = made;
    return SAR_OK;
}
