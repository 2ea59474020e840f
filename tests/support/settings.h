/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TESTS_SUPPORT_SETTINGS_H
#define SAR_TESTS_SUPPORT_SETTINGS_H

#include <stddef.h>
#include <string.h>

/** Name and value of a setting. An array of these, terminated by a null name, replaces the environment. */
struct setting {
    const char *name, *text;
};

/** Find a setting's value in such an array. */
static inline const char *setting_find(const char *name, void *from)
{
    for (const struct setting *setting = from; setting->name != NULL; setting++)
        if (strcmp(setting->name, name) == 0)
            return setting->text;
    return NULL;
}

#endif
