/* SPDX-License-Identifier: BSD-3-Clause */
#include "layers.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"

static MPIX_Sparse_plan make_plan(const struct layer *layer, unsigned char *out, MPI_Comm comm, MPI_Info info)
{
    MPIX_Sparse_plan plan;
    check_success(MPIX_Sparse_allreduce_init(layer->in_place ? MPI_IN_PLACE : layer->in, out,
                                             layer->desc.count, layer->type, op_types[layer->desc.op].op,
                                             comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    return plan;
}

/* Most layers are float sums; one layer is large. */
static void make_layer(struct layer *layer, int i, MPI_Comm comm, MPI_Info info)
{
    static const int64_t counts[] = { 64, 0, 1, 7, 3000, 100, 511, 1000 };
    struct tensor_desc desc = { i % 7 == 3 ? INT64 : FLOAT32, i % 11 == 5 ? MAX : SUM, i % 5 == 4 ? 3 : 1,
                                i == 17 ? 50000 : counts[i % 8] };
    *layer = (struct layer){ .desc = desc,
                             .bytes = (size_t)desc.count * element_bytes(&desc),
                             .in_place = i % 3 == 2,
                             .type = row_type(&desc) };
    layer->in = get_memory(layer->bytes + 1, 1);
    layer->out = get_memory(layer->bytes + 1, 1);
    layer->expected = get_memory(layer->bytes + 1, 1);
    layer->plan = make_plan(layer, layer->out, comm, info);
    layer->alone = make_plan(layer, layer->expected, comm, info);
}

static void free_layer(struct layer *layer)
{
    check_success(MPIX_Sparse_plan_free(&layer->plan), "MPIX_Sparse_plan_free");
    check_success(MPIX_Sparse_plan_free(&layer->alone), "MPIX_Sparse_plan_free");
    row_type_free(&layer->desc, &layer->type);
    free(layer->in);
    free(layer->out);
    free(layer->expected);
}

struct layer *make_layers(int n, int descs, MPI_Comm comm, const char *scheme, const char *fuse)
{
    struct layer *layers = get_memory((size_t)n, sizeof *layers);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_scheme", scheme);
    MPI_Info_set(info, "mpix_sparse_fuse", fuse);
    /* A busy machine may measure a very low message cost, which would split some messages in two. */
    MPI_Info_set(info, "mpix_sparse_segment", "1000000000");
    for (int i = 0; i < n; i++)
        make_layer(&layers[i], i % descs, comm, info);
    MPI_Info_free(&info);
    return layers;
}

void free_layers(struct layer *layers, int n)
{
    for (int i = 0; i < n; i++)
        free_layer(&layers[i]);
    free(layers);
}

static void fill(struct layer *layer, int i, unsigned round, bool exact)
{
    size_t size = element_bytes(&layer->desc);
    bool nothing = round % 3 == 1 && rank == (int)round % ranks;
    memset(layer->in, 0, layer->bytes);
    for (int64_t e = 0; e < layer->desc.count && !nothing; e++) {
        uint64_t key = mix(mix(mix((uint64_t)e + 1) + (uint64_t)i) + round * 64u + (unsigned)rank);
        if (key % 8 != 0)
            continue;
        put_numbers(&layer->desc, key, layer->in + (size_t)e * size);
        if (!exact && layer->desc.base == FLOAT32)
            *(float *)(layer->in + (size_t)e * size) *= 1 + (float)(key % 9973) / 7919;
    }
    memcpy(layer->out, layer->in, layer->bytes);
    memcpy(layer->expected, layer->in, layer->bytes);
}

void fill_layers(struct layer *layers, int n, unsigned round, bool exact)
{
    for (int i = 0; i < n; i++)
        fill(&layers[i], i, round, exact);
}

void start_one_by_one(struct layer *layers, int n)
{
    MPI_Request request;
    for (int i = 0; i < n; i++) {
        check_success(MPIX_Sparse_plan_start(layers[i].alone, &request), "MPIX_Sparse_plan_start");
        check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
}

static void wait_for_any(int n, MPI_Request *requests)
{
    for (int i = 0, which; i < n; i++)
        check_success(MPI_Waitany(n, requests, &which, MPI_STATUS_IGNORE), "MPI_Waitany");
}

static void test_in_turn(int n, MPI_Request *requests)
{
    for (int left = n, i = rank % n, done; left > 0; i = (i + 1) % n) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        check_success(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE), "MPI_Test");
        left -= done;
    }
}

/* Odd ranks wait in the opposite order. */
void wait_somehow(int n, MPI_Request *requests, unsigned round)
{
    int done = 0;
    if (round % 4 == 0)
        check_success(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE), "MPI_Waitall");
    else if (round % 4 == 1)
        wait_for_any(n, requests);
    else if (round % 4 == 2)
        test_in_turn(n, requests);
    else
        for (int i = 0; i < n; i++)
            check_success(MPI_Wait(&requests[rank % 2 == 0 ? i : n - 1 - i], MPI_STATUS_IGNORE), "MPI_Wait");
    check_success(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    check(done, "expected that all requests are gone");
}

void name_plans(const struct layer *layers, int n, MPIX_Sparse_plan *plans)
{
    for (int i = 0; i < n; i++)
        plans[i] = layers[i].plan;
}

void start_together(struct layer *layers, int n, unsigned round)
{
    MPIX_Sparse_plan plans[LAYERS];
    MPI_Request requests[LAYERS];
    name_plans(layers, n, plans);
    check_success(MPIX_Sparse_plan_start_all(n, plans, requests), "MPIX_Sparse_plan_start_all");
    wait_somehow(n, requests, round);
}

void check_layers(const struct layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        check(memcmp(layers[i].out, layers[i].expected, layers[i].bytes) == 0,
              "expected the bits of a start alone in layer %d", i);
        check_equal_on_ranks(hash_bytes(layers[i].out, layers[i].bytes, 0), "layer");
    }
}

void check_against_mpi(const struct layer *layers, int n)
{
    for (int i = 0; i < n; i++) {
        const struct tensor_desc *desc = &layers[i].desc;
        unsigned char *dense = get_memory(layers[i].bytes + 1, 1);
        MPI_Allreduce(layers[i].in, dense, (int)(desc->count * (int64_t)desc->row),
                      base_types[desc->base].type, op_types[desc->op].op, MPI_COMM_WORLD);
        check(equal_numbers(desc, layers[i].out, dense, (size_t)desc->count),
              "expected the result of MPI_Allreduce in layer %d", i);
        free(dense);
    }
}
