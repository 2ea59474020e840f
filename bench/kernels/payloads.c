/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats that the device encodes and decodes, with all elements in one message, and the conversion of slots
 * to indices. */

#include <stdlib.h>
#include <string.h>

#include "bench/kernels/kernels.h"
#include "cuda/launch.h"
#include "vector/partition.h"

struct sar_wire_layout kernels_layout(const struct kernels *k)
{
    return (struct sar_wire_layout){ .slots = k->options->count,
                                     .element_size = sizeof(float),
                                     .row_len = 1,
                                     .index_size = sizeof(uint32_t) };
}

static size_t bytes_of(const struct kernels *k, const struct sar_wire *wire)
{
    struct sar_wire_layout layout = kernels_layout(k);
    return (size_t)wire->min_bytes(&layout, k->host.nnz);
}

size_t kernels_largest_payload(const struct kernels *k)
{
    const struct sar_wire *const wires[] = { &sar_wire_coo, &sar_wire_elias_fano, &sar_wire_hash_bitmap };
    size_t most = 0;
    for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
        most = bytes_of(k, wires[i]) > most ? bytes_of(k, wires[i]) : most;
    return most;
}

static struct sar_encoded payload_of(const struct kernels *k)
{
    return (struct sar_encoded){ k->wire->codec_id, k->scratch, bytes_of(k, k->wire), k->host.nnz };
}

static enum sar_status encode(struct kernels *k)
{
    struct sar_encoded payload = payload_of(k);
    return sar_cuda_encode(&k->vector, &k->device, &payload);
}

static double encode_bytes(const struct kernels *k)
{
    return kernels_vector_coo_bytes(k) + (double)bytes_of(k, k->wire);
}

static bool encode_is_right(struct kernels *k)
{
    struct sar_wire_layout layout = kernels_layout(k);
    size_t bytes = bytes_of(k, k->wire);
    void *payload = malloc(bytes + 1);
    kernels_require(payload != NULL, "taking memory");
    k->wire->encode(&layout, &k->host, payload);
    bool same = kernels_device_equals(k->scratch, payload, bytes);
    free(payload);
    return same;
}

/* Overwrites the output, so that an idle decoder is detected. */
static void prepare_decode(struct kernels *k)
{
    kernels_require(cudaMemsetAsync(k->out.index, 0xff, k->host.nnz * sizeof(uint32_t), k->stream) ==
                        cudaSuccess,
                    "overwriting the output");
}

/* Decodes the indices of the last encoded message; the values need no decoding. */
static enum sar_status decode(struct kernels *k)
{
    struct sar_encoded payload = payload_of(k);
    struct sar_spvec vec = { k->out.index, NULL, k->host.nnz };
    return sar_cuda_decode(&k->vector, &payload, &vec, k->flags);
}

static double decode_bytes(const struct kernels *k)
{
    double nnz = (double)k->host.nnz;
    return (double)bytes_of(k, k->wire) - nnz * sizeof(float) + nnz * sizeof(uint32_t);
}

static bool decode_is_right(struct kernels *k)
{
    static const struct sar_device_flags none;
    return kernels_device_equals(k->out.index, k->host.index, k->host.nnz * sizeof(uint32_t)) &&
           kernels_device_equals(k->flags, &none, sizeof none);
}

/* Converts all parts, one after the other. */
static enum sar_status run_unsplit(struct kernels *k)
{
    size_t begin = 0;
    for (uint32_t p = 0; p < k->map.parts; p++) {
        struct sar_map_part part = { k->map, p };
        struct sar_spvec vec = { (uint32_t *)k->partitioned.index + begin, NULL, k->parts[p].nnz };
        SAR_TRY(sar_cuda_slots_to_indices(&k->vector, &part, &vec, (uint32_t *)k->out.index + begin));
        begin += vec.nnz;
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
        struct sar_spvec vec = k->parts[p];
        kernels_require(sar_partition_restore_indices(&k->map, &k->desc, p, &arena, &vec) == SAR_OK,
                        "taking indices back on the host");
        same &=
            kernels_device_equals((uint32_t *)k->out.index + begin, vec.index, vec.nnz * sizeof(uint32_t));
        begin += vec.nnz;
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
