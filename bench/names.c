/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include <stddef.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* `all` takes them in this order. A new scheme of the library is one line here. */
static const struct perf_scheme schemes[] = {
    { "dense", "all elements, by MPI_Allreduce", false, false },
    { "allgather", "everybody gathers everything", true, false },
    { "recursive_doubling", "pairs merge, over and over", true, false },
    { "balanced", "hashed parts, push and pull", true, true },
    { "split_allgather", "ranges, push and concatenate", true, false },
    { "split_dense", "the same, sums gathered dense", true, false },
    { "ring", "ranges around a ring", true, false },
    { "hybrid", "pairs, then dense halves", true, false },
    { "omni", "blocks of 256, push and pull", true, false },
    { "sparse_ps", "ranges served by ranks", true, false },
    { "oktopk", "recomputed parts, push and pull", true, false },
    { "auto", "the selector's choice", true, true },
};

static const char *const wires[] = { "coo",   "packed", "elias_fano", "hash_bitmap", "bitmap",
                                     "block", "dense",  "smallest",   "auto" };
static const char *const partitions[] = { "hash", "cyclic", "range", "auto" };
static const char *const interfaces[] = { "coo", "dense" };
static const char *const indices[] = { "int32", "uint32", "int64", "uint64", "auto" };
static const char *const orders[] = { "sorted", "shuffled" };
static const char *const studies[] = { "none", "formats", "hash", "balance", "selector" };
static const char *const formats[] = { "table", "osu", "csv", "json", "demo" };

struct perf_scheme perf_scheme_find(const char *name)
{
    for (int i = 0; i < LENGTH(schemes); i++)
        if (strcmp(schemes[i].name, name) == 0)
            return schemes[i];
    return (struct perf_scheme){ name, "", true, true };
}

const char *perf_scheme_name(int i)
{
    return i < LENGTH(schemes) ? schemes[i].name : NULL;
}

const char *perf_wire_name(int i)
{
    return i < LENGTH(wires) ? wires[i] : NULL;
}

const char *perf_partition_name(int i)
{
    return i < LENGTH(partitions) ? partitions[i] : NULL;
}

const char *perf_interface_name(int i)
{
    return i < LENGTH(interfaces) ? interfaces[i] : NULL;
}

const char *perf_index_name(int i)
{
    return i < LENGTH(indices) ? indices[i] : NULL;
}

const char *perf_order_name(int i)
{
    return i < LENGTH(orders) ? orders[i] : NULL;
}

const char *perf_study_name(int i)
{
    return i < LENGTH(studies) ? studies[i] : NULL;
}

const char *perf_format_name(int i)
{
    return i < LENGTH(formats) ? formats[i] : NULL;
}
