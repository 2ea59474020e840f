/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_BASE_LOG_H
#define SAR_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** How much is told. Warnings always are. */
enum sar_log_level { SAR_LOG_WARN, SAR_LOG_INFO, SAR_LOG_DEBUG, SAR_LOG_TRACE };

/** Who tells. */
enum sar_room {
    SAR_ROOM_BASE,
    SAR_ROOM_HASH,
    SAR_ROOM_TENSOR,
    SAR_ROOM_DEVICE,
    SAR_ROOM_WIRE,
    SAR_ROOM_NET,
    SAR_ROOM_SCHEME,
    SAR_ROOM_PLAN,
    SAR_ROOM_MPI,
    SAR_ROOMS
};

/** Their names, for people. */
#define SAR_LOG_ROOMS "base, hash, tensor, device, wire, net, scheme, plan, mpi"

/** What each room tells: an enum sar_log_level. For sar_log_wanted only. */
extern atomic_int sar_log_levels[SAR_ROOMS];

static inline bool sar_log_wanted(enum sar_log_level level, enum sar_room room)
{
    return (int)level <= atomic_load_explicit(&sar_log_levels[room], memory_order_relaxed);
}

/** Tell one line, as printf would, if it is wanted; the arguments are not looked at if it is not:
 *     SAR_LOG(INFO, PLAN, "%d ranks", ranks); */
#define SAR_LOG(level, room, ...)                                       \
    (sar_log_wanted(SAR_LOG_##level, SAR_ROOM_##room)                   \
         ? sar_log_write(SAR_LOG_##level, SAR_ROOM_##room, __VA_ARGS__) \
         : (void)0)

/** Write a line, wanted or not, in one piece. Takes no memory; any thread may. */
void sar_log_write(enum sar_log_level level, enum sar_room room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Read "level" or "level:room,room": in the latter case the other rooms only warn. False where it is
 * neither, and then levels are not set. */
bool sar_log_parse(const char *text, enum sar_log_level levels[SAR_ROOMS]);

/** Let lines carry this rank, and follow MPIX_SPARSE_LOG and MPIX_SPARSE_LOG_FILE of this process. */
void sar_log_open(int rank);

/** Go back to warnings on the standard error. */
void sar_log_close(void);

/** The name of the host, cut where there is no more room. */
void sar_log_host(char *host, size_t room);

/** Replace %h by the name of the host, %p by the process, %r by the rank of sar_log_open and %% by %.
 * @return whether text had room */
bool sar_log_path(const char *pattern, char *text, size_t room);

#endif
