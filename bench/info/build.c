/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts on the build, and the entries of the registries. */

#include <mpi.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <unistd.h>

#include "bench/info/configured.h"
#include "bench/info/info.h"
#include "bench/lib/schema.h"
#include "comm/calibration.h"
#include "scheme/scheme.h"

enum { PATH_SIZE = 1024 };

/* A fact, or an entry of a registry. */
struct record {
    const char *kind, *name, *what;
};

static const struct perf_field facts[] = {
    PERF_FIELD(record, "name", PERF_TEXT, name),
    PERF_FIELD(record, "value", PERF_TEXT, what),
};

static const struct perf_field entries[] = {
    PERF_FIELD(record, "kind", PERF_TEXT, kind),
    PERF_FIELD(record, "name", PERF_TEXT, name),
    PERF_FIELD(record, "summary", PERF_TEXT, what),
};

static void print(bool json, const char *name, const char *value)
{
    static const struct perf_schema schema = PERF_SCHEMA(facts);

    if (json)
        perf_write_json(stdout, &schema, &(struct record){ "fact", name, value });
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

/* Prints if an optional library was built, and if it is installed. */
static void print_library(bool json, const char *name, const char *built, const char *file)
{
    char path[PATH_SIZE], text[2 * PATH_SIZE];

    snprintf(path, sizeof path, "%s/%s", INFO_LIBDIR, file);
    snprintf(text, sizeof text, "%s; %s as %s", built,
             access(path, R_OK) == 0 ? "installed" : "not installed", path);
    print(json, name, text);
}

void info_print_build(bool json)
{
    char mpi[SAR_FINGERPRINT_CHARS];

    sar_fingerprint_mpi_version(mpi);
    print(json, "mpix-sparse", PACKAGE_VERSION);
    print(json, "configured", SAR_BUILD_OPTIONS);
    print_compiler(json);
    print(json, "sanitizers", SAR_BUILD_SANITIZERS);
    print(json, "built for", SAR_BUILD_MPI);
    print(json, "MPI found", mpi);
    print(json, "hwloc", SAR_BUILD_HWLOC);
    print(json, "Jansson", SAR_BUILD_JANSSON);
    print(json, "StreamVByte", SAR_BUILD_STREAMVBYTE);
    print(json, "OpenMP", SAR_BUILD_OPENMP);
    print(json, "CUDA compiler", SAR_BUILD_CUDA);
    print_library(json, "CUDA plug-in", SAR_BUILD_CUDA_PLUGIN, "libmpix_sparse_cuda.so");
    print_library(json, "preload library", SAR_BUILD_PRELOAD, "libmpix_sparse_preload.so");
    print(json, "reduces on", "host");
}

static void print_entry(bool json, const char *kind, const char *name, const char *summary)
{
    static const struct perf_schema schema = PERF_SCHEMA(entries);

    if (json)
        perf_write_json(stdout, &schema, &(struct record){ kind, name, summary });
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
