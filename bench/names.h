/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that the options take and the library's knobs know. Each list is one table in names.c. */
#ifndef PERF_NAMES_H
#define PERF_NAMES_H

#include <stdbool.h>

/* A scheme as the benchmark needs to know it. */
struct perf_scheme {
    const char *name;
    const char *words; /* what it does, for people */
    bool wires;        /* whether asking for a wire makes a difference */
    bool parts;        /* whether it has a partition map */
};

/* The scheme of that name; for a name out of no table, one without words that takes every knob. */
struct perf_scheme perf_scheme_find(const char *name);

/* The i-th name of a list, or NULL after the last. */
typedef const char *(*perf_name_fn)(int i);

const char *perf_scheme_name(int i);
const char *perf_wire_name(int i);
const char *perf_partition_name(int i);

enum perf_interface { PERF_COO, PERF_DENSE };
const char *perf_interface_name(int i);

enum perf_index { PERF_INT32, PERF_UINT32, PERF_INT64, PERF_UINT64, PERF_INDEX_AUTO };
const char *perf_index_name(int i);

enum perf_order { PERF_SORTED, PERF_SHUFFLED };
const char *perf_order_name(int i);

enum perf_topic { PERF_NO_STUDY, PERF_FORMATS, PERF_HASH, PERF_BALANCE, PERF_SELECTOR };
const char *perf_study_name(int i);

enum perf_format { PERF_TABLE, PERF_OSU, PERF_CSV, PERF_JSON, PERF_DEMO };
const char *perf_format_name(int i);

#endif
