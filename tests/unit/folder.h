/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder for what a test has the library write. */

#ifndef SAR_TESTS_UNIT_FOLDER_H
#define SAR_TESTS_UNIT_FOLDER_H

/** Its path. */
extern char folder[];

/** Make it, and remove it, which fails unless it is empty; for the beginning and the end of a group. */
int folder_make(void **state);
int folder_remove(void **state);

/** What is in a file there, which must be and is removed; in memory that the next call overwrites. */
const char *folder_take(const char *name);

#endif
