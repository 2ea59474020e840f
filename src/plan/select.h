/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PLAN_SELECT_H
#define SAR_PLAN_SELECT_H

#include <stdio.h>

#include "base/config.h"
#include "plan/profile.h"
#include "scheme/scheme.h"

enum { SAR_MOST_SCHEMES = 16 };

/** Calls, at most, in which a scheme of that price is tried before a new profile asks for another. Short
 * calls are measured badly and cost little: they are tried more often. */
uint32_t sar_trials(double seconds);

/** What measured calls have taught about one tensor; the same on all ranks. */
struct sar_lessons {
    double ratio[SAR_MOST_SCHEMES]; /**< measured over predicted time, of each scheme in sar_schemes */
    uint32_t trials[SAR_MOST_SCHEMES];
    double entry; /**< seconds of a call before its scheme starts */
    int settled;  /**< 1 + place of the scheme chosen last, which a clearly cheaper one replaces; 0: none */
};

/** What the model said of a tensor. Pricing all schemes takes as long as a short call; while there are as
 * many elements as then, or nearly, it need not be done again. All zero: nothing yet. */
struct sar_predictions {
    bool known;
    double nnz_mean, nnz_max;
    double seconds[SAR_MOST_SCHEMES]; /**< NAN where a scheme has not been asked */
};

/** Whether they are those of this call, too. */
bool sar_predictions_hold(const struct sar_predictions *predictions, const struct sar_agreed *agreed);

/** One line of the table of prices. */
struct sar_price {
    const char *obstacle; /**< NULL when the scheme is eligible */
    double predicted;     /**< by the model alone, seconds */
    double entry;         /**< seconds before the scheme starts, as calls have shown */
    double price;         /**< with lessons, and entry; what is compared */
};

/** A selection and how it came about. */
struct sar_selection {
    struct sar_price prices[SAR_MOST_SCHEMES];
    int choice;               /**< place in sar_schemes of the cheapest */
    int runs;                 /**< of the one to run: the choice, the one asked for, or one on trial */
    bool settled;             /**< no other scheme waits for a trial */
    double mild;              /**< what a scheme that has hardly been tried is taken to be off by */
    double least_dense;       /**< seconds that an allreduce of dense buffers takes at least */
    enum sar_origin asked_by; /**< who asked for the scheme that runs */
    const char *why;          /**< "cheapest", "asked for", "on trial", … */
};

/** Choose. Equal arguments give equal selections.
 * @param predictions  of this tensor, kept up to date; to be zeroed when it gets another profile. Or NULL
 * @param forced the scheme asked for, or NULL. The cheapest scheme that can, runs where the one asked for
 *   cannot.
 * @return SAR_UNSUPPORTED when no scheme can carry out the call */
enum sar_status sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                           const struct sar_lessons *lessons, const struct sar_scheme *forced,
                           struct sar_predictions *predictions, struct sar_selection *selection);

/** Learn from a call of scheme i that took so long, without the time before the scheme started. */
void sar_lesson(struct sar_lessons *lessons, int scheme, double predicted, double seconds);

/** Learn from a call before whose scheme so much time went by. */
void sar_lesson_entry(struct sar_lessons *lessons, double entry);

/** Let every rival be tried once more: the tensor, or the machine, may have changed. */
void sar_lessons_refresh(struct sar_lessons *lessons);

/** A sentence on why the scheme that runs was taken. */
void sar_selection_reason(const struct sar_selection *selection, char *text, size_t room);

/** Print the table.
 * @param profile  of the tensor, or NULL when it has none yet */
void sar_selection_explain(const struct sar_selection *selection, const struct sar_agreed *agreed,
                           const struct sar_lessons *lessons, const struct sar_profile *profile, FILE *to);

#endif
