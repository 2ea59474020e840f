/* SPDX-License-Identifier: BSD-3-Clause */
/* A region is a memory file (memfd), which other processes open through its owner's entry in /proc. Creating
 * or mapping one costs four or five system calls.
 *
 * MPI's shared windows are no alternative. A blocking collective creates them, and a nonblocking call must
 * not wait. They are freed with their communicator, and results outlive it. They live in /dev/shm, which is
 * small in containers. */

#include "comm/shm/region.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* The process in /proc that has the file descriptor. A simulation with all ranks in one process overrides
 * this. */
#ifndef SAR_SHM_HANDLE_PID
#define SAR_SHM_HANDLE_PID(handle) ((handle)->pid)
#endif

/* Log a failed system call by errno, and return its status. */
static enum sar_status log_failure(const char *function)
{
    int error = errno;
    SAR_LOG(INFO, COMM, "no memory that ranks share: %s: %s", function, strerror(error));
    return error == EMFILE || error == ENFILE ? SAR_NO_FDS : SAR_NO_SHM;
}

static enum sar_status map_fd(int fd, size_t bytes, struct sar_shm_region *region)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return log_failure("mmap");
    *region = (struct sar_shm_region){ memory, bytes, false };
    return SAR_OK;
}

/* Exists since Linux 6.3. Some systems refuse memory files that could be executed. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static int make_memfd(void)
{
#ifdef HAVE_MEMFD_CREATE
    int fd = memfd_create("mpix_sparse", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return fd < 0 && errno == EINVAL ? memfd_create("mpix_sparse", MFD_CLOEXEC) : fd;
#else
    errno = ENOSYS;
    return -1;
#endif
}

/* ftruncate beyond the process's limit on file sizes would raise SIGXFSZ. */
static bool is_allowed(size_t bytes)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (bytes <= (size_t)PTRDIFF_MAX && (!limited || bytes <= limit.rlim_cur))
        return true;
    errno = EFBIG;
    return false;
}

enum sar_status sar_shm_region_create(size_t bytes, struct sar_shm_region *region,
                                      struct sar_shm_handle *handle)
{
    static atomic_uint_least64_t serials;
    int fd = make_memfd();
    if (fd < 0)
        return log_failure("memfd_create");
    enum sar_status status = SAR_OK;
    if (!is_allowed(bytes) || ftruncate(fd, (off_t)bytes) != 0)
        status = log_failure("ftruncate");
    if (status == SAR_OK)
        status = map_fd(fd, bytes, region);
    if (status == SAR_OK)
        *handle = (struct sar_shm_handle){ (int64_t)getpid(), atomic_fetch_add(&serials, 1) + 1, bytes, fd };
    else
        close(fd);
    return status;
}

/* stat comes before open: in another pid namespace the path may name a device, which open might act on. */
enum sar_status sar_shm_region_map(const struct sar_shm_handle *handle, struct sar_shm_region *region)
{
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)SAR_SHM_HANDLE_PID(handle),
             (long long)handle->fd);
    if (stat(path, &found) != 0)
        return log_failure(path);
    if (!S_ISREG(found.st_mode) || found.st_size < 0 || (uint64_t)found.st_size < handle->bytes)
        return SAR_NO_SHM;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return log_failure(path);
    enum sar_status status = map_fd(fd, (size_t)handle->bytes, region);
    close(fd);
    return status;
}

void sar_shm_handle_close_fd(struct sar_shm_handle *handle)
{
    if (sar_shm_handle_is_open(handle))
        close((int)handle->fd);
    handle->fd = -1;
}

void sar_shm_region_unmap(struct sar_shm_region *region)
{
    if (region->memory != NULL && !region->is_part)
        munmap(region->memory, region->bytes);
    *region = (struct sar_shm_region){ NULL, 0, false };
}

bool sar_shm_handle_equal(const struct sar_shm_handle *a, const struct sar_shm_handle *b)
{
    return a->pid == b->pid && a->serial == b->serial;
}
