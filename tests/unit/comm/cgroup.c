/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the processor quota of control groups, versions 1 and 2, read from a folder that replaces the file
 * system. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "array_length.h"
#include "comm/topology.h"
#include "temp_dir.h"

enum { MOST_FILES = 4, PATH = 512 };

struct file {
    const char *path, *text;
};

static const struct {
    int expected;
    struct file files[MOST_FILES];
} cases[] = {
    { 0, { { NULL, NULL } } },
    { 0, { { "proc/self/cgroup", "0::/a\n" } } },
    { 0, { { "sys/fs/cgroup/cpu.max", "100000 100000\n" } } },
    { 0, { { "proc/self/cgroup", "" }, { "sys/fs/cgroup/cpu.max", "100000 100000\n" } } },
    { 0, { { "proc/self/cgroup", "nonsense\n" }, { "sys/fs/cgroup/cpu.max", "100000 100000\n" } } },
    /* version 2 */
    { 0, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "max 100000\n" } } },
    { 0, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "" } } },
    { 0, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "200000 0\n" } } },
    { 0, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "-1 100000\n" } } },
    { 0, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/b/cpu.max", "200000 100000\n" } } },
    { 2, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "200000 100000\n" } } },
    { 2, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "150000 100000\n" } } },
    { 1, { { "proc/self/cgroup", "0::/a\n" }, { "sys/fs/cgroup/a/cpu.max", "1000 100000\n" } } },
    { 3, { { "proc/self/cgroup", "0::/\n" }, { "sys/fs/cgroup/cpu.max", "300000 100000\n" } } },
    { 3,
      { { "proc/self/cgroup", "0::/a/b/c\n" },
        { "sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n" },
        { "sys/fs/cgroup/a/cpu.max", "300000 100000\n" },
        { "sys/fs/cgroup/cpu.max", "400000 100000\n" } } },
    { 2,
      { { "proc/self/cgroup", "0::/a/b\n" },
        { "sys/fs/cgroup/a/b/cpu.max", "200000 100000\n" },
        { "sys/fs/cgroup/a/cpu.max", "300000 100000\n" } } },
    /* in a container the path is the outer one, or leads to it */
    { 4, { { "proc/self/cgroup", "0::/x/y\n" }, { "sys/fs/cgroup/cpu.max", "400000 100000\n" } } },
    { 4,
      { { "proc/self/cgroup", "0::/../y\n" },
        { "sys/fs/cgroup/cpu.max", "400000 100000\n" },
        { "sys/fs/y/cpu.max", "100000 100000\n" } } },
    /* version 1 */
    { 5,
      { { "proc/self/cgroup", "9:memory:/b\n4:cpu,cpuacct:/a\n0::/\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "500000\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n" } } },
    { 6,
      { { "proc/self/cgroup", "4:cpuacct,cpu:/docker/a\n" },
        { "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "275000\n" },
        { "sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n" } } },
    { 5,
      { { "proc/self/cgroup", "4:cpu:/\n" },
        { "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000 1\n" },
        { "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000 1\n" } } },
    { 0,
      { { "proc/self/cgroup", "4:cpu:/a\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n" } } },
    { 0, { { "proc/self/cgroup", "4:cpu:/a\n" }, { "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n" } } },
    { 0,
      { { "proc/self/cgroup", "4:cpuacct:/a\n5:cpuset:/a\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n" },
        { "sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n" } } },
};

static void write_file(const struct file *file)
{
    char path[PATH];
    int begin = snprintf(path, sizeof path, "%s/", temp_dir);
    snprintf(path + begin, sizeof path - (size_t)begin, "%s", file->path);
    for (char *at = path + begin; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(file->text, out) >= 0);
    fclose(out);
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind;
    return at->level == 0 ? 0 : remove(path);
}

static void test_quota(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        for (int k = 0; k < MOST_FILES && cases[i].files[k].path != NULL; k++)
            write_file(&cases[i].files[k]);
        int found = sar_cgroup_cpus(temp_dir);
        if (found != cases[i].expected)
            print_error("case %zu\n", i);
        assert_int_equal(found, cases[i].expected);
        assert_int_equal(nftw(temp_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
}

/* The quota of this machine is only read; any value is valid. */
static void test_here(void **state)
{
    (void)state;
    assert_true(sar_cgroup_cpus("") >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_quota), cmocka_unit_test(test_here) };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
