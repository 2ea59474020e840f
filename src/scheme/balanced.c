/* SPDX-License-Identifier: BSD-3-Clause */
/* Balanced Parallelism (Zen): a hash assigns every element to a rank, so that all have about equally many
 * of any input and of any outcome. Push to the owner, reduce there, pull from it.
 *
 * No rank receives an element twice in the push, nor more than its share; with p ranks, and messages that
 * take longer than their latency,
 *
 *     time = 2 alpha + (p-1) (m(z/p) + m(z gamma^p / p)) beta + (2 z + z gamma^p) gamma
 *
 * z elements of the fullest rank, m bytes of message for so many elements, gamma^p densification over all
 * ranks. With m(z) = 2 z s and without alpha and gamma this is the paper's Equation 1. */

#include "scheme/owner.h"

static const char *obstacle(const struct sar_agreed *agreed)
{
    const char *first = sar_sparse_obstacle(agreed);
    if (first != NULL)
        return first;
    struct sar_map map = sar_agreed_map(agreed);
    return sar_owner_obstacle(&map);
}

static double seconds(const struct sar_agreed *a)
{
    struct sar_map map = sar_agreed_map(a);
    struct sar_owner_terms terms = sar_owner_terms(a, &map);
    return sar_owner_seconds(a, &terms);
}

/* Equation 1: (n-1)/n (gamma^n + 1) 2 M d, where M d are the bytes of one rank's values. */
static double paper_bytes(const struct sar_agreed *a)
{
    double ranks = a->machine.ranks, values = a->nnz_mean * (double)a->shape.element_size;
    return (ranks - 1) / ranks * (sar_gamma_at(&a->gamma, ranks) + 1) * 2 * values;
}

static void open(struct sar_request *request)
{
    struct sar_map map = sar_agreed_map(request->agreed);
    sar_owner_open(request, &map);
}

static const struct sar_stage stages[] = { { .post = open }, SAR_OWNER_STAGES };

const struct sar_scheme sar_scheme_balanced = {
    .name = "balanced",
    .summary = "a hash gives each rank an equal share to reduce; push to the owner, pull from it",
    .obstacle = obstacle,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .splits = true,
    .partitions = (1u << SAR_PARTITIONS) - 1,
    .state_size = sizeof(struct sar_owner),
    .stages = stages,
};
