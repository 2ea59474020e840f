/* SPDX-License-Identifier: BSD-3-Clause */
/* A temporary folder for files that the library writes. */

#ifndef SAR_TESTS_SUPPORT_TEMP_DIR_H
#define SAR_TESTS_SUPPORT_TEMP_DIR_H

/** Path of the folder. */
extern char temp_dir[];

/** Make the folder; remove it, which fails unless it is empty. For the begin and end of a test group. */
int temp_dir_make(void **state);
int temp_dir_remove(void **state);

/** Read a file of the folder, which must exist, and remove it. The next call overwrites the text. */
const char *temp_dir_read(const char *name);

#endif
