/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of this process. Only this file calls getenv. */

#ifndef SAR_BASE_ENV_H
#define SAR_BASE_ENV_H

/** Prefix of the library's environment variables. */
#define SAR_ENV_PREFIX "MPIX_SPARSE_"

/** Bytes of a setting's value, terminator included: of a text, of a path. */
enum { SAR_SETTING_TEXT = 64, SAR_SETTING_PATH = 1024 };

/** Returns the value of any environment variable, or NULL if it is unset or empty. Local. */
const char *sar_env_get(const char *name);

/** Returns the value of MPIX_SPARSE_<name>, or NULL if it is unset or empty. A sar_config_lookup_fn.
 * Local. */
const char *sar_env_setting(const char *name, void *unused);

#endif
