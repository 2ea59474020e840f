/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in the forms that programs read. CSV goes to the standard output. */
#ifndef PERF_SERIAL_H
#define PERF_SERIAL_H

#include <stdio.h>

#include "field.h"

/* An object on a line of its own. What is not known is null. */
void perf_write_json(FILE *file, const struct perf_schema *schema, const void *record);

/* A line of keys, and one of values below it. What is not known is empty. */
void perf_write_csv_keys(const struct perf_schema *schema);
void perf_write_csv(const struct perf_schema *schema, const void *record);

#endif
