/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests prices of all schemes on a hundred thousand random machines and calls. Prices are finite and
 * positive, at least the time of the bytes that must move, and grow with work and costs. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/config.h"
#include "generate.h"
#include "scheme/scheme.h"
#include "vector/merge_bitmaps.h"

static double between(struct rng *rng, double low, double high)
{
    return low * pow(high / low, rng_unit(rng));
}

/* One node, one node for each rank, or several nodes of several ranks with cheaper messages inside. */
static void draw_nodes(struct rng *rng, struct sar_agreed *a)
{
    int kind = (int)rng_below(rng, 3), ranks = a->machine.ranks;
    a->topo.node_ranks = kind == 0 ? ranks : kind == 1 ? 1 : (int)between(rng, 1, ranks + 1);
    a->topo.nodes = (ranks + a->topo.node_ranks - 1) / a->topo.node_ranks;
    a->topo.shared_memory = a->topo.nodes > 1 && a->topo.node_ranks > 1;
    a->machine.intra_alpha = a->machine.alpha * (a->topo.shared_memory ? between(rng, 0.01, 1) : 1);
    a->machine.intra_beta = a->machine.beta * (a->topo.shared_memory ? between(rng, 0.01, 1) : 1);
    a->machine.overhead = a->machine.alpha * between(rng, 1e-4, 1);
    a->machine.intra_overhead =
        a->topo.shared_memory ? a->machine.intra_alpha * between(rng, 1e-4, 1) : a->machine.overhead;
}

static struct sar_agreed random_call(struct rng *rng)
{
    struct sar_machine m = { .ranks = (int)between(rng, 2, 1025), .alpha = between(rng, 1e-7, 1e-4) };
    double count = floor(between(rng, 1, 1e12)), density = between(rng, 1e-9, 1), growth = rng_unit(rng);
    m.beta = 8e-9 / between(rng, 0.1, 1000);
    m.gamma = between(rng, 1e-12, 1e-7);
    m.memory = between(rng, 1e-12, 1e-9);
    m.dense_alpha = 2 * log2(m.ranks) * m.alpha;
    m.dense_beta = 2.0 * (m.ranks - 1) / m.ranks * m.beta;
    struct sar_agreed a = {
        .machine = m, .call.native = true, .partition.max_imbalance = 1.1, .partition.grain = SAR_AUTO
    };
    a.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, (uint64_t)count, 1);
    a.desc.element_size = (size_t)4 << rng_below(rng, 8);
    a.data.nnz_mean = fmax(count * density, 1.0 / m.ranks);
    a.data.nnz_max = fmin(fmax(1, a.data.nnz_mean * between(rng, 1, 4)), count);
    a.data.densification = sar_densification_independent(density, m.ranks);
    for (int i = 0; growth > 0.2 && i < a.data.densification.points; i++)
        a.data.densification.ratio[i] =
            fmin(pow(a.data.densification.ranks[i], (growth - 0.2) / 0.8), 1 / density);
    a.data.skewness = between(rng, 1, a.machine.ranks);
    a.wire.segment_bytes = (uint64_t)between(rng, 1 << 18, 1 << 28);
    a.partition.kind = (int)rng_below(rng, SAR_PARTITIONS + 1) - 1;
    a.call.dense_face = rng_below(rng, 2) == 0;
    draw_nodes(rng, &a);
    return a;
}

/* Lower bound in seconds: a rank must receive the values of all elements that it does not have, unless its
 * neighbours have them. */
static double floor_of(const struct sar_agreed *a)
{
    if (a->topo.shared_memory)
        return 0;
    double missing = sar_agreed_union_nnz(a, a->machine.ranks) - a->data.nnz_max;
    return fmax(missing, 0) * (double)a->desc.element_size * a->machine.beta;
}

/* Lower bound for the paper's schemes, whose messages are known. */
static double floor_of_scheme(const struct sar_agreed *a, const struct sar_scheme *scheme)
{
    double n = a->machine.ranks, values = 0, all = (double)a->desc.count;
    if (a->topo.shared_memory)
        return 0;
    if (scheme == &sar_scheme_dense)
        values = 2 * (n - 1) / n * all;
    else if (scheme == &sar_scheme_allgather)
        values = (n - 1) * a->data.nnz_max;
    else if (scheme == &sar_scheme_balanced || scheme == &sar_scheme_omni || scheme == &sar_scheme_sparse_ps)
        values = (n - 1) / n * (a->data.nnz_max + sar_agreed_union_nnz(a, n));
    else if (scheme == &sar_scheme_recursive_doubling)
        for (int group = 1; group * 2 <= a->machine.ranks; group *= 2)
            values += sar_agreed_union_nnz(a, group);
    return fmax(floor_of(a), values * (double)a->desc.element_size * a->machine.beta);
}

/* The quantity that grows by a factor. Multiples of the elements lengthen the vector, or make it denser. */
enum axis { COUNT, DENSITY, ALPHA, OVERHEAD, BETA, GAMMA, AXES };
static const char *const axes[AXES] = { "count", "density", "alpha", "overhead", "beta", "gamma" };

static struct sar_agreed grown(struct sar_agreed a, enum axis axis, double factor)
{
    if (axis == COUNT)
        a.desc.count = (uint64_t)((double)a.desc.count * factor);
    if (axis == COUNT || axis == DENSITY) {
        a.data.nnz_mean = fmin(a.data.nnz_mean * factor, (double)a.desc.count);
        a.data.nnz_max = fmin(a.data.nnz_max * factor, (double)a.desc.count);
    }
    a.machine.alpha *= axis == ALPHA ? factor : 1;
    a.machine.dense_alpha *= axis == ALPHA ? factor : 1;
    a.machine.overhead *= axis == OVERHEAD ? factor : 1;
    a.machine.intra_overhead *= axis == OVERHEAD ? factor : 1;
    a.machine.beta *= axis == BETA ? factor : 1;
    a.machine.dense_beta *= axis == BETA ? factor : 1;
    a.machine.gamma *= axis == GAMMA ? factor : 1;
    return a;
}

/* Tolerance for a price that falls. Segments are rounded to whole stripes: a hundredth. Each message selects
 * its format, so other prices may hide more work: a tenth unless formats are forced. Segment counts are
 * integers, chosen without their price, which counts overlapping latencies once: a fifth. With fewer slots
 * than ranks most parts are empty: a twentieth. Formats are chosen by the bytes between nodes, which cost
 * more than those within: a quarter. Denser vectors may have longer blocks, so that fewer are merged: a
 * tenth. */
static double slack(const struct sar_agreed *a, const struct sar_agreed *more)
{
    struct sar_partition_map map = sar_agreed_partition_map(a), later = sar_agreed_partition_map(more);
    if (a->topo.shared_memory && a->wire.push == NULL)
        return 0.25;
    if (a->wire.segment_bytes == SAR_U64_AUTO)
        return 0.2;
    if (a->wire.push == NULL || later.grain_shift > map.grain_shift)
        return 0.1;
    return a->desc.count < (uint64_t)a->machine.ranks ? 0.05 : 0.01;
}

/* True if a scheme works as before with more data. With denser vectors hybrid switches earlier from sparse to
 * dense stages, which may be cheaper. Ranks of a node may share work that each does alone when there is
 * little. With denser vectors blocks become long enough for bitmaps that are merged without lists. */
static bool keeps_its_way(const struct sar_scheme *scheme, const struct sar_agreed *a,
                          const struct sar_agreed *more, enum axis axis)
{
    struct sar_partition_map map = sar_agreed_partition_map(a), later = sar_agreed_partition_map(more);
    if (sar_merge_bitmaps_works(&later) && !sar_merge_bitmaps_works(&map))
        return false;
    if (scheme == &sar_scheme_two_level)
        return axis != COUNT && axis != DENSITY;
    return scheme != &sar_scheme_hybrid || axis != DENSITY;
}

static void check_prices(const struct sar_agreed *a, enum axis axis, double factor, int number)
{
    struct sar_agreed more = grown(*a, axis, factor);
    for (size_t i = 0; sar_schemes[i] != NULL; i++) {
        if (sar_scheme_unsupported_reason(sar_schemes[i], a) != NULL ||
            sar_scheme_unsupported_reason(sar_schemes[i], &more) != NULL)
            continue;
        double seconds = sar_schemes[i]->seconds(a), then = sar_schemes[i]->seconds(&more);
        double least = floor_of_scheme(a, sar_schemes[i]);
        if (!(isfinite(seconds) && seconds > 0 && seconds >= least * (1 - 1e-9)))
            fail_msg("machine %d, %s: %g s, at least %g s", number, sar_schemes[i]->name, seconds, least);
        if (keeps_its_way(sar_schemes[i], a, &more, axis) && !(then >= seconds * (1 - slack(a, &more))))
            fail_msg("machine %d, %s: %g s, but %g s with %g times the %s", number, sar_schemes[i]->name,
                     seconds, then, factor, axes[axis]);
    }
}

static void test_random_machines(void **state)
{
    enum { MACHINES = 100000 };
    struct rng rng = { 2026 };
    size_t wires = 0;
    while (sar_wires[wires] != NULL)
        wires++;
    (void)state;
    for (int i = 0; i < MACHINES; i++) {
        struct sar_agreed a = random_call(&rng);
        if (i % 2 == 0)
            a.wire.push = a.wire.pull = sar_wires[rng_below(&rng, wires)];
        if (i % 4 < 2)
            a.wire.segment_bytes = SAR_U64_AUTO;
        double factor =
            between(&rng, 2, 16); /* drawn first, since the order of evaluation differs between compilers */
        check_prices(&a, (enum axis)rng_below(&rng, AXES), factor, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_machines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
