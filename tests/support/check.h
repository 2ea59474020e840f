/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, checks and end of every MPI test. A failed check prints its case, what was expected and what was
 * found, and aborts all ranks. */
#ifndef SAR_TESTS_SUPPORT_CHECK_H
#define SAR_TESTS_SUPPORT_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

extern int rank, ranks;

/** True if there are more ranks than processors. Tests then shorten their slow cases. */
extern bool oversubscribed;

/** True if other programs share the processors. Blocking functions of MPI then sleep; see
 * oversubscribed_mpi.c. */
extern bool sleep_in_waits;

/** Start MPI with a level of thread support, and return the level provided. Sets a hash seed and
 * MPIX_SPARSE_FORWARD=0, so that every call runs the consistency check. On an odd number of ranks also sets
 * MPIX_SPARSE_NODES=2, so that the check runs both in shared memory and by messages. */
int check_begin(int *argc, char ***argv, int threads);

/** Finish MPI and print the number of checks. Fails if there was none. Returns main's value. */
int check_end(const char *program);

/** Name the case of the checks that follow. */
void check_case(const char *format, ...) PRINTF_LIKE(1, 2);

/** Abort the program, and print the case, after this many seconds. */
void check_alarm(unsigned seconds);

/** Check a condition. The text says what was expected and what was found. */
void check(bool good, const char *format, ...) PRINTF_LIKE(2, 3);

/** Check that `code` is MPI_SUCCESS. */
void check_success(int code, const char *call);

/** Check that the text of error `code` contains `says`, and names rank `at_fault` unless that is negative. */
void check_error(int code, const char *says, int at_fault);

/** Check that all ranks have the same number. Collective. */
void check_equal_on_ranks(uint64_t number, const char *what);

/** Print the reason, and return exit status 77, if the program cannot run here or on this many ranks. */
int check_skip(const char *program, const char *reason);

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

/** The format `packed`, or `coo` in builds without it. */
#ifdef HAVE_STREAMVBYTE
#define PACKED "packed"
#else
#define PACKED "coo"
#endif

/** All schemes except dense; the schemes that assign parts to owners; all formats. */
#define EVERY_SPARSE_SCHEME                                                                            \
    "allgather", "recursive_doubling", "balanced", "split_allgather", "split_dense", "ring", "hybrid", \
        "omni", "sparse_ps", "oktopk", "shared", "two_level"
#define EVERY_OWNER_SCHEME "balanced", "omni", "split_allgather", "split_dense", "sparse_ps", "oktopk"
#define EVERY_WIRE "coo", PACKED, "elias_fano", "hash_bitmap", "bitmap", "block", "dense"

/** Settings that replace the library's own choice; NULL leaves the choice to the library. */
struct settings {
    const char *scheme, *wire, *partition, *grain;
    const char *segment; /**< also shortens the chunks of messages */
};

/** Write the settings to the environment. They apply to communicators that are first used afterwards. */
void settings_set(const struct settings *settings);

/** Emulate this many nodes on later communicators of settings_comm; 0 selects a number that suits the
 * scheme. */
void nodes_set(int nodes);

/** A duplicate of MPI_COMM_WORLD that returns errors. */
MPI_Comm comm_duplicate(void);

/** Duplicate MPI_COMM_WORLD, and use the duplicate once under these settings. */
MPI_Comm settings_comm(const struct settings *settings);

/** Text such as "balanced, wire coo, …"; the next call overwrites it. */
const char *settings_text(const struct settings *settings);

/** Mix the bits of a key. Results are equal on all ranks and machines. */
uint64_t mix(uint64_t key);

/** Hash bytes. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);

/** Allocate zeroed memory, or abort. Never returns NULL. */
void *get_memory(size_t n, size_t size);

#endif
