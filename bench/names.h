/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that the options take: those of the library's registries, and what knobs know beside them;
 * others are tables in names.c. */
#ifndef PERF_NAMES_H
#define PERF_NAMES_H

#include <stdbool.h>

/* What the benchmark needs to know of a name that --scheme takes. */
struct perf_scheme {
    const char *name;
    const char *summary; /* for people; empty where there is none */
    bool wires;          /* whether asking for a format makes a difference */
    unsigned parts;      /* partition maps of which asking for one does, a bit for each */
};

/* The scheme of that name; of one that the library does not know, all makes a difference. */
struct perf_scheme perf_scheme_find(const char *name);

/* Whether asking it for that partition map makes a difference. */
bool perf_scheme_takes(const struct perf_scheme *scheme, const char *partition);

/* The i-th name of a list, or NULL after the last. */
typedef const char *(*perf_name_fn)(int i);

const char *perf_scheme_name(int i);
const char *perf_wire_name(int i);
const char *perf_partition_name(int i);

enum perf_buffers { PERF_HOST, PERF_CUDA };
const char *perf_buffers_name(int i);
enum perf_interface { PERF_COO, PERF_DENSE };
const char *perf_interface_name(int i);

enum perf_index { PERF_INT32, PERF_UINT32, PERF_INT64, PERF_UINT64, PERF_INDEX_AUTO };
const char *perf_index_name(int i);

/* What floats travel as. */
enum perf_values { PERF_FULL, PERF_BF16, PERF_FP16 };
const char *perf_values_name(int i);

enum perf_order { PERF_SORTED, PERF_SHUFFLED };
const char *perf_order_name(int i);

enum perf_topic { PERF_NO_STUDY, PERF_FORMATS, PERF_HASH, PERF_BALANCE, PERF_SELECTOR, PERF_PROFILE };
const char *perf_study_name(int i);

enum perf_format { PERF_TABLE, PERF_OSU, PERF_CSV, PERF_JSON, PERF_DEMO };
const char *perf_format_name(int i);

#endif
