/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the classification of host memory without a search of the loaded libraries. It must never apply to
 * mapped memory, which could be a device's. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/accelerator.h"

enum { BYTES = 1 << 20 };

static char standing[64];

static void *map(void)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void of_the_program(void **state)
{
    (void)state;
    assert_true(sar_host_address_is_certain(standing));
    assert_true(sar_host_address_is_certain(standing + sizeof standing - 1));
}

/* The heap grows between checks. */
static void in_the_heap(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char *grown = sbrk(BYTES);
        assert_ptr_not_equal(grown, (void *)-1);
        assert_true(sar_host_address_is_certain(grown));
        assert_true(sar_host_address_is_certain(grown + BYTES - 1));
    }
    assert_false(sar_host_address_is_certain((char *)sbrk(0) + BYTES));
}

static void on_the_stack(void **state)
{
    char local[64] = "";
    (void)state;
    assert_true(sar_host_address_is_certain(local));
    assert_false(sar_host_address_is_certain((char *)__builtin_frame_address(0) - BYTES));
}

static void mapped(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        char *memory = map();
        assert_false(sar_host_address_is_certain(memory));
        assert_false(sar_host_address_is_certain(memory + BYTES - 1));
    }
    assert_false(sar_host_address_is_certain(NULL));
    assert_false(sar_host_address_is_certain((void *)UINTPTR_MAX));
}

/* Memory after a thread's stack may be mapped; another thread's stack is host memory too. */
static void *look_around(void *of_main)
{
    char local[64] = "";
    pthread_attr_t attributes;
    void *lowest;
    size_t bytes;
    assert_true(sar_host_address_is_certain(local));
    assert_true(sar_host_address_is_certain(standing));
    assert_false(sar_host_address_is_certain(of_main));
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &lowest, &bytes), 0);
    pthread_attr_destroy(&attributes);
    assert_true(sar_host_address_is_certain((char *)lowest + bytes - 1));
    assert_false(sar_host_address_is_certain((char *)lowest + bytes));
    assert_false(sar_host_address_is_certain((char *)lowest - 1));
    return NULL;
}

static void in_a_thread(void **state)
{
    char local[64] = "";
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look_around, local), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_program), cmocka_unit_test(in_the_heap), cmocka_unit_test(on_the_stack),
        cmocka_unit_test(mapped),         cmocka_unit_test(in_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
