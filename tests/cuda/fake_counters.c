/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of the fake CUDA runtime, and injection of failing calls. */

#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>

static long allocations, pinned, waits, stops, kernels, calls, refused, broken;

/* Number of arrays in device and pinned memory, streams and events ever made. */
long fake_cuda_allocations(void)
{
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED);
}

/* Number of bytes of host memory ever pinned. */
long fake_cuda_pinned(void)
{
    return __atomic_load_n(&pinned, __ATOMIC_RELAXED);
}

void fake_cuda_count(long bytes)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&pinned, bytes, __ATOMIC_RELAXED);
}

/* Number of waits for streams. */
long fake_cuda_waits(void)
{
    return __atomic_load_n(&waits, __ATOMIC_RELAXED);
}

/* Number of waits for a whole device. */
long fake_cuda_stops(void)
{
    return __atomic_load_n(&stops, __ATOMIC_RELAXED);
}

void fake_cuda_count_wait(bool all)
{
    __atomic_fetch_add(all ? &stops : &waits, 1, __ATOMIC_RELAXED);
}

/* Number of times that memory was opened for kernels. */
long fake_cuda_kernels(void)
{
    return __atomic_load_n(&kernels, __ATOMIC_RELAXED);
}

void fake_cuda_count_kernel(void)
{
    __atomic_fetch_add(&kernels, 1, __ATOMIC_RELAXED);
}

/* Number of calls that can fail. */
long fake_cuda_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

/* Let the n-th call from now on fail; 0 for none. */
void fake_cuda_refuse(long n)
{
    __atomic_store_n(&refused, n == 0 ? 0 : fake_cuda_calls() + n, __ATOMIC_RELAXED);
}

/* Break the device: all calls fail, even queries of an address. */
void fake_cuda_break(long on)
{
    __atomic_store_n(&broken, on, __ATOMIC_RELAXED);
}

bool fake_cuda_is_broken(void)
{
    return __atomic_load_n(&broken, __ATOMIC_RELAXED) != 0;
}

void fake_cuda_forbid(const char *call)
{
    if (!fake_cuda_is_in_function())
        return;
    fprintf(stderr, "FAIL: a function of the host's, called by CUDA, calls %s\n", call);
    abort();
}

bool fake_cuda_refuses_of(const char *name)
{
    fake_cuda_forbid(name);
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return call == __atomic_load_n(&refused, __ATOMIC_RELAXED) || fake_cuda_is_broken();
}
