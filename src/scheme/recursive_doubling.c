/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling (SparCML's SSAR_Recursive_double; the paper's Hierarchical Centralization): in stage i
 * each rank exchanges all it has with the rank 2^i away and reduces both.
 *
 * Few messages, and equal indices meet early: for few ranks, small messages and vectors that overlap
 * much. When p is not a power of two, the first 2 (p - 2^L) ranks pair up: the even ones hand their
 * elements to the odd ones before the first stage and get the outcome after the last.
 *
 *     time = sum over i < L of (alpha + m(z gamma^(2^i)) beta + 2 z gamma^(2^i) gamma)
 *
 * L = floor(log2 p); when p is not a power of two there are two more messages, of z and of the outcome, and
 * gamma^(2^(i+1)) stands for gamma^(2^i), as pairs have the elements of two ranks from the first stage on. z
 * elements of a rank, m bytes of message for so many, of the cheapest format: dense when sparse would be
 * larger. With m(z) = 2 z s and without alpha and gamma this is the paper's Equation 2. */

#include "scheme/doubling.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_doubling_seconds(a, sar_power_below(a->machine.ranks));
}

/* Equation 2: sum over i = 1 … log2 n of gamma^(2^(i-1)) 2 M d. */
static double paper_bytes(const struct sar_agreed *a)
{
    double bytes = 0, values = a->nnz_mean * (double)a->shape.element_size;
    for (int power = 1; power < a->machine.ranks; power *= 2)
        bytes += sar_gamma_at(&a->gamma, power) * 2 * values;
    return bytes;
}

static const struct sar_stage stages[] = { SAR_DOUBLING_IN, SAR_DOUBLING_OUT, { .compute = NULL } };

const struct sar_scheme sar_scheme_recursive_doubling = {
    .name = "recursive_doubling",
    .summary = "log2 n stages in which pairs exchange and reduce all they have",
    .obstacle = sar_sparse_obstacle,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .state_size = sizeof(struct sar_doubling),
    .stages = stages,
};
