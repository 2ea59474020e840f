/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of cuda/bitmap.cu on CPU threads against the host's format hash_bitmap: the same bytes, the
 * same indices, and the same messages refused. */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/bitmap.h"
#include "hash/murmur3.h"
#include "managed.hpp"

namespace
{

using bytes = managed<unsigned char>;

struct message {
    sar_layout layout;
    bytes index, value, payload;
    sar_run run;
};

message make_message(uint64_t span, size_t element_size, unsigned index_size, unsigned every)
{
    message m = {};
    m.layout.span = span;
    m.layout.element_size = element_size;
    m.layout.index_size = index_size;
    for (uint64_t i = 0; i < span && every != 0; i++) {
        if (sar_mix64(i + every) % every != 0)
            continue;
        m.index.resize((m.run.nnz + 1) * index_size);
        sar_index_set(m.index.data(), index_size, m.run.nnz++, i);
    }
    m.value.resize(m.run.nnz * element_size);
    for (size_t i = 0; i < m.value.size(); i++)
        m.value[i] = (unsigned char)(i * 37 + 1);
    m.run.index = m.index.data();
    m.run.value = m.value.data();
    m.payload.resize(sar_wire_bytes(&sar_wire_hash_bitmap, &m.layout, &m.run));
    return m;
}

bool encodes(const message &m)
{
    bytes host(m.payload.size()), device(m.payload.size() + 8);
    sar_wire_hash_bitmap.encode(&m.layout, &m.run, host.data());
    return sar_cuda_bitmap_encode(&m.layout, &m.run, device.data(), nullptr) == SAR_OK &&
           cudaStreamSynchronize(nullptr) == cudaSuccess &&
           std::memcmp(host.data(), device.data(), host.size()) == 0;
}

/* Both take it or both refuse it. */
bool decodes(const message &m, bytes payload, size_t nnz)
{
    bytes index(nnz * m.layout.index_size + 8);
    sar_run device = { index.data(), nullptr, nnz };
    sar_status expected =
        sar_bitmap_decode(&m.layout, payload.data() + nnz * m.layout.element_size, nnz, bytes(index).data());
    sar_status status = sar_cuda_bitmap_decode(&m.layout, payload.data(), &device, nullptr);
    bool good = status == expected;
    if (good && status == SAR_OK && nnz == m.run.nnz)
        good = nnz == 0 || std::memcmp(m.run.index, index.data(), nnz * m.layout.index_size) == 0;
    return good;
}

bool agree(const message &m)
{
    bytes payload = m.payload;
    payload.resize(payload.size() + 8);
    sar_wire_hash_bitmap.encode(&m.layout, &m.run, payload.data());
    if (!encodes(m) || !decodes(m, payload, m.run.nnz))
        return false;
    if (m.layout.span == 0)
        return true;
    bytes flipped = payload;
    flipped[m.payload.size() - 1] ^= 0x80; /* of the last slot, or behind it */
    bytes moved = payload;
    size_t first = m.run.nnz * m.layout.element_size;
    moved[first] ^= 1;
    moved[m.payload.size() - 1] ^= 0x80;
    return decodes(m, flipped, m.run.nnz) && decodes(m, moved, m.run.nnz);
}

} // namespace

int main()
{
    int runs = 0, failures = 0;
    for (uint64_t span : { 0u, 1u, 8u, 31u, 64u, 100u, 4096u, 70003u })
        for (size_t size : { 2u, 4u, 8u, 12u })
            for (unsigned index_size : { 4u, 8u })
                for (unsigned every : { 0u, 1u, 3u, 50u }) {
                    runs++;
                    if (agree(make_message(span, size, index_size, every)))
                        continue;
                    std::printf("differs: %llu slots, elements of %zu B, indices of %u B, one in %u\n",
                                (unsigned long long)span, size, index_size, every);
                    failures++;
                }
    std::printf("%d runs, %d failures\n", runs, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
