/* SPDX-License-Identifier: BSD-3-Clause */
/* The format `table` of a study: a column for each field, as wide as its key or a usual value. */

#include <stdio.h>
#include <string.h>

#include "report.h"

enum { NARROW = 6, USUAL = 10, DIGITS = 5 };

static int width_of(const struct perf_field *field)
{
    int key = (int)strlen(field->key);
    int least = field->kind == PERF_BOOL ? NARROW : USUAL;

    return key > least ? key : least;
}

void perf_print_keys(const struct perf_schema *schema)
{
    for (int i = 0; i < schema->fields; i++)
        printf("%c%*s", i == 0 ? '#' : ' ', width_of(&schema->field[i]), schema->field[i].key);
    putchar('\n');
}

void perf_print_record(const struct perf_schema *schema, const void *record)
{
    for (int i = 0; i < schema->fields; i++) {
        const struct perf_field *field = &schema->field[i];
        const char *text = perf_field_text(field, record);
        char number[PERF_NUMBER_MAX] = "-";

        if (text == NULL)
            perf_field_number(field, record, DIGITS, number);
        printf(" %*s", width_of(field), text != NULL ? text : number);
    }
    putchar('\n');
}
