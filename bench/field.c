/* SPDX-License-Identifier: BSD-3-Clause */
#include "field.h"

#include <math.h>
#include <stdio.h>

#include "phases.h"

static const void *value_of(const struct perf_field *field, const void *record)
{
    return (const char *)record + field->at;
}

const char *perf_field_text(const struct perf_field *field, const void *record)
{
    if (field->kind == PERF_TEXT)
        return *(const char *const *)value_of(field, record);
    return field->kind == PERF_LETTERS ? value_of(field, record) : NULL;
}

const struct perf_phases *perf_field_phases(const struct perf_field *field, const void *record)
{
    const struct perf_phases *phases;

    if (field->kind != PERF_BREAKDOWN)
        return NULL;
    phases = *(const struct perf_phases *const *)value_of(field, record);
    return phases->n > 0 ? phases : NULL;
}

bool perf_field_number(const struct perf_field *field, const void *record, int digits,
                       char text[PERF_NUMBER_MAX])
{
    const void *value = value_of(field, record);

    if (field->kind == PERF_BOOL)
        snprintf(text, PERF_NUMBER_MAX, "%s", *(const bool *)value ? "true" : "false");
    else if (field->kind == PERF_INTEGER && *(const long long *)value >= 0)
        snprintf(text, PERF_NUMBER_MAX, "%lld", *(const long long *)value);
    else if (field->kind == PERF_REAL && isfinite(*(const double *)value))
        snprintf(text, PERF_NUMBER_MAX, "%.*g", digits, *(const double *)value);
    else
        return false;
    return true;
}
