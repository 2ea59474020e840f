/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that options take: those of the library's registries and settings, and tables in names.c. */
#ifndef PERF_NAMES_H
#define PERF_NAMES_H

#include <stdbool.h>

/** Properties of a name of option --scheme. */
struct perf_scheme {
    const char *name;
    const char *summary; /**< one line for people; "" if there is none */
    bool wires;          /**< true if the scheme honours MPIX_SPARSE_WIRE */
    unsigned parts;      /**< bit mask of the partition maps that the scheme honours */
    bool columns;        /**< true if the scheme honours MPIX_SPARSE_COLUMNS */
};

/** Returns the properties of a scheme. A scheme that the library does not know honours everything. */
struct perf_scheme perf_scheme_find(const char *name);

/** True if a name of option --scheme has a row of this collective (enum sar_collective_kind). */
bool perf_scheme_serves(const char *name, int collective);

/** True if the scheme honours this partition map. */
bool perf_scheme_takes(const struct perf_scheme *scheme, const char *partition);

/** True if the scheme can slice rows of `row_len` values with this partition map. */
bool perf_scheme_slices(const struct perf_scheme *scheme, const char *partition, long long row_len);

/** Returns the i-th name of a list, or NULL after the last. */
typedef const char *(*perf_name_fn)(int i);

const char *perf_scheme_name(int i);
const char *perf_wire_name(int i);
const char *perf_partition_name(int i);

/** PERF_MIXED: device memory on the first rank of each node, host memory on the others. */
enum perf_buffers { PERF_HOST, PERF_CUDA, PERF_MIXED };
const char *perf_buffers_name(int i);
enum perf_interface { PERF_COO, PERF_DENSE };
const char *perf_interface_name(int i);

const char *perf_collective_name(int i);

enum perf_index { PERF_INT32, PERF_UINT32, PERF_INT64, PERF_UINT64, PERF_INDEX_AUTO };
const char *perf_index_name(int i);

/** Precisions in which floats are sent. */
enum perf_values { PERF_FULL, PERF_BF16, PERF_FP16 };
const char *perf_values_name(int i);

enum perf_order { PERF_SORTED, PERF_SHUFFLED };
const char *perf_order_name(int i);

enum perf_study_kind {
    PERF_NO_STUDY,
    PERF_FORMATS,
    PERF_HASH,
    PERF_BALANCE,
    PERF_SELECTOR,
    PERF_PROFILE,
    PERF_THREADS,
    PERF_BCAST
};
const char *perf_study_name(int i);

enum perf_format { PERF_TABLE, PERF_OSU, PERF_CSV, PERF_JSON, PERF_DEMO };
const char *perf_format_name(int i);

#endif
