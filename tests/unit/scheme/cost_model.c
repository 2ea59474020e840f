/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the cost model: the paper's two equations with numbers computed by hand, densification, the choice of
 * the grain, and monotony of predicted times. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/engine/owner.h"
#include "scheme/scheme.h"

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* Float vectors with this number of elements on each rank, on a network of 10 Gb/s. */
static struct sar_agreed agreed_make(int ranks, uint64_t count, double nnz)
{
    struct sar_machine machine = {
        ranks, 5e-6, 8e-10, 3e-9, 1e-10, 2e-5, 1.6e-9, 5e-6, 8e-10, 1e-6, 1e-6, 1
    };
    return agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, count, 1), machine, nnz);
}

static double balanced_bytes(const struct sar_agreed *a)
{
    return sar_scheme_balanced.paper_bytes(a);
}

static double doubling_bytes(const struct sar_agreed *a)
{
    return sar_scheme_recursive_doubling.paper_bytes(a);
}

/* 250 floats on each rank: M d = 1000 bytes. gamma = 1, 1.8, 3.1, 5 at 1, 2, 4, 8 ranks.
 *
 *     Equation 1, n = 8: 7/8 (5 + 1) 2000 = 10500        n = 4: 3/4 (3.1 + 1) 2000 = 6150
 *     Equation 2, n = 8: (1 + 1.8 + 3.1) 2000 = 11800    n = 4: (1 + 1.8) 2000 = 5600
 *
 * with n = 2 both alike but for the pull: 1/2 (1.8 + 1) 2000 = 2800, and 1 * 2000 = 2000. */
static void test_the_papers_equations(void **state)
{
    static const struct {
        int ranks, entries;
        double balanced, doubling;
    } cases[] = { { 8, 4, 10500, 11800 }, { 4, 3, 6150, 5600 }, { 2, 2, 2800, 2000 }, { 1, 1, 0, 0 } };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sar_agreed a = agreed_make(cases[i].ranks, 100000, 250);
        a.data.densification =
            (struct sar_densification){ cases[i].entries, { 1, 2, 4, 8 }, { 1, 1.8, 3.1, 5 } };
        assert_true(near(balanced_bytes(&a), cases[i].balanced));
        assert_true(near(doubling_bytes(&a), cases[i].doubling));
    }
}

/* In units of 2 M d. Fully overlapped, gamma^k = 1: balanced 2 (n-1)/n, doubling log2 n. No overlap,
 * gamma^k = k: balanced (n-1)/n (n+1) = (n-1) (1 + 1/n), doubling 1 + 2 + … + n/2 = n - 1. */
static void test_the_papers_limits(void **state)
{
    (void)state;
    for (int ranks = 2, log2 = 1; ranks <= 1024; ranks *= 2, log2++) {
        struct sar_agreed a = agreed_make(ranks, 1 << 20, 1000);
        double unit = 2 * 1000 * 4, n = ranks;
        for (int i = 0; i < a.data.densification.points; i++)
            a.data.densification.ratio[i] = 1;
        assert_true(near(balanced_bytes(&a), unit * 2 * (n - 1) / n));
        assert_true(near(doubling_bytes(&a), unit * log2));
        for (int i = 0; i < a.data.densification.points; i++)
            a.data.densification.ratio[i] = a.data.densification.ranks[i];
        assert_true(near(balanced_bytes(&a), unit * (n - 1) * (1 + 1 / n)));
        assert_true(near(doubling_bytes(&a), unit * (n - 1)));
    }
}

/* Ranks that choose one element in 20 each have a pairwise overlap of 0.05: gamma = 1, 1.95, 3.7099, 6.7316,
 * 11.1975 at 1 … 16 ranks. Equation 1: 15/16 (11.1975 + 1) = 11.4352 at 16, 7/8 (6.7316 + 1) = 6.7652 at 8;
 * Equation 2: 1 + 1.95 + 3.7099 + 6.7316 = 13.3915 at 16, 6.6599 at 8. So they cross between 8 and 16. */
static void test_small_overlap_at_16_ranks(void **state)
{
    struct sar_agreed at16 = agreed_make(16, 1000000, 50000), at8 = agreed_make(8, 1000000, 50000);
    const double unit = 2 * 50000 * 4;
    (void)state;
    assert_true(fabs(balanced_bytes(&at16) / unit - 11.4352) < 1e-3);
    assert_true(fabs(doubling_bytes(&at16) / unit - 13.3915) < 1e-3);
    assert_true(fabs(balanced_bytes(&at8) / unit - 6.7652) < 1e-3);
    assert_true(fabs(doubling_bytes(&at8) / unit - 6.6599) < 1e-3);
}

/* The paper has no equations for the other schemes. */
static void test_schemes_the_paper_does_not_price(void **state)
{
    (void)state;
    assert_null(sar_scheme_dense.paper_bytes);
    assert_null(sar_scheme_allgather.paper_bytes);
}

static void test_gamma_between_its_entries(void **state)
{
    struct sar_densification gamma = { 4, { 1, 2, 8, 20 }, { 1, 1.5, 6, 6 } };
    struct sar_densification single = { 1, { 1 }, { 1 } };
    (void)state;
    for (int i = 0; i < gamma.points; i++)
        assert_true(near(sar_densification_at(&gamma, gamma.ranks[i]), gamma.ratio[i]));
    assert_true(near(sar_densification_at(&gamma, 4), 3)); /* half way from 2 to 8: sqrt(1.5 * 6) */
    assert_true(near(sar_densification_at(&gamma, sqrt(2)), sqrt(1.5)));
    assert_true(near(sar_densification_at(&gamma, 12), 6));
    assert_true(near(sar_densification_at(&gamma, 1000), 6));
    assert_true(near(sar_densification_at(&gamma, 0.5), 1));
    assert_true(near(sar_densification_at(&single, 1), 1) && near(sar_densification_at(&single, 5), 1));
}

/* 1 - (1-d)^n, over d; if the power loses all digits, n - C(n,2) d + C(n,3) d^2 - … */
static double reference_gamma(double density, double n)
{
    double sum = 0, term = n;
    if (n * density >= 0.5)
        return (double)((1 - powl(1 - (long double)density, n)) / density);
    for (int k = 1; k < 60; k++) {
        sum += term;
        term *= -density * (n - k) / (k + 1);
    }
    return sum;
}

static void test_gamma_of_independent_ranks(void **state)
{
    static const int all_ranks[] = { 1, 2, 3, 6, 8, 100, 1024, 1000000, INT32_MAX };
    static const double densities[] = { 1, 0.5, 0.1, 1e-3, 1e-6, 1e-10, 1e-17, 1e-19, 0 };
    (void)state;
    for (size_t k = 0; k < LENGTH(all_ranks) * LENGTH(densities); k++) {
        int ranks = all_ranks[k / LENGTH(densities)];
        double density = densities[k % LENGTH(densities)];
        struct sar_densification gamma = sar_densification_independent(density, ranks);
        assert_in_range(gamma.points, 1, SAR_DENSIFICATION_POINTS);
        assert_int_equal(gamma.ranks[0], 1);
        assert_int_equal(gamma.ranks[gamma.points - 1], ranks);
        for (int i = 0; i < gamma.points; i++) {
            double n = gamma.ranks[i], most = density > 0 ? fmin(n, 1 / density) : 1;
            double wanted = density > 0 ? reference_gamma(density, n) : 1;
            assert_true(i == 0 || gamma.ranks[i] > gamma.ranks[i - 1]);
            assert_true(gamma.ratio[i] >= 1 - 1e-9 && gamma.ratio[i] <= most * (1 + 1e-9));
            if (fabs(gamma.ratio[i] - wanted) > 1e-6 * wanted)
                fail_msg("density %g, %g ranks: %g, not %g", density, n, gamma.ratio[i], wanted);
        }
    }
}

/* The union never has more elements than the vector. */
static void test_unions(void **state)
{
    struct sar_agreed a = agreed_make(64, 1000, 100);
    (void)state;
    assert_true(near(sar_agreed_union_nnz(&a, 1), 100));
    assert_true(near(sar_agreed_union_nnz(&a, 2), 190));
    for (int i = 0; i < a.data.densification.points; i++)
        a.data.densification.ratio[i] = a.data.densification.ranks[i];
    assert_true(near(sar_agreed_union_nnz(&a, 8), 800));
    assert_true(near(sar_agreed_union_nnz(&a, 64), 1000));
}

static double fullest_of(const struct sar_agreed *a, double together, double groups)
{
    return sar_agreed_max_load(a, a->machine.ranks, together, groups);
}

/* 16 ranks with 1600 of 10^6 elements each; gamma = 1, 1.5, 2, 3.2, 5 at 1 … 16 ranks, so that two ranks have
 * 2 - 1.5 of their elements in common, and two nodes of four ranks 2 - 3.2 / 2.
 *
 *     push: 1 + 15 .5 - 1600 / 10^6 = 8.4984          1 + 1.766 sqrt(8.4984 / 1600) = 1.1287
 *     nodes of 4: 1 + 3 .4 - 3200 / 10^6 = 2.1968     1 + 1.766 sqrt(2.1968 16 / (4 3200)) = 1.0925
 *     pull: 1 - 8000 / 10^6 = .992                    1 + 1.766 sqrt(.992 16 / 8000) = 1.0787
 *
 * 1.766 is the mean of the largest of 16 normal variates. */
static void test_the_fullest_part(void **state)
{
    struct sar_agreed a = agreed_make(16, 1000000, 1600);
    (void)state;
    a.data.densification = (struct sar_densification){ 5, { 1, 2, 4, 8, 16 }, { 1, 1.5, 2, 3.2, 5 } };
    assert_true(fabs(fullest_of(&a, 1, 16) - 1.1287) < 1e-4);
    assert_true(fabs(fullest_of(&a, 4, 4) - 1.0925) < 1e-4);
    assert_true(fabs(fullest_of(&a, 16, 1) - 1.0787) < 1e-4);
}

/* Two of 64 ranks that choose a fiftieth independently have a fiftieth in common. Parts are equal if every
 * element is present, if none is, or if there is one part. */
static void test_the_limits_of_the_fullest_part(void **state)
{
    struct sar_agreed a = agreed_make(64, 1000000, 20000), full = agreed_make(64, 1000, 1000);
    struct sar_agreed none = agreed_make(64, 1000, 0), one = agreed_make(1, 1000, 10);
    (void)state;
    assert_true(near(fullest_of(&a, 1, 64), 1 + 2.344 * sqrt((1 + 62 * 0.02) / 20000)));
    assert_true(fullest_of(&full, 1, 64) == 1 && fullest_of(&full, 64, 1) == 1);
    assert_true(fullest_of(&none, 1, 64) == 1 && fullest_of(&none, 64, 1) == 1);
    assert_true(fullest_of(&one, 1, 1) == 1);
}

/* 1 + sqrt(2 n ln n g / nnz), the expected imbalance. */
static double expected_imbalance(const struct sar_agreed *a, unsigned grain)
{
    double n = a->machine.ranks;
    return 1 + sqrt(2 * n * log(n) * grain / a->data.nnz_mean);
}

/* The largest grain within the limit; single elements if there is none. */
static void test_the_grain(void **state)
{
    static const int ranks[] = { 1, 2, 3, 8, 16, 128, 1024 };
    static const double nnz[] = { 1, 100, 1e4, 1e5, 1e6, 1e7, 1e8 }, limits[] = { 1, 1.05, 1.1, 2 };
    (void)state;
    for (size_t k = 0; k < LENGTH(ranks) * LENGTH(nnz) * LENGTH(limits); k++) {
        struct sar_agreed a =
            agreed_make(ranks[k % LENGTH(ranks)], 1000000000, nnz[k / LENGTH(ranks) % LENGTH(nnz)]);
        a.partition.max_imbalance = limits[k / LENGTH(ranks) / LENGTH(nnz)];
        struct sar_partition_map map = sar_agreed_partition_map(&a);
        unsigned grain = 1u << map.grain_shift;
        assert_int_equal(map.kind, SAR_PARTITION_HASH);
        assert_int_equal(map.parts, a.machine.ranks);
        assert_true(map.count == a.desc.count);
        assert_in_range(grain, 1, 256);
        assert_true(grain == 1 || expected_imbalance(&a, grain) <= a.partition.max_imbalance);
        assert_true(grain == 256 || expected_imbalance(&a, 2 * grain) > a.partition.max_imbalance);
    }
}

static void test_grain_and_partition_asked_for(void **state)
{
    (void)state;
    for (int partition = 0; partition < SAR_PARTITIONS; partition++) {
        for (int grain = 1; grain <= 256; grain *= 2) {
            struct sar_agreed a = agreed_make(8, 100000, 10);
            a.partition.kind = partition;
            a.partition.grain = grain;
            a.partition.seed = 99;
            struct sar_partition_map map = sar_agreed_partition_map(&a);
            assert_string_equal(sar_partition_map_name(&map), sar_partition_names[partition]);
            assert_int_equal(map.seed, partition == SAR_PARTITION_RANGE ? map.seed : 99);
            assert_true(partition == SAR_PARTITION_RANGE || 1 << map.grain_shift == grain);
        }
    }
}

/* Single elements unless a grain is asked for, and the owners of `hash`. */
static void test_hierarchical_partition(void **state)
{
    struct sar_agreed a = agreed_make(8, 100000, 90000);
    (void)state;
    a.partition.max_imbalance = 2;
    assert_true(sar_agreed_partition_map(&a).grain_shift > 0);
    a.partition.kind = SAR_PARTITION_HIERARCHICAL;
    struct sar_partition_map map = sar_agreed_partition_map(&a), hash;
    assert_int_equal(map.grain_shift, 0);
    a.partition.kind = SAR_PARTITION_HASH;
    a.partition.grain = 1;
    hash = sar_agreed_partition_map(&a);
    for (uint64_t i = 0; i < 100000; i++) {
        struct sar_slot found = sar_partition_map_locate(&map, i), same = sar_partition_map_locate(&hash, i);
        assert_true(found.part == same.part && found.slot == same.slot);
    }
}

/* The quantity that grows from one step to the next. */
enum axis { COUNT, DENSITY, ALPHA, BETA, GAMMA, DENSE, AXES };

static struct sar_agreed step(enum axis axis, int k, int ranks, bool dense_face)
{
    double factor = ldexp(1, k), density = axis == DENSITY ? 1e-5 * factor : 0.01;
    double count = axis == COUNT ? 1000 * factor : 3e6;
    struct sar_agreed a = agreed_make(ranks, (uint64_t)count, count * density);
    a.data.nnz_max = 1.2 * a.data.nnz_mean;
    a.call.dense_face = dense_face;
    a.machine.alpha *= axis == ALPHA ? factor : 1;
    a.machine.beta *= axis == BETA ? factor : 1;
    a.machine.gamma *= axis == GAMMA ? factor : 1;
    a.machine.dense_alpha *= axis == DENSE ? factor : 1;
    a.machine.dense_beta *= axis == DENSE ? factor : 1;
    return a;
}

/* hybrid switches to dense by a rule of thumb, so an earlier switch may cost slightly less. */
static void check_times(const struct sar_scheme *scheme, int ranks, bool dense_face)
{
    double slack = scheme == &sar_scheme_hybrid ? 0.97 : 1;
    for (unsigned axis = 0; axis < AXES; axis++) {
        double before = 0;
        for (int k = 0; k < 16; k++) {
            struct sar_agreed a = step((enum axis)axis, k, ranks, dense_face);
            double seconds = scheme->seconds(&a);
            if (!(isfinite(seconds) && seconds >= before * slack))
                fail_msg("%s, %d ranks, axis %u, step %d: %g s after %g s", scheme->name, ranks, axis, k,
                         seconds, before);
            before = seconds;
        }
    }
}

/* Predicted times never decrease along an axis. */
static void test_times_do_not_fall(void **state)
{
    static const int ranks[] = { 1, 2, 3, 4, 5, 8, 12, 16, 100, 1024 };
    (void)state;
    for (size_t s = 0; sar_schemes[s] != NULL; s++) {
        for (size_t r = 0; r < LENGTH(ranks); r++) {
            check_times(sar_schemes[s], ranks[r], false);
            check_times(sar_schemes[s], ranks[r], true);
        }
    }
}

/* No data to reduce: an empty vector, or no elements on any rank. */
static void test_times_of_nothing(void **state)
{
    (void)state;
    for (size_t s = 0; sar_schemes[s] != NULL; s++) {
        for (int ranks = 1; ranks < 20; ranks++) {
            for (uint64_t count = 0; count < 2000; count += 999) {
                struct sar_agreed a = agreed_make(ranks, count + 1, 0);
                a.desc.count = count;
                double seconds = sar_schemes[s]->seconds(&a);
                assert_true(isfinite(seconds) && seconds >= 0);
                assert_true(sar_schemes[s]->paper_bytes == NULL || sar_schemes[s]->paper_bytes(&a) == 0);
            }
        }
    }
}

/* Work of balanced beyond what a rank does with its own elements, with the parts of the others, and to code:
 * the merge of the result. */
static double merge_work(const struct sar_agreed *a)
{
    struct sar_owner_cost_terms terms = sar_owner_columns_terms(a, 1);
    struct sar_owner_estimate e = sar_owner_estimate(a, &terms);
    double coding =
        e.peers * e.push.work + (e.pull_policy.block > 0 ? e.peers + 1 : (e.peers + 1) / 2) * e.pull.work;
    return e.work - e.reduce_work - coding - a->data.nnz_max;
}

/* A merge by blocks costs a fifth of a reduction, and some elements' work for each block, which
 * formats count for long blocks. Contiguous parts and few elements are merged without blocks, by a
 * reduction. */
static void test_costs_of_the_merge(void **state)
{
    struct sar_agreed dense = agreed_make(16, 10000000, 500000), sparse = agreed_make(16, 1000000000, 1000);
    (void)state;
    double sums = sar_agreed_union_nnz(&dense, 16);
    assert_true(merge_work(&dense) > 0.21 * sums && merge_work(&dense) < 0.4 * sums);
    dense.partition.grain = 256;
    assert_true(fabs(merge_work(&dense)) < 1e-6 * sums);
    assert_true(near(merge_work(&sparse), sar_agreed_union_nnz(&sparse, 16)));
    dense.partition.kind = SAR_PARTITION_RANGE;
    assert_true(near(merge_work(&dense), sums));
}

/* With costs as measured, a rank of lstm puts bits in place for less than a bitmap of two levels, though
 * that takes fewer bytes at 25 Gb/s. */
static void test_the_pull_of_lstm(void **state)
{
    struct sar_wire_layout layout = { 396484, 4, 1, 4, false, SAR_PRECISION_FULL };
    struct sar_wire_price price = { 3.2e-10 * 15 / 16, 2.06e-9, 256 };
    (void)state;
    assert_ptr_equal(sar_wire_cheapest_expected(&layout, 30653, price), &sar_wire_hash_bitmap);
}

/* 16-bit values count with their size, and rounding them costs work. */
static void test_costs_of_narrow_values(void **state)
{
    struct sar_agreed a = agreed_make(8, 100000, 1000), narrow = a;
    (void)state;
    narrow.wire.precision = SAR_PRECISION_BF16;
    struct sar_wire_layout layout = sar_agreed_layout(&a, 5000, 4),
                           less = sar_agreed_layout(&narrow, 5000, 4);
    assert_true(less.slots == 5000 && less.element_size == 2 && less.precision == SAR_PRECISION_BF16);
    for (size_t w = 0; sar_wires[w] != NULL; w++) {
        a.wire.push = narrow.wire.push = sar_wires[w];
        struct sar_cost full = sar_agreed_cost(&a, false, &layout, 700);
        struct sar_cost half = sar_agreed_cost(&narrow, false, &less, 700);
        assert_true(half.bytes <= full.bytes - 2 * 700 && half.work > full.work);
    }
}

/* A message costs as its format does; a forced format is used at any price. */
static void test_costs_of_messages(void **state)
{
    struct sar_agreed a = agreed_make(8, 100000, 1000);
    struct sar_wire_layout layout = sar_agreed_layout(&a, 5000, 4);
    const struct sar_wire_policy block = { .preferred = &sar_wire_block };
    (void)state;
    assert_true(layout.slots == 5000 && layout.element_size == 4 && layout.index_size == 4 &&
                !layout.zero_is_absent);
    for (uint64_t nnz = 0; nnz <= layout.slots; nnz += 50) {
        struct sar_wire_price price = { a.machine.beta, a.machine.gamma, false };
        uint32_t index[5000];
        struct sar_spvec run = { index, NULL, nnz };
        for (uint32_t i = 0; i < nnz; i++)
            index[i] = (uint32_t)(layout.slots * i / nnz);
        const struct sar_wire *wire = sar_agreed_wire(&a, false, NULL, &layout, &run);
        const struct sar_wire *likely = sar_wire_cheapest_expected(&layout, (double)nnz, price);
        struct sar_cost cost = sar_agreed_cost(&a, false, &layout, (double)nnz);
        assert_ptr_equal(wire, sar_wire_cheapest(&layout, &run, price));
        assert_true(cost.bytes == SAR_MSG_HEADER_BYTES + sar_wire_expected(likely, &layout, (double)nnz) &&
                    cost.work == sar_wire_cost(likely, &layout, (double)nnz));
        assert_ptr_equal(sar_agreed_wire(&a, false, &block, &layout, &run), &sar_wire_block);
        a.wire.pull_smallest = true;
        price = (struct sar_wire_price){ a.machine.beta, 0, true };
        assert_ptr_equal(sar_agreed_wire(&a, true, &block, &layout, &run),
                         sar_wire_cheapest(&layout, &run, price));
        a.wire.pull = &sar_wire_dense;
        assert_ptr_equal(sar_agreed_wire(&a, true, NULL, &layout, &run), &sar_wire_dense);
        assert_ptr_equal(sar_agreed_wire(&a, false, NULL, &layout, &run), wire);
        a.wire.pull = NULL;
        a.wire.pull_smallest = false;
    }
}

/* A pipeline that waits for messages takes formats of fewer bytes, one that waits for work those of less
 * work; neither is dearer than the formats that are cheapest by the sum of both. */
static void test_pipelines_weigh_bytes_and_work(void **state)
{
    (void)state;
    struct sar_agreed a = agreed_make(16, 100000000, 1500000);
    a.topo.nodes = 16;
    double bytes = 0, work = INFINITY;
    for (a.machine.gamma = 1e-11; a.machine.gamma < 1e-7; a.machine.gamma *= 2) {
        struct sar_owner_cost_terms terms = sar_owner_cost_terms(&a, sar_agreed_partition_map(&a));
        struct sar_owner_estimate e = sar_owner_estimate(&a, &terms);
        assert_true(e.segments.n > 1);
        assert_true(e.push.bytes + e.pull.bytes >= bytes && e.work <= work);
        bytes = e.push.bytes + e.pull.bytes;
        work = e.work;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_papers_equations),
        cmocka_unit_test(test_the_papers_limits),
        cmocka_unit_test(test_small_overlap_at_16_ranks),
        cmocka_unit_test(test_schemes_the_paper_does_not_price),
        cmocka_unit_test(test_gamma_between_its_entries),
        cmocka_unit_test(test_gamma_of_independent_ranks),
        cmocka_unit_test(test_unions),
        cmocka_unit_test(test_the_fullest_part),
        cmocka_unit_test(test_the_limits_of_the_fullest_part),
        cmocka_unit_test(test_the_grain),
        cmocka_unit_test(test_grain_and_partition_asked_for),
        cmocka_unit_test(test_hierarchical_partition),
        cmocka_unit_test(test_times_do_not_fall),
        cmocka_unit_test(test_times_of_nothing),
        cmocka_unit_test(test_costs_of_the_merge),
        cmocka_unit_test(test_the_pull_of_lstm),
        cmocka_unit_test(test_costs_of_narrow_values),
        cmocka_unit_test(test_costs_of_messages),
        cmocka_unit_test(test_pipelines_weigh_bytes_and_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
