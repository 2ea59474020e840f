/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of functions, and sums and products of sizes that saturate. The host and CUDA compile this
 * text. */

#ifndef SAR_BASE_COMPILER_H
#define SAR_BASE_COMPILER_H

#include <stdbool.h>
#include <stdint.h>

/** Qualifier of a function that the host and CUDA compile from one text. */
#ifdef __CUDACC__
#define SAR_HOST_DEVICE __host__ __device__
#else
#define SAR_HOST_DEVICE
#endif

#define SAR_INLINE SAR_HOST_DEVICE static inline __attribute__((always_inline))

/** Compiles a loop once for each generation of x86-64. The loader chooses a variant, where the toolchain
 * can: SAR_HAS_CLONES tells. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SAR_NO_CLONES) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SAR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define SAR_HAS_CLONES true
#else
#define SAR_CLONES
#define SAR_HAS_CLONES false
#endif

/** Compiles a function for AVX2, as x86-64-v3 has it. A caller tests sar_has_avx2() before. SAR_AVX2 is
 * undefined if the compiler has no support. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SAR_NO_CLONES)
#define SAR_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define sar_has_avx2() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
#else
#define sar_has_avx2() false
#endif

/** Compiles a function for AVX-512 as in Ice Lake and Zen 4. A caller tests sar_has_avx512() before.
 * SAR_AVX512 is undefined if the compiler has no support. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(SAR_NO_CLONES)
#define SAR_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt")))
#define sar_has_avx512()                                                            \
    (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") && \
     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
/** Returns a mask of at most 16 lanes as a number. A cast is not safe: GCC 12 may store 16 bits of the number
 * on the stack and load 32. */
SAR_AVX512 static inline uint32_t sar_mask_bits(uint16_t mask)
{
    uint32_t bits;
    __asm__("kmovw %1, %0" : "=r"(bits) : "k"(mask));
    return bits;
}
#else
#define sar_has_avx512() false
#endif

/** Returns a * b, or UINT64_MAX if the product overflows. Callers compare sizes before they allocate. */
static inline uint64_t sar_mul_saturate(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/** Returns a + b, or UINT64_MAX if the sum overflows. */
static inline uint64_t sar_add_saturate(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
