/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment is a memory file, which others open through its owner's entry in /proc. MPI's shared windows
 * would not do: they are made by a collective that blocks, which a nonblocking call must not wait for;
 * they go with their communicator, which results outlive; and they live in /dev/shm, of which containers
 * have little. */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "net/segment.h"

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

/* The process whose files have a segment among them: bench/smpi.h has all ranks in one. */
#ifndef SAR_SEGMENT_HOLDER
#define SAR_SEGMENT_HOLDER(name) ((name)->process)
#endif

/* What a function that failed stands for. */
static enum sar_status lack(const char *function)
{
    int why = errno;
    SAR_LOG(INFO, NET, "no memory that ranks share: %s: %s", function, strerror(why));
    return why == EMFILE || why == ENFILE ? SAR_NO_FILES : SAR_NO_SEGMENT;
}

static enum sar_status map_file(int file, size_t bytes, struct sar_segment *segment)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return lack("mmap");
    *segment = (struct sar_segment){ memory, bytes, false };
    return SAR_OK;
}

#ifdef HAVE_MEMFD_CREATE
/* Of Linux 6.3; some systems refuse files that could be run. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static int make_file(void)
{
    int file = memfd_create("mpix_sparse", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    return file < 0 && errno == EINVAL ? memfd_create("mpix_sparse", MFD_CLOEXEC) : file;
}
#else
static int make_file(void)
{
    errno = ENOSYS;
    return -1;
}
#endif

/* Files that are larger than the process may make cost it a signal. */
static bool is_allowed(size_t bytes)
{
    struct rlimit most;
    bool limited = getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY;
    if (bytes <= (size_t)PTRDIFF_MAX && (!limited || bytes <= most.rlim_cur))
        return true;
    errno = EFBIG;
    return false;
}

enum sar_status sar_segment_make(size_t bytes, struct sar_segment *segment, struct sar_segment_name *name)
{
    static atomic_uint_least64_t segments;
    int file = make_file();
    if (file < 0)
        return lack("memfd_create");
    enum sar_status status = SAR_OK;
    if (!is_allowed(bytes) || ftruncate(file, (off_t)bytes) != 0)
        status = lack("ftruncate");
    if (status == SAR_OK)
        status = map_file(file, bytes, segment);
    if (status == SAR_OK)
        *name =
            (struct sar_segment_name){ (int64_t)getpid(), atomic_fetch_add(&segments, 1) + 1, bytes, file };
    else
        close(file);
    return status;
}

/* Looked at before it is opened, which for a device of another process of that number might do something. */
enum sar_status sar_segment_map(const struct sar_segment_name *name, struct sar_segment *segment)
{
    char path[64];
    struct stat found;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)SAR_SEGMENT_HOLDER(name),
             (long long)name->file);
    if (stat(path, &found) != 0)
        return lack(path);
    if (!S_ISREG(found.st_mode) || found.st_size < 0 || (uint64_t)found.st_size < name->bytes)
        return SAR_NO_SEGMENT;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return lack(path);
    enum sar_status status = map_file(file, (size_t)name->bytes, segment);
    close(file);
    return status;
}

struct sar_segment sar_segment_part(const struct sar_segment *whole, size_t from, size_t bytes)
{
    return (struct sar_segment){ (unsigned char *)whole->memory + from, bytes, true };
}

/* No process makes as many segments as that would take to be another one's. */
struct sar_segment_name sar_segment_name_part(const struct sar_segment_name *whole, unsigned number,
                                              size_t bytes)
{
    uint64_t serial = whole->serial | (uint64_t)(number + 1) << 56;
    return (struct sar_segment_name){ whole->process, serial, bytes, -1 };
}

void sar_segment_seal(struct sar_segment_name *name)
{
    if (sar_segment_is_open(name))
        close((int)name->file);
    name->file = -1;
}

void sar_segment_unmap(struct sar_segment *segment)
{
    if (segment->memory != NULL && !segment->part)
        munmap(segment->memory, segment->bytes);
    *segment = (struct sar_segment){ NULL, 0, false };
}

bool sar_segment_same(const struct sar_segment_name *a, const struct sar_segment_name *b)
{
    return a->process == b->process && a->serial == b->serial;
}
