/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the kernels of cuda/codec.cu on CPU threads against the host's formats:
 * equal bytes, equal indices, equal hashes of index lists, and the same payloads refused. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/launch.h"
#include "hash/murmur3.h"
#include "managed.hpp"

extern "C" {
#include "wire/wire.h"

/* Its header, wire/message.h, is not for C++. */
uint32_t sar_msg_index_hash(const struct sar_spvec *vec);
}

namespace
{

using bytes = managed<unsigned char>;

struct message {
    const sar_wire *wire;
    sar_wire_layout layout;
    bytes index, value, payload;
    sar_spvec vec;
};

message make_message(const sar_wire *wire, sar_wire_layout layout, unsigned every)
{
    message m = { wire, layout, {}, {}, {}, {} };
    for (uint64_t i = 0; i < layout.slots && every != 0; i++) {
        if (sar_mix64(i + every) % every != 0)
            continue;
        m.index.resize((m.vec.nnz + 1) * layout.index_size);
        sar_index_set(m.index.data(), layout.index_size, m.vec.nnz++, i);
    }
    m.value.resize(m.vec.nnz * layout.element_size);
    for (size_t i = 0; i < m.value.size(); i++)
        m.value[i] = (unsigned char)(i * 37 + 1);
    m.vec.index = m.index.data();
    m.vec.value = m.value.data();
    m.payload.resize(sar_wire_bytes(wire, &layout, &m.vec));
    wire->encode(&layout, &m.vec, m.payload.data());
    return m;
}

sar_vec_desc desc_of(const sar_wire_layout &layout)
{
    sar_vec_desc desc = {};
    desc.count = layout.slots;
    desc.element_size = layout.element_size;
    desc.index_size = layout.index_size;
    return desc;
}

bool encodes(const message &m)
{
    bytes made(m.payload.size() + 8);
    sar_vec_desc desc = desc_of(m.layout);
    sar_device_vec vector = { &desc, nullptr, 0, nullptr };
    sar_encoded payload = { m.wire->codec_id, made.data(), m.payload.size(), m.vec.nnz };
    return sar_cuda_encode(&vector, &m.vec, &payload) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           std::memcmp(m.payload.data(), made.data(), m.payload.size()) == 0;
}

bool same(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

bool all_below(const message &m, const sar_spvec &vec)
{
    for (size_t i = 0; i < vec.nnz; i++)
        if (sar_index_get(vec.index, m.layout.index_size, i) >= m.layout.slots)
            return false;
    return true;
}

/* True if host and device decode the same elements, or both reject the payload. */
bool decodes(const message &m, bytes payload)
{
    size_t nnz = m.vec.nnz, length = payload.size();
    payload.resize(length + 8);
    bytes index(nnz * m.layout.index_size + 8), flags(sizeof(sar_device_flags));
    sar_vec_desc desc = desc_of(m.layout);
    sar_device_vec vector = { &desc, nullptr, 0, nullptr };
    sar_encoded there = { m.wire->codec_id, payload.data(), length, nnz };
    sar_spvec device = { index.data(), nullptr, nnz }, host = { nullptr, nullptr, nnz };
    sar_arena arena = {};
    auto *found = reinterpret_cast<sar_device_flags *>(flags.data());
    bool good = sar_cuda_decode(&vector, &there, &device, found) == SAR_OK &&
                cudaStreamSynchronize(nullptr) == cudaSuccess && all_below(m, device);
    sar_status expected = m.wire->decode(&m.layout, payload.data(), length, &arena, &host);
    good = good && (found->corrupt != 0) == (expected != SAR_OK);
    if (good && expected == SAR_OK)
        good = same(host.index, device.index, nnz * m.layout.index_size) &&
               same(host.value, device.value, nnz * m.layout.element_size);
    sar_arena_free(&arena);
    return good;
}

/* Values alone are copied; the vector keeps its indices. */
bool passes_values(const message &m)
{
    bytes made(m.value.size() + 8), flags(sizeof(sar_device_flags));
    sar_vec_desc desc = desc_of(m.layout);
    sar_device_vec vector = { &desc, nullptr, 0, nullptr };
    sar_encoded payload = { SAR_CODEC_VALUES, made.data(), m.value.size(), m.vec.nnz };
    sar_spvec found = { m.vec.index, nullptr, m.vec.nnz };
    return sar_cuda_encode(&vector, &m.vec, &payload) == SAR_OK &&
           sar_cuda_decode(&vector, &payload, &found, reinterpret_cast<sar_device_flags *>(flags.data())) ==
               SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess && found.index == m.vec.index &&
           same(found.value, m.vec.value, m.value.size());
}

/* The flag is set for another hash. */
bool hashes(const message &m)
{
    bytes hash(sizeof(uint32_t)), flags(2 * sizeof(sar_device_flags));
    sar_device_vec vector = { nullptr, nullptr, 0, nullptr };
    auto *found = reinterpret_cast<uint32_t *>(hash.data());
    auto *flag = reinterpret_cast<sar_device_flags *>(flags.data());
    uint32_t expected = sar_msg_index_hash(&m.vec);
    return sar_cuda_hash_indices(&vector, &m.vec, found) == SAR_OK &&
           sar_cuda_expect_hash(&vector, found, expected, &flag[0]) == SAR_OK &&
           sar_cuda_expect_hash(&vector, found, expected + 1, &flag[1]) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess && *found == expected && flag[0].corrupt == 0 &&
           flag[1].corrupt == 1;
}

/* Also with flipped bits: some of the indices, and the last bit, which may be after all slots. */
bool agree(const message &m)
{
    if (!encodes(m) || !decodes(m, m.payload) || !passes_values(m))
        return false;
    if (m.layout.index_size == sizeof(uint32_t) && !hashes(m))
        return false;
    for (size_t k = 0; k < 3 && !m.payload.empty(); k++) {
        bytes flipped = m.payload;
        flipped[k == 0 ? flipped.size() - 1 : sar_mix64(k) % flipped.size()] ^=
            (unsigned char)(k == 0 ? 0x80 : 1 << k);
        if (!decodes(m, flipped))
            return false;
        flipped[sar_mix64(k + 100) % flipped.size()] ^= 1;
        if (!decodes(m, flipped))
            return false;
    }
    return true;
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (const sar_wire *wire : { &sar_wire_coo, &sar_wire_elias_fano, &sar_wire_hash_bitmap })
        for (uint64_t slots : { 0u, 1u, 31u, 64u, 100u, 4097u, 70003u })
            for (size_t size : { 1u, 2u, 12u })
                for (unsigned index_size : { 4u, 8u })
                    for (unsigned every : { 0u, 1u, 3u, 50u, 3000u }) {
                        runs++;
                        sar_wire_layout layout = {};
                        layout.slots = slots;
                        layout.element_size = size;
                        layout.index_size = index_size;
                        if (agree(make_message(wire, layout, every)))
                            continue;
                        std::printf("%s differs: %llu slots, elements of %zu B, indices of %u B, one in %u\n",
                                    wire->name, (unsigned long long)slots, size, index_size, every);
                        failures++;
                    }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
