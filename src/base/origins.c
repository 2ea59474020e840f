/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the values of knobs came from. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"

bool sar_config_same(const struct sar_config *a, const struct sar_config *b, size_t *at)
{
    char left[SAR_KNOB_PATH], right[SAR_KNOB_PATH];
    enum sar_origin origin;
    for (size_t i = 0; sar_config_show(a, i, left, sizeof left, &origin); i++) {
        sar_config_show(b, i, right, sizeof right, &origin);
        if (strcmp(left, right) != 0) {
            *at = i;
            return false;
        }
    }
    return true;
}

enum sar_origin sar_config_origin(const struct sar_config *config, const char *name)
{
    const char *knob = "", *fallback, *help;
    for (size_t i = 0; sar_config_describe(i, &knob, &fallback, &help); i++)
        if (strcmp(knob, name) == 0)
            return (enum sar_origin)config->origin[i];
    return SAR_FROM_DEFAULT;
}

void sar_knob_spell(const char *name, enum sar_origin origin, char *text, size_t room)
{
    snprintf(text, room, "MPIX_SPARSE_%s", name);
    if (origin != SAR_FROM_COMM_INFO && origin != SAR_FROM_PLAN_INFO)
        return;
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

const char *sar_origin_name(enum sar_origin origin)
{
    static const char *const names[SAR_ORIGINS] = { "default", "calibration file", "environment",
                                                    "info of the communicator", "info of the plan" };
    return names[origin];
}
