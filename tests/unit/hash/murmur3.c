/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the hash functions against known answers, and against a plain byte-wise MurmurHash3_x86_32. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hash/murmur3.h"

enum { KEYS = 20000 };

static uint32_t rotate(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

/* The published algorithm, byte by byte. */
static uint32_t scramble(uint32_t k)
{
    return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
}

static uint32_t murmur_bytes(const unsigned char *key, size_t bytes, uint32_t seed)
{
    uint32_t h = seed, k = 0;
    for (size_t i = 0; i < bytes; i++) {
        k |= (uint32_t)key[i] << 8 * (i % 4);
        if (i % 4 != 3)
            continue;
        h = rotate(h ^ scramble(k), 13) * 5 + 0xe6546b64u;
        k = 0;
    }
    h ^= scramble(k);
    h ^= (uint32_t)bytes;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

static uint32_t murmur_little_endian(uint64_t key, size_t bytes, uint32_t seed)
{
    unsigned char text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(key >> 8 * i);
    return murmur_bytes(text, bytes, seed);
}

/* Keys at the edges, then scattered ones. */
static uint64_t make_key(size_t i)
{
    static const uint64_t edges[] = {
        0,          1,          0x7fffffff, 0x80000000,        0xffffffff, (uint64_t)1 << 32,
        UINT64_MAX, 0x01020304, 0xdeadbeef, (uint64_t)1 << 63, 0x74736574
    };
    if (i < sizeof edges / sizeof *edges)
        return edges[i];
    return (uint64_t)i * 0x9e3779b97f4a7c15u;
}

/* Published answers validate the byte-wise function above. */
static void test_published_answers(void **state)
{
    static const struct {
        const char *text;
        uint32_t seed, hash;
    } answers[] = {
        { "", 0, 0 },
        { "", 1, 0x514e28b7 },
        { "", 0xffffffff, 0x81f16f39 },
        { "test", 0, 0xba6bd213 },
        { "test", 0x9747b28c, 0x704b81dc },
        { "Hello, world!", 0, 0xc0363e43 },
        { "Hello, world!", 0x9747b28c, 0x24884cba },
        { "The quick brown fox jumps over the lazy dog", 0, 0x2e4ff723 },
        { "aaaa", 0x9747b28c, 0x5a97808a },
        { "abc", 0, 0xb3dd93fa },
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const unsigned char *text = (const unsigned char *)answers[i].text;
        assert_int_equal(murmur_bytes(text, strlen(answers[i].text), answers[i].seed), answers[i].hash);
    }
}

static void test_four_byte_keys(void **state)
{
    (void)state;
    assert_int_equal(sar_murmur3(0x74736574, 0), 0xba6bd213);
    assert_int_equal(sar_murmur3(0x74736574, 0x9747b28c), 0x704b81dc);
    assert_int_equal(sar_murmur3(0x61616161, 0x9747b28c), 0x5a97808a);
    assert_int_equal(sar_murmur3(0, 0), 0x2362f9de);
    for (size_t i = 0; i < KEYS; i++) {
        uint32_t key = (uint32_t)make_key(i), seed = (uint32_t)make_key(KEYS - i);
        assert_int_equal(sar_murmur3(key, seed), murmur_little_endian(key, 4, seed));
    }
}

static void test_eight_byte_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t key = make_key(i);
        uint32_t seed = (uint32_t)make_key(KEYS - i);
        assert_int_equal(sar_murmur3_u64(key, seed), murmur_little_endian(key, 8, seed));
    }
}

static void test_finalisers(void **state)
{
    (void)state;
    assert_int_equal(sar_mix32(0), 0);
    assert_int_equal(sar_mix32(1), 0x514e28b7);
    assert_int_equal(sar_mix32(UINT32_MAX), 0x81f16f39);
    assert_true(sar_mix64(0) == 0);
    assert_true(sar_mix64(1) == 0xb456bcfc34c2cb2cu);
}

/* Repeating x ^= x >> s inverts it; inverse constants invert the multiplications. */
static uint32_t unmix32(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x7ed1b41du;
    h ^= h >> 13 ^ h >> 26;
    h *= 0xa5cb9243u;
    return h ^ h >> 16;
}

static uint64_t unmix64(uint64_t h)
{
    h ^= h >> 33;
    h *= 0x9cb4b2f8129337dbu;
    h ^= h >> 33;
    h *= 0x4f74430c22a54005u;
    return h ^ h >> 33;
}

static void test_bijections(void **state)
{
    (void)state;
    for (size_t i = 0; i < KEYS; i++) {
        uint64_t key = make_key(i);
        assert_int_equal(unmix32(sar_mix32((uint32_t)key)), (uint32_t)key);
        assert_true(unmix64(sar_mix64(key)) == key);
    }
}

static int ascending(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* For a fixed seed the hash of a 4-byte key is a bijection. */
static void test_no_collisions(void **state)
{
    uint32_t *hash = malloc(KEYS * sizeof *hash);
    (void)state;
    assert_non_null(hash);
    for (uint32_t seed = 0; seed < 5; seed++) {
        for (uint32_t key = 0; key < KEYS; key++)
            hash[key] = sar_murmur3(key << 12, seed);
        qsort(hash, KEYS, sizeof *hash, ascending);
        for (uint32_t i = 1; i < KEYS; i++)
            assert_true(hash[i - 1] < hash[i]);
    }
    free(hash);
}

static void test_range(void **state)
{
    static const uint32_t ranges[] = { 1, 2, 3, 7, 128, 1000, 0x80000001, UINT32_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        uint32_t range = ranges[i];
        assert_int_equal(sar_hash_range(0, range), 0);
        assert_int_equal(sar_hash_range(UINT32_MAX, range), range - 1);
        for (size_t k = 1; k < KEYS; k++) {
            uint32_t low = (uint32_t)(k - 1) * 200000, high = (uint32_t)k * 200000;
            assert_true(sar_hash_range(low, range) <= sar_hash_range(high, range));
        }
    }
}

/* Each bit of the key flips each bit of the hash in about half of all cases. */
static void test_avalanche(void **state)
{
    (void)state;
    for (unsigned in = 0; in < 32; in++) {
        unsigned turned[32] = { 0 };
        for (uint32_t key = 0; key < KEYS; key++) {
            uint32_t change = sar_murmur3(key, 1) ^ sar_murmur3(key ^ (uint32_t)1 << in, 1);
            for (unsigned out = 0; out < 32; out++)
                turned[out] += change >> out & 1;
        }
        for (unsigned out = 0; out < 32; out++)
            assert_in_range(turned[out], KEYS * 45 / 100, KEYS * 55 / 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_answers),
        cmocka_unit_test(test_four_byte_keys),
        cmocka_unit_test(test_eight_byte_keys),
        cmocka_unit_test(test_finalisers),
        cmocka_unit_test(test_bijections),
        cmocka_unit_test(test_no_collisions),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_avalanche),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
