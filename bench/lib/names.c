/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that options take. */

#include "bench/lib/names.h"

#include <stddef.h>
#include <string.h>

#include "scheme/scheme.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const buffers[] = { "host", "cuda", "mixed" };
static const char *const interfaces[] = { "coo", "dense" };
static const char *const indices[] = { "int32", "uint32", "int64", "uint64", "auto" };
static const char *const values[] = { "full", "bf16", "fp16" };
static const char *const orders[] = { "sorted", "shuffled" };
static const char *const studies[] = { "none",     "formats", "hash",    "balance",
                                       "selector", "profile", "threads", "bcast" };
static const char *const formats[] = { "table", "osu", "csv", "json", "demo" };

static const char *const slicing_schemes[] = { "balanced", "two_level" };

enum { ALL_MAPS = (1 << SAR_PARTITIONS) - 1 };

/* Values of --scheme, and rows, that are no schemes of the library. */
static const struct perf_scheme not_schemes[] = {
    { "auto", "the selector's choice", true, ALL_MAPS, true },
    { "memory", "a bound: each rank reads its input once and writes its output once", false, 0, false },
    { "memory_node", "a bound: the same, but the ranks of a node write one output together", false, 0,
      false },
    { "skeleton", "messages of the row before, copies of its bytes, or both, without computing", false, 0,
      false },
};

static bool can_slice(const char *name)
{
    for (int i = 0; i < LENGTH(slicing_schemes); i++)
        if (strcmp(name, slicing_schemes[i]) == 0)
            return true;
    return false;
}

struct perf_scheme perf_scheme_find(const char *name)
{
    const struct sar_scheme *scheme = sar_scheme_find(name);

    for (int i = 0; i < LENGTH(not_schemes); i++)
        if (strcmp(name, not_schemes[i].name) == 0)
            return not_schemes[i];
    if (scheme == NULL)
        return (struct perf_scheme){ name, "", true, ALL_MAPS, true };
    return (struct perf_scheme){ scheme->name, scheme->summary, !scheme->on_dense_buffers,
                                 scheme->partition_mask, can_slice(scheme->name) };
}

/* Bounds are those of an allreduce. */
bool perf_scheme_serves(const char *name, int collective)
{
    const struct sar_scheme *scheme = sar_scheme_find(name);

    if (scheme == NULL) /* a lower bound, or the selector */
        return collective == SAR_ALLREDUCE || strcmp(name, "auto") == 0;
    return sar_scheme_serves(scheme, (enum sar_collective_kind)collective);
}

/* A map that is not in the registry, such as "auto", affects every scheme that honours any map. */
bool perf_scheme_takes(const struct perf_scheme *scheme, const char *partition)
{
    int map = sar_partition_find(partition);

    return map < 0 ? scheme->parts != 0 : (scheme->parts >> map & 1) != 0;
}

/* Owners of contiguous ranges own whole rows. */
bool perf_scheme_slices(const struct perf_scheme *scheme, const char *partition, long long row_len)
{
    bool ranges =
        strcmp(scheme->name, "balanced") == 0 && sar_partition_find(partition) == SAR_PARTITION_RANGE;

    return scheme->columns && !ranges && row_len > 1;
}

/* Returns the i-th of n registered names and n_more others, or NULL after the last. */
static const char *name_of(int i, const char *registered, int n, const char *const *more, int n_more)
{
    if (i < n)
        return registered;
    return i - n < n_more ? more[i - n] : NULL;
}

const char *perf_scheme_name(int i)
{
    static const char *const more[] = { "auto", "memory", "memory_node" };
    int n = 0;

    while (sar_schemes[n] != NULL)
        n++;
    return name_of(i, i < n ? sar_schemes[i]->name : NULL, n, more, LENGTH(more));
}

const char *perf_wire_name(int i)
{
    static const char *const more[] = { "smallest", "auto" };
    int n = 0;

    while (sar_wires[n] != NULL)
        n++;
    return name_of(i, i < n ? sar_wires[i]->name : NULL, n, more, LENGTH(more));
}

const char *perf_partition_name(int i)
{
    static const char *const more[] = { "auto" };

    return name_of(i, i < SAR_PARTITIONS ? sar_partition_names[i] : NULL, SAR_PARTITIONS, more, LENGTH(more));
}

const char *perf_buffers_name(int i)
{
    return i < LENGTH(buffers) ? buffers[i] : NULL;
}

const char *perf_interface_name(int i)
{
    return i < LENGTH(interfaces) ? interfaces[i] : NULL;
}

const char *perf_collective_name(int i)
{
    return i < SAR_COLLECTIVES ? sar_collective_names[i] : NULL;
}

const char *perf_index_name(int i)
{
    return i < LENGTH(indices) ? indices[i] : NULL;
}

const char *perf_values_name(int i)
{
    return i < LENGTH(values) ? values[i] : NULL;
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
