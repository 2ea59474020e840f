/* SPDX-License-Identifier: BSD-3-Clause */
/* Count of free context ids in MPI, to detect communicators that the library leaks. MPICH has about two
 * thousand. Open MPI has too many to count, and both functions return 0. */
#ifndef SAR_TESTS_SUPPORT_CONTEXTS_H
#define SAR_TESTS_SUPPORT_CONTEXTS_H

/** Number of further communicators that MPI can make. */
int contexts_left(void);

/** Number of further communicators, after waiting until it reaches `before` or stays below it. Other ranks
 * may release a communicator only when the library is next used. */
int contexts_left_again(int before);

#endif
