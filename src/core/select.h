/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection of a scheme by price, and the history of measured times that corrects prices. */

#ifndef SAR_CORE_SELECT_H
#define SAR_CORE_SELECT_H

#include <stdio.h>

#include "base/config.h"
#include "core/profile.h"
#include "scheme/scheme.h"

/** Returns the number of trials of a scheme with this price, before a new profile asks for more. Short calls
 * get more trials: they cost little and their times vary. */
uint32_t sar_select_trials(double seconds);

/** Measured times of a tensor's calls. Equal on all ranks. Written by sar_cost_history_*; untimed
 * and last_choice by finish.c. */
struct sar_cost_history {
    double
        ratio[SAR_SCHEMES_MAX]; /**< measured over predicted time of each scheme, by index in sar_schemes */
    uint32_t trials[SAR_SCHEMES_MAX];
    double pre_scheme; /**< seconds of a call before its scheme starts, averaged; 0: unknown */
    bool untimed;      /**< the time of the last call is unknown, so no scheme is on trial */
    int last_choice;   /**< 1 + index of the last choice, which a clearly cheaper one replaces; 0: none */
};

/** Model times of a tensor. They are cached since pricing all schemes takes as long as a short call, and are
 * valid while the number of elements hardly changes. All zero: empty. */
struct sar_price_cache {
    bool valid;
    double nnz_mean, nnz_max;
    uint64_t block;                  /**< sar_agreed_call.block */
    double seconds[SAR_SCHEMES_MAX]; /**< by index in sar_schemes; NAN: not computed yet */
};

/** True if the cached times are valid for these elements. Local. */
bool sar_price_cache_valid(const struct sar_price_cache *cache, const struct sar_agreed *agreed);

/** Price of one scheme. */
struct sar_price {
    const char *unsupported_reason; /**< NULL: the scheme can run the call */
    double predicted;               /**< by the model alone, seconds */
    double pre_scheme;              /**< seconds before the scheme starts, measured or predicted */
    double price;                   /**< pre_scheme + predicted * measured ratio; choices compare it */
};

/** Result of a selection, with its reasons. */
struct sar_selection {
    struct sar_price prices[SAR_SCHEMES_MAX];
    int choice;               /**< index of the cheapest scheme */
    int scheme;               /**< index of the scheme to run: the choice, the forced one, or one on trial */
    bool settled;             /**< no scheme needs another trial */
    double prior_ratio;       /**< ratio assumed for a scheme without enough trials */
    double dense_min_seconds; /**< lower bound of the seconds of MPI_Allreduce */
    enum sar_config_source forced_by; /**< source of the setting that forces the scheme */
    const char *reason;               /**< "cheapest", "asked for", "on trial", … */
};

/** Selects a scheme. Local; equal arguments give equal selections.
 * @param forced  the forced scheme, or NULL; if it cannot run the call, the cheapest scheme runs
 * @param cache   of this tensor, updated; the caller clears it for a new profile. Or NULL
 * @return SAR_UNSUPPORTED if no scheme can run the call */
enum sar_status sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                           const struct sar_cost_history *history, const struct sar_scheme *forced,
                           struct sar_price_cache *cache, struct sar_selection *selection);

/** Adds the time of a call to the history. Local.
 * @param scheme     index of the scheme that ran
 * @param predicted  its model time, seconds
 * @param seconds    measured time from the start of the scheme */
void sar_cost_history_add(struct sar_cost_history *history, int scheme, double predicted, double seconds);

/** Adds the seconds that a call took before its scheme started. Local. */
void sar_cost_history_add_pre_scheme(struct sar_cost_history *history, double pre_scheme);

/** Allows every candidate one more trial, since the tensor or the machine may have changed. Local. */
void sar_cost_history_refresh(struct sar_cost_history *history);

/** Writes a sentence with the reason of the selection into text, of size bytes. Local. */
void sar_selection_reason(const struct sar_selection *selection, char *text, size_t size);

/** Prints the table of prices. Local.
 * @param profile  of the tensor, or NULL if it has none yet */
void sar_selection_explain(const struct sar_selection *selection, const struct sar_agreed *agreed,
                           const struct sar_cost_history *history, const struct sar_profile *profile,
                           FILE *to);

#endif
