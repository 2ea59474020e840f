/* SPDX-License-Identifier: BSD-3-Clause */
/* How long the segments of balanced and two_level are when the model chooses. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "agreed.h"
#include "generate.h"
#include "scheme/owner.h"

/* Floats on hosts of 200 Mb/s with a processor for four ranks. */
static struct sar_agreed hosts(int nodes, int node_ranks)
{
    struct sar_machine machine = { nodes * node_ranks, 60e-6, 4e-8, 2e-8, 1e-10, 2e-4, 8e-8, 60e-6, 4e-8 };
    struct sar_agreed a = agreed_plain(shape_make(SAR_FLOAT, SAR_SUM, 16000000, 1), machine, 180000);
    a.nodes = nodes;
    a.node_ranks = node_ranks;
    a.share_memory = node_ranks > 1;
    a.segment = SAR_BYTES_AUTO;
    return a;
}

static double segments_of(const struct sar_agreed *a)
{
    struct sar_map map = sar_agreed_map(a);
    struct sar_owner_terms terms = sar_owner_terms(a, &map);
    terms.together = a->nodes > 1 ? a->node_ranks : 1;
    return sar_owner_forecast(a, &terms).segments;
}

static void test_what_is_asked_for(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = 1;
    (void)state;
    for (a.segment = 1 << 20; a.segment > 1 << 10; a.segment /= 2) {
        assert_true(segments_of(&a) >= before);
        before = segments_of(&a);
    }
    assert_true(before > 100);
}

/* Fewer the dearer messages are, and at last the vector is whole. */
static void test_against_latency(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = segments_of(&a);
    (void)state;
    assert_true(before >= 4 && before <= 8);
    for (; a.machine.alpha < 10; a.machine.alpha *= 1.3) {
        assert_true(segments_of(&a) <= before);
        before = segments_of(&a);
    }
    assert_true(before == 1);
}

static double segments_at(const struct sar_agreed *a, uint64_t bytes)
{
    struct sar_agreed asked = *a;
    asked.segment = bytes;
    return segments_of(&asked);
}

/* More the more there is to hide; from those of 256 KiB, where that is nothing, to those of 64 KiB. As at
 * first where messages are next to nothing beside work. */
static void test_against_work(void **state)
{
    struct sar_agreed a = hosts(16, 1);
    double before = 1;
    (void)state;
    a.machine.gamma = 1e-12;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
    for (; a.machine.gamma < 3e-7; a.machine.gamma *= 1.3) {
        assert_true(segments_of(&a) >= before);
        before = segments_of(&a);
    }
    assert_true(before > 4 * segments_at(&a, 1 << 20) && before <= segments_at(&a, 1 << 16));
    a.machine.gamma = 1e-5;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

/* Ranks of one node that are taken to be on two: messages are as fast as memory. */
static void test_fast_messages(void **state)
{
    struct sar_agreed a = hosts(2, 2);
    (void)state;
    a.machine = (struct sar_machine){ 4, 4e-7, 1e-10, 4e-9, 1e-10, 1e-6, 2e-10, 4e-7, 1e-10 };
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
    a.machine.beta *= 100;
    assert_true(segments_of(&a) > segments_at(&a, 1 << 18));
}

/* One rank sends nothing, which is in no proportion to anything. */
static void test_one_rank(void **state)
{
    struct sar_agreed a = hosts(1, 1);
    (void)state;
    assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

/* Ranks of a node that send together speak with fewer, in longer messages, and may have more segments; but no
 * more than the shortest messages make. */
static void test_two_levels(void **state)
{
    struct sar_agreed a = hosts(4, 4);
    (void)state;
    assert_true(segments_of(&a) > 1 && segments_of(&a) <= segments_at(&a, 1 << 16));
}

/* Within a node nothing hides, and length is all that matters. */
static void test_one_node(void **state)
{
    struct sar_agreed a = hosts(1, 16);
    (void)state;
    a.machine.alpha = 3e-7;
    a.machine.beta = 1e-10;
    for (; a.machine.gamma < 1e-5; a.machine.gamma *= 2)
        assert_true(segments_of(&a) == segments_at(&a, 1 << 18));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for), cmocka_unit_test(test_against_latency),
        cmocka_unit_test(test_against_work),      cmocka_unit_test(test_fast_messages),
        cmocka_unit_test(test_two_levels),        cmocka_unit_test(test_one_node),
        cmocka_unit_test(test_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
