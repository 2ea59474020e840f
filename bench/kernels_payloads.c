/* SPDX-License-Identifier: BSD-3-Clause */
/* The formats that a device reads and writes, of all elements in one payload, and slots that become
 * indices. */

#include <stdlib.h>
#include <string.h>

#include "cuda/codec.h"
#include "kernels.h"
#include "tensor/partition.h"

struct sar_layout kernels_layout(const struct kernels *k)
{
    return (struct sar_layout){ .span = k->options->count,
                                .element_size = sizeof(float),
                                .index_size = sizeof(uint32_t) };
}

static size_t bytes_of(const struct kernels *k, const struct sar_wire *wire)
{
    struct sar_layout layout = kernels_layout(k);
    return (size_t)wire->least(&layout, k->host.nnz);
}

size_t kernels_largest_payload(const struct kernels *k)
{
    const struct sar_wire *const wires[] = { &sar_wire_coo, &sar_wire_elias_fano, &sar_wire_hash_bitmap };
    size_t most = 0;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        most = bytes_of(k, wires[i]) > most ? bytes_of(k, wires[i]) : most;
    return most;
}

static struct sar_payload payload_of(const struct kernels *k)
{
    return (struct sar_payload){ k->wire->packing, k->other, bytes_of(k, k->wire), k->host.nnz };
}

static enum sar_status encode(struct kernels *k)
{
    struct sar_payload payload = payload_of(k);
    return sar_cuda_encode(&k->vector, &k->device, &payload);
}

static double encode_bytes(const struct kernels *k)
{
    return kernels_run_bytes(k) + (double)bytes_of(k, k->wire);
}

static bool encode_is_right(struct kernels *k)
{
    struct sar_layout layout = kernels_layout(k);
    size_t bytes = bytes_of(k, k->wire);
    void *payload = malloc(bytes + 1);
    kernels_require(payload != NULL, "taking memory");
    k->wire->encode(&layout, &k->host, payload);
    bool same = kernels_have(k->other, payload, bytes);
    free(payload);
    return same;
}

/* Nothing is right yet. */
static void prepare_decode(struct kernels *k)
{
    kernels_require(cudaMemsetAsync(k->out.index, 0xff, k->host.nnz * sizeof(uint32_t), k->stream) ==
                        cudaSuccess,
                    "spoiling");
}

/* Of what has been encoded; the values stay where they are. */
static enum sar_status decode(struct kernels *k)
{
    struct sar_payload payload = payload_of(k);
    struct sar_run run = { k->out.index, NULL, k->host.nnz };
    return sar_cuda_decode(&k->vector, &payload, &run, k->findings);
}

static double decode_bytes(const struct kernels *k)
{
    double nnz = (double)k->host.nnz;
    return (double)bytes_of(k, k->wire) - nnz * sizeof(float) + nnz * sizeof(uint32_t);
}

static bool decode_is_right(struct kernels *k)
{
    static const struct sar_findings none;
    return kernels_have(k->out.index, k->host.index, k->host.nnz * sizeof(uint32_t)) &&
           kernels_have(k->findings, &none, sizeof none);
}

/* Of all parts, one after the other. */
static enum sar_status run_unsplit(struct kernels *k)
{
    size_t begin = 0;
    for (uint32_t p = 0; p < k->map.parts; p++) {
        struct sar_part part = { k->map, p };
        struct sar_run run = { (uint32_t *)k->parted.index + begin, NULL, k->parts[p].nnz };
        SAR_TRY(sar_cuda_unsplit(&k->vector, &part, &run, (uint32_t *)k->out.index + begin));
        begin += run.nnz;
    }
    return SAR_OK;
}

static double unsplit_bytes(const struct kernels *k)
{
    return 2 * (double)k->host.nnz * sizeof(uint32_t);
}

static bool unsplit_is_right(struct kernels *k)
{
    struct sar_arena arena = { 0 };
    size_t begin = 0;
    bool same = true;
    for (uint32_t p = 0; p < k->map.parts; p++) {
        struct sar_run run = k->parts[p];
        kernels_require(sar_unpartition(&k->map, &k->shape, p, &arena, &run) == SAR_OK,
                        "taking indices back on the host");
        same &= kernels_have((uint32_t *)k->out.index + begin, run.index, run.nnz * sizeof(uint32_t));
        begin += run.nnz;
        sar_arena_reset(&arena);
    }
    sar_arena_free(&arena);
    return same;
}

const struct kernels_job kernels_of_payloads[] = {
    { "bitmap encode", encode, encode_bytes, encode_is_right, NULL, &sar_wire_hash_bitmap },
    { "bitmap decode", decode, decode_bytes, decode_is_right, prepare_decode, &sar_wire_hash_bitmap },
    { "elias_fano encode", encode, encode_bytes, encode_is_right, NULL, &sar_wire_elias_fano },
    { "elias_fano decode", decode, decode_bytes, decode_is_right, prepare_decode, &sar_wire_elias_fano },
    { "coo encode", encode, encode_bytes, encode_is_right, NULL, &sar_wire_coo },
    { "coo decode", decode, decode_bytes, decode_is_right, prepare_decode, &sar_wire_coo },
    { "slots to indices", run_unsplit, unsplit_bytes, unsplit_is_right, NULL, NULL },
    { .name = NULL },
};
