/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the model's predictions for many ranks against random elements distributed by a map: the number of
 * elements of the result, estimated from a sample, and the bytes of the most loaded rank. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "generate.h"
#include "core/profile.h"
#include "scheme/engine/owner.h"

enum { STRIPS = 3 };

/* A tensor as dense and as skewed as that of the paper's NMT. The first `end` of all elements, without the
 * strips before, have this density on each rank. */
static const struct strip {
    double end, density;
} nmt[STRIPS] = { { 0.0206, 0.5995 }, { 0.125, 0.0639 }, { 1, 0.00649 } };

enum where { SIDE_BY_SIDE, ANYWHERE };

/* Ranks of a 25 Gb/s cluster, a vector of floats, and the ranks' elements. */
struct cluster {
    struct sar_agreed agreed;
    uint32_t **index; /* one array for each rank */
    size_t *nnz;
    unsigned char *present; /* for each element, true if any rank has it */
    uint32_t *place;        /* for each drawn element, its position in the vector */
};

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void draw_rank(struct cluster *s, int rank)
{
    double count = (double)s->agreed.desc.count, at = 0;
    struct rng rng = { (uint64_t)rank + 1 };
    uint32_t *index = exact_alloc((size_t)(0.05 * count) * sizeof *index);
    size_t n = 0;
    for (int i = 0; i < STRIPS; i++) {
        for (;;) {
            at += floor(log1p(-rng_unit(&rng)) / log1p(-nmt[i].density));
            if (at >= floor(nmt[i].end * count))
                break;
            index[n++] = s->place[(size_t)at++];
        }
        at = floor(nmt[i].end * count);
    }
    qsort(index, n, sizeof *index, by_size);
    for (size_t i = 0; i < n; i++)
        s->present[index[i]] = 1;
    s->index[rank] = index;
    s->nnz[rank] = n;
    s->agreed.data.nnz_mean += (double)n / s->agreed.machine.ranks;
    s->agreed.data.nnz_max = fmax(s->agreed.data.nnz_max, (double)n);
}

/* The elements in order, or shuffled. */
static uint32_t *places_make(uint64_t count, enum where where)
{
    uint32_t *place = exact_alloc((size_t)count * sizeof *place);
    struct rng rng = { 4711 };
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other = where == ANYWHERE ? rng_below(&rng, i + 1) : i;
        place[i] = place[other];
        place[other] = i;
    }
    return place;
}

static struct cluster cluster_make(int ranks, uint64_t count, enum where where)
{
    struct cluster s = { .agreed = { .call.native = true,
                                     .partition.max_imbalance = 1.1,
                                     .data.skewness = 1,
                                     .topo.nodes = ranks,
                                     .topo.node_ranks = 1,
                                     .wire.segment_bytes = SAR_U64_AUTO,
                                     .partition.kind = -1,
                                     .partition.grain = SAR_AUTO,
                                     .partition.seed = 7 },
                         .index = exact_alloc((size_t)ranks * sizeof *s.index),
                         .nnz = exact_alloc((size_t)ranks * sizeof *s.nnz),
                         .present = exact_alloc((size_t)count),
                         .place = places_make(count, where) };
    s.agreed.desc = vec_desc_make(SAR_FLOAT, SAR_SUM, count, 1);
    s.agreed.machine = (struct sar_machine){ .ranks = ranks, .alpha = 1e-5, .beta = 3.2e-10 };
    memset(s.present, 0, (size_t)count);
    for (int r = 0; r < ranks; r++)
        draw_rank(&s, r);
    return s;
}

static void cluster_free(struct cluster *s)
{
    for (int r = 0; r < s->agreed.machine.ranks; r++)
        free(s->index[r]);
    free(s->index);
    free(s->nnz);
    free(s->present);
    free(s->place);
}

/* Computed as ranks do, from a common sample. */
static struct sar_densification sampled_gamma(const struct cluster *s)
{
    int ranks = s->agreed.machine.ranks;
    double sum = s->agreed.data.nnz_mean * ranks,
           *histogram = exact_alloc(((size_t)ranks + 1) * sizeof *histogram);
    struct sar_index_sample sample = { .slots = sar_profile_slots((uint64_t)sum) };
    size_t bytes = sample.slots * sizeof *sample.holders;
    uint16_t *all = exact_alloc(bytes);
    memset(all, 0, bytes);
    sample.holders = exact_alloc(bytes);
    sar_index_sample_choose(&sample, &s->agreed.desc, (uint64_t)sum);
    for (int r = 0; r < ranks; r++) {
        struct sar_spvec run = { s->index[r], NULL, s->nnz[r] };
        memset(sample.holders, 0, bytes);
        sar_index_sample_count(&sample, &s->agreed.desc, &run);
        for (uint32_t i = 0; i < sample.slots; i++)
            all[i] = (uint16_t)(all[i] + sample.holders[i]);
    }
    memset(histogram, 0, ((size_t)ranks + 1) * sizeof *histogram);
    for (uint32_t i = 0; i < sample.slots; i++)
        histogram[all[i]]++;
    struct sar_densification gamma =
        sar_index_sample_gamma(&sample, histogram, s->agreed.data.nnz_mean, ranks);
    free(sample.holders);
    free(all);
    free(histogram);
    return gamma;
}

/* Add to each part the bytes of the messages that its elements make. */
static void deal(const struct sar_agreed *a, const struct sar_partition_map *map, const uint32_t *index,
                 size_t nnz, bool pull, double *bytes)
{
    size_t parts = map->parts, span = (size_t)map->slots_max;
    struct sar_wire_layout layout = sar_agreed_layout(a, span, sar_index_size(span));
    uint32_t *slots = exact_alloc(parts * span * sizeof *slots);
    size_t *filled = exact_alloc(parts * sizeof *filled);
    memset(filled, 0, parts * sizeof *filled);
    for (size_t i = 0; i < nnz; i++) {
        struct sar_slot place = sar_partition_map_locate(map, index[i]);
        slots[place.part * span + filled[place.part]++] = (uint32_t)place.slot;
    }
    for (size_t p = 0; p < parts; p++) {
        struct sar_spvec run = { slots + p * span, NULL, filled[p] };
        const struct sar_wire *wire = sar_agreed_wire(a, pull, NULL, &layout, &run);
        bytes[p] += SAR_MSG_HEADER_BYTES + (double)sar_wire_bytes(wire, &layout, &run);
    }
    free(filled);
    free(slots);
}

static double most_of(const double *bytes, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, bytes[i]);
    return most;
}

/* Bytes that a rank receives in the push from all others, and sends to them in the pull. */
static void measure(const struct cluster *s, const struct sar_partition_map *map, double *push, double *pull)
{
    int ranks = s->agreed.machine.ranks;
    size_t n = 0, count = (size_t)s->agreed.desc.count;
    double others = (ranks - 1.0) / ranks, *bytes = exact_alloc((size_t)ranks * sizeof *bytes);
    uint32_t *expected_result = exact_alloc(count * sizeof *expected_result);
    for (int p = 0; p < ranks; p++)
        bytes[p] = 0;
    for (int r = 0; r < ranks; r++)
        deal(&s->agreed, map, s->index[r], s->nnz[r], false, bytes);
    *push = most_of(bytes, ranks) * others;
    for (size_t i = 0; i < count; i++)
        if (s->present[i])
            expected_result[n++] = (uint32_t)i;
    for (int p = 0; p < ranks; p++)
        bytes[p] = 0;
    deal(&s->agreed, map, expected_result, n, true, bytes);
    *pull = most_of(bytes, ranks) * (ranks - 1);
    free(expected_result);
    free(bytes);
}

static double result_of(const struct cluster *s)
{
    double n = 0;
    for (uint64_t i = 0; i < s->agreed.desc.count; i++)
        n += s->present[i];
    return n;
}

static bool near(double found, double wanted, double tolerance)
{
    return fabs(found - wanted) <= tolerance * wanted;
}

/* For the push the model predicts the expected maximum. */
static void check_many_ranks(int ranks, uint64_t count, enum where where)
{
    struct cluster s = cluster_make(ranks, count, where);
    double push, pull;
    s.agreed.data.densification = sampled_gamma(&s);
    struct sar_partition_map map = sar_agreed_partition_map(&s.agreed);
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(&s.agreed, map);
    struct sar_owner_estimate f = sar_owner_estimate(&s.agreed, &terms);
    double expected_result = result_of(&s), expected = sar_agreed_union_nnz(&s.agreed, ranks);
    measure(&s, &map, &push, &pull);
    double pushed = f.peers * f.push.bytes, pulled = f.peers * f.pull.bytes;
    print_message("%d ranks: result %.0f of %.0f, push %.0f of %.0f bytes, pull %.0f of %.0f\n", ranks,
                  expected, expected_result, pushed, push, pulled, pull);
    assert_true(near(expected, expected_result, 0.04) && near(pulled, pull, 0.04));
    assert_true(near(pushed, push, where == ANYWHERE ? 0.1 : 0.25));
    assert_true(near(pushed + pulled, push + pull, 0.04));
    cluster_free(&s);
}

static void test_64_ranks(void **state)
{
    (void)state;
    check_many_ranks(64, 437500, SIDE_BY_SIDE);
    check_many_ranks(64, 437500, ANYWHERE);
}

static void test_256_ranks(void **state)
{
    (void)state;
    check_many_ranks(256, 218750, SIDE_BY_SIDE);
    check_many_ranks(256, 218750, ANYWHERE);
}

static void test_1024_ranks(void **state)
{
    (void)state;
    check_many_ranks(1024, 109375, SIDE_BY_SIDE);
    check_many_ranks(1024, 109375, ANYWHERE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_ranks),
        cmocka_unit_test(test_256_ranks),
        cmocka_unit_test(test_1024_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
