/* SPDX-License-Identifier: BSD-3-Clause */
/* MurmurHash3 (Austin Appleby, public domain algorithm): the finalisers, and the 32-bit hash of one key.
 * The host and CUDA compile this text. */

#ifndef SAR_HASH_MURMUR3_H
#define SAR_HASH_MURMUR3_H

#include <stdint.h>

#include "base/compiler.h"

/** fmix32: a bijection in which every input bit changes every output bit with probability 1/2. */
SAR_HOST_DEVICE static inline uint32_t sar_mix32(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

/** fmix64: the bijection of 64 bits. */
SAR_HOST_DEVICE static inline uint64_t sar_mix64(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;
    return h;
}

/** Rotates x left by 1 to 31 bits. */
SAR_HOST_DEVICE static inline uint32_t sar_rotl32(uint32_t x, unsigned bits)
{
    return (x << bits) | (x >> (32 - bits));
}

/** Mixes the next four little-endian bytes into a hash. */
SAR_HOST_DEVICE static inline uint32_t sar_murmur3_step(uint32_t hash, uint32_t bytes)
{
    return sar_rotl32(hash ^ sar_rotl32(bytes * 0xcc9e2d51u, 15) * 0x1b873593u, 13) * 5 + 0xe6546b64u;
}

/** Returns MurmurHash3_x86_32 of the four little-endian bytes of key. */
SAR_HOST_DEVICE static inline uint32_t sar_murmur3(uint32_t key, uint32_t seed)
{
    return sar_mix32(sar_murmur3_step(seed, key) ^ 4);
}

/** Returns MurmurHash3_x86_32 of the eight little-endian bytes of key. */
SAR_HOST_DEVICE static inline uint32_t sar_murmur3_u64(uint64_t key, uint32_t seed)
{
    uint32_t low = sar_murmur3_step(seed, (uint32_t)key);
    return sar_mix32(sar_murmur3_step(low, (uint32_t)(key >> 32)) ^ 8);
}

/** Maps a hash onto [0, range) without a division (Lemire). */
SAR_HOST_DEVICE static inline uint32_t sar_hash_range(uint32_t hash, uint32_t range)
{
    return (uint32_t)(((uint64_t)hash * range) >> 32);
}

#endif
