/* SPDX-License-Identifier: BSD-3-Clause */
/* State of the preload library: of the process, and of each communicator as an attribute. */

#ifndef SAR_PRELOAD_STATE_H
#define SAR_PRELOAD_STATE_H

#include <mpi.h>

#include "base/config.h"
#include "preload/stats.h"

/** State of the process. Equal on all ranks except for budget_used and the report. */
struct sar_preload {
    bool on;        /**< between MPI_Init and MPI_Finalize, unless a setting is bad */
    bool reporting; /**< this rank writes a report */
    bool chooses;   /**< the scheme is auto */
    struct sar_config config;
    struct sar_preload_params params;
    double budget_used; /**< bytes charged for set-ups and not repaid (preload/policy.h) */
    struct sar_stats_row *rows;
    uint64_t others; /**< calls that cannot gain, if reporting */
};

/** Most persistent requests of a communicator that the library may run. */
enum { SAR_DUPS_MAX = 16 };

/** State of a communicator, an attribute of it. */
struct sar_comm_policy {
    bool excluded;  /**< an intercommunicator, or one rank: no gain possible */
    bool is_set_up; /**< the library is set up on the communicator */
    int ranks;
    struct sar_preload_table table;
    MPI_Comm dups[SAR_DUPS_MAX]; /**< duplicates for persistent requests, freed with the communicator */
    int dup_count;
};

extern struct sar_preload sar_preload;

/** Starts the library: rank 0 reads the settings for all ranks. Collective over MPI_COMM_WORLD. */
void sar_preload_begin(void);

/** Writes the report. MPI runs all later calls. Local. */
void sar_preload_end(void);

/** Returns the state of a valid communicator, made on first use; NULL if out of memory. Local. */
struct sar_comm_policy *sar_preload_comm_policy(MPI_Comm comm);

/** True if this process has repaid all set-ups. Thread-safe. */
bool sar_preload_has_budget(void);

/** Charges the process for the set-up of a communicator. Thread-safe. */
void sar_preload_charge_setup(void);

/** Repays set-ups with a call, see sar_budget_repay. Thread-safe. */
void sar_preload_repay(const struct sar_preload_key *key, bool gained);

/** Adds a call to the report, if there is one. Thread-safe. */
void sar_preload_count(const struct sar_stats_call *stats);

#endif
