/* SPDX-License-Identifier: BSD-3-Clause */
/* How every MPI test begins, complains and ends. A failed check says where and why, and
 * ends the program on all ranks at once. */
#ifndef SAR_TESTS_SUPPORT_CHECK_H
#define SAR_TESTS_SUPPORT_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

extern int rank, ranks;

/** More ranks than processors: what takes long is to be cut short. */
extern bool oversubscribed;

/** Few processors to spare, for other programs want some too: blocking calls of MPI sleep, see
 * oversubscribed_mpi.c. */
extern bool sleep_in_waits;

/** Start MPI with a level of thread support; returns the level there is. No knob is set afterwards but a
 * seed, that all calls are agreed on (MPIX_SPARSE_FORWARD=0), and that an odd number of ranks does not share
 * memory (MPIX_SPARSE_NODES=2), so that both ways to agree are tried. */
int check_begin(int *argc, char ***argv, int threads);

/** Finish MPI, tell how many checks were made and fail if there was none. Returns main's value. */
int check_end(const char *program);

/** Name the case that the checks to come belong to. */
void check_case(const char *format, ...) PRINTF_LIKE(1, 2);

/** End the program, with the name of the case, if it is not over after so many seconds. */
void check_alarm(unsigned seconds);

/** One check; the text is what was expected and what was found. */
void check(bool good, const char *format, ...) PRINTF_LIKE(2, 3);

/** Checks that `code` is MPI_SUCCESS. */
void check_success(int code, const char *call);

/** Checks that `code` is an error whose text has some words, and names a rank unless that is negative. */
void check_error(int code, const char *says, int at_fault);

/** Checks that all ranks have the same number. Collective. */
void check_equal_on_ranks(uint64_t number, const char *what);

/** Leave a program that cannot test anything here, or not on so many ranks, with exit status 77. */
int check_skip(const char *program, const char *reason);

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

/** A format that is not built everywhere, or one in its place. */
#ifdef HAVE_STREAMVBYTE
#define PACKED "packed"
#else
#define PACKED "coo"
#endif

/** The schemes other than dense, those of them in which parts have owners, and the formats. */
#define EVERY_SPARSE_SCHEME                                                                            \
    "allgather", "recursive_doubling", "balanced", "split_allgather", "split_dense", "ring", "hybrid", \
        "omni", "sparse_ps", "oktopk", "shared", "two_level"
#define EVERY_OWNER_SCHEME "balanced", "omni", "split_allgather", "split_dense", "sparse_ps", "oktopk"
#define EVERY_WIRE "coo", PACKED, "elias_fano", "hash_bitmap", "bitmap", "block", "dense"

/** What forces the library's hand; NULL leaves a choice to it. */
struct knobs {
    const char *scheme, *wire, *partition, *grain;
    const char *segment; /**< goes with small pieces of messages, too */
};

/** Put knobs into the environment. They hold for communicators that are first used afterwards. */
void knobs_set(const struct knobs *knobs);

/** Let the ranks of knobs_comm's communicators to come be on so many nodes; 0 for what suits the scheme. */
void nodes_set(int nodes);

/** A duplicate of MPI_COMM_WORLD that returns errors. */
MPI_Comm comm_duplicate(void);

/** Such a duplicate that has been used under these knobs. */
MPI_Comm knobs_comm(const struct knobs *knobs);

/** "balanced, wire coo, …" in memory that the next call overwrites. */
const char *knobs_text(const struct knobs *knobs);

/** A mixing function: equal keys, equal numbers, on all ranks and machines. */
uint64_t mix(uint64_t key);

/** A hash of bytes. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);

/** calloc or give up. Never NULL. */
void *get_memory(size_t n, size_t size);

#endif
