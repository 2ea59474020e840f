/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TESTS_SUPPORT_SETTINGS_H
#define SAR_TESTS_SUPPORT_SETTINGS_H

#include <stddef.h>
#include <string.h>

/** One knob's text; an array of these, ended by a null name, stands in for the environment. */
struct setting {
    const char *name, *text;
};

/** Look a knob up in such an array. */
static inline const char *setting_find(const char *name, void *from)
{
    for (const struct setting *setting = from; setting->name != NULL; setting++)
        if (strcmp(setting->name, name) == 0)
            return setting->text;
    return NULL;
}

#endif
