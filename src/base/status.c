/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

static const char *const texts[] = {
#define STATUS_TEXT(name, text) text,
    SAR_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
};

const char *sar_status_text(enum sar_status status)
{
    return status < SAR_STATUSES ? texts[status] : "unknown error%s%s";
}
