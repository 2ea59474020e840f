/* SPDX-License-Identifier: BSD-3-Clause */
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

#include "base/log.h"
#include "device/ordinary.h"

#ifdef HAVE_DL_ITERATE_PHDR
#include <link.h>

static const char driver[] = "libcuda.so", plugin_name[] = "libmpix_sparse_cuda.so";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct sar_accelerator *_Atomic plugin;
static atomic_bool tried;

/* The driver's cuPointerGetAttribute, as cuda.h has it; NULL where there is a plug-in. */
typedef int ask_fn(void *answer, int attribute, unsigned long long address);
static ask_fn *_Atomic ask;

/* A search through the libraries of the process. */
struct search {
    unsigned long long before, now; /* libraries loaded so far, at the last search and at this one */
    bool found;
};

static bool is_driver(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash == NULL ? path : slash + 1, driver, sizeof driver - 1) == 0;
}

/* Where nothing was loaded since the last search, nothing is new. */
static int look(struct dl_phdr_info *library, size_t size, void *context)
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
    dl_iterate_phdr(look, &search);
    if (!search.found)
        searched = search.now;
    return search.found;
}

/* Beside this library, else wherever the loader looks. */
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
    ask = handle == NULL ? NULL : (ask_fn *)dlsym(handle, "cuPointerGetAttribute");
}

/* Where there is no plug-in the driver itself is asked, so that the host does not touch what it cannot. */
static bool is_out_of_reach(const void *address)
{
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_MEMORY = 2 };
    unsigned type = 0, managed = 0;
    unsigned long long at = (unsigned long long)(uintptr_t)address;
    ask_fn *asked = ask;
    return asked != NULL && asked(&type, MEMORY_TYPE, at) == 0 && type == DEVICE_MEMORY &&
           (asked(&managed, IS_MANAGED, at) != 0 || managed == 0);
}

/* Stays for good: what it owns may be in use by others. */
static const struct sar_accelerator *loaded(void)
{
    if (tried || !driver_is_loaded())
        return plugin;
    pthread_mutex_lock(&lock);
    if (!tried)
        load();
    tried = true;
    pthread_mutex_unlock(&lock);
    return plugin;
}

void sar_accelerator_cleanup(void)
{
    const struct sar_accelerator *known = plugin;
    if (known != NULL)
        known->close();
}
#else
void sar_accelerator_cleanup(void)
{
}

static const struct sar_accelerator *loaded(void)
{
    return NULL;
}

static bool is_out_of_reach(const void *address)
{
    (void)address;
    return false;
}
#endif

/* Where an address is, says the plug-in, or without one the driver. */
static enum sar_status ask_for_place(const struct sar_accelerator *known, const void *address, int *place)
{
    *place = -1;
    if (known == NULL)
        return is_out_of_reach(address) ? SAR_UNSUPPORTED : SAR_OK;
    enum sar_status status = known->place(address, place);
    if (status != SAR_OK)
        *place = 0;
    return status;
}

enum sar_status sar_accelerator_find(const void *address, const struct sar_accelerator **accelerator,
                                     int *place)
{
    *accelerator = NULL;
    if (sar_memory_is_ordinary(address))
        return SAR_OK;
    const struct sar_accelerator *known = loaded();
    enum sar_status status = ask_for_place(known, address, place);
    if (*place >= 0)
        *accelerator = known;
    return status;
}

bool sar_accelerator_is_idle(const void *first, const void *second)
{
    int place, other;
    if (sar_memory_is_ordinary(first) && sar_memory_is_ordinary(second))
        return true;
    const struct sar_accelerator *known = loaded();
    return ask_for_place(known, first, &place) == SAR_OK && ask_for_place(known, second, &other) == SAR_OK &&
           place < 0 && other < 0;
}
