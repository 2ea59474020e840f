/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder for what a test has the library write. */

#ifndef SAR_TESTS_SUPPORT_TEMP_DIR_H
#define SAR_TESTS_SUPPORT_TEMP_DIR_H

/** Its path. */
extern char temp_dir[];

/** Make it, and remove it, which fails unless it is empty; for the beginning and the end of a group. */
int temp_dir_make(void **state);
int temp_dir_remove(void **state);

/** What is in a file there, which must be and is removed; in memory that the next call overwrites. */
const char *temp_dir_read(const char *name);

#endif
