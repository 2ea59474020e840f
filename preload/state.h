/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_STATE_H
#define SAR_PRELOAD_STATE_H

#include <mpi.h>

#include "base/config.h"
#include "preload/tally.h"

/** What all communicators share; equal on all ranks but for the debt and the report. */
struct sar_preload {
    bool on; /**< between MPI_Init and MPI_Finalize, unless a knob is bad */
    bool reporting;
    bool chooses; /**< no scheme is asked for */
    struct sar_config config;
    struct sar_habits habits;
    double debt; /**< this process's, see shapes.h */
    struct sar_tally *rows;
    uint64_t others; /**< calls that the library has no use for, where reporting */
};

/** Persistent requests of a communicator, at most, that the library may take. */
enum { SAR_MOST_OWNED = 16 };

/** A communicator's shapes, cached on it. */
struct sar_followed {
    bool never;     /**< an intercommunicator, or one rank: nothing to gain */
    bool is_set_up; /**< the library has a context of this communicator */
    int ranks;
    struct sar_shape_table table;
    MPI_Comm own[SAR_MOST_OWNED]; /**< duplicates for persistent requests, freed with it */
    int owned;
};

extern struct sar_preload sar_preload;

/** Begin: rank 0 of MPI_COMM_WORLD reads the knobs for all. Collective. */
void sar_preload_begin(void);

/** Write the report, and leave all further calls to MPI. Local. */
void sar_preload_end(void);

/** The shapes of a valid communicator. NULL without memory. */
struct sar_followed *sar_preload_follow(MPI_Comm comm);

/** Whether this process is out of debt. */
bool sar_preload_can_pay(void);

/** Owe for the set-up of a communicator. */
void sar_preload_owe(void);

/** Pay off debt with a call of that shape, see sar_debt_pay. */
void sar_preload_pay(const struct sar_shape_key *key, bool gained);

/** Tell the report of a call, where there is one. */
void sar_preload_note(const struct sar_note *note);

#endif
