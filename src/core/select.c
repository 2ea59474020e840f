/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector: the scheme with the lowest price wins; on a tie the earlier scheme. Runs in every call that
 * does not reuse a selection; costs microseconds if the prices have to be computed.
 *
 * A price is the model's prediction, corrected by the measured times of earlier calls of this tensor. The
 * first calls of a tensor try every scheme whose price is near the best, since no model separates close
 * candidates, and then again those whose times are near the best. After that the cheapest runs and its
 * times update its price; another scheme replaces it when that is clearly cheaper. Each new profile lets
 * every candidate be tried once more. */

#include "core/select.h"

#include <math.h>
#include <string.h>

#include "scheme/engine/range_parts.h"

enum {
    COLD_TRIALS = 3, /* calls of each candidate; the first two are not representative */
    TRIALS = COLD_TRIALS,
    TRIALS_OF_SHORT = 8, /* times of short calls vary more */
    TRIALS_OF_SHORTEST = 24,
    BURST = 4 /* consecutive trials of a scheme, so that the caches hold its data */
};

static const double SHORT = 2e-3, SHORTEST = 2e-4; /* seconds */

static const double DENSE_PREFERENCE = 0.92; /* factor of the price of MPI_Allreduce */
static const double CANDIDATE = 1.8;         /* price over the best price up to which a scheme is tried */
static const double DENSE_MARGIN = 3;        /* likewise for MPI_Allreduce, before a call has timed it */
static const double NEAR_BEST = 1.2;         /* likewise by measured times */
static const double HYSTERESIS = 1.05;   /* price over the best price up to which the last choice is kept */
static const double WEIGHT_MIN = 0.1;    /* minimum weight of a new time */
static const double HIDDEN_MAX = 0.9;    /* share of a scheme's seconds that the agreement hides, at most */
static const double AGREE_JITTER = 1e-6; /* seconds that an agreement may take longer than measured */
static const double NNZ_CHANGE = 1. / 8; /* relative change of nnz up to which prices stay valid */
static const double DROP_WEIGHT = 0.2;   /* weight of a pre-scheme time that is shorter than known */
static const double OUTLIER_CAP = 1.5;   /* new time over known time, at most; longer times count as this */

/* Seconds to read a dense input and to write a dense result. */
static double buffer_seconds(const struct sar_agreed *agreed)
{
    double bytes = (double)agreed->desc.count * (double)agreed->desc.element_size;
    if (!agreed->call.dense_face)
        return 0;
    if (agreed->call.collective == SAR_REDUCE_SCATTER)
        return bytes * agreed->machine.memory * (1 + 1. / agreed->machine.ranks);
    return bytes * agreed->machine.memory * (agreed->call.in_place ? 1 : 2);
}

uint32_t sar_select_trials(double seconds)
{
    return seconds < SHORTEST ? TRIALS_OF_SHORTEST : seconds < SHORT ? TRIALS_OF_SHORT : TRIALS;
}

static double model_seconds(const struct sar_scheme *scheme, const struct sar_agreed *agreed,
                            enum sar_model model)
{
    if (model == SAR_MODEL_MEASURED)
        return scheme->seconds(agreed) + (scheme->on_dense_buffers ? 0 : buffer_seconds(agreed));
    return scheme->paper_bytes == NULL ? INFINITY : scheme->paper_bytes(agreed) * agreed->machine.beta;
}

static bool is_near(double nnz, double known)
{
    return fabs(nnz - known) <= NNZ_CHANGE * known;
}

bool sar_price_cache_valid(const struct sar_price_cache *p, const struct sar_agreed *agreed)
{
    return p->valid && p->block == agreed->call.block && is_near(agreed->data.nnz_mean, p->nnz_mean) &&
           is_near(agreed->data.nnz_max, p->nnz_max);
}

static void refresh(struct sar_price_cache *p, const struct sar_agreed *agreed)
{
    if (sar_price_cache_valid(p, agreed))
        return;
    *p = (struct sar_price_cache){
        true, agreed->data.nnz_mean, agreed->data.nnz_max, agreed->call.block, { 0 }
    };
    for (int i = 0; i < SAR_SCHEMES_MAX; i++)
        p->seconds[i] = NAN;
}

/* Inputs of all prices. */
struct price_inputs {
    const struct sar_agreed *agreed;
    const struct sar_config *config;
    const struct sar_cost_history *history;
    const struct sar_scheme *forced;
    struct sar_price_cache *cache;
};

static double predict(const struct price_inputs *in, int i)
{
    double *seconds = &in->cache->seconds[i];
    if (isnan(*seconds))
        *seconds = model_seconds(sar_schemes[i], in->agreed, (enum sar_model)in->config->model);
    return *seconds;
}

static bool uses_history(const struct sar_config *config)
{
    return config->learn && config->model == SAR_MODEL_MEASURED;
}

/* A first call opens connections and touches fresh memory; so does a second one if inputs alternate between
 * buffers. It often takes a hundred times longer than the next one. */
static bool is_warm(const struct sar_cost_history *history, int i)
{
    return history->trials[i] >= COLD_TRIALS;
}

/* Ratio of a sparse scheme without enough trials: the best of those with enough trials. */
static double prior_ratio_of(const struct sar_cost_history *history)
{
    double min_ratio = INFINITY;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (is_warm(history, i) && !sar_schemes[i]->on_dense_buffers)
            min_ratio = fmin(min_ratio, history->ratio[i]);
    return isfinite(min_ratio) ? min_ratio : 1;
}

/* The model of MPI_Allreduce is a measurement: its ratio is 1 until it has enough trials. */
static double ratio_of(const struct sar_cost_history *history, double prior_ratio, int i)
{
    if (is_warm(history, i))
        return history->ratio[i];
    return sar_schemes[i]->on_dense_buffers ? 1 : prior_ratio;
}

/* A scheme equivalent to another would only double the trials, unless it is forced. */
static const char *unsupported_reason_of(const struct sar_scheme *scheme, const struct sar_agreed *agreed,
                                         const struct sar_scheme *forced)
{
    const char *why = sar_scheme_unsupported_reason(scheme, agreed);
    return why == NULL && scheme->redundant_reason != NULL && scheme != forced
               ? scheme->redundant_reason(agreed)
               : why;
}

/* Returns the seconds for which first messages to all ranks and the agreement are in flight together. The
 * messages take a latency and the bytes of the rank's elements at least. */
static double hidden_seconds(const struct sar_agreed *a)
{
    const struct sar_machine *m = &a->machine;
    double first =
        m->alpha + (m->ranks - 1.) * m->overhead + a->data.nnz_mean * (double)a->desc.element_size * m->beta;
    return fmin(fmax(a->call.check_seconds, m->alpha), first);
}

/* Returns the predicted seconds of a scheme after the agreement. */
static double predict_visible(const struct price_inputs *in, int i)
{
    double predicted = predict(in, i);
    bool hides = sar_scheme_speculates(sar_schemes[i], in->agreed);
    return hides ? predicted - fmin(hidden_seconds(in->agreed), HIDDEN_MAX * predicted) : predicted;
}

static struct sar_price price_of(const struct price_inputs *in, double prior_ratio, int i)
{
    const struct sar_scheme *scheme = sar_schemes[i];
    struct sar_price p = { unsupported_reason_of(scheme, in->agreed, in->forced), INFINITY, 0, INFINITY };
    if (p.unsupported_reason != NULL)
        return p;
    bool checks = in->config->model == SAR_MODEL_MEASURED &&
                  !(scheme->on_dense_buffers && in->agreed->call.dense_skips_agree),
         learns = uses_history(in->config), measured = learns && in->history->pre_scheme > 0;
    p.predicted = predict_visible(in, i);
    if (checks)
        p.pre_scheme = measured ? in->history->pre_scheme : in->agreed->call.check_seconds;
    p.price = p.pre_scheme + p.predicted * (learns ? ratio_of(in->history, prior_ratio, i) : 1);
    return p;
}

/* Price by which the choice is made. No user must wait longer than for MPI_Allreduce: prefer it if prices
 * are close, or if calls are so short that an agreement cannot be timed. */
static double choice_price(const struct sar_selection *s, int i)
{
    if (sar_schemes[i]->on_dense_buffers)
        return s->prices[i].price * DENSE_PREFERENCE;
    return s->prices[i].price + (s->prices[i].pre_scheme > 0 ? AGREE_JITTER : 0);
}

static int cheapest(const struct sar_selection *s, const struct sar_cost_history *history)
{
    int best = 0, last = history->last_choice - 1;
    for (int i = 1; sar_schemes[i] != NULL; i++)
        if (choice_price(s, i) < choice_price(s, best))
            best = i;
    bool keep_last = last >= 0 && choice_price(s, last) <= HYSTERESIS * choice_price(s, best);
    return keep_last ? last : best;
}

/* Lower bound of the seconds of MPI_Allreduce: bytes of a ring, and latency of a tree. A reduce_scatter has
 * half of the bytes. Infinite for coordinates, since there the messages are the smaller part. */
static double dense_min_seconds_of(const struct sar_agreed *agreed)
{
    const struct sar_machine *m = &agreed->machine;
    double bytes = (double)agreed->desc.count * (double)agreed->desc.element_size;
    if (!agreed->call.dense_face)
        return INFINITY;
    double rings = agreed->call.collective == SAR_REDUCE_SCATTER ? 1 : 2;
    return log2(m->ranks) * m->alpha + rings * (m->ranks - 1.) / m->ranks * bytes * m->beta;
}

/* Optimistic price of a scheme without enough trials. MPI_Allreduce is measured when the communicator is
 * opened; on a busy machine that may be many times too slow. Until a call has timed it, assume down to its
 * lower bound. */
static double optimistic_price(const struct sar_selection *s, const struct sar_cost_history *history, int i)
{
    double predicted = s->prices[i].predicted, pre_scheme = s->prices[i].pre_scheme,
           prior_ratio = s->prior_ratio;
    if (!sar_schemes[i]->on_dense_buffers)
        return pre_scheme + predicted * prior_ratio;
    if (history->trials[i] > 0)
        return pre_scheme + predicted * fmin(history->ratio[i], 1);
    return (pre_scheme + fmin(predicted * fmin(prior_ratio, 1), s->dense_min_seconds * prior_ratio)) *
           CANDIDATE / DENSE_MARGIN;
}

/* True if a scheme should get another trial: by the model, or by its times if it has enough trials. */
static bool is_candidate(const struct sar_selection *s, const struct sar_cost_history *history, int i)
{
    double best = s->prices[s->choice].price;
    if (history->trials[i] >= sar_select_trials(s->prices[i].price) ||
        s->prices[i].unsupported_reason != NULL)
        return false;
    if (is_warm(history, i))
        return s->prices[i].price <= NEAR_BEST * best;
    return optimistic_price(s, history, i) <= CANDIDATE * best;
}

/* True if scheme i is tried before the other: one within a burst goes first, then one with fewer trials,
 * then the cheaper one. */
static bool is_trial_before(const struct sar_selection *s, const struct sar_cost_history *history, int i,
                            int other)
{
    uint32_t mine = history->trials[i], theirs = history->trials[other];
    if ((mine % BURST != 0) != (theirs % BURST != 0))
        return mine % BURST != 0;
    return mine == theirs ? s->prices[i].price < s->prices[other].price : mine < theirs;
}

/* Returns the scheme to try next, or -1. */
static int next_trial(const struct sar_selection *s, const struct sar_cost_history *history)
{
    int next = -1;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (is_candidate(s, history, i) && (next < 0 || is_trial_before(s, history, i, next)))
            next = i;
    return next;
}

static int index_of(const struct sar_scheme *scheme)
{
    int i = 0;
    while (sar_schemes[i] != scheme)
        i++;
    return i;
}

static int count_supported(const struct sar_selection *s)
{
    int n = 0;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        n += s->prices[i].unsupported_reason == NULL;
    return n;
}

enum sar_status sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                           const struct sar_cost_history *history, const struct sar_scheme *forced,
                           struct sar_price_cache *cache, struct sar_selection *selection)
{
    static const struct sar_cost_history none = { .trials = { 0 } };
    struct sar_price_cache fresh = { .valid = false };
    struct sar_selection s = { .reason = "cheapest", .settled = true };
    if (forced != NULL)
        history = &none; /* it has times of one scheme only, which bias the prices */
    cache = cache == NULL ? &fresh : cache;
    struct price_inputs price_inputs = { agreed, config, history, forced, cache };
    refresh(cache, agreed);
    s.prior_ratio = prior_ratio_of(history);
    s.dense_min_seconds = dense_min_seconds_of(agreed);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        s.prices[i] = price_of(&price_inputs, s.prior_ratio, i);
    s.scheme = s.choice = cheapest(&s, history);
    if (s.prices[s.choice].unsupported_reason != NULL)
        return SAR_UNSUPPORTED;
    int trial = uses_history(config) && !history->untimed ? next_trial(&s, history) : -1;
    if (forced != NULL && agreed->call.native) {
        bool runs = s.prices[index_of(forced)].unsupported_reason == NULL;
        s.reason = runs ? "asked for" : "in place of the scheme asked for";
        s.scheme = runs ? index_of(forced) : s.choice;
        s.forced_by = sar_config_source_of(config, "SCHEME");
    } else if (count_supported(&s) == 1) {
        s.reason = "only one";
    } else if (trial >= 0) {
        s.settled = false;
        s.scheme = trial;
        s.reason = trial == s.choice ? "cheapest" : "on trial";
    }
    *selection = s;
    return SAR_OK;
}

/* Decrease fast: the first call takes much longer than the following ones. */
void sar_cost_history_add_pre_scheme(struct sar_cost_history *history, double pre_scheme)
{
    double known = history->pre_scheme;
    if (known <= 0)
        history->pre_scheme = pre_scheme;
    else
        history->pre_scheme +=
            (pre_scheme < known ? DROP_WEIGHT : WEIGHT_MIN) * (fmin(pre_scheme, OUTLIER_CAP * known) - known);
}

/* The ratio is the minimum of the first trials, since those include warm-up, and then a moving average: the
 * minimum would favour schemes whose times vary most. OUTLIER_CAP limits the effect of other load on the
 * machine. */
void sar_cost_history_add(struct sar_cost_history *history, int scheme, double predicted, double seconds)
{
    if (!(predicted > 0) || !isfinite(predicted))
        return;
    double ratio = seconds / predicted, known = history->ratio[scheme];
    uint32_t trial = ++history->trials[scheme];
    double weight = fmax(WEIGHT_MIN, 1 / fmax((double)trial - TRIALS + 1, 1));
    if (trial == 1)
        history->ratio[scheme] = ratio;
    else if (trial <= TRIALS)
        history->ratio[scheme] = fmin(ratio, known);
    else
        history->ratio[scheme] = known + weight * (fmin(ratio, OUTLIER_CAP * known) - known);
}

void sar_cost_history_refresh(struct sar_cost_history *history)
{
    static const uint32_t trial_limits[] = { TRIALS_OF_SHORTEST, TRIALS_OF_SHORT, TRIALS };
    for (int i = 0; i < SAR_SCHEMES_MAX; i++)
        for (size_t k = 0; k < sizeof trial_limits / sizeof trial_limits[0]; k++)
            if (history->trials[i] >= trial_limits[k]) {
                history->trials[i] = trial_limits[k] - 1;
                break;
            }
}

/* Returns the cheapest scheme except the one that runs, or -1. */
static int runner_up(const struct sar_selection *s)
{
    int next = -1;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (i != s->scheme && isfinite(s->prices[i].price) &&
            (next < 0 || s->prices[i].price < s->prices[next].price))
            next = i;
    return next;
}

void sar_selection_reason(const struct sar_selection *s, char *text, size_t size)
{
    int next = runner_up(s);
    if (strcmp(s->reason, "only one") == 0) {
        snprintf(text, size, "no other scheme takes this collective, type and op");
    } else if (strcmp(s->reason, "asked for") == 0) {
        snprintf(text, size, "asked for (%s); the selector would take %s at %.4g ms",
                 sar_config_source_name(s->forced_by), sar_schemes[s->choice]->name,
                 s->prices[s->choice].price * 1e3);
    } else if (next < 0) {
        snprintf(text, size, "no other scheme has a price");
    } else {
        snprintf(text, size, "%s: %.4g ms expected, %s %.4g ms", s->reason, s->prices[s->scheme].price * 1e3,
                 sar_schemes[next]->name, s->prices[next].price * 1e3);
    }
}

/* The skewness of a profile tells of contiguous parts; of others only the last call does. */
static void explain_parts(const struct sar_agreed *agreed, FILE *to)
{
    uint64_t ranks = (uint64_t)agreed->machine.ranks, block = agreed->call.block;
    bool contiguous = block >= agreed->desc.count / ranks + (agreed->desc.count % ranks != 0);
    fprintf(to, "# blocks of %llu elements, largest part over the mean ", (unsigned long long)block);
    fprintf(to, contiguous ? "by the profile: " : "in the last call: ");
    if (contiguous)
        fprintf(to, "%.3f\n", sar_range_parts_max_share(agreed) * (double)ranks);
    else if (agreed->data.pull_imbalance > 0)
        fprintf(to, "%.3f\n", agreed->data.pull_imbalance);
    else
        fprintf(to, "unknown\n");
}

void sar_selection_explain(const struct sar_selection *s, const struct sar_agreed *agreed,
                           const struct sar_cost_history *history, const struct sar_profile *profile,
                           FILE *to)
{
    fprintf(to, "# mpix_sparse: %s, %d ranks, %llu elements of %zu B, nnz mean %.0f max %.0f\n",
            sar_collective_names[agreed->call.collective], agreed->machine.ranks,
            (unsigned long long)agreed->desc.count, agreed->desc.element_size, agreed->data.nnz_mean,
            agreed->data.nnz_max);
    if (agreed->call.collective == SAR_REDUCE_SCATTER)
        explain_parts(agreed, to);
    else if (agreed->call.block > 0)
        fprintf(to, "# ranks own their elements, in blocks of %llu\n",
                (unsigned long long)agreed->call.block);
    fprintf(to, profile == NULL ? "# no profile yet, independent ranks assumed: densification"
                                : "# profile: densification");
    for (int i = 1; i < agreed->data.densification.points; i++)
        fprintf(to, " %d:%.3f", agreed->data.densification.ranks[i], agreed->data.densification.ratio[i]);
    if (profile != NULL)
        fprintf(to, ", overlap %.3f, skewness %.2f", profile->overlap, profile->skewness);
    fprintf(to, "\n# alpha %.3g s, beta %.3g s/B, gamma %.3g s/element\n", agreed->machine.alpha,
            agreed->machine.beta, agreed->machine.gamma);
    fprintf(to, "# %-20s %12s %12s %8s %7s\n", "scheme", "model_us", "price_us", "trials", "");
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        const char *mark = i == s->scheme ? s->reason : i == s->choice ? "cheapest" : "";
        if (s->prices[i].unsupported_reason != NULL)
            fprintf(to, "# %-20s not considered: %s\n", sar_schemes[i]->name,
                    s->prices[i].unsupported_reason);
        else
            fprintf(to, "# %-20s %12.1f %12.1f %8u %s%s\n", sar_schemes[i]->name,
                    s->prices[i].predicted * 1e6, s->prices[i].price * 1e6, history->trials[i],
                    i == s->scheme ? "<- " : "", mark);
    }
}
