/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the segment size that the model selects for balanced and two_level, and the number of long messages
 * that a rank then has in transit. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/engine/owner.h"

/* Floats on hosts of 200 Mb/s with a processor for four ranks. */
static struct sar_agreed hosts(int nodes, int node_ranks)
{
    struct sar_machine machine = {
        nodes * node_ranks, 60e-6, 4e-8, 2e-8, 1e-10, 2e-4, 8e-8, 60e-6, 4e-8, 60e-6, 60e-6, 1
    };
    struct sar_agreed a = agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, 16000000, 1), machine, 180000);
    a.topo.nodes = nodes;
    a.topo.node_ranks = node_ranks;
    a.topo.shared_memory = node_ranks > 1;
    a.wire.segment_bytes = SAR_U64_AUTO;
    return a;
}

static struct sar_owner_estimate forecast_of(const struct sar_agreed *a)
{
    struct sar_partition_map map = sar_agreed_partition_map(a);
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(a, map);
    terms.group_ranks = a->topo.nodes > 1 ? a->topo.node_ranks : 1;
    return sar_owner_estimate(a, &terms);
}

static double segments_of(const struct sar_agreed *a)
{
    return forecast_of(a).segments.n;
}

static void test_what_is_asked_for(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = 1;
    (void)state;
    for (a.wire.segment_bytes = 1 << 20; a.wire.segment_bytes > 1 << 10; a.wire.segment_bytes /= 2) {
        assert_true(segments_of(&a) >= before);
        before = segments_of(&a);
    }
    assert_true(before > 100);
}

/* The more a message costs relative to latency, the fewer segments; finally the vector is one segment. */
static void test_against_latency(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = segments_of(&a);
    (void)state;
    assert_true(before >= 4 && before <= 8);
    for (; a.machine.overhead < 10; a.machine.overhead *= 1.3) {
        assert_true(segments_of(&a) <= before);
        before = segments_of(&a);
    }
    assert_true(before == 1);
}

/* Where each segment has another fullest rank, fewer of them take less time; and the time grows with what
 * these ranks have. */
static void test_against_imbalance(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    struct sar_owner_cost_terms terms = sar_owner_cost_terms(&a, sar_agreed_partition_map(&a));
    double many = segments_of(&a), before = sar_owner_seconds(&a, &terms);
    (void)state;
    for (int i = 0; i < SAR_IMBALANCE_POINTS; i++)
        a.data.segment_imbalance[i] = 1;
    assert_true(segments_of(&a) == many && sar_owner_seconds(&a, &terms) == before);
    for (int i = 0; i < SAR_IMBALANCE_POINTS; i++)
        a.data.segment_imbalance[i] = 2 << i;
    assert_true(segments_of(&a) < many && sar_owner_seconds(&a, &terms) > before);
    a.wire.segment_bytes = 1 << 12;
    assert_true(segments_of(&a) > many); /* a length that is asked for is kept */
    assert_true(sar_agreed_segment_imbalance(&a, 1) == 1);
    assert_true(sar_agreed_segment_imbalance(&a, 3) == 3 && sar_agreed_segment_imbalance(&a, 100) == 16);
}

static double segments_at(const struct sar_agreed *a, uint64_t bytes)
{
    struct sar_agreed asked = *a;
    asked.wire.segment_bytes = bytes;
    return segments_of(&asked);
}

/* The more work to hide, the more segments: from 1 MiB without work to 64 KiB. If messages are almost free,
 * 256 KiB. */
static void test_against_work(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = 1;
    (void)state;
    a.machine.gamma = 1e-12;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 20));
    for (; a.machine.gamma < 3e-7; a.machine.gamma *= 1.3) {
        assert_true(segments_of(&a) >= before);
        before = segments_of(&a);
    }
    assert_true(before > 4 * segments_at(&a, 1 << 20) && before <= segments_at(&a, 1 << 16));
    a.machine.gamma = 1e-5;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

/* Ranks of one node that emulate two: messages are as fast as memory. */
static void test_fast_messages(void **state)
{
    struct sar_agreed a = hosts(2, 2);
    (void)state;
    a.machine = (struct sar_machine){ 4, 4e-7, 1e-10, 4e-9, 1e-10, 1e-6, 2e-10, 4e-7, 1e-10, 4e-7, 4e-7, 1 };
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
    a.machine.beta *= 100;
    assert_true(segments_of(&a) > segments_at(&a, 1 << 18));
}

/* One rank sends nothing, and no ratio is defined. */
/* Segments follow the length of a long message, as in simulations whose messages are divided. */
static void test_long_messages(void **state)
{
    struct sar_agreed a = hosts(1, 4);
    double segments = segments_of(&a);
    (void)state;
    a.wire.long_message = 1 << 16;
    assert_true(segments_of(&a) == segments);
    a.wire.long_message = 1 << 14;
    assert_in_range((int)segments_of(&a), 4 * (int)segments - 4, 4 * (int)segments);
}

static void test_one_rank(void **state)
{
    struct sar_agreed a = hosts(1, 1);
    (void)state;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

/* Ranks of a node that send together have fewer partners and longer messages, and may have more segments,
 * within the limit of the shortest messages. */
static void test_two_levels(void **state)
{
    struct sar_agreed a = hosts(4, 4);
    (void)state;
    assert_true(segments_of(&a) > 1 && segments_of(&a) <= segments_at(&a, 1 << 16));
}

/* Within a node nothing overlaps, and only the length counts. */
static void test_one_node(void **state)
{
    struct sar_agreed a = hosts(1, 16);
    (void)state;
    a.machine.alpha = a.machine.overhead = 3e-7;
    a.machine.beta = 1e-10;
    for (; a.machine.gamma < 1e-5; a.machine.gamma *= 2)
        assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

/* z = 1.6e6 elements on each of 16 ranks, Z = 8 z of all, in coordinates of 8 bytes at 20 Gb/s; parts differ
 * by .3 %. Reducing a segment of Z / t takes Z gamma / t. Its messages, of z / 16 t and Z / 16 t elements,
 * take 9 z / 32 t * 8 * .4 ns on average, so 8 * 32 gamma / (9 * 3.2 ns) of them pass in that time. */
static struct sar_agreed fast_hosts(int nodes, int node_ranks)
{
    struct sar_machine machine = { 16, 1e-6, 4e-10, 1e-9, 1e-10, 2e-4, 8e-10, 1e-6, 1e-10, 2e-7, 2e-7, 1 };
    struct sar_agreed a = agreed_plain(vec_desc_make(SAR_FLOAT, SAR_SUM, 160000000, 1), machine, 1.6e6);
    a.data.densification = (struct sar_densification){ 4, { 1, 2, 4, 16 }, { 1, 2, 4, 8 } };
    a.topo.nodes = nodes;
    a.topo.node_ranks = node_ranks;
    a.wire.push = a.wire.pull = &sar_wire_coo;
    a.wire.throttle = SAR_U64_AUTO;
    return a;
}

static int throttle_at(struct sar_agreed a, double gamma)
{
    a.machine.gamma = gamma;
    return forecast_of(&a).throttle;
}

static void test_messages_under_way(void **state)
{
    struct sar_agreed a = fast_hosts(16, 1);
    (void)state;
    assert_int_equal(throttle_at(a, 1e-9), 9);
    assert_int_equal(throttle_at(a, 1.5e-9), 14);
    assert_int_equal(throttle_at(a, 1e-8), 32);
    assert_int_equal(throttle_at(a, 4e-10), 4);
    assert_int_equal(throttle_at(a, 0), 4);
}

/* With 4 nodes of 4 ranks, a rank pushes 4 z / 16 and pulls Z / 16 elements, and reduces Z / 4. */
static void test_messages_of_nodes_under_way(void **state)
{
    struct sar_agreed a = fast_hosts(4, 4);
    (void)state;
    assert_int_equal(throttle_at(a, 4e-9), 7);
    assert_int_equal(throttle_at(a, 1e-9), 4);
}

/* With one segment, encoding is the only work that overlaps with messages. */
static void test_few_messages_of_one_segment(void **state)
{
    struct sar_agreed a = fast_hosts(16, 1);
    (void)state;
    a.wire.segment_bytes = 1 << 30;
    assert_int_equal(throttle_at(a, 1e-8), 4);
}

static void test_few_messages_on_slow_links(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    (void)state;
    a.wire.throttle = SAR_U64_AUTO;
    assert_true(forecast_of(&a).segments.n > 1);
    assert_int_equal(forecast_of(&a).throttle, 4);
}

/* Messages in flight at once end at once. Then the next ones wait for three latencies, which may take 2 % of
 * the time of so many messages. */
static void test_short_messages(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    (void)state;
    a.wire.throttle = SAR_U64_AUTO;
    a.wire.segment_bytes = 1 << 30;
    double message = forecast_of(&a).pull.bytes * a.machine.beta;
    a.machine.alpha = 10 * .02 * message / 3.001;
    assert_int_equal(forecast_of(&a).throttle, 10);
    a.machine.alpha *= 10;
    assert_int_equal(forecast_of(&a).throttle, 32);
}

static void test_messages_asked_for(void **state)
{
    struct sar_agreed a = fast_hosts(16, 1);
    (void)state;
    for (a.wire.throttle = 0; a.wire.throttle < 40; a.wire.throttle += 13)
        assert_int_equal(throttle_at(a, 1e-9), a.wire.throttle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for),
        cmocka_unit_test(test_against_latency),
        cmocka_unit_test(test_against_imbalance),
        cmocka_unit_test(test_against_work),
        cmocka_unit_test(test_fast_messages),
        cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_long_messages),
        cmocka_unit_test(test_one_rank),
        cmocka_unit_test(test_messages_under_way),
        cmocka_unit_test(test_messages_of_nodes_under_way),
        cmocka_unit_test(test_few_messages_of_one_segment),
        cmocka_unit_test(test_few_messages_on_slow_links),
        cmocka_unit_test(test_short_messages),
        cmocka_unit_test(test_messages_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
