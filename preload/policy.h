/* SPDX-License-Identifier: BSD-3-Clause */
/* Policy: which calls of an unmodified program the library runs. Calls on one communicator with equal count,
 * type and op share one entry of a table. MPI runs the calls of an entry until a probe, which reads a few
 * elements on all ranks, finds sparse data. Then the library runs them, until its schemes no longer beat
 * `dense`.
 *
 * Budget: each call that MPI runs adds its bytes to the entry's budget. A probe needs a budget of its
 * estimated cost divided by a limit. So probes cost at most that share of an entry's calls. The cost of calls
 * that the library ran in vain is taken from the budget too. The budget that a probe needs doubles with each
 * failed probe.
 *
 * A communicator that is freed early takes its table along. So the set-up of a communicator is also charged
 * to the process, whose calls on any communicator repay it. No communicator is set up until all its ranks
 * have repaid.
 *
 * Each rank has a table for each communicator. The tables are equal on all ranks: they depend on the sequence
 * of calls on the communicator, on parameters equal on all ranks, and on agreed results only. */

#ifndef SAR_PRELOAD_POLICY_H
#define SAR_PRELOAD_POLICY_H

#include "vector/vec_desc.h"

/** Costs, in bytes that MPI_Allreduce would move in the same time. A probe or an agreement has the latency of
 * a call and few bytes, so it costs at most as much as the call. */
enum {
    SAR_SAMPLE_COST_BYTES = 1 << 18,  /**< a probe, or an agreement that selects `dense` */
    SAR_SETUP_COST_BYTES = 1 << 26,   /**< set-up of a communicator, which measures the machine */
    SAR_RESETUP_COST_BYTES = 1 << 23, /**< set-up of a later communicator of the same processes */
    SAR_DENSE_STREAK_MAX = 3,         /**< calls in a row without gain before MPI runs the entry again */
    SAR_POLICY_ENTRIES = 64           /**< entries of a table */
};

/** Properties that the calls of one entry share. */
struct sar_preload_key {
    int64_t count;
    enum sar_dtype base;
    enum sar_op op;
};

/** Parameters of the policy. Equal on all ranks. */
struct sar_preload_params {
    double limit;         /**< share of the calls' bytes that probes may cost; 0: no probes */
    uint64_t first_calls; /**< first calls of an entry that MPI always runs, so that their time is known */
};

/** Decision on a call. */
enum sar_decision {
    SAR_DECISION_MPI,    /**< MPI runs the call */
    SAR_DECISION_SAMPLE, /**< probe the data first */
    SAR_DECISION_SPARSE  /**< the library runs the call */
};

/** Result of a call that the library ran. */
enum sar_call_gain {
    SAR_GAIN_FASTER, /**< another scheme than `dense` was chosen and ran */
    SAR_GAIN_TRIAL,  /**< a scheme ran that was not chosen, to measure it */
    SAR_GAIN_NONE,   /**< `dense` was chosen and ran */
    SAR_GAIN_LOSS    /**< another scheme ran on dense data */
};

/** State of the calls with one key. */
struct sar_preload_entry {
    struct sar_preload_key key;
    uint64_t calls;    /**< calls so far */
    uint64_t last_use; /**< number of the last call among the table's calls */
    double budget;     /**< bytes of calls that MPI ran, minus costs over the limit */
    double backoff;    /**< factor on the budget that a probe needs */
    int dense_streak;  /**< calls in a row without gain */
    bool taken;        /**< the library runs the calls */
    bool sparse;       /**< the library's last call gained */
};

/** Entries of one communicator. */
struct sar_preload_table {
    uint64_t calls;
    int used;
    struct sar_preload_entry entry[SAR_POLICY_ENTRIES];
};

/** Returns the bytes of the vector. */
uint64_t sar_preload_key_bytes(const struct sar_preload_key *key);

/** Returns an entry without calls. */
struct sar_preload_entry sar_preload_entry_make(const struct sar_preload_key *key);

/** Returns the entry of a key. A new entry replaces the least recently used one if the table is full. */
struct sar_preload_entry *sar_preload_table_find(struct sar_preload_table *table,
                                                 const struct sar_preload_key *key);

/** Counts a call and decides who runs it. */
enum sar_decision sar_preload_entry_decide(struct sar_preload_entry *entry,
                                           const struct sar_preload_params *params);

/** Updates the entry with the result of a probe. Do not call it if the data were sparse and a rank had no
 * budget. */
void sar_preload_entry_sampled(struct sar_preload_entry *entry, bool is_sparse);

/** Takes the cost of a communicator's set-up from the entry's budget. */
void sar_preload_entry_charge_setup(struct sar_preload_entry *entry, const struct sar_preload_params *params);

/** Updates the entry with the result of a call that the library ran. */
void sar_preload_entry_update(struct sar_preload_entry *entry, const struct sar_preload_params *params,
                              enum sar_call_gain gain);

/** Returns the process's charge plus the cost of one more set-up. */
double sar_budget_charge_setup(double charge, const struct sar_preload_params *params);

/** Returns the process's charge after a call repaid part of it.
 * @param gained  the library ran the call with a gain; otherwise MPI ran it */
double sar_budget_repay(double charge, const struct sar_preload_key *key,
                        const struct sar_preload_params *params, bool gained);

/** Sets the table of a duplicate communicator: only entries with failed probes are inherited, since all
 * others must justify the set-up of the duplicate first. */
void sar_preload_table_inherit(struct sar_preload_table *to, const struct sar_preload_table *from);

#endif
