/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_TESTS_SUPPORT_ARRAY_LENGTH_H
#define SAR_TESTS_SUPPORT_ARRAY_LENGTH_H

#define LENGTH(table) (sizeof(table) / sizeof *(table))

#endif
