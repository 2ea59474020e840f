/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <mpix_sparse.h>
#include <stdio.h>

#include "info.h"
#include "net/fingerprint.h"
#include "scheme/scheme.h"

static void print(const char *name, const char *value)
{
    printf("%-16s%s\n", name, value);
}

static void print_compiler(void)
{
#if defined(__GNUC__) && !defined(__clang__)
    static const char compiler[] = "gcc " __VERSION__;
#else
    static const char compiler[] = __VERSION__;
#endif
    print("compiler", compiler);
    print("", SAR_BUILD_COMPILER);
}

void info_print_build(void)
{
    char mpi[SAR_FINGERPRINT_TEXT];

    sar_fingerprint_mpi(mpi);
    print("mpix-sparse", PACKAGE_VERSION);
    print("configured", SAR_BUILD_OPTIONS);
    print_compiler();
    print("sanitizers", SAR_BUILD_SANITIZERS);
    print("built for", SAR_BUILD_MPI);
    print("MPI found", mpi);
    print("hwloc", SAR_BUILD_HWLOC);
    print("Jansson", SAR_BUILD_JANSSON);
    print("StreamVByte", SAR_BUILD_STREAMVBYTE);
    print("CUDA compiler", SAR_BUILD_CUDA);
    print("reduces on", sar_device_host.name);
}

static void print_line(const char *name, const char *summary)
{
    printf("  %-21s%s\n", name, summary);
}

void info_print_schemes(void)
{
    printf("schemes\n");
    for (int i = 0; sar_schemes[i] != NULL; i++)
        print_line(sar_schemes[i]->name, sar_schemes[i]->summary);
    printf("formats\n");
    for (int i = 0; sar_wires[i] != NULL; i++)
        print_line(sar_wires[i]->name, sar_wires[i]->summary);
    printf("partitions\n ");
    for (int i = 0; sar_partition_names[i] != NULL; i++)
        printf(" %s", sar_partition_names[i]);
    putchar('\n');
}
