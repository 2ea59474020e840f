/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/env.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

const char *sar_env_get(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

const char *sar_env_setting(const char *name, void *unused)
{
    char full[SAR_SETTING_TEXT];
    (void)unused;
    snprintf(full, sizeof full, SAR_ENV_PREFIX "%s", name);
    return sar_env_get(full);
}
