/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that waiting ranks yield at once if there are fewer processors than ranks: by binding, on this
 * communicator or on others of the program, or by a container's quota. They do not yield if each rank has a
 * processor. The log says so when a communicator is first used. It also says if a setting gives ranks more
 * threads than there are processors. `auto` gives a rank its share of them.
 *
 * Link with -Wl,--wrap=sar_topology_cgroup_cpus, and with the library's objects. */

#include <mpix_sparse.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "check.h"
#include "comm/comm.h"

int __wrap_sar_topology_cgroup_cpus(void);

static cpu_set_t allowed;
static int quota; /* or 0 */

int __wrap_sar_topology_cgroup_cpus(void)
{
    return quota;
}

static void bind_to(const cpu_set_t *set)
{
    check(sched_setaffinity(0, sizeof *set, set) == 0, "expected to bind the rank");
}

/* The n-th processor of this rank's affinity mask. */
static cpu_set_t one_of(int number)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed) && number-- == 0)
            CPU_SET(i, &one);
    return one;
}

static bool opens_oversubscribed_here(MPI_Comm comm)
{
    struct sar_comm net;
    check(sar_comm_open(comm, &net) == SAR_OK, "expected a communicator");
    bool found = net.oversubscribed;
    sar_comm_close(&net);
    return found;
}

static void expect(MPI_Comm comm, bool expected, const char *what)
{
    check_case("%s", what);
    bool found = opens_oversubscribed_here(comm);
    check(found == expected, "expected %s, found otherwise", expected ? "to yield" : "to spin");
}

/* Set the launcher's variable that the library reads first. */
static void set_launcher(int n)
{
    char text[16];
    snprintf(text, sizeof text, "%d", n);
    setenv("MPI_LOCALNRANKS", text, 1);
}

/* Needs several processors; with one there is no difference. */
static void try_bound(int processors)
{
    cpu_set_t mine = one_of(0);
    bind_to(&mine);
    expect(MPI_COMM_WORLD, ranks > 1, "all ranks on one processor");
    mine = one_of(rank % processors);
    bind_to(&mine);
    expect(MPI_COMM_WORLD, ranks > processors, "each rank on a processor of its own");
    expect(MPI_COMM_SELF, ranks > processors, "one of these ranks");
    bind_to(&allowed);
    expect(MPI_COMM_WORLD, ranks > processors, "ranks on any processor");
}

static void try_quota(int processors)
{
    quota = 1;
    expect(MPI_COMM_WORLD, ranks > 1, "a quota of one processor");
    expect(MPI_COMM_SELF, ranks > 1, "one of the ranks that have such a quota");
    quota = ranks;
    expect(MPI_COMM_WORLD, ranks > processors, "a quota of as many processors as ranks");
    quota = 0;
}

static void try_others(int processors)
{
    set_launcher(processors);
    expect(MPI_COMM_SELF, false, "one of as many ranks as processors");
    set_launcher(1000);
    expect(MPI_COMM_SELF, true, "one of a thousand ranks");
    set_launcher(0);
    expect(MPI_COMM_SELF, false, "one of ranks that nobody has counted");
}

/* Expects `auto` to give a rank of comm so many threads, or fewer where OpenMP has fewer. */
static void expect_threads(MPI_Comm comm, int expected, const char *what)
{
    struct sar_comm net;
    int limit = sar_parallel_limit(0), most = limit < SAR_THREADS_AUTO_MAX ? limit : SAR_THREADS_AUTO_MAX;
    check_case("threads, %s", what);
    check(sar_comm_open(comm, &net) == SAR_OK, "expected a communicator");
    int found = net.threads;
    sar_comm_close(&net);
    expected = expected < 1 ? 1 : expected > most ? most : expected;
    check(found == expected, "expected %d threads by %s, found %d", expected, what, found);
}

/* Ranks share processors that their masks have in common, and their node's quota. */
static void try_share(int processors)
{
    expect_threads(MPI_COMM_WORLD, processors / ranks, "ranks on any processor");
    cpu_set_t mine = one_of(rank % processors);
    bind_to(&mine);
    expect_threads(MPI_COMM_WORLD, 1, "each rank on one processor");
    bind_to(&allowed);
    quota = 1;
    expect_threads(MPI_COMM_WORLD, 1, "a quota of one processor");
    quota = 1000;
    expect_threads(MPI_COMM_WORLD, processors / ranks, "a quota of more processors than there are");
    quota = 0;
    set_launcher(1);
    expect_threads(MPI_COMM_SELF, processors, "the only rank here");
    set_launcher(0);
    expect_threads(MPI_COMM_SELF, processors, "one of ranks that nobody has counted");
    set_launcher(processors);
    expect_threads(MPI_COMM_SELF, 1, "one of as many ranks as processors");
    set_launcher(1000);
    expect_threads(MPI_COMM_SELF, 1, "one of a thousand ranks");
    set_launcher(ranks);
}

static char log_path[] = "/tmp/mpix_sparse_binding_XXXXXX";
static long log_end; /* of what was read */
static int warnings; /* of more ranks than processors, in this rank's log */

/* The first call on a communicator. */
static MPI_Comm open_comm(void)
{
    MPI_Comm comm;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPIX_Sparse_allreduce_coo(&(int){ rank }, &(float){ 1 }, 1, MPI_INT, ranks, MPI_FLOAT, MPI_SUM, comm,
                              &result);
    MPIX_Sparse_result_free(&result);
    return comm;
}

/* True if the log of a communicator's first call says that ranks outnumber processors. */
static bool logs_oversubscription(void)
{
    char line[1024];
    bool found = false;
    MPI_Comm comm = open_comm();
    MPI_Comm_free(&comm);
    FILE *file = fopen(log_path, "r");
    check(file != NULL && fseek(file, log_end, SEEK_SET) == 0, "expected a log in %s", log_path);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        found |= strstr(line, "this node has more ranks than processors") != NULL;
        warnings += strstr(line, "WARN core: this node has more ranks than processors") != NULL;
    }
    if (file != NULL) {
        log_end = ftell(file);
        fclose(file);
    }
    return found;
}

static void try_log(int processors)
{
    check_case("log");
    quota = 1;
    check(logs_oversubscription() == (ranks > 1), "expected the log to name a quota of one processor");
    quota = 0;
    check(logs_oversubscription() == (ranks > processors),
          "expected the log to compare ranks and processors");
    MPI_Allreduce(MPI_IN_PLACE, &warnings, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(warnings == (ranks > 1), "expected one warning in all logs, found %d", warnings);
}

/* Returns the lines with a text that all ranks have logged since the last read. */
static int count_lines(const char *text)
{
    char line[1024];
    int n = 0;
    FILE *file = fopen(log_path, "r");
    check(file != NULL && fseek(file, log_end, SEEK_SET) == 0, "expected a log in %s", log_path);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        n += strstr(line, text) != NULL;
    if (file != NULL) {
        log_end = ftell(file);
        fclose(file);
    }
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return n;
}

static void expect_lines(const char *text, int expected)
{
    int found = count_lines(text);
    check(found == expected, "expected %d lines '%s' in all logs, found %d", expected, text, found);
}

static MPI_Info threads_hint(const char *threads)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_threads", threads);
    return info;
}

/* Opens a communicator with so many threads in the environment. */
static MPI_Comm open_with_threads(const char *threads, int processors_of_node)
{
    quota = processors_of_node;
    setenv("MPIX_SPARSE_THREADS", threads, 1);
    MPI_Comm comm = open_comm();
    unsetenv("MPIX_SPARSE_THREADS");
    return comm;
}

/* A plan's hint on a communicator of one thread for each rank. */
static void try_plan_threads(void)
{
    static float in[1], out[1];
    MPIX_Sparse_plan plan;
    MPI_Comm comm = open_with_threads("auto", 1);
    MPI_Info info = threads_hint("4");
    expect_lines("threads, but this node", 0);
    check_success(MPIX_Sparse_allreduce_init(in, out, 1, MPI_FLOAT, MPI_SUM, comm, info, &plan),
                  "MPIX_Sparse_allreduce_init");
    expect_lines("WARN core: mpix_sparse_threads gives each rank 4 threads, but this node", 1);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

/* One rank of a node warns, and once for each number of threads. */
static void try_threads(void)
{
    char text[128];
    check_case("threads");
    MPI_Comm comm = open_with_threads("1", 1);
    expect_lines("threads, but this node", 0);
    MPI_Comm_free(&comm);
    comm = open_with_threads("2", 1);
    snprintf(text, sizeof text,
             "WARN core: MPIX_SPARSE_THREADS gives each rank 2 threads, but this node has 1 processor for %d",
             ranks);
    expect_lines(text, 1);
    MPI_Comm_free(&comm);
    comm = open_with_threads("2", 1);
    expect_lines("INFO core: communicator of", ranks);
    MPI_Info info = threads_hint("3");
    check_success(MPIX_Sparse_comm_set_info(comm, info), "MPIX_Sparse_comm_set_info");
    expect_lines("WARN core: mpix_sparse_threads gives each rank 3 threads, but this node", 1);
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
    try_plan_threads();
    if (ranks == 1) {
        comm = open_with_threads("2", 2);
        expect_lines(", 2 threads, alpha ", 1);
        MPI_Comm_free(&comm);
    }
    quota = 0;
}

int main(int argc, char **argv)
{
    int log = mkstemp(log_path);
    check(log >= 0 && setenv("MPIX_SPARSE_LOG_FILE", log_path, 1) == 0 &&
              setenv("MPIX_SPARSE_LOG", "info:core", 1) == 0,
          "expected room for a log");
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    check_alarm(120);
    check(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "expected the processors of the rank");
    int processors = CPU_COUNT(&allowed);
    if (processors < 2)
        return check_skip("cpu_binding", "one processor");
    set_launcher(ranks);
    try_bound(processors);
    try_quota(processors);
    try_others(processors);
    set_launcher(ranks);
    try_share(processors);
    try_log(processors);
#ifdef _OPENMP
    try_threads();
#endif
    close(log);
    unlink(log_path);
    return check_end("cpu_binding");
}
