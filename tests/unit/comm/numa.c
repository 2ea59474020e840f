/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the choice of NUMA nodes for memory, on synthetic hwloc topologies. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "comm/shm/numa.h"

#ifdef HAVE_HWLOC
static const struct {
    const char *machine;
    unsigned from, to; /* processors */
    int home;          /* or -1 */
} cases[] = {
    { "numa:1 core:4 pu:2", 0, 7, -1 },
    { "numa:1 core:4 pu:2", 3, 3, -1 },
    { "numa:2 core:4 pu:1", 0, 7, -1 },
    { "numa:2 core:4 pu:1", 3, 4, -1 },
    { "numa:2 core:4 pu:1", 0, 3, 0 },
    { "numa:2 core:4 pu:1", 4, 7, 1 },
    { "numa:2 core:4 pu:1", 6, 6, 1 },
    { "package:2 numa:4 core:2 pu:2", 8, 11, 2 },
    { "package:2 numa:4 core:2 pu:2", 28, 31, 7 },
    { "package:2 numa:4 core:2 pu:2", 8, 15, -1 },
};

static void test_home(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hwloc_topology_t topology;
        hwloc_bitmap_t processors = hwloc_bitmap_alloc(), home = hwloc_bitmap_alloc();
        assert_int_equal(hwloc_topology_init(&topology), 0);
        assert_int_equal(hwloc_topology_set_synthetic(topology, cases[i].machine), 0);
        assert_int_equal(hwloc_topology_load(topology), 0);
        hwloc_bitmap_set_range(processors, cases[i].from, (int)cases[i].to);
        assert_int_equal(sar_numa_single_node(topology, processors, home), cases[i].home >= 0);
        if (cases[i].home >= 0)
            assert_int_equal(hwloc_bitmap_first(home), cases[i].home);
        hwloc_bitmap_zero(processors);
        assert_false(sar_numa_single_node(topology, processors, home));
        hwloc_bitmap_free(processors);
        hwloc_bitmap_free(home);
        hwloc_topology_destroy(topology);
    }
}
#else
static void test_home(void **state)
{
    (void)state;
    skip();
}
#endif

/* On this machine the memory is usable, whatever its topology. */
static void test_place(void **state)
{
    static unsigned char memory[1 << 16];
    (void)state;
    sar_numa_bind(memory, sizeof memory);
    for (size_t i = 0; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_home), cmocka_unit_test(test_place) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
