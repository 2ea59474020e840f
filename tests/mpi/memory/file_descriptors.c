/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that communicators keep no file descriptors of shared memory: hundreds of communicators need no more
 * descriptors than the program without the library. If shared memory is not available on one rank or on all,
 * calls succeed without it, and later calls share memory again. Failures occur at first use, when a
 * shm_buffer grows, or for a result.
 *
 * Link with -Wl,--wrap= of memfd_create, ftruncate, mmap and open, and with the library's objects. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpix_sparse.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "overlap_vectors.h"

enum {
    COUNT = OVERLAP_COUNT,
    MANY = COUNT / OVERLAP_STEP,
    SOME = 3000,
    FEW = 10,
    COMMS = 300,
    COMMS_IF_OVERSUBSCRIBED = 60,
    SPARE = 12, /* descriptors that the library may hold for a short time */
    APART = 64  /* calls without shared memory after a failure */
};

int __real_memfd_create(const char *name, unsigned flags);
int __real_ftruncate(int file, off_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);
int __real_open(const char *path, int flags, ...);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_ftruncate(int file, off_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from);
int __wrap_open(const char *path, int flags, ...);

/* The resource that a rank is denied. */
enum fault { NONE, FILES, FILE_SIZE, MEMFD, SPACE, MAPPINGS, PROC, FAULTS };

static const char *const fault_names[FAULTS] = { "nothing",      "descriptors", "size of files",
                                                 "memory files", "file space",  "memory mappings",
                                                 "others' /proc" };

static enum fault fault;
static long faults; /* faults that occurred */

static bool fails(enum fault by, int why)
{
    faults += fault == by;
    errno = fault == by ? why : errno;
    return fault == by;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    return fails(MEMFD, ENOSYS) ? -1 : __real_memfd_create(name, flags);
}

int __wrap_ftruncate(int file, off_t bytes)
{
    return fails(SPACE, ENOSPC) ? -1 : __real_ftruncate(file, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from)
{
    return fails(MAPPINGS, ENOMEM) ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, file, from);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    return strncmp(path, "/proc/", 6) == 0 && fails(PROC, EACCES) ? -1 : __real_open(path, flags, mode);
}

/* Set the soft limit of a resource; returns the old limit. */
static rlim_t limit(int resource, rlim_t most)
{
    struct rlimit now;
    getrlimit(resource, &now);
    rlim_t before = now.rlim_cur;
    now.rlim_cur = most;
    check(setrlimit(resource, &now) == 0, "expected to set a limit of %llu", (unsigned long long)most);
    return before;
}

/* Deny a resource to this rank until the fault is cleared. */
static void deny(enum fault what)
{
    static rlim_t files, size;
    if (fault == FILES)
        limit(RLIMIT_NOFILE, files);
    if (fault == FILE_SIZE)
        limit(RLIMIT_FSIZE, size);
    fault = what;
    if (fault == FILES)
        files = limit(RLIMIT_NOFILE, 3);
    if (fault == FILE_SIZE)
        size = limit(RLIMIT_FSIZE, 16);
}

/* Descriptors of the process; *shared counts those of shared memory. */
static int descriptors(int *shared)
{
    char link[64];
    DIR *all = opendir("/proc/self/fd");
    int n = 0;
    *shared = 0;
    check(all != NULL, "expected to read the process's descriptors");
    for (struct dirent *entry; (entry = readdir(all)) != NULL; n++) {
        ssize_t length = readlinkat(dirfd(all), entry->d_name, link, sizeof link - 1);
        link[length > 0 ? length : 0] = '\0';
        *shared += strstr(link, "memfd:mpix_sparse") != NULL;
    }
    closedir(all);
    return n;
}

/* Mappings of shared memory. */
static int mappings(void)
{
    char line[512];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        n += strstr(line, "memfd:mpix_sparse") != NULL;
    fclose(maps);
    return n;
}

static void check_none_stays(void)
{
    int shared;
    descriptors(&shared);
    check(shared == 0, "expected no descriptor of shared memory to stay, found %d", shared);
}

static float in[COUNT], out[COUNT];

static void fill(float *vector, int nnz)
{
    memset(vector, 0, sizeof in);
    for (int i = 0; i < nnz; i++)
        vector[overlap_index(i, rank)] = 1;
}

static int reduce_dense(MPI_Comm comm, int nnz, bool in_place)
{
    fill(in_place ? out : in, nnz);
    return MPIX_Sparse_allreduce(in_place ? MPI_IN_PLACE : in, out, COUNT, MPI_FLOAT, MPI_SUM, comm);
}

static int reduce_coo(MPI_Comm comm, int nnz, MPIX_Sparse_result *result)
{
    static int32_t indices[MANY];
    static float values[MANY];
    for (int i = 0; i < nnz; i++) {
        indices[i] = overlap_index(i, rank);
        values[i] = 1;
    }
    return MPIX_Sparse_allreduce_coo(indices, values, nnz, MPI_INT32_T, COUNT, MPI_FLOAT, MPI_SUM, comm,
                                     result);
}

enum api { COO, DENSE, IN_PLACE, APIS };

static const char *const api_names[APIS] = { "coordinates", "dense", "in place" };

static int reduce(MPI_Comm comm, enum api api, int nnz, MPIX_Sparse_result *result)
{
    if (api == COO)
        return reduce_coo(comm, nnz, result);
    return reduce_dense(comm, nnz, api == IN_PLACE);
}

static void expect(MPI_Comm comm, enum api api, int nnz, MPIX_Sparse_result *result)
{
    MPIX_Sparse_result own = MPIX_SPARSE_RESULT_NULL, *into = result == NULL ? &own : result;
    check_success(reduce(comm, api, nnz, into), api_names[api]);
    if (api == COO)
        check_success(MPIX_Sparse_result_dense(*into, out), "MPIX_Sparse_result_dense");
    overlap_check(out, nnz);
    check_success(MPIX_Sparse_result_free(&own), "MPIX_Sparse_result_free");
}

static bool ran_shared(MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    return strcmp(report.scheme, "shared") == 0;
}

static MPI_Comm open_comm(const char *scheme)
{
    return settings_comm(&(struct settings){ scheme, NULL, NULL, NULL, NULL });
}

/* Calls of several sorts and sizes. Some communicators keep results until they are freed. */
static void use(MPI_Comm comm, int i, MPIX_Sparse_result kept[2])
{
    expect(comm, COO, FEW, NULL);
    expect(comm, DENSE, i % 8 == 0 ? MANY : FEW, NULL);
    expect(comm, COO, SOME, i % 4 == 0 ? &kept[0] : NULL);
    expect(comm, COO, FEW, NULL);
    expect(comm, IN_PLACE, FEW, NULL);
    expect(comm, COO, i % 8 == 0 ? MANY : SOME, i % 4 == 0 ? &kept[1] : NULL);
    check_none_stays();
}

static void check_many(const char *scheme)
{
    static MPI_Comm comms[COMMS];
    static MPIX_Sparse_result kept[COMMS][2];
    int shared, n = oversubscribed ? COMMS_IF_OVERSUBSCRIBED : COMMS, before = descriptors(&shared);
    rlim_t files = limit(RLIMIT_NOFILE, (rlim_t)before + SPARE);
    for (int i = 0; i < n; i++) {
        check_case("communicator %d of %s", i, scheme);
        comms[i] = open_comm(scheme);
        use(comms[i], i, kept[i]);
    }
    int after = descriptors(&shared);
    check(after <= before, "expected %d descriptors, found %d", before, after);
    limit(RLIMIT_NOFILE, files);
    for (int i = 0; i < n; i++) {
        MPI_Comm_free(&comms[i]);
        for (int k = 0; k < 2; k++)
            check_success(MPIX_Sparse_result_free(&kept[i][k]), "MPIX_Sparse_result_free");
    }
}

/* Systems limit the number of mappings. */
static void check_mappings(void)
{
    int before = mappings();
    check_case("mappings");
    MPI_Comm comm = open_comm("shared");
    for (int i = 0; i < 3; i++)
        expect(comm, COO, FEW, NULL);
    int few = mappings() - before;
    check(few <= ranks, "expected a mapping for each rank, found %d", few);
    MPI_Comm_free(&comm);
}

/* A communicator that other ranks free later keeps its duplicate until then, and no memory. */
static void check_freed_early(void)
{
    int before = mappings();
    check_case("freed early");
    MPI_Comm comm = open_comm("shared");
    expect(comm, COO, MANY, NULL);
    expect(comm, DENSE, MANY, NULL);
    check(ranks == 1 || mappings() > before, "expected memory to be shared");
    if (rank != 0)
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    int after = mappings();
    for (int r = 1; r < ranks && rank == 0; r++)
        MPI_Send(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD);
    check(after <= before, "expected %d mappings, found %d", before, after);
}

enum moment { FIRST_USE, GROWTH, RESULT, MOMENTS };

static const char *const moment_names[MOMENTS] = { "at the first use", "for a larger buffer",
                                                   "for a result" };

/* Run a communicator up to this moment under a fault. A kept result stays valid as far as it could be
 * written. */
static MPI_Comm lead_to(enum moment moment, enum api api, enum fault what, MPIX_Sparse_result kept[2])
{
    if (moment == FIRST_USE)
        deny(what);
    MPI_Comm comm = open_comm("shared");
    if (moment == GROWTH)
        expect(comm, api, SOME, &kept[0]);
    for (int k = 0; k < 2 && moment == RESULT; k++)
        expect(comm, api, MANY, &kept[k]);
    if (moment != FIRST_USE)
        deny(what);
    return comm;
}

/* Later calls share memory again, and keep no descriptor. */
static void check_afterwards(MPI_Comm comm, enum api api, bool window)
{
    for (int i = 0; i < APART; i++)
        expect(comm, api, FEW, NULL);
    expect(comm, api, MANY, NULL);
    check(ran_shared(comm) == window, "expected memory %s",
          window ? "to be shared again" : "not to be shared");
    check_none_stays();
}

/* Rank 0 makes the memory for coordinates, and the others map it. */
static bool can_share_result(enum fault what, enum api api, int target)
{
    bool by_maker = what == MEMFD || what == SPACE || what == FILE_SIZE;
    return api != COO || (by_maker && target > 0) || (what == PROC && target == 0);
}

static void check_denied(enum fault what, enum moment moment, enum api api, int target)
{
    MPIX_Sparse_result kept[3] = { MPIX_SPARSE_RESULT_NULL, MPIX_SPARSE_RESULT_NULL,
                                   MPIX_SPARSE_RESULT_NULL };
    check_case("%s without %s on rank %d, %s", fault_names[what], moment_names[moment], target,
               api_names[api]);
    faults = 0;
    MPI_Comm comm = lead_to(moment, api, target < 0 || rank == target ? what : NONE, kept);
    expect(comm, api, MANY, &kept[2]);
    bool shares = ran_shared(comm);
    expect(comm, api, FEW, NULL);
    deny(NONE);
    bool can = moment == RESULT && can_share_result(what, api, target);
    check(shares == can, "expected memory %s", can ? "to be shared" : "not to be shared");
    check_afterwards(comm, api, moment != FIRST_USE);
    for (int k = 0; k < 3; k++)
        check_success(MPIX_Sparse_result_free(&kept[k]), "MPIX_Sparse_result_free");
    MPI_Comm_free(&comm);
}

static void start(MPIX_Sparse_plan plan, int nnz)
{
    MPI_Request request;
    fill(in, nnz);
    check_success(MPIX_Sparse_plan_start(plan, &request), "MPIX_Sparse_plan_start");
    check_success(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    overlap_check(out, nnz);
}

/* A plan reuses the results of an earlier consistency check. */
static void check_plan(int target)
{
    MPIX_Sparse_plan plan;
    check_case("no descriptors on rank %d for a plan", target);
    MPI_Comm comm = open_comm("shared");
    check_success(MPIX_Sparse_allreduce_init(in, out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &plan),
                  "MPIX_Sparse_allreduce_init");
    start(plan, FEW);
    start(plan, FEW);
    if (target < 0 || rank == target)
        deny(FILES);
    start(plan, MANY);
    check(!ran_shared(comm), "expected memory not to be shared");
    deny(NONE);
    start(plan, FEW);
    check_success(MPIX_Sparse_plan_free(&plan), "MPIX_Sparse_plan_free");
    check_afterwards(comm, DENSE, true);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_MULTIPLE); /* plans need it */
    check_alarm(280);
    if (ranks == 1)
        return check_skip("file_descriptors", "one rank shares nothing");
    expect(open_comm("shared"), COO, FEW, NULL); /* descriptors that MPI opens once */
    check_mappings();
    check_freed_early();
    check_many("shared");
    if (ranks > 2)
        check_many("two_level");
    for (int what = FILES; what < FAULTS; what++)
        for (int moment = 0; moment < MOMENTS; moment++)
            for (int api = 0; api < APIS; api++)
                for (int target = -1; target<ranks; target += ranks> 2 && target == 0 ? ranks - 1 : 1)
                    check_denied((enum fault)what, (enum moment)moment, (enum api)api, target);
    for (int target = -1; target < ranks; target++)
        check_plan(target);
    return check_end("file_descriptors");
}
