/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <mpix_sparse.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rank, ranks;
bool oversubscribed, sleep_in_waits;

static const struct settings no_settings;

static char present_case[512] = "start";
static long long checks;
static int nodes_asked;

/* Count the processors of all ranks together: a launcher may bind each rank to a processor of its own. */
static void find_processors(void)
{
    cpu_set_t mine;
    unsigned char all[CPU_SETSIZE] = { 0 };
    int processors = 0;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        CPU_ZERO(&mine);
    for (int i = 0; i < CPU_SETSIZE; i++)
        all[i] = CPU_ISSET(i, &mine) != 0;
    PMPI_Allreduce(MPI_IN_PLACE, all, CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < CPU_SETSIZE; i++)
        processors += all[i];
    oversubscribed = ranks > processors;
    sleep_in_waits = 2 * ranks > processors;
}

static bool is_scheme(const struct settings *settings, const char *name)
{
    return settings->scheme != NULL && strcmp(settings->scheme, name) == 0;
}

/* Use two nodes on an odd number of ranks, unless the scheme needs one node. */
static void set_nodes(const struct settings *settings)
{
    bool two = ranks % 2 == 1 && !is_scheme(settings, "shared");
    char text[16];
    two |= ranks > 2 && is_scheme(settings, "two_level");
    snprintf(text, sizeof text, "%d", nodes_asked > 0 ? nodes_asked : two ? 2 : 0);
    setenv("MPIX_SPARSE_NODES", text, 1);
}

void nodes_set(int nodes)
{
    nodes_asked = nodes;
}

int check_begin(int *argc, char ***argv, int threads)
{
    int provided;
    MPI_Init_thread(argc, argv, threads, &provided);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    find_processors();
    settings_set(&no_settings);
    setenv("MPIX_SPARSE_SEED", "20210", 1);
    setenv("MPIX_SPARSE_FORWARD", "0", 1);
    set_nodes(&no_settings);
    return provided;
}

int check_end(const char *program)
{
    long long least = checks;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("# %s: %lld checks on %d ranks\n", program, checks, ranks);
    MPI_Finalize();
    return least > 0 ? 0 : 1;
}

int check_skip(const char *program, const char *reason)
{
    if (rank == 0)
        printf("SKIP: %s: %s\n", program, reason);
    MPI_Finalize();
    return 77;
}

void check_case(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(present_case, sizeof present_case, format, values);
    va_end(values);
}

static void ring(int number)
{
    (void)number;
    static const char text[] = "FAIL: still not over, it hangs: ", end[] = "\n";
    ssize_t unused = write(STDERR_FILENO, text, sizeof text - 1);
    unused += write(STDERR_FILENO, present_case, strlen(present_case));
    unused += write(STDERR_FILENO, end, 1);
    (void)unused;
    _exit(1);
}

void check_alarm(unsigned seconds)
{
    signal(SIGALRM, ring);
    alarm(seconds);
}

void check(bool good, const char *format, ...)
{
    char text[512];
    va_list values;
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (good)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(stderr, "FAIL on rank %d of %d: %s: %s\n", rank, ranks, present_case, text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void check_success(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    check(code == MPI_SUCCESS, "expected %s to succeed, found: %s", call, text);
}

void check_error(int code, const char *says, int at_fault)
{
    char text[MPI_MAX_ERROR_STRING] = "", who[32];
    int length;
    check(code != MPI_SUCCESS, "expected an error that says '%s', found success", says);
    MPI_Error_string(code, text, &length);
    check(strstr(text, says) != NULL, "expected '%s' in the error, found '%s'", says, text);
    snprintf(who, sizeof who, "rank %d", at_fault);
    check(at_fault < 0 || strstr(text, who) != NULL, "expected '%s' in the error, found '%s'", who, text);
}

void check_equal_on_ranks(uint64_t number, const char *what)
{
    uint64_t least[2] = { number, ~number };
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    check(least[0] == ~least[1], "expected %s to be equal on all ranks, found %llx here, %llx to %llx", what,
          (unsigned long long)number, (unsigned long long)least[0], (unsigned long long)~least[1]);
}

static void set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void settings_set(const struct settings *settings)
{
    set("MPIX_SPARSE_SCHEME", settings->scheme);
    set("MPIX_SPARSE_WIRE", settings->wire);
    set("MPIX_SPARSE_PARTITION", settings->partition);
    set("MPIX_SPARSE_GRAIN", settings->grain);
    set("MPIX_SPARSE_SEGMENT", settings->segment);
    set("MPIX_SPARSE_CHUNK", settings->segment != NULL ? "8192" : NULL);
}

MPI_Comm comm_duplicate(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

MPI_Comm settings_comm(const struct settings *settings)
{
    int none = 0, sum;
    settings_set(settings);
    set_nodes(settings);
    MPI_Comm comm = comm_duplicate();
    check_success(MPIX_Sparse_allreduce(&none, &sum, 0, MPI_INT, MPI_SUM, comm), "the first call");
    settings_set(&no_settings);
    return comm;
}

const char *settings_text(const struct settings *settings)
{
    static char text[128];
    snprintf(text, sizeof text, "scheme %s, wire %s, partition %s, grain %s, segment %s",
             settings->scheme ? settings->scheme : "-", settings->wire ? settings->wire : "-",
             settings->partition ? settings->partition : "-", settings->grain ? settings->grain : "-",
             settings->segment ? settings->segment : "-");
    return text;
}

/* The finalizer of splitmix64. */
uint64_t mix(uint64_t key)
{
    key += UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *b = bytes;
    uint64_t hash = mix(seed + n), word;
    for (; n >= sizeof word; n -= sizeof word, b += sizeof word) {
        memcpy(&word, b, sizeof word);
        hash = mix(hash ^ word);
    }
    for (; n > 0; n--)
        hash = mix(hash ^ *b++);
    return hash;
}

void *get_memory(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size > 0 ? size : 1);
    check(memory != NULL, "expected %zu times %zu bytes of memory, found none", n, size);
    return memory;
}
