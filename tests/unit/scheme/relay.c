/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the routes of relayed pulls: for any number of ranks and columns each message reaches each rank once,
 * all ranks agree, and no relay has many more messages than the mean. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "scheme/engine/relay.h"

enum { MOST_RANKS = 40, FEW_RANKS = 17, MESSAGE = 1000 };

static struct sar_columns columns_of(int ranks, uint64_t slices)
{
    struct sar_vec_desc desc = { .row_len = 256, .element_size = 1024 };
    return sar_columns_make(&desc, ranks, 1, slices);
}

/* Routes of all ranks, computed by each; and the relay of each owner's message to each rank, or -1. */
struct routes {
    int incoming[MOST_RANKS][MOST_RANKS], outgoing[MOST_RANKS][MOST_RANKS], relay[MOST_RANKS][MOST_RANKS];
};

static void compute(const struct sar_relay_layout *layout, struct routes *all)
{
    unsigned char used[MOST_RANKS * MOST_RANKS / 8 + 1];
    unsigned load[MOST_RANKS];
    struct sar_relay_scratch scratch = { load, used };
    for (int rank = 0; rank < layout->columns->ranks; rank++) {
        struct sar_relay_routes routes = { all->incoming[rank], all->outgoing[rank],
                                           3 % (unsigned)layout->columns->ranks };
        memset(used, 0, sizeof used);
        memset(load, 0, sizeof load);
        assert_true(sar_relay_route(layout, rank, &scratch, &routes));
        for (int r = 0; r < layout->columns->ranks; r++)
            all->relay[rank][r] = -1;
        for (int r = 0; r < layout->columns->ranks; r++)
            if (routes.incoming[r] >= 0)
                all->relay[rank][routes.incoming[r]] = r;
    }
}

/* Checks the routes, and returns the messages that are relayed. */
static int check_routes(const struct sar_relay_layout *layout)
{
    static struct routes all;
    int ranks = layout->columns->ranks, sent[MOST_RANKS] = { 0 }, total = 0, most = 0;
    compute(layout, &all);
    for (int owner = 0; owner < ranks; owner++) {
        for (int receiver = 0; receiver < ranks; receiver++) {
            int relay = all.relay[receiver][owner];
            assert_int_equal(relay >= 0, sar_relay_is_deferred(layout, owner, receiver));
            if (relay < 0)
                continue;
            assert_true(receiver != owner && relay != owner && relay != receiver);
            assert_false(sar_relay_is_deferred(layout, owner, relay));
            assert_int_equal(all.outgoing[relay][receiver], owner);
            sent[relay]++;
            total++;
        }
    }
    for (int rank = 0; rank < ranks; rank++) {
        int n = 0;
        for (int receiver = 0; receiver < ranks; receiver++)
            n += all.outgoing[rank][receiver] >= 0;
        assert_int_equal(sent[rank], n);
        most = n > most ? n : most;
    }
    assert_true(most <= total / ranks * 3 / 2 + 3);
    return total;
}

/* Owners have messages of the mean size, of `longest` times that, or of any; each may send a message of
 * the mean size to all. */
static void check_load(const struct sar_columns *c, unsigned stride, int longest, bool random)
{
    int window[MOST_RANKS], deferred = 0;
    struct sar_relay_layout layout = { c, stride, window };
    uint64_t credit = (uint64_t)(c->ranks - 1) * MESSAGE;
    for (int owner = 0; owner < c->ranks; owner++) {
        uint64_t bytes = (uint64_t)(random ? MESSAGE / 2 + rand() % (MESSAGE * longest) : MESSAGE * longest);
        int direct = sar_relay_set_window(&layout, owner, bytes, credit), n = c->ranks - 1 - direct;
        assert_in_range(n, 0, (c->ranks - 1) / 3);
        assert_true(n == 0 || (uint64_t)(direct + 1) * bytes > credit);
        if (!sar_columns_sliced(c))
            assert_true((uint64_t)direct * bytes <= credit || n == (c->ranks - 1) / 3);
        deferred += n;
    }
    assert_int_equal(check_routes(&layout), deferred);
    assert_true(longest > 1 || random || deferred == 0);
}

static void check_loads(const struct sar_columns *c)
{
    const double windows[] = { 0, 1.2, c->ranks / 8.0, c->ranks };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        unsigned stride = sar_relay_stride(c->ranks, windows[i]);
        check_load(c, stride, 1, false);
        check_load(c, stride, 9, false); /* all owners defer as many as they can */
        for (int longest = 1; longest <= 3; longest++)
            check_load(c, stride, longest, true);
    }
}

static void test_every_message_arrives_once(void **state)
{
    (void)state;
    srand(7);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks += ranks < FEW_RANKS ? 1 : 5)
        for (uint64_t slices = 1; slices <= (uint64_t)ranks; slices++) {
            struct sar_columns c = columns_of(ranks, slices);
            check_loads(&c);
        }
}

/* The drawing in relay.h. */
static void test_the_longest_message_is_relayed(void **state)
{
    struct sar_columns c = columns_of(7, 1);
    int window[7] = { 0 };
    static struct routes all;
    struct sar_relay_layout layout = { &c, 3 * SAR_RELAY_STRIDE_UNIT, window };
    (void)state;
    assert_int_equal(sar_relay_set_window(&layout, 2, 1400, 6 * MESSAGE), 4);
    compute(&layout, &all);
    assert_int_equal(all.outgoing[3][6], 2);
    assert_int_equal(all.outgoing[4][0], 2);
}

static void test_an_empty_message_is_sent_directly(void **state)
{
    struct sar_columns c = columns_of(8, 1);
    int window[8];
    struct sar_relay_layout layout = { &c, sar_relay_stride(8, 0), window };
    (void)state;
    assert_int_equal(sar_relay_set_window(&layout, 0, 0, 0), 7);
    assert_int_equal(window[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message_arrives_once),
        cmocka_unit_test(test_the_longest_message_is_relayed),
        cmocka_unit_test(test_an_empty_message_is_sent_directly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
