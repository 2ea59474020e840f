/* SPDX-License-Identifier: BSD-3-Clause */
/* Most small vectors are on a stack or in a heap, and nobody maps a device's memory there. Asking whether a
 * driver was loaded since the last look takes longer than all else in a call that goes to MPI at once. */

#include "device/ordinary.h"

#ifdef __linux__
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

/* Bytes from the beginning of a program to the end of its heap, at most; what is mapped is further away. */
#define LONGEST_HEAP (UINT64_C(1) << 38)

static uintptr_t image;            /* where the program begins */
static _Atomic uintptr_t heap_end; /* as far as it is known to have come */

/* The first one is the program itself. */
static int find_image(struct dl_phdr_info *program, size_t size, void *unused)
{
    (void)size, (void)unused;
    image = UINTPTR_MAX;
    for (int i = 0; i < program->dlpi_phnum; i++) {
        uintptr_t begin = program->dlpi_addr + program->dlpi_phdr[i].p_vaddr;
        if (program->dlpi_phdr[i].p_type == PT_LOAD && begin < image)
            image = begin;
    }
    return 1;
}

static uintptr_t find_heap_end(void)
{
    void *end = sbrk(0);
    return end == (void *)-1 ? 0 : (uintptr_t)end;
}

/* When the library is loaded. A program that was started by the loader's name has its heap elsewhere. */
__attribute__((constructor)) static void prepare(void)
{
    dl_iterate_phdr(find_image, NULL);
    heap_end = find_heap_end();
    if (heap_end < image)
        image = UINTPTR_MAX;
}

/* UCX makes sbrk a system call, so it is asked only about what is near. */
static bool is_in_program(uintptr_t address)
{
    uintptr_t end = heap_end;
    if (address < image || address - image > LONGEST_HEAP)
        return false;
    if (address >= end)
        heap_end = end = find_heap_end();
    return address < end;
}

struct stack {
    uintptr_t begin, end; /* both 0 before it was looked for, both 1 if it cannot be found */
};

static struct stack find_stack(void)
{
    struct stack found = { 1, 1 };
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return found;
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0)
        found = (struct stack){ (uintptr_t)lowest, (uintptr_t)lowest + bytes };
    pthread_attr_destroy(&attributes);
    return found;
}

/* It may not have grown further than to the caller's frame. */
static bool is_on_stack(uintptr_t address)
{
    static _Thread_local struct stack stack;
    if (stack.end == 0)
        stack = find_stack();
    return address >= stack.begin && address >= (uintptr_t)__builtin_frame_address(0) && address < stack.end;
}

bool sar_memory_is_ordinary(const void *address)
{
    return is_in_program((uintptr_t)address) || is_on_stack((uintptr_t)address);
}
#else
bool sar_memory_is_ordinary(const void *address)
{
    (void)address;
    return false;
}
#endif
