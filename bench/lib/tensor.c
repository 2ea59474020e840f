/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of a case. Values are a hash of seed, rank, step and index, so that every rank can compute
 * them. */

#include "bench/lib/tensor.h"

#include <stdlib.h>
#include <string.h>

#include "bench/lib/device_buffers.h"

/* Total bytes of all steps: more than the caches of current machines. */
static const double SPAN_OF_STEPS = 64e6;

enum { LINES_APART = 5 };

/* The key of all values of this rank in a step. */
static uint64_t value_key(const struct perf_case *c, int step)
{
    uint64_t key = perf_mix((uint64_t)c->options->seed + UINT64_C(0x632be59bd9b4e019));
    key = perf_mix(key ^ perf_mix((uint64_t)c->world->rank + 1));
    return perf_mix(key ^ (uint64_t)step);
}

static void put_element(const struct perf_case *c, uint64_t key, uint64_t index, void *to)
{
    uint64_t bits = perf_mix(key ^ perf_mix(index));

    for (size_t k = 0; k < c->row_len; k++)
        perf_number_put(c->type, c->op, c->world->rank, k == 0 ? bits : perf_mix(bits + k),
                        (char *)to + k * c->type->size);
}

/* Returns the position of the first index that is at least `low`. */
static size_t lower_bound(const struct perf_set *set, uint64_t low)
{
    size_t begin = 0, end = set->n;

    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (set->at[middle] < low)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static void scatter(const struct perf_case *c, const struct perf_set *set, uint64_t key, size_t low,
                    size_t high, void *vector)
{
    for (size_t i = lower_bound(set, low); i < set->n && set->at[i] < high; i++)
        put_element(c, key, set->at[i], (char *)vector + (set->at[i] - low) * c->element_bytes);
}

void perf_tensor_scatter(const struct perf_tensor *tensor, const struct perf_case *c, size_t low, size_t high,
                         void *vector)
{
    scatter(c, &tensor->first, value_key(c, 0), low, high, vector);
}

static void put_index(const struct perf_case *c, void *indices, size_t i, uint64_t index)
{
    if (c->index_bytes == 4)
        ((uint32_t *)indices)[i] = (uint32_t)index;
    else
        ((uint64_t *)indices)[i] = index;
}

/* Fisher-Yates shuffle. */
static void shuffle(uint64_t *at, size_t n, uint64_t key)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(perf_mix(key + i) % i);
        uint64_t swapped = at[i - 1];
        at[i - 1] = at[j];
        at[j] = swapped;
    }
}

static void make_coo(struct perf_step *step, const struct perf_case *c, const struct perf_set *set,
                     int number)
{
    uint64_t key = value_key(c, number), *at = set->at;
    size_t lines = (size_t)(number * LINES_APART);

    if (c->options->order == PERF_SHUFFLED) {
        at = perf_alloc(set->n, sizeof *at);
        memcpy(at, set->at, set->n * sizeof *at);
        shuffle(at, set->n, key);
    }
    step->index = perf_block_make(set->n * c->index_bytes, lines);
    step->values = perf_block_make(set->n * c->element_bytes, lines);
    for (size_t i = 0; i < set->n; i++) {
        put_index(c, step->index.data, i, at[i]);
        put_element(c, key, at[i], (char *)step->values.data + i * c->element_bytes);
    }
    if (at != set->at)
        free(at);
}

static void make_dense(struct perf_step *step, const struct perf_case *c, const struct perf_set *set,
                       int number)
{
    step->dense = perf_block_make(perf_case_bytes(c), (size_t)(number * LINES_APART));
    scatter(c, set, value_key(c, number), 0, c->count, step->dense.data);
}

/* Returns the number of steps, each of which takes `bytes` bytes. */
static int count_steps(const struct perf_case *c, const struct perf_source *source, double bytes)
{
    size_t most = perf_workload_steps(c, source);
    int steps = 1;

    while (steps < PERF_STEPS && (steps + 1) * bytes <= SPAN_OF_STEPS)
        steps++;
    return (size_t)steps > most ? (int)most : steps;
}

/* Sets steps and bytes, and *copies, the number of dense vectors that fit. Returns false if the case does
 * not fit. */
static bool plan(struct perf_tensor *tensor, const struct perf_case *c, const struct perf_source *source,
                 int *copies)
{
    bool coo = c->options->interface == PERF_COO;
    double n = (double)perf_workload_max(c, source);
    double dense = (double)perf_case_bytes(c), sparse = n * (double)(c->index_bytes + c->element_bytes);
    double scratch = (double)c->count / 8 + 2 * n * sizeof(uint64_t);

    tensor->steps = count_steps(c, source, coo ? sparse : dense);
    tensor->bytes = scratch + tensor->steps * (coo ? sparse : dense) + (double)c->options->between;
    *copies = coo ? 2 : 1;
    while (coo && *copies > 0 && tensor->bytes + *copies * dense > c->world->memory)
        --*copies;
    tensor->bytes += *copies * dense;
    return tensor->bytes <= c->world->memory;
}

static void make_call_buffers(struct perf_tensor *tensor, const struct perf_case *c)
{
    bool coo = c->options->interface == PERF_COO, copies = perf_device_is_open();

    for (int i = 0; i < tensor->steps; i++) {
        struct perf_step *step = &tensor->step[i];
        step->buffers = (struct perf_call_buffers){ step->index.data, step->values.data, step->dense.data };
        if (copies && coo) {
            step->buffers.index = perf_device_make(step->index.data, step->nnz * c->index_bytes);
            step->buffers.values = perf_device_make(step->values.data, step->nnz * c->element_bytes);
        }
        if (copies && !coo)
            step->buffers.dense = perf_device_make(step->dense.data, perf_case_bytes(c));
    }
    if (copies && !coo)
        tensor->device_recv = perf_device_make(tensor->recv.data, perf_case_bytes(c));
}

static void free_call_buffers(struct perf_step *step)
{
    if (step->buffers.index != step->index.data)
        perf_device_free(step->buffers.index);
    if (step->buffers.values != step->values.data)
        perf_device_free(step->buffers.values);
    if (step->buffers.dense != step->dense.data)
        perf_device_free(step->buffers.dense);
}

bool perf_tensor_make(struct perf_tensor *tensor, const struct perf_case *c, const struct perf_source *source)
{
    bool coo = c->options->interface == PERF_COO;
    int copies;

    memset(tensor, 0, sizeof *tensor);
    if (!plan(tensor, c, source, &copies))
        return false;
    for (int i = 0; i < tensor->steps; i++) {
        struct perf_set set = perf_workload_draw(c, source, i, tensor->steps);
        tensor->step[i].nnz = set.n;
        (coo ? make_coo : make_dense)(&tensor->step[i], c, &set, i);
        if (i == 0)
            tensor->first = set;
        else
            perf_set_free(&set);
    }
    if (copies > 0)
        tensor->recv = perf_block_make(perf_case_bytes(c), PERF_SHIFTS * LINES_APART);
    if (coo && copies > 1) {
        tensor->send = perf_block_make(perf_case_bytes(c), 0);
        perf_tensor_scatter(tensor, c, 0, c->count, tensor->send.data);
    }
    if (c->options->between > 0)
        tensor->between = perf_block_make((size_t)c->options->between, 0);
    make_call_buffers(tensor, c);
    return true;
}

void *perf_tensor_target(const struct perf_tensor *tensor, int i)
{
    return tensor->device_recv != NULL ? tensor->device_recv : perf_tensor_recv(tensor, i);
}

void *perf_tensor_recv(const struct perf_tensor *tensor, int i)
{
    if (tensor->recv.data == NULL)
        return NULL;
    return (char *)tensor->recv.data - (size_t)(i % PERF_SHIFTS * LINES_APART * PERF_CACHE_LINE);
}

void perf_tensor_free(struct perf_tensor *tensor)
{
    perf_device_free(tensor->device_recv);
    for (int i = 0; i < tensor->steps; i++) {
        free_call_buffers(&tensor->step[i]);
        perf_block_free(&tensor->step[i].index);
        perf_block_free(&tensor->step[i].values);
        perf_block_free(&tensor->step[i].dense);
    }
    perf_set_free(&tensor->first);
    perf_block_free(&tensor->send);
    perf_block_free(&tensor->recv);
    perf_block_free(&tensor->between);
}
