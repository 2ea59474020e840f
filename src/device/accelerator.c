/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/accelerator.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
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
    if (found != NULL && found->version == SAR_ACCELERATOR_VERSION)
        plugin = found;
    else
        SAR_LOG(WARN, DEVICE, "CUDA is in use here, but its memory cannot be told from the host's: %s",
                handle == NULL ? dlerror() : "the plug-in is of another version");
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
#else
static const struct sar_accelerator *loaded(void)
{
    return NULL;
}
#endif

const struct sar_accelerator *sar_accelerator_of(const void *address, int *place)
{
    const struct sar_accelerator *accelerator = sar_memory_is_ordinary(address) ? NULL : loaded();
    int found = accelerator == NULL ? -1 : accelerator->place(address);
    if (found < 0)
        return NULL;
    *place = found;
    return accelerator;
}

bool sar_accelerator_is_idle(const void *first, const void *second)
{
    if (sar_memory_is_ordinary(first) && sar_memory_is_ordinary(second))
        return true;
    const struct sar_accelerator *accelerator = loaded();
    return accelerator == NULL || (accelerator->place(first) < 0 && accelerator->place(second) < 0);
}
