/* SPDX-License-Identifier: BSD-3-Clause */
/* What a scheme does to the memory that ranks of a node share, without computing and without meeting:
 *
 * - `shared`. A rank puts its elements where others see them, reads an equal share of everybody's, and writes
 *   as much of the outcome.
 * - `two_level`. It puts its elements there and reads an equal share of its node's; then come messages; it
 *   puts its share of the outcome where others see it, and goes on as `shared` with these.
 *
 * A dense vector is read first and written last as in the row `memory`, the latter from the outcome, which is
 * read; or, where nobody counted that, from what all ranks have put where others see it. One rank copies its
 * coordinates. */
#ifndef PERF_COPIES_H
#define PERF_COPIES_H

#include <mpix_sparse.h>

#include "memory.h"
#include "shelf.h"

struct perf_copies {
    struct perf_memory memory;
    bool levels; /* two of them: with messages in between */
    bool folds;  /* dense interface: the outcome is made in the vector */
    /* Bytes of this rank. */
    size_t brought;          /* put where others see it, before messages */
    size_t gathered;         /* read, before messages */
    size_t shared;           /* put where others see it, behind messages */
    size_t reduced;          /* read to be reduced */
    size_t piece;            /* dense interface: of the outcome, put where others see it */
    size_t pieces;           /* dense interface: of all of the outcome, read */
    unsigned long long most; /* all that are read and written, of any rank on step 0 */
    struct perf_shelf shelf; /* a place for any of these */
    bool streams;            /* what is brought, as the library does where ranks are far */
};

/* Whether a call that reports so had messages in between. */
bool perf_copies_have_levels(const MPIX_Sparse_report_t *report);

/* Of what a call did, as it reports. Collective. */
void perf_copies_open(struct perf_copies *copies, const struct perf_case *c, const struct perf_tensor *tensor,
                      const MPIX_Sparse_report_t *report);

/* What comes before messages, and what comes after them, if there are any. */
void perf_copies_before(const struct perf_copies *copies, const struct perf_case *c,
                        const struct perf_step *step, const void *recv);
void perf_copies_after(const struct perf_copies *copies, const struct perf_case *c,
                       const struct perf_step *step, void *recv);

void perf_copies_close(struct perf_copies *copies);

#endif
