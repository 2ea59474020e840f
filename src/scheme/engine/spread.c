/* SPDX-License-Identifier: BSD-3-Clause */
/* The elements of a rank are known by quantiles: each bin has equally many. Where a rank has a share d of the
 * elements, the union of all ranks has u(d) = c d / (1 + c d): few ranks have the same elements where there
 * are few, and there are no more than all. c makes the sum that of the agreed union. No function of the math
 * library is called but fabs, fmax and sqrt, which are exact: the last bits of others may differ between
 * machines. */

#include "scheme/engine/spread.h"

#include <math.h>
#include <string.h>

enum { STEPS = 40 /* of the search for c */ };

/* Share of the length by which a quantile may differ from an even vector's: at least this, and three standard
 * deviations of a few elements. */
static const double EVEN = 1. / 64;

static bool is_known(const struct sar_quantiles *q)
{
    return q->index[SAR_QUANTILE_BINS - 2] != 0;
}

bool sar_spread_is_known(const struct sar_agreed *a)
{
    return is_known(&a->data.quantiles) && a->data.nnz_mean > 0;
}

bool sar_spread_is_even(const struct sar_agreed *a)
{
    double slack = fmax(EVEN, 3 * 0.5 / sqrt(fmax(a->data.nnz_max, 1)));
    for (int k = 1; k < SAR_QUANTILE_BINS; k++)
        if (fabs(a->data.quantiles.index[k - 1] / 65536. - (double)k / SAR_QUANTILE_BINS) > slack)
            return false;
    return true;
}

static double union_share(double c, double share)
{
    return c * share / (1 + c * share);
}

/* Returns the elements of the union over the length of the vector, for a c. */
static double union_of(const struct sar_spread *s, double elements, double c)
{
    double sum = 0;
    for (int k = 0; k < SAR_QUANTILE_BINS; k++) {
        double length = s->position[k + 1] - s->position[k];
        sum += length * union_share(c, elements / length);
    }
    return sum;
}

/* Returns c by bisection. `elements` and `all` are shares of the vector's length. */
static double find_c(const struct sar_spread *s, double elements, double all)
{
    double low = 0, high = 1;
    while (high < 1e9 && union_of(s, elements, high) < all)
        high *= 2;
    for (int i = 0; i < STEPS; i++) {
        double middle = (low + high) / 2;
        *(union_of(s, elements, middle) < all ? &low : &high) = middle;
    }
    return high;
}

static void set_even_positions(struct sar_spread *s)
{
    for (int k = 1; k <= SAR_QUANTILE_BINS; k++)
        s->position[k] = (double)k / SAR_QUANTILE_BINS;
}

/* Sets the positions of the quantiles. Each bin has a length, so that shares are finite. */
static void set_positions(struct sar_spread *s, const struct sar_quantiles *q)
{
    const double least = 1. / (1 << 20), most = 1 - SAR_QUANTILE_BINS * least;
    for (int k = 1; k < SAR_QUANTILE_BINS; k++)
        s->position[k] = q->index[k - 1] / (UINT16_MAX + 1.) * most + k * least;
    s->position[SAR_QUANTILE_BINS] = 1;
}

/* The spread of a vector's own elements. */
static struct sar_spread spread_of(const struct sar_quantiles *q)
{
    struct sar_spread s = { .weight = { 0 } };
    set_positions(&s, q);
    for (int k = 1; k <= SAR_QUANTILE_BINS; k++)
        s.weight[k] = (double)k / SAR_QUANTILE_BINS;
    return s;
}

struct sar_spread sar_spread_make(const struct sar_agreed *a, double k)
{
    struct sar_spread s = { .weight = { 0 } };
    double count = (double)a->desc.count, elements = a->data.nnz_mean / count / SAR_QUANTILE_BINS;
    if (sar_spread_is_even(a))
        set_even_positions(&s);
    else
        set_positions(&s, &a->data.quantiles);
    double c = find_c(&s, elements, sar_agreed_union_nnz(a, k) / count);
    for (int i = 0; i < SAR_QUANTILE_BINS; i++) {
        double length = s.position[i + 1] - s.position[i];
        s.weight[i + 1] = s.weight[i] + (k <= 1 ? 1 : length * union_share(c, elements / length));
    }
    for (int i = 1; i <= SAR_QUANTILE_BINS; i++)
        s.weight[i] /= s.weight[SAR_QUANTILE_BINS];
    return s;
}

/* Returns the value, where x is `at`, of the function that is y[k] at x[k] and linear between these. */
static double interpolate(const double x[], const double y[], double at)
{
    int k = 0;
    while (k < SAR_QUANTILE_BINS - 1 && x[k + 1] <= at)
        k++;
    double within = (at - x[k]) / (x[k + 1] - x[k]);
    return y[k] + (within < 1 ? within : 1) * (y[k + 1] - y[k]);
}

/* Returns the share of the elements below a share of the length. */
static double below(const struct sar_spread *s, double position)
{
    return interpolate(s->position, s->weight, position);
}

double sar_spread_position(const struct sar_spread *s, double weight)
{
    return interpolate(s->weight, s->position, weight);
}

double sar_spread_share(const struct sar_spread *s, double begin, double end)
{
    return below(s, end) - below(s, begin);
}

/* Elements are even within a bin, so that the fullest parts begin or end about where a bin does. */
double sar_spread_max_share(const struct sar_spread *s, int n, int run)
{
    double most = 0;
    for (int k = 0; k <= SAR_QUANTILE_BINS; k++) {
        int at = (int)(s->position[k] * n);
        int begins[] = { at, at + 1, at - run, at - run + 1 };
        for (int i = 0; i < 4; i++) {
            int begin = begins[i] > 0 ? begins[i] : 0, end = begin + run < n ? begin + run : n;
            if (begin < end)
                most = fmax(most, sar_spread_share(s, (double)begin / n, (double)end / n));
        }
    }
    return most;
}

/* Both spreads have the bins of one vector, and are even within them, so that the fullest parts begin or end
 * about where a bin does. */
double sar_spread_max_share_of_even(const struct sar_spread *rank, const struct sar_spread *all, int n)
{
    double most = 0;
    for (int k = 0; k <= SAR_QUANTILE_BINS; k++) {
        int at = (int)(rank->weight[k] * n), first = at > 0 ? at - 1 : 0;
        for (int i = first; i < n && i <= at + 1; i++) {
            double begin = sar_spread_position(rank, (double)i / n);
            double end = sar_spread_position(rank, (i + 1.) / n);
            most = fmax(most, sar_spread_share(all, begin, end));
        }
    }
    return most;
}

/* Sets the mean of the ranks' quantiles, as shares of the length. Returns false if some are unknown. */
static bool mean_positions(const uint64_t nnz[], const struct sar_quantiles quantiles[], int ranks,
                           double mean[SAR_QUANTILE_BINS + 1])
{
    double sum = 0;
    memset(mean, 0, (SAR_QUANTILE_BINS + 1) * sizeof *mean);
    for (int r = 0; r < ranks; r++) {
        if (nnz[r] == 0)
            continue;
        if (!is_known(&quantiles[r]))
            return false;
        struct sar_spread s = spread_of(&quantiles[r]);
        for (int k = 0; k <= SAR_QUANTILE_BINS; k++)
            mean[k] += s.position[k] * (double)nnz[r];
        sum += (double)nnz[r];
    }
    for (int k = 0; k <= SAR_QUANTILE_BINS; k++)
        mean[k] /= sum;
    return sum > 0;
}

void sar_segment_imbalance(const uint64_t nnz[], const struct sar_quantiles quantiles[], int ranks,
                           double imbalance[SAR_IMBALANCE_POINTS])
{
    double bound[SAR_QUANTILE_BINS + 1], fullest[2 * SAR_QUANTILE_BINS] = { 0 }, most = 0;
    memset(imbalance, 0, SAR_IMBALANCE_POINTS * sizeof *imbalance);
    if (!mean_positions(nnz, quantiles, ranks, bound))
        return;
    for (int r = 0; r < ranks; r++) {
        struct sar_spread s = spread_of(&quantiles[r]);
        most = nnz[r] > most ? (double)nnz[r] : most;
        for (int n = 2; nnz[r] > 0 && n <= SAR_QUANTILE_BINS; n *= 2)
            for (int i = 0, bins = SAR_QUANTILE_BINS / n; i < n; i++) {
                double share = sar_spread_share(&s, bound[i * bins], bound[(i + 1) * bins]);
                fullest[n + i] = fmax(fullest[n + i], (double)nnz[r] * share);
            }
    }
    for (int point = 0, n = 2; point < SAR_IMBALANCE_POINTS; point++, n *= 2)
        for (int i = 0; i < n; i++)
            imbalance[point] += fullest[n + i] / most;
}
