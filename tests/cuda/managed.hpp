/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that both the host and a device can touch, for tests that compare what the two make of them. */

#ifndef MANAGED_HPP
#define MANAGED_HPP

#include <cuda_runtime_api.h>

#include <new>
#include <vector>

template <class Type> struct managed_memory {
    using value_type = Type;

    managed_memory() = default;

    template <class Other> managed_memory(const managed_memory<Other> &)
    {
    }

    Type *allocate(std::size_t n)
    {
        void *memory = nullptr;
        if (cudaMallocManaged(&memory, n * sizeof(Type) + 1, cudaMemAttachGlobal) != cudaSuccess)
            throw std::bad_alloc();
        return static_cast<Type *>(memory);
    }

    void deallocate(Type *memory, std::size_t)
    {
        (void)cudaFree(memory);
    }

    bool operator==(const managed_memory &) const
    {
        return true;
    }

    bool operator!=(const managed_memory &) const
    {
        return false;
    }
};

template <class Type> using managed = std::vector<Type, managed_memory<Type>>;

#endif
