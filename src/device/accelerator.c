/* SPDX-License-Identifier: BSD-3-Clause */
/* Search for the plug-in, and the test of an address for host memory.
 *
 * Searching the loaded libraries for a driver takes longer than all other work of a call that passes through
 * to MPI. Most small vectors are on a stack or in the heap, where no device memory is mapped, so addresses
 * there skip the search. */

#include "device/accelerator.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <unistd.h>
#endif

#include "base/log.h"

#if defined(__linux__) || defined(HAVE_DL_ITERATE_PHDR)
#include <link.h>
#endif

#ifdef __linux__
/* Most bytes from the start of a program to the end of its heap. Mappings are further away. */
#define LONGEST_HEAP (UINT64_C(1) << 38)

static uintptr_t image;            /* start of the program; UINTPTR_MAX: unknown */
static _Atomic uintptr_t heap_end; /* end of the heap when last asked for */

/* dl_iterate_phdr visits the program itself first. */
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

/* Runs when the library is loaded. A program started through the dynamic loader has its heap before its
 * image. */
__attribute__((constructor)) static void find_program(void)
{
    dl_iterate_phdr(find_image, NULL);
    heap_end = find_heap_end();
    if (heap_end < image)
        image = UINTPTR_MAX;
}

/* UCX intercepts sbrk and makes it a system call, so call it only for addresses close behind the known
 * heap. */
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
    uintptr_t begin, end; /* both 0: not searched yet; both 1: not found */
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

/* Addresses below the caller's frame may be beyond the part of the stack in use. */
static bool is_on_stack(uintptr_t address)
{
    static _Thread_local struct stack stack;
    if (stack.end == 0)
        stack = find_stack();
    return address >= stack.begin && address >= (uintptr_t)__builtin_frame_address(0) && address < stack.end;
}

bool sar_host_address_is_certain(const void *address)
{
    return is_in_program((uintptr_t)address) || is_on_stack((uintptr_t)address);
}
#else
bool sar_host_address_is_certain(const void *address)
{
    (void)address;
    return false;
}
#endif

#ifdef HAVE_DL_ITERATE_PHDR

static const char driver[] = "libcuda.so", plugin_name[] = "libmpix_sparse_cuda.so";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct sar_accelerator *_Atomic plugin;
static atomic_bool load_tried;

/* cuPointerGetAttribute of the driver, as declared in cuda.h; NULL if there is a plug-in. */
typedef int pointer_attribute_fn(void *answer, int attribute, unsigned long long address);
static pointer_attribute_fn *_Atomic pointer_attribute;

/* A search through the libraries loaded in the process. */
struct search {
    unsigned long long before, now; /* libraries ever loaded, at the last search and at this one */
    bool found;
};

static bool is_driver(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash == NULL ? path : slash + 1, driver, sizeof driver - 1) == 0;
}

/* Stops at once if no library was loaded since the last search. */
static int visit_library(struct dl_phdr_info *library, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    search->now = library->dlpi_adds;
    search->found = search->now != search->before && is_driver(library->dlpi_name);
    return search->found || search->now == search->before;
}

static bool driver_is_loaded(void)
{
    static _Atomic unsigned long long searched;
    struct search search = { .before = searched };
    dl_iterate_phdr(visit_library, &search);
    if (!search.found)
        searched = search.now;
    return search.found;
}

/* Opens the plug-in in this library's folder, or else on the loader's search path. */
static void *open_plugin(void)
{
    Dl_info self;
    char path[4096];
    void *handle = NULL;
    if (dladdr(&lock, &self) != 0 && strrchr(self.dli_fname, '/') != NULL) {
        int folder = (int)(strrchr(self.dli_fname, '/') + 1 - self.dli_fname);
        if (snprintf(path, sizeof path, "%.*s%s", folder, self.dli_fname, plugin_name) < (int)sizeof path)
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle != NULL ? handle : dlopen(plugin_name, RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
    void *handle = open_plugin();
    const struct sar_accelerator *found = handle == NULL ? NULL : dlsym(handle, SAR_ACCELERATOR_SYMBOL);
    if (found != NULL && found->version == SAR_ACCELERATOR_VERSION) {
        plugin = found;
        return;
    }
    SAR_LOG(WARN, DEVICE, "CUDA is in use here, but calls on its memory will fail: %s",
            handle == NULL ? dlerror() : "the plug-in is of another version");
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    pointer_attribute =
        handle == NULL ? NULL : (pointer_attribute_fn *)dlsym(handle, "cuPointerGetAttribute");
}

/* Asks the driver if there is no plug-in, so that the host does not access device memory. */
static bool is_device_memory(const void *address)
{
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_MEMORY = 2 };
    unsigned type = 0, managed = 0;
    unsigned long long at = (unsigned long long)(uintptr_t)address;
    pointer_attribute_fn *get = pointer_attribute;
    return get != NULL && get(&type, MEMORY_TYPE, at) == 0 && type == DEVICE_MEMORY &&
           (get(&managed, IS_MANAGED, at) != 0 || managed == 0);
}

/* Returns the plug-in, loaded if a driver is present. The plug-in is never unloaded. */
static const struct sar_accelerator *find_plugin(void)
{
    if (load_tried || !driver_is_loaded())
        return plugin;
    pthread_mutex_lock(&lock);
    if (!load_tried)
        load();
    load_tried = true;
    pthread_mutex_unlock(&lock);
    return plugin;
}

void sar_accelerator_cleanup(void)
{
    const struct sar_accelerator *known = plugin;
    if (known != NULL)
        known->cleanup();
}
#else
void sar_accelerator_cleanup(void)
{
}

static const struct sar_accelerator *find_plugin(void)
{
    return NULL;
}

static bool is_device_memory(const void *address)
{
    (void)address;
    return false;
}
#endif

/* Asks the plug-in, or the driver if there is none. */
static enum sar_status find_device(const struct sar_accelerator *known, const void *address, int *device_id)
{
    *device_id = -1;
    if (known == NULL)
        return is_device_memory(address) ? SAR_UNSUPPORTED : SAR_OK;
    enum sar_status status = known->find_device(address, device_id);
    if (status != SAR_OK)
        *device_id = 0;
    return status;
}

enum sar_status sar_accelerator_find(const void *address, const struct sar_accelerator **accelerator,
                                     int *device_id)
{
    *accelerator = NULL;
    if (sar_host_address_is_certain(address))
        return SAR_OK;
    const struct sar_accelerator *known = find_plugin();
    enum sar_status status = find_device(known, address, device_id);
    if (*device_id >= 0)
        *accelerator = known;
    return status;
}

bool sar_accelerator_both_on_host(const void *first, const void *second)
{
    int device_id, other;
    if (sar_host_address_is_certain(first) && sar_host_address_is_certain(second))
        return true;
    const struct sar_accelerator *known = find_plugin();
    return find_device(known, first, &device_id) == SAR_OK && find_device(known, second, &other) == SAR_OK &&
           device_id < 0 && other < 0;
}
