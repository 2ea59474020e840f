/* SPDX-License-Identifier: BSD-3-Clause */
/* The selector: the least price wins, the earlier scheme on a tie.
 *
 * A price is the model's prediction times what measured calls of this tensor have shown it to be off by.
 * The first calls of a tensor try every scheme whose price is near the best, since no model tells close
 * rivals apart, and those again whose times are near the best. After that the winner runs, and its own
 * times keep its price up to date; another takes its place when it is clearly cheaper. Each new profile
 * lets every rival be tried once more. */

#include "plan/select.h"

#include <math.h>
#include <string.h>

enum {
    COLD_TRIALS = 3, /* calls of each rival: what the first two cost says little */
    TRIALS = COLD_TRIALS,
    TRIALS_OF_SHORT = 8, /* the shorter calls are, the more their times vary */
    TRIALS_OF_SHORTEST = 24,
    BURST = 4 /* trials of a scheme one after another, as it will run when it is chosen: caches are its own */
};

static const double SHORT = 2e-3, SHORTEST = 2e-4; /* seconds */

static const double DENSE_PREFERENCE = 0.92;
static const double RIVAL = 1.8;       /* times the best price within which a scheme is worth trying */
static const double DOUBT = 3;         /* the same for MPI_Allreduce, which no call has timed yet */
static const double CLOSE = 1.2;       /* the same by measured times */
static const double HYSTERESIS = 1.05; /* times the best price that the scheme chosen last may cost */
static const double WEIGHT = 0.1;      /* of a new time at least */
static const double BLUR = 1e-6;       /* seconds that an agreement may take longer than it was seen to */
static const double NEAR = 1. / 8;     /* of the elements may come or go before they are priced again */
static const double HASTE = 0.2;       /* of a shorter time before the scheme starts */
static const double SURPRISE = 1.5;    /* times what is known that a time counts for at most */

/* Reading dense buffers for their elements, and writing the outcome. */
static double buffer_seconds(const struct sar_agreed *agreed)
{
    double bytes = (double)agreed->shape.count * (double)agreed->shape.element_size;
    if (!agreed->dense_face)
        return 0;
    return bytes * agreed->machine.memory * (agreed->in_place ? 1 : 2);
}

uint32_t sar_trials(double seconds)
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
    return fabs(nnz - known) <= NEAR * known;
}

bool sar_predictions_hold(const struct sar_predictions *p, const struct sar_agreed *agreed)
{
    return p->known && is_near(agreed->nnz_mean, p->nnz_mean) && is_near(agreed->nnz_max, p->nnz_max);
}

static void refresh(struct sar_predictions *p, const struct sar_agreed *agreed)
{
    if (sar_predictions_hold(p, agreed))
        return;
    *p = (struct sar_predictions){ true, agreed->nnz_mean, agreed->nnz_max, { 0 } };
    for (int i = 0; i < SAR_MOST_SCHEMES; i++)
        p->seconds[i] = NAN;
}

/* What prices depend on. */
struct terms {
    const struct sar_agreed *agreed;
    const struct sar_config *config;
    const struct sar_lessons *lessons;
    const struct sar_scheme *forced;
    struct sar_predictions *predictions;
};

static double predict(const struct terms *t, int i)
{
    double *seconds = &t->predictions->seconds[i];
    if (isnan(*seconds))
        *seconds = model_seconds(sar_schemes[i], t->agreed, (enum sar_model)t->config->model);
    return *seconds;
}

static bool learns(const struct sar_config *config)
{
    return config->learn && config->model == SAR_MODEL_MEASURED;
}

/* A first call opens connections and touches fresh memory, and so does a second one where inputs take turns
 * in memory: a hundred times what the next one costs is not rare. */
static bool is_warm(const struct sar_lessons *lessons, int i)
{
    return lessons->trials[i] >= COLD_TRIALS;
}

/* What to expect of a sparse scheme that has not warmed up: that it is off by as much as the best of those
 * that have. */
static double mildest(const struct sar_lessons *lessons)
{
    double least = INFINITY;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (is_warm(lessons, i) && !sar_schemes[i]->on_dense_buffers)
            least = fmin(least, lessons->ratio[i]);
    return isfinite(least) ? least : 1;
}

/* The price of MPI_Allreduce comes from timing it, and is off by nothing until it has warmed up. */
static double ratio_of(const struct sar_lessons *lessons, double mild, int i)
{
    if (is_warm(lessons, i))
        return lessons->ratio[i];
    return sar_schemes[i]->on_dense_buffers ? 1 : mild;
}

/* A scheme that does what another does would only double that one's trials. */
static const char *obstacle_of(const struct sar_scheme *scheme, const struct sar_agreed *agreed,
                               const struct sar_scheme *forced)
{
    const char *why = scheme->obstacle(agreed);
    return why == NULL && scheme->redundant != NULL && scheme != forced ? scheme->redundant(agreed) : why;
}

static struct sar_price price_of(const struct terms *t, double mild, int i)
{
    const struct sar_scheme *scheme = sar_schemes[i];
    struct sar_price p = { obstacle_of(scheme, t->agreed, t->forced), INFINITY, 0, INFINITY };
    if (p.obstacle != NULL)
        return p;
    p.predicted = p.price = predict(t, i);
    if (!learns(t->config))
        return p;
    p.entry = scheme->on_dense_buffers && t->agreed->forwards ? 0 : t->lessons->entry;
    p.price = p.entry + p.predicted * ratio_of(t->lessons, mild, i);
    return p;
}

/* What a choice goes by. Nobody who calls this library is to wait longer than for MPI_Allreduce: where
 * prices are close, or calls so short that an agreement cannot be timed, it is the choice. */
static double choice_price(const struct sar_selection *s, int i)
{
    if (sar_schemes[i]->on_dense_buffers)
        return s->prices[i].price * DENSE_PREFERENCE;
    return s->prices[i].price + (s->prices[i].entry > 0 ? BLUR : 0);
}

static int cheapest(const struct sar_selection *s, const struct sar_lessons *lessons)
{
    int best = 0, last = lessons->settled - 1;
    for (int i = 1; sar_schemes[i] != NULL; i++)
        if (choice_price(s, i) < choice_price(s, best))
            best = i;
    bool stays = last >= 0 && choice_price(s, last) <= HYSTERESIS * choice_price(s, best);
    return stays ? last : best;
}

/* What an allreduce's messages take at least: those of a ring, and the latency of a tree. Of coordinates they
 * are the lesser part. */
static double least_dense_seconds(const struct sar_agreed *agreed)
{
    const struct sar_machine *m = &agreed->machine;
    double bytes = (double)agreed->shape.count * (double)agreed->shape.element_size;
    if (!agreed->dense_face)
        return INFINITY;
    return log2(m->ranks) * m->alpha + 2 * (m->ranks - 1.) / m->ranks * bytes * m->beta;
}

/* What a scheme that has not warmed up may cost. The constants of MPI_Allreduce are timed before the first
 * call, which on a busy machine makes it look many times slower than it is, as it does other schemes: until a
 * call has timed it, it is given the benefit of a doubt, down to what its messages alone would take, and
 * after that its due. */
static double promise(const struct sar_selection *s, const struct sar_lessons *lessons, int i)
{
    double predicted = s->prices[i].predicted, entry = s->prices[i].entry, mild = s->mild;
    if (!sar_schemes[i]->on_dense_buffers)
        return entry + predicted * mild;
    if (lessons->trials[i] > 0)
        return entry + predicted * fmin(lessons->ratio[i], 1);
    return (entry + fmin(predicted * fmin(mild, 1), s->least_dense * mild)) * RIVAL / DOUBT;
}

/* Whether a scheme is worth another trial: by the model before it has warmed up, then by its times. */
static bool is_rival(const struct sar_selection *s, const struct sar_lessons *lessons, int i)
{
    double best = s->prices[s->choice].price;
    if (lessons->trials[i] >= sar_trials(s->prices[i].price) || s->prices[i].obstacle != NULL)
        return false;
    if (is_warm(lessons, i))
        return s->prices[i].price <= CLOSE * best;
    return promise(s, lessons, i) <= RIVAL * best;
}

/* Whether a rival has its trial before another: one in the middle of a burst, one with fewer bursts, the
 * cheaper one. */
static bool is_before(const struct sar_selection *s, const struct sar_lessons *lessons, int i, int other)
{
    uint32_t mine = lessons->trials[i], its = lessons->trials[other];
    if ((mine % BURST != 0) != (its % BURST != 0))
        return mine % BURST != 0;
    return mine == its ? s->prices[i].price < s->prices[other].price : mine < its;
}

/* -1 when all rivals have had their trials. */
static int next_trial(const struct sar_selection *s, const struct sar_lessons *lessons)
{
    int next = -1;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (is_rival(s, lessons, i) && (next < 0 || is_before(s, lessons, i, next)))
            next = i;
    return next;
}

static int place_of(const struct sar_scheme *scheme)
{
    int i = 0;
    while (sar_schemes[i] != scheme)
        i++;
    return i;
}

static int eligible(const struct sar_selection *s)
{
    int n = 0;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        n += s->prices[i].obstacle == NULL;
    return n;
}

enum sar_status sar_select(const struct sar_agreed *agreed, const struct sar_config *config,
                           const struct sar_lessons *lessons, const struct sar_scheme *forced,
                           struct sar_predictions *predictions, struct sar_selection *selection)
{
    static const struct sar_lessons none = { .trials = { 0 } };
    struct sar_predictions fresh = { .known = false };
    struct sar_selection s = { .why = "cheapest", .settled = true };
    if (forced != NULL)
        lessons = &none; /* of one scheme only: they would not be fair to it */
    predictions = predictions == NULL ? &fresh : predictions;
    struct terms terms = { agreed, config, lessons, forced, predictions };
    refresh(predictions, agreed);
    s.mild = mildest(lessons);
    s.least_dense = least_dense_seconds(agreed);
    for (int i = 0; sar_schemes[i] != NULL; i++)
        s.prices[i] = price_of(&terms, s.mild, i);
    s.runs = s.choice = cheapest(&s, lessons);
    if (s.prices[s.choice].obstacle != NULL)
        return SAR_UNSUPPORTED; /* none can */
    if (forced != NULL && agreed->native) {
        int asked = place_of(forced);
        s.why = s.prices[asked].obstacle == NULL ? "asked for" : "in place of the scheme asked for";
        s.runs = s.prices[asked].obstacle == NULL ? asked : s.choice;
        s.asked_by = sar_config_origin(config, "SCHEME");
        *selection = s;
        return SAR_OK;
    }
    int trial = learns(config) ? next_trial(&s, lessons) : -1;
    s.settled = trial < 0 || eligible(&s) == 1;
    if (eligible(&s) == 1) {
        s.why = "only one";
    } else if (trial >= 0 && trial != s.choice) {
        s.runs = trial;
        s.why = "on trial";
    }
    *selection = s;
    return SAR_OK;
}

/* That of a first call has to be forgotten soon. */
void sar_lesson_entry(struct sar_lessons *lessons, double entry)
{
    double known = lessons->entry;
    if (known <= 0)
        lessons->entry = entry;
    else
        lessons->entry += (entry < known ? HASTE : WEIGHT) * (fmin(entry, SURPRISE * known) - known);
}

/* Of the first times the fastest counts, as those before it warmed up. Then comes the mean, or schemes whose
 * times vary most would be chosen for their luckiest ones; a time that something else on the machine spoilt
 * must not spoil it. */
void sar_lesson(struct sar_lessons *lessons, int scheme, double predicted, double seconds)
{
    if (!(predicted > 0) || !isfinite(predicted))
        return;
    double ratio = seconds / predicted, known = lessons->ratio[scheme];
    uint32_t trial = ++lessons->trials[scheme];
    double weight = fmax(WEIGHT, 1 / fmax((double)trial - TRIALS + 1, 1));
    if (trial == 1)
        lessons->ratio[scheme] = ratio;
    else if (trial <= TRIALS)
        lessons->ratio[scheme] = fmin(ratio, known);
    else
        lessons->ratio[scheme] = known + weight * (fmin(ratio, SURPRISE * known) - known);
}

void sar_lessons_refresh(struct sar_lessons *lessons)
{
    static const uint32_t enough[] = { TRIALS_OF_SHORTEST, TRIALS_OF_SHORT, TRIALS };
    for (int i = 0; i < SAR_MOST_SCHEMES; i++)
        for (size_t k = 0; k < sizeof enough / sizeof enough[0]; k++)
            if (lessons->trials[i] >= enough[k]) {
                lessons->trials[i] = enough[k] - 1;
                break;
            }
}

/* The cheapest scheme other than the one that runs, or -1. */
static int runner_up(const struct sar_selection *s)
{
    int next = -1;
    for (int i = 0; sar_schemes[i] != NULL; i++)
        if (i != s->runs && isfinite(s->prices[i].price) &&
            (next < 0 || s->prices[i].price < s->prices[next].price))
            next = i;
    return next;
}

void sar_selection_reason(const struct sar_selection *s, char *text, size_t room)
{
    int next = runner_up(s);
    if (strcmp(s->why, "only one") == 0) {
        snprintf(text, room, "no other scheme takes this type and op");
    } else if (strcmp(s->why, "asked for") == 0) {
        snprintf(text, room, "asked for (%s); the selector would take %s at %.4g ms",
                 sar_origin_name(s->asked_by), sar_schemes[s->choice]->name,
                 s->prices[s->choice].price * 1e3);
    } else if (next < 0) {
        snprintf(text, room, "no other scheme has a price");
    } else {
        snprintf(text, room, "%s: %.4g ms expected, %s %.4g ms", s->why, s->prices[s->runs].price * 1e3,
                 sar_schemes[next]->name, s->prices[next].price * 1e3);
    }
}

void sar_selection_explain(const struct sar_selection *s, const struct sar_agreed *agreed,
                           const struct sar_lessons *lessons, const struct sar_profile *profile, FILE *to)
{
    fprintf(to, "# mpix_sparse: %d ranks, %llu elements of %zu B, nnz mean %.0f max %.0f\n",
            agreed->machine.ranks, (unsigned long long)agreed->shape.count, agreed->shape.element_size,
            agreed->nnz_mean, agreed->nnz_max);
    fprintf(to, profile == NULL ? "# no profile yet, independent ranks assumed:" : "# profile:");
    for (int i = 1; i < agreed->gamma.entries; i++)
        fprintf(to, " gamma^%d %.3f", agreed->gamma.ranks[i], agreed->gamma.ratio[i]);
    if (profile != NULL)
        fprintf(to, ", overlap %.3f, skewness %.2f", profile->overlap, profile->skewness);
    fprintf(to, "\n# alpha %.3g s, beta %.3g s/B, gamma %.3g s/element\n", agreed->machine.alpha,
            agreed->machine.beta, agreed->machine.gamma);
    fprintf(to, "# %-20s %12s %12s %8s %7s\n", "scheme", "model_us", "price_us", "trials", "");
    for (int i = 0; sar_schemes[i] != NULL; i++) {
        const char *mark = i == s->runs ? s->why : i == s->choice ? "cheapest" : "";
        if (s->prices[i].obstacle != NULL)
            fprintf(to, "# %-20s not eligible: %s\n", sar_schemes[i]->name, s->prices[i].obstacle);
        else
            fprintf(to, "# %-20s %12.1f %12.1f %8u %s%s\n", sar_schemes[i]->name,
                    s->prices[i].predicted * 1e6, s->prices[i].price * 1e6, lessons->trials[i],
                    i == s->runs ? "<- " : "", mark);
    }
}
