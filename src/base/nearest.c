/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"

extern char **environ;

enum { LONGEST = 63, LETTERS_FOR_ONE = 3 /* letters of a name that allow for one that differs */ };

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* A row of the table of Wagner and Fischer after the other. */
unsigned sar_edit_distance(const char *a, size_t length, const char *b)
{
    unsigned row[LONGEST + 1];
    size_t columns = strlen(b);
    if (length > LONGEST || columns > LONGEST)
        return UINT_MAX;
    for (size_t j = 0; j <= columns; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < length; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < columns; j++) {
            unsigned differs = tolower((unsigned char)a[i]) != tolower((unsigned char)b[j]);
            unsigned replaced = diagonal + differs;
            diagonal = row[j + 1];
            row[j + 1] = least(replaced, diagonal + 1, row[j] + 1);
        }
    }
    return row[columns];
}

struct sar_nearest sar_nearest_begin(const char *name, size_t length)
{
    return (struct sar_nearest){ name, length, NULL, (unsigned)(length / LETTERS_FOR_ONE) + 1 };
}

void sar_nearest_try(struct sar_nearest *nearest, const char *candidate)
{
    unsigned distance = sar_edit_distance(nearest->name, nearest->length, candidate);
    if (distance < nearest->distance) {
        nearest->found = candidate;
        nearest->distance = distance;
    }
}

const char *sar_nearest_setting(const char *name, size_t length)
{
    const char *setting, *fallback, *help;
    struct sar_nearest nearest = sar_nearest_begin(name, length);
    for (size_t i = 0; sar_config_setting(i, &setting, &fallback, &help); i++)
        sar_nearest_try(&nearest, setting);
    return nearest.found;
}

void sar_warn_unknown_settings(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    size_t at = 0, length;
    const char *name;
    if (atomic_flag_test_and_set(&warned))
        return;
    while ((name = sar_config_unknown(environ, &at, &length)) != NULL) {
        size_t prefix = strlen(SAR_ENV_PREFIX);
        const char *nearest = sar_nearest_setting(name + prefix, length - prefix);
        SAR_LOG(WARN, BASE, "%.*s is set but is not a setting of this library%s%s", (int)length, name,
                nearest == NULL ? "" : "; did you mean " SAR_ENV_PREFIX, nearest == NULL ? "" : nearest);
    }
}
