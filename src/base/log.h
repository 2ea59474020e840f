/* SPDX-License-Identifier: BSD-3-Clause */
/* The log: lines on the standard error or in a file, by level and component. A line that is not wanted costs
 * one relaxed load. */

#ifndef SAR_BASE_LOG_H
#define SAR_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** Levels. A level includes those before it; warnings are always written. */
enum sar_log_level { SAR_LOG_WARN, SAR_LOG_INFO, SAR_LOG_DEBUG, SAR_LOG_TRACE };

/** Component that writes a line. */
enum sar_log_component {
    SAR_COMPONENT_BASE,
    SAR_COMPONENT_HASH,
    SAR_COMPONENT_VECTOR,
    SAR_COMPONENT_DEVICE,
    SAR_COMPONENT_WIRE,
    SAR_COMPONENT_COMM,
    SAR_COMPONENT_SCHEME,
    SAR_COMPONENT_CORE,
    SAR_COMPONENT_MPI,
    SAR_LOG_COMPONENTS
};

/** Names of the components, for users. */
#define SAR_LOG_COMPONENT_NAMES "base, hash, vector, device, wire, comm, scheme, core, mpi"

/** Returns the name of a level, an enum sar_log_level, for users; NULL after the last. */
const char *sar_log_level_name(int level);

/** Level of each component, an enum sar_log_level. For sar_log_wanted only. */
extern atomic_int sar_log_levels[SAR_LOG_COMPONENTS];

/** True if lines of this level and component are written. */
static inline bool sar_log_wanted(enum sar_log_level level, enum sar_log_component component)
{
    return (int)level <= atomic_load_explicit(&sar_log_levels[component], memory_order_relaxed);
}

/** Writes one line, formatted as by printf, if it is wanted; otherwise does not evaluate the arguments:
 *     SAR_LOG(INFO, CORE, "%d ranks", ranks); */
#define SAR_LOG(level, component, ...)                                            \
    (sar_log_wanted(SAR_LOG_##level, SAR_COMPONENT_##component)                   \
         ? sar_log_write(SAR_LOG_##level, SAR_COMPONENT_##component, __VA_ARGS__) \
         : (void)0)

/** Writes one line, wanted or not, by one write. Allocates no memory. Thread-safe. */
void sar_log_write(enum sar_log_level level, enum sar_log_component component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Parses "level", or "level:component,component", which leaves all other components at warnings.
 * Returns false, and leaves levels unchanged, if the text is neither. */
bool sar_log_parse(const char *text, enum sar_log_level levels[SAR_LOG_COMPONENTS]);

/** Opens the log as MPIX_SPARSE_LOG and MPIX_SPARSE_LOG_FILE of this process say. Lines carry this rank.
 * Local. */
void sar_log_open(int rank);

/** Closes the log's file. Warnings go to the standard error from then on. Local. */
void sar_log_close(void);

/** Writes the name of the host, cut to `capacity` bytes. */
void sar_log_host(char *host, size_t capacity);

/** Expands %h to the host, %p to the process, %r to the rank of sar_log_open and %% to a percent sign.
 * Returns false if text has too little room. */
bool sar_log_path(const char *pattern, char *text, size_t capacity);

#endif
