/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is where rows are measured one after the other, again and again. */
#ifndef PERF_TURNS_H
#define PERF_TURNS_H

/* Which of n rows comes k-th in an iteration. In any n iterations on end, or 2n where n is odd, each row
 * comes equally often at each place, and equally often right after each other one: what a row leaves in the
 * caches, and where that stands in an iteration, is the same for all. */
int perf_turn(int k, int iteration, int n);

#endif
