/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_SHAPES_H
#define SAR_PRELOAD_SHAPES_H

#include "tensor/shape.h"

/** @file
 * Which calls of an unmodified program go through the library. Calls on one communicator with the same
 * count, type and op are calls of one *shape*. A shape is left to MPI until a *glance* at a few elements on
 * all ranks finds it sparse; then the library takes it, and agrees, profiles and chooses, until it would
 * rather run MPI_Allreduce.
 *
 * What that costs where nothing is gained is paid for: each call left to MPI saves its bytes, and each look
 * spends what it is reckoned to cost, divided by a limit. So looks cost at most that share of a shape's
 * calls, but for what the library spends until it gives a shape up, which is paid off before the next look.
 * The savings that a look needs double with each that was in vain.
 *
 * A communicator that is freed soon takes its table with it, so a set-up also leaves a *debt* to the process,
 * which calls on any communicator pay off. No other communicator is set up before all of its ranks are out of
 * debt.
 *
 * Every rank keeps such a table. The tables stay equal, since they depend on nothing but the sequence of
 * calls on the communicator, on habits that are equal everywhere, and on what all ranks agreed on. */

/** What is reckoned as the bytes that MPI_Allreduce would move meanwhile. A glance or an agreement on a
 * vector has latencies as the call has and few bytes, so it counts as a call at most. */
enum {
    SAR_LOOK_BYTES = 1 << 18,    /**< a glance, or an agreement that ends in MPI_Allreduce */
    SAR_SETUP_BYTES = 1 << 26,   /**< the library's set-up of a communicator, which measures the machine */
    SAR_RENEWAL_BYTES = 1 << 23, /**< that of another one of the same processes, which remember the machine */
    SAR_PATIENCE = 3,            /**< calls in a row for which `dense` was best, until a shape is given up */
    SAR_TABLED_SHAPES = 64
};

struct sar_shape_key {
    int64_t count;
    enum sar_base base;
    enum sar_op op;
};

/** Equal on all ranks. */
struct sar_habits {
    double limit;   /**< share of the calls' bytes that looks may cost; 0: never look */
    uint64_t first; /**< calls of a shape that are left to MPI in any case, which shows how long it takes */
};

/** What to do with a call. */
enum sar_move {
    SAR_LEAVE, /**< leave it to MPI */
    SAR_GLANCE,
    SAR_TAKE
};

/** How a call fared that the library took. */
enum sar_outcome {
    SAR_WORTH_IT, /**< another scheme than `dense` was best, and ran */
    SAR_A_TRIAL,  /**< a scheme ran that is not the best */
    SAR_IN_VAIN,  /**< `dense` was best, and ran */
    SAR_A_LOSS    /**< another scheme ran, on data that are dense */
};

struct sar_tabled_shape {
    struct sar_shape_key key;
    uint64_t calls;
    uint64_t turn;  /**< of its last call, in the table's calls */
    double saved;   /**< bytes of calls left to MPI, less what looks cost over the limit */
    double caution; /**< times a look's cost that must be saved before it */
    int streak;     /**< calls in a row that were in vain */
    bool open;      /**< the library takes it */
    bool sparse;    /**< the last call that the library took ran another scheme than `dense` */
};

struct sar_shape_table {
    uint64_t turn;
    int used;
    struct sar_tabled_shape shape[SAR_TABLED_SHAPES];
};

/** Bytes of a vector. */
uint64_t sar_shape_bytes(const struct sar_shape_key *key);

/** A shape that nothing is known of. */
struct sar_tabled_shape sar_shape_new(const struct sar_shape_key *key);

/** The entry of a shape; a new one takes the place of the one whose last call is longest ago. */
struct sar_tabled_shape *sar_shapes_find(struct sar_shape_table *table, const struct sar_shape_key *key);

/** Count a call, and tell what to do with it. */
enum sar_move sar_shape_call(struct sar_tabled_shape *shape, const struct sar_habits *habits);

/** Learn from a glance: whether there are few enough elements to let the library take the shape. A glance
 * that found few while a rank was in debt is forgotten instead. */
void sar_shape_glanced(struct sar_tabled_shape *shape, bool few);

/** Pay for the library's set-up of the communicator. */
void sar_shape_set_up(struct sar_tabled_shape *shape, const struct sar_habits *habits);

/** Learn from a call that the library took. */
void sar_shape_learn(struct sar_tabled_shape *shape, const struct sar_habits *habits,
                     enum sar_outcome outcome);

/** A debt with that for another set-up of a communicator. */
double sar_debt_add(double debt, const struct sar_habits *habits);

/** What is left of a debt after a call.
 * @param gained  the library took it, and it was worth it; else it was left to MPI */
double sar_debt_pay(double debt, const struct sar_shape_key *key, const struct sar_habits *habits,
                    bool gained);

/** What a duplicate of the communicator starts with: the shapes that were looked at in vain. Others must
 * prove worth the library's set-up again. */
void sar_shapes_inherit(struct sar_shape_table *to, const struct sar_shape_table *from);

#endif
