/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests top-k sparsification against a sort of all ranks' elements: the threshold, the selection, and
 * consecutive steps of DGC. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COUNT = 3000, STEPS = 4 };

/* A tensor's part on this rank, its DGC state, and the selected elements. */
struct state {
    MPI_Comm comm;
    MPI_Count count;
    float gradient[COUNT], velocity[COUNT], residual[COUNT], values[COUNT];
    int32_t indices[COUNT];
    MPI_Count nnz;
};

static struct state ours, theirs;

/* Random number from -1 to 1; small numbers are more likely. */
static float number(uint64_t key)
{
    double unit = (double)(mix(key) >> 11) / (double)(1LL << 52) - 1;
    return (float)(unit * unit * unit);
}

static void draw(float *out, MPI_Count count, uint64_t key)
{
    for (MPI_Count i = 0; i < count; i++)
        out[i] = number(key * 1000003 + (uint64_t)i * 64 + (uint64_t)rank);
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The k-th largest magnitude of all ranks' numbers, by sorting. */
static float exact_threshold(const struct state *s, double ratio)
{
    int n, counts[64], places[64], total = 0;
    static float mine[COUNT], all[64 * COUNT];
    MPI_Comm_size(s->comm, &n);
    int count = (int)s->count;
    MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, s->comm);
    for (int r = 0; r < n; r++) {
        places[r] = total;
        total += counts[r];
    }
    for (int i = 0; i < count; i++)
        mine[i] = fabsf(s->residual[i]);
    MPI_Allgatherv(mine, count, MPI_FLOAT, all, counts, places, MPI_FLOAT, s->comm);
    qsort(all, (size_t)total, sizeof *all, descending);
    int k = (int)(ratio * total + 0.5);
    return total == 0 ? 0 : all[k > 0 ? k - 1 : 0];
}

/* Drop elements until `capacity` are left: the smallest first, and of equal ones the last. */
static void drop_smallest(struct state *s, MPI_Count capacity)
{
    while (s->nnz > capacity) {
        MPI_Count least = 0;
        for (MPI_Count i = 1; i < s->nnz; i++)
            if (fabsf(s->values[i]) <= fabsf(s->values[least]))
                least = i;
        s->nnz--;
        for (MPI_Count i = least; i < s->nnz; i++) {
            s->values[i] = s->values[i + 1];
            s->indices[i] = s->indices[i + 1];
        }
    }
}

static void reference_select(struct state *s, float threshold, MPI_Count capacity)
{
    s->nnz = 0;
    for (MPI_Count i = 0; i < s->count; i++) {
        if (s->residual[i] == 0 || fabsf(s->residual[i]) < threshold)
            continue;
        s->indices[s->nnz] = (int32_t)i;
        s->values[s->nnz++] = s->residual[i];
    }
    drop_smallest(s, capacity);
}

static void reference_step(struct state *s, const MPIX_Sparse_dgc_t *how, MPI_Count capacity)
{
    for (MPI_Count i = 0; i < s->count; i++) {
        volatile float kept = (float)how->momentum * s->velocity[i];
        volatile float added = (float)how->scale * s->gradient[i];
        s->velocity[i] = kept + added;
        s->residual[i] += s->velocity[i];
    }
    reference_select(s, exact_threshold(s, how->ratio), capacity);
    for (MPI_Count i = 0; i < s->nnz; i++)
        s->residual[s->indices[i]] = 0;
    for (MPI_Count i = 0; how->masking && i < s->nnz; i++)
        s->velocity[s->indices[i]] = 0;
}

static int step(struct state *s, const MPIX_Sparse_dgc_t *how, MPI_Count capacity)
{
    return MPIX_Sparse_dgc_step(s->gradient, s->velocity, s->residual, s->count, MPI_FLOAT, how, s->comm,
                                MPI_INT32_T, capacity, s->indices, s->values, &s->nnz);
}

static void compare(const void *a, const void *b, MPI_Count n, const char *what)
{
    check(memcmp(a, b, (size_t)n * 4) == 0, "expected %s as by sorting, found others", what);
}

static void compare_states(void)
{
    check(ours.nnz == theirs.nnz, "expected %lld elements, found %lld", (long long)theirs.nnz,
          (long long)ours.nnz);
    compare(ours.indices, theirs.indices, theirs.nnz, "indices");
    compare(ours.values, theirs.values, theirs.nnz, "values");
    compare(ours.velocity, theirs.velocity, theirs.count, "velocities");
    compare(ours.residual, theirs.residual, theirs.count, "residuals");
}

static void begin(MPI_Comm comm, MPI_Count count)
{
    memset(&ours, 0, sizeof ours);
    ours.comm = comm;
    ours.count = count;
    theirs = ours;
}

static void try_steps(MPI_Comm comm, MPI_Count count, double ratio, MPI_Count capacity)
{
    begin(comm, count);
    check_case("steps, count %lld, ratio %g, capacity %lld", (long long)count, ratio, (long long)capacity);
    for (int i = 0; i < STEPS; i++) {
        MPIX_Sparse_dgc_t how = { ratio, 1, 0.9, i == 2 ? 0.25 : 1, i, i != 1 };
        draw(ours.gradient, count, (uint64_t)i);
        memcpy(theirs.gradient, ours.gradient, sizeof ours.gradient);
        check_success(step(&ours, &how, capacity), "MPIX_Sparse_dgc_step");
        reference_step(&theirs, &how, capacity);
        compare_states();
    }
}

static void try_selections(MPI_Comm comm)
{
    static int64_t wide[COUNT];
    begin(comm, COUNT);
    draw(ours.residual, COUNT, 77);
    ours.residual[5] = -0.0f;
    memcpy(theirs.residual, ours.residual, sizeof ours.residual);
    for (int i = 0; i < 12; i++) {
        double threshold = i % 3 == 0 ? 0 : fabs((double)number((uint64_t)i));
        MPI_Count capacity = i % 2 == 0 ? COUNT : 40;
        check_case("selection above %g, capacity %lld", threshold, (long long)capacity);
        check_success(MPIX_Sparse_topk_select(ours.residual, COUNT, MPI_FLOAT, threshold, comm, MPI_INT64_T,
                                              capacity, wide, ours.values, &ours.nnz),
                      "MPIX_Sparse_topk_select");
        for (MPI_Count j = 0; j < ours.nnz; j++)
            ours.indices[j] = (int32_t)wide[j];
        reference_select(&theirs, (float)threshold, capacity);
        compare_states();
    }
}

static void try_sampling(MPI_Comm comm)
{
    enum { MANY = 400000 };
    float *buf = get_memory(MANY, sizeof *buf);
    double found[2], other;
    draw(buf, MANY, 3);
    check_case("a threshold by sampling");
    for (int i = 0; i < 2; i++)
        check_success(MPIX_Sparse_topk_threshold(buf, MANY, MPI_FLOAT, 0.01, 0.05, 5, comm, &found[i]),
                      "the threshold");
    check_success(MPIX_Sparse_topk_threshold(buf, MANY, MPI_FLOAT, 0.01, 0.05, 6, comm, &other), "another");
    check(found[0] == found[1] && found[0] != other,
          "expected %.9g again, found %.9g, and %.9g by another seed", found[0], found[1], other);
    check_equal_on_ranks(hash_bytes(found, sizeof found, 1), "threshold");
    check_success(MPIX_Sparse_topk_threshold(buf, MANY, MPI_FLOAT, 1, 0.05, 5, comm, &other), "all of them");
    check(other == 0, "expected 0 for all elements, found %.9g", other);
    long long above = 0;
    for (int i = 0; i < MANY; i++)
        above += fabs((double)buf[i]) >= found[0];
    check(above > 0.006 * MANY && above < 0.015 * MANY, "expected about %d above, found %lld", MANY / 100,
          above);
    free(buf);
}

/* NaNs are selected, sent and cleared. */
static void try_nans(MPI_Comm comm, int masking)
{
    MPIX_Sparse_dgc_t how = { 0.001, 1, 0.5, 1, 0, masking };
    double threshold;
    check_case("NaNs and infinities, masking %d", masking);
    begin(comm, COUNT);
    draw(ours.gradient, COUNT, 1);
    for (int i = 0; i < 9; i++)
        ours.gradient[100 * i + 7] = i % 2 == 0 ? NAN : -INFINITY;
    check_success(step(&ours, &how, COUNT), "MPIX_Sparse_dgc_step");
    check(ours.nnz == 9, "expected 9 NaNs, found %lld elements", (long long)ours.nnz);
    for (int i = 0; i < 9; i++)
        check(ours.indices[i] == 100 * i + 7 && !isfinite(ours.values[i]), "expected a NaN, found none");
    for (int i = 0; i < COUNT; i++)
        check(isfinite(ours.residual[i]) && isfinite(ours.velocity[i]), "expected no NaN, found one");
    check_success(MPIX_Sparse_topk_threshold(ours.gradient, COUNT, MPI_FLOAT, 0.001, 1, 0, comm, &threshold),
                  "threshold");
    check(isinf(threshold), "expected infinity, found %g", threshold);
}

static void try_float16(MPI_Comm comm)
{
    static uint16_t gradient[COUNT], velocity[COUNT], residual[COUNT];
    MPIX_Sparse_dgc_t how = { 0.01, 1, 0.5, 1, 0, 1 };
    MPI_Comm float16_comm;
    MPI_Info info;
    MPI_Comm_dup(comm, &float16_comm);
    MPI_Comm_set_errhandler(float16_comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (uint16_t)(i % 100 == 0 ? 0xbf80 + i / 100 : 0x3c00);
    for (int known = 0; known < 2; known++) {
        check_case("16-bit floats, %d", known);
        int code = MPIX_Sparse_dgc_step(gradient, velocity, residual, COUNT, MPI_UINT16_T, &how, float16_comm,
                                        MPI_INT32_T, COUNT, ours.indices, ours.values, &ours.nnz);
        if (known) {
            check_success(code, "MPIX_Sparse_dgc_step");
            check(ours.nnz == COUNT / 100 && ours.indices[1] == 100, "expected the large ones, found others");
            check(((uint16_t *)ours.values)[2] == 0xbf82, "expected the value, found another");
        } else {
            check_error(code, "argument datatype", 0);
        }
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpix_sparse_element", "bf16");
        check_success(MPIX_Sparse_comm_set_info(float16_comm, info), "MPIX_Sparse_comm_set_info");
        MPI_Info_free(&info);
    }
    MPI_Comm_free(&float16_comm);
}

int main(int argc, char **argv)
{
    static const double ratios[] = { 0.001, 0.02, 0.3, 1 };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm comm = comm_duplicate();
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        MPI_Count count = i == 0 ? COUNT : 700 * (rank % 4);
        try_steps(comm, count, ratios[i], COUNT);
        try_steps(comm, count, ratios[i], 30);
        try_steps(MPI_COMM_SELF, COUNT - rank, ratios[i], 500);
    }
    try_selections(comm);
    try_sampling(comm);
    try_nans(comm, 0);
    try_nans(comm, 1);
    try_float16(comm);
    MPI_Comm_free(&comm);
    return check_end("topk");
}
