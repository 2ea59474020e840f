/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload/shapes.h"

#include <math.h>

/* A shape that turns sparse is found out in the end. */
static const double MOST_CAUTION = 1024;

/* Of the bytes of a call that is worth it, what it saves. Most save more. */
static const double GAIN = 0.5;

static bool same(const struct sar_shape_key *a, const struct sar_shape_key *b)
{
    return a->count == b->count && a->base == b->base && a->op == b->op;
}

uint64_t sar_shape_bytes(const struct sar_shape_key *key)
{
    return (uint64_t)key->count * sar_kernels_of(key->base, key->op)->size;
}

struct sar_tabled_shape sar_shape_new(const struct sar_shape_key *key)
{
    return (struct sar_tabled_shape){ .key = *key, .caution = 1 };
}

static struct sar_tabled_shape *known(struct sar_shape_table *table, const struct sar_shape_key *key)
{
    for (int i = 0; i < table->used; i++)
        if (same(&table->shape[i].key, key))
            return &table->shape[i];
    return NULL;
}

static struct sar_tabled_shape *make_room(struct sar_shape_table *table)
{
    struct sar_tabled_shape *oldest = &table->shape[0];
    if (table->used < SAR_TABLED_SHAPES)
        return &table->shape[table->used++];
    for (int i = 1; i < SAR_TABLED_SHAPES; i++)
        if (table->shape[i].turn < oldest->turn)
            oldest = &table->shape[i];
    return oldest;
}

struct sar_tabled_shape *sar_shapes_find(struct sar_shape_table *table, const struct sar_shape_key *key)
{
    struct sar_tabled_shape *shape = known(table, key);
    if (shape == NULL) {
        shape = make_room(table);
        *shape = sar_shape_new(key);
    }
    shape->turn = ++table->turn;
    return shape;
}

/* Savings that a look takes. */
static double price(const struct sar_tabled_shape *shape, const struct sar_habits *habits)
{
    return fmin((double)sar_shape_bytes(&shape->key), SAR_LOOK_BYTES) / habits->limit;
}

enum sar_move sar_shape_call(struct sar_tabled_shape *shape, const struct sar_habits *habits)
{
    shape->calls++;
    if (shape->open)
        return SAR_TAKE;
    shape->saved += (double)sar_shape_bytes(&shape->key);
    if (shape->calls <= habits->first || !(shape->saved >= shape->caution * price(shape, habits)))
        return SAR_LEAVE;
    shape->saved = 0;
    return SAR_GLANCE;
}

static void give_up(struct sar_tabled_shape *shape)
{
    shape->open = shape->sparse = false;
    shape->streak = 0;
    shape->caution = fmin(2 * shape->caution, MOST_CAUTION);
}

void sar_shape_glanced(struct sar_tabled_shape *shape, bool few)
{
    shape->open = few;
    if (!few)
        give_up(shape);
}

void sar_shape_set_up(struct sar_tabled_shape *shape, const struct sar_habits *habits)
{
    shape->saved -= SAR_SETUP_BYTES / habits->limit;
}

double sar_debt_add(double debt, const struct sar_habits *habits)
{
    return debt + SAR_RENEWAL_BYTES / habits->limit;
}

double sar_debt_pay(double debt, const struct sar_shape_key *key, const struct sar_habits *habits,
                    bool gained)
{
    double bytes = (double)sar_shape_bytes(key);
    return fmax(0, debt - (gained ? GAIN * bytes / habits->limit : bytes));
}

void sar_shape_learn(struct sar_tabled_shape *shape, const struct sar_habits *habits,
                     enum sar_outcome outcome)
{
    if (outcome == SAR_WORTH_IT) {
        shape->sparse = true;
        shape->streak = 0;
        shape->caution = 1;
        return;
    }
    bool ran_dense = outcome == SAR_IN_VAIN;
    shape->saved -= ran_dense ? price(shape, habits) : (double)sar_shape_bytes(&shape->key) / habits->limit;
    if (outcome == SAR_A_TRIAL)
        return;
    shape->sparse = false;
    if (++shape->streak == SAR_PATIENCE)
        give_up(shape);
}

void sar_shapes_inherit(struct sar_shape_table *to, const struct sar_shape_table *from)
{
    *to = (struct sar_shape_table){ .turn = from->turn };
    for (int i = 0; i < from->used; i++)
        if (!from->shape[i].open && from->shape[i].caution > 1)
            to->shape[to->used++] = from->shape[i];
}
