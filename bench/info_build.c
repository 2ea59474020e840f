/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <unistd.h>

#include "info.h"
#include "net/fingerprint.h"
#include "scheme/scheme.h"
#include "serial.h"

enum { ROOM = 1024 };

/* A fact of the build, or an entry of a registry. */
struct line {
    const char *kind, *name, *what;
};

static const struct perf_field facts[] = {
    PERF_FIELD(line, "name", PERF_TEXT, name),
    PERF_FIELD(line, "value", PERF_TEXT, what),
};

static const struct perf_field entries[] = {
    PERF_FIELD(line, "kind", PERF_TEXT, kind),
    PERF_FIELD(line, "name", PERF_TEXT, name),
    PERF_FIELD(line, "summary", PERF_TEXT, what),
};

static void print(bool json, const char *name, const char *value)
{
    static const struct perf_schema schema = PERF_SCHEMA(facts);

    if (json)
        perf_write_json(stdout, &schema, &(struct line){ "fact", name, value });
    else
        printf("%-16s%s\n", name, value);
}

static void print_compiler(bool json)
{
#if defined(__GNUC__) && !defined(__clang__)
    static const char compiler[] = "gcc " __VERSION__;
#else
    static const char compiler[] = __VERSION__;
#endif
    print(json, "compiler", compiler);
    print(json, "flags", SAR_BUILD_COMPILER);
}

/* A library that may be built beside the main one: whether it was, and whether it is where that would be. */
static void print_library(bool json, const char *name, const char *built, const char *file)
{
    char path[ROOM], text[2 * ROOM];

    snprintf(path, sizeof path, "%s/%s", INFO_LIBDIR, file);
    snprintf(text, sizeof text, "%s; %s as %s", built,
             access(path, R_OK) == 0 ? "installed" : "not installed", path);
    print(json, name, text);
}

void info_print_build(bool json)
{
    char mpi[SAR_FINGERPRINT_TEXT];

    sar_fingerprint_mpi(mpi);
    print(json, "mpix-sparse", PACKAGE_VERSION);
    print(json, "configured", SAR_BUILD_OPTIONS);
    print_compiler(json);
    print(json, "sanitizers", SAR_BUILD_SANITIZERS);
    print(json, "built for", SAR_BUILD_MPI);
    print(json, "MPI found", mpi);
    print(json, "hwloc", SAR_BUILD_HWLOC);
    print(json, "Jansson", SAR_BUILD_JANSSON);
    print(json, "StreamVByte", SAR_BUILD_STREAMVBYTE);
    print(json, "CUDA compiler", SAR_BUILD_CUDA);
    print_library(json, "CUDA plug-in", SAR_BUILD_CUDA_PLUGIN, "libmpix_sparse_cuda.so");
    print_library(json, "preload library", SAR_BUILD_PRELOAD, "libmpix_sparse_preload.so");
    print(json, "reduces on", sar_device_host.name);
}

static void print_entry(bool json, const char *kind, const char *name, const char *summary)
{
    static const struct perf_schema schema = PERF_SCHEMA(entries);

    if (json)
        perf_write_json(stdout, &schema, &(struct line){ kind, name, summary });
    else
        printf("%-11s%-21s%s\n", kind, name, summary);
}

void info_print_schemes(bool json)
{
    for (int i = 0; sar_schemes[i] != NULL; i++)
        print_entry(json, "scheme", sar_schemes[i]->name, sar_schemes[i]->summary);
    for (int i = 0; sar_wires[i] != NULL; i++)
        print_entry(json, "format", sar_wires[i]->name, sar_wires[i]->summary);
    for (int i = 0; sar_partition_names[i] != NULL; i++)
        print_entry(json, "partition", sar_partition_names[i], sar_partition_summaries[i]);
}
