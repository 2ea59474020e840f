/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithm 1 on the host: writes the occurrences to cells, repeats that with more memory if serial memory
 * overflows, and reads the lists from the cells. */

#include "hash/hierarchical.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512 /* occurrences whose parts are computed at a time */ };

struct hash_job {
    struct sar_hash_memory *memory;
    const struct sar_partition_map *map;
    const struct sar_hash_input *input;
    unsigned long long *totals;
};

/* Element of the array to sort. It includes the index, since qsort passes no input to the comparison. */
struct entry {
    uint64_t index;
    size_t position;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

SAR_CLONES static void locate_hash32(const struct sar_partition_map *map, const uint32_t *index, size_t n,
                                     uint32_t *part)
{
    struct sar_partition_map fixed = *map;
    fixed.kind = SAR_PARTITION_HASH;
    fixed.blocks_fit_32 = true;
    for (size_t i = 0; i < n; i++)
        part[i] = sar_partition_map_locate32(&fixed, index[i]).part;
}

/* h0 of some occurrences. */
static void locate(const struct hash_job *job, size_t from, size_t n, uint32_t *part)
{
    const struct sar_partition_map *map = job->map;
    if (map->kind == SAR_PARTITION_HASH && map->blocks_fit_32 && map->parts > 1 &&
        job->input->index_size == 4) {
        locate_hash32(map, (const uint32_t *)job->input->index + from, n, part);
        return;
    }
    for (size_t i = 0; i < n; i++)
        part[i] = sar_partition_map_locate(map, sar_hash_index(job->input, from + i)).part;
}

/* The copy of the memory's description tells the compiler that writes to cells do not change it. The common
 * parameters have a loop in which they are constants. */
SAR_INLINE void insert_as(const struct hash_job *job, bool exclusive, const uint32_t *part, size_t from,
                          size_t n)
{
    struct sar_hash_memory memory = *job->memory;
    memory.exclusive = exclusive;
    if (memory.params.cell_size == 4 && !memory.params.paper && !memory.key_is_64bit) {
        for (size_t i = 0; i < n; i++)
            sar_hash_insert_into(&memory, part[i], 0, from + i);
        return;
    }
    for (size_t i = 0; i < n; i++)
        sar_hash_insert_into(&memory, part[i], sar_hash_index(job->input, from + i), from + i);
}

static void hash_range(void *context, size_t begin, size_t end)
{
    const struct hash_job *job = context;
    uint32_t part[CHUNK];
    for (size_t n; begin < end; begin += n) {
        n = smaller(end - begin, CHUNK);
        locate(job, begin, n, part);
        if (job->memory->exclusive)
            insert_as(job, true, part, begin, n);
        else
            insert_as(job, false, part, begin, n);
    }
}

static void zero_range(void *context, size_t begin, size_t end)
{
    const struct hash_job *job = context;
    size_t size = job->memory->params.cell_size;
    memset((char *)job->memory->cells + begin * size, 0, (end - begin) * size);
}

static void count_range(void *context, size_t begin, size_t end)
{
    const struct hash_job *job = context;
    for (size_t i = begin; i < end; i++)
        sar_hash_count(job->map, job->input, i, job->totals);
}

static void for_all(size_t n, sar_range_fn *body, struct hash_job *job)
{
    const struct sar_hierarchical_params *params = &job->memory->params;
    if (params->parallel_for != NULL)
        params->parallel_for(n, body, job);
    else
        body(job, 0, n);
}

static enum sar_status take_memory(struct hash_job *job, unsigned run, struct sar_arena *arena)
{
    struct sar_hash_memory *memory = job->memory;
    uint32_t parts = job->map->parts;
    void *first, *serial, *appends;
    SAR_TRY(sar_arena_alloc(arena, (size_t)parts + 1, sizeof(size_t), &first));
    SAR_TRY(sar_arena_alloc(arena, parts, sizeof(size_t), &serial));
    SAR_TRY(sar_arena_alloc_zeroed(arena, parts, sizeof *memory->serial_count, &appends));
    SAR_TRY(sar_hash_layout(&memory->params, parts, run, job->totals, first, serial));
    memory->first = first;
    memory->first_serial = serial;
    memory->serial_count = appends;
    SAR_TRY(sar_arena_alloc(arena, memory->first[parts], memory->params.cell_size, &memory->cells));
    for_all(memory->first[parts], zero_range, job);
    return SAR_OK;
}

enum sar_status sar_hash_fill(const struct sar_hierarchical_params *params,
                              const struct sar_partition_map *map, const struct sar_hash_input *input,
                              struct sar_arena *arena, struct sar_hash_memory *memory, unsigned *reruns)
{
    struct hash_job job = { .memory = memory, .map = map, .input = input };
    assert(params->hashes >= 1 && params->hashes <= SAR_HASHES_MAX);
    assert(params->cell_size == 8 || input->nnz < UINT32_MAX);
    *memory = (struct sar_hash_memory){ .params = *params, .exclusive = params->parallel_for == NULL };
    memory->key_is_64bit = params->paper ? map->count > UINT32_MAX : params->cell_size == 8;
    for (unsigned run = 0;; run++) {
        assert(run <= SAR_RERUNS_MAX);
        SAR_TRY(take_memory(&job, run, arena));
        for_all(input->nnz, hash_range, &job);
        if (!sar_hash_overflowed(memory, map->parts)) {
            *reruns = run;
            return SAR_OK;
        }
        if (job.totals == NULL) {
            void *totals;
            SAR_TRY(sar_arena_alloc_zeroed(arena, map->parts, sizeof *job.totals, &totals));
            job.totals = totals;
            for_all(input->nnz, count_range, &job);
        }
    }
}

/* Writes the positions in the cells to out->position, part by part: nonzero(x[p]) in the paper. */
static void read_cells(const struct sar_hash_memory *memory, uint32_t parts, struct sar_hash_output *out)
{
    size_t n = 0;
    for (uint32_t p = 0; p < parts; p++) {
        out->first[p] = n;
        for (size_t i = memory->first[p]; i < memory->first[p + 1]; i++) {
            bool narrow = memory->params.cell_size == 4;
            uint64_t mark = narrow ? ((uint32_t *)memory->cells)[i] : ((uint64_t *)memory->cells)[i];
            if (mark != 0)
                out->position[n++] = (size_t)(mark - 1);
        }
        out->serial_count += (size_t)memory->serial_count[p];
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

static enum sar_status sort(const struct hash_job *job, struct sar_arena *arena, struct sar_hash_output *out)
{
    void *memory;
    size_t nnz = job->input->nnz;
    SAR_TRY(sar_arena_alloc(arena, nnz, sizeof(struct entry), &memory));
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

static enum sar_status extract(const struct hash_job *job, struct sar_arena *arena,
                               struct sar_hash_output *out)
{
    const struct sar_hash_input *input = job->input;
    void *first, *position;
    SAR_TRY(sar_arena_alloc(arena, (size_t)job->map->parts + 1, sizeof *out->first, &first));
    SAR_TRY(sar_arena_alloc(arena, input->nnz, sizeof *out->position, &position));
    SAR_TRY(sar_arena_alloc(arena, input->nnz, input->index_size, &out->index));
    if (input->value != NULL)
        SAR_TRY(sar_arena_alloc(arena, input->nnz, input->value_size, &out->value));
    out->first = first;
    out->position = position;
    read_cells(job->memory, job->map->parts, out);
    assert(out->first[job->map->parts] == input->nnz);
    if (job->memory->params.sorted)
        SAR_TRY(sort(job, arena, out));
    gather(input->index, input->index_size, out->position, input->nnz, out->index);
    if (input->value != NULL)
        gather(input->value, input->value_size, out->position, input->nnz, out->value);
    return SAR_OK;
}

enum sar_status sar_hierarchical_hash(const struct sar_hierarchical_params *params,
                                      const struct sar_partition_map *map, const struct sar_hash_input *input,
                                      struct sar_arena *arena, struct sar_hash_output *out)
{
    struct sar_hash_memory memory;
    struct hash_job job = { .memory = &memory, .map = map, .input = input };
    struct sar_hash_output made = { 0 };
    SAR_TRY(sar_hash_fill(params, map, input, arena, &memory, &made.reruns));
    SAR_TRY(extract(&job, arena, &made));
    *out = made;
    return SAR_OK;
}
