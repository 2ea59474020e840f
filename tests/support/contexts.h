/* SPDX-License-Identifier: BSD-3-Clause */
/* What MPI has for communicators: the library is to give all of it back. MPICH has about two thousand
 * contexts, so that each one lost can be seen; Open MPI has too many to count, and both numbers are 0. */
#ifndef SAR_TESTS_SUPPORT_CONTEXTS_H
#define SAR_TESTS_SUPPORT_CONTEXTS_H

/** How many more communicators MPI can make. */
int contexts_left(void);

/** The same, once as many are left as before, or will never be: what other ranks freed later goes when the
 * library is first used on another communicator. */
int contexts_left_again(int before);

#endif
