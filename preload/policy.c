/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy costs a search of at most SAR_POLICY_ENTRIES entries a call. */

#include "preload/policy.h"

#include <math.h>

/* Upper limit of the backoff, so that data that turn sparse are found in the end. */
static const double BACKOFF_MAX = 1024;

/* Share of its bytes that a call with a gain saves. Most calls save more. */
static const double GAIN = 0.5;

static bool same(const struct sar_preload_key *a, const struct sar_preload_key *b)
{
    return a->count == b->count && a->base == b->base && a->op == b->op;
}

uint64_t sar_preload_key_bytes(const struct sar_preload_key *key)
{
    return (uint64_t)key->count * sar_op_kernels_of(key->base, key->op)->size;
}

struct sar_preload_entry sar_preload_entry_make(const struct sar_preload_key *key)
{
    return (struct sar_preload_entry){ .key = *key, .backoff = 1 };
}

static struct sar_preload_entry *find_entry(struct sar_preload_table *table,
                                            const struct sar_preload_key *key)
{
    for (int i = 0; i < table->used; i++)
        if (same(&table->entry[i].key, key))
            return &table->entry[i];
    return NULL;
}

static struct sar_preload_entry *new_entry(struct sar_preload_table *table)
{
    struct sar_preload_entry *oldest = &table->entry[0];
    if (table->used < SAR_POLICY_ENTRIES)
        return &table->entry[table->used++];
    for (int i = 1; i < SAR_POLICY_ENTRIES; i++)
        if (table->entry[i].last_use < oldest->last_use)
            oldest = &table->entry[i];
    return oldest;
}

struct sar_preload_entry *sar_preload_table_find(struct sar_preload_table *table,
                                                 const struct sar_preload_key *key)
{
    struct sar_preload_entry *entry = find_entry(table, key);
    if (entry == NULL) {
        entry = new_entry(table);
        *entry = sar_preload_entry_make(key);
    }
    entry->last_use = ++table->calls;
    return entry;
}

/* Returns the budget that a probe needs before backoff. */
static double sample_cost(const struct sar_preload_entry *entry, const struct sar_preload_params *params)
{
    return fmin((double)sar_preload_key_bytes(&entry->key), SAR_SAMPLE_COST_BYTES) / params->limit;
}

enum sar_decision sar_preload_entry_decide(struct sar_preload_entry *entry,
                                           const struct sar_preload_params *params)
{
    entry->calls++;
    if (entry->taken)
        return SAR_DECISION_SPARSE;
    entry->budget += (double)sar_preload_key_bytes(&entry->key);
    if (entry->calls <= params->first_calls ||
        !(entry->budget >= entry->backoff * sample_cost(entry, params)))
        return SAR_DECISION_MPI;
    entry->budget = 0;
    return SAR_DECISION_SAMPLE;
}

static void give_up(struct sar_preload_entry *entry)
{
    entry->taken = entry->sparse = false;
    entry->dense_streak = 0;
    entry->backoff = fmin(2 * entry->backoff, BACKOFF_MAX);
}

void sar_preload_entry_sampled(struct sar_preload_entry *entry, bool is_sparse)
{
    entry->taken = is_sparse;
    if (!is_sparse)
        give_up(entry);
}

void sar_preload_entry_charge_setup(struct sar_preload_entry *entry, const struct sar_preload_params *params)
{
    entry->budget -= SAR_SETUP_COST_BYTES / params->limit;
}

double sar_budget_charge_setup(double charge, const struct sar_preload_params *params)
{
    return charge + SAR_RESETUP_COST_BYTES / params->limit;
}

double sar_budget_repay(double charge, const struct sar_preload_key *key,
                        const struct sar_preload_params *params, bool gained)
{
    double bytes = (double)sar_preload_key_bytes(key);
    return fmax(0, charge - (gained ? GAIN * bytes / params->limit : bytes));
}

void sar_preload_entry_update(struct sar_preload_entry *entry, const struct sar_preload_params *params,
                              enum sar_call_gain gain)
{
    if (gain == SAR_GAIN_FASTER) {
        entry->sparse = true;
        entry->dense_streak = 0;
        entry->backoff = 1;
        return;
    }
    bool ran_dense = gain == SAR_GAIN_NONE;
    entry->budget -=
        ran_dense ? sample_cost(entry, params) : (double)sar_preload_key_bytes(&entry->key) / params->limit;
    if (gain == SAR_GAIN_TRIAL)
        return;
    entry->sparse = false;
    if (++entry->dense_streak == SAR_DENSE_STREAK_MAX)
        give_up(entry);
}

void sar_preload_table_inherit(struct sar_preload_table *to, const struct sar_preload_table *from)
{
    *to = (struct sar_preload_table){ .calls = from->calls };
    for (int i = 0; i < from->used; i++)
        if (!from->entry[i].taken && from->entry[i].backoff > 1)
            to->entry[to->used++] = from->entry[i];
}
