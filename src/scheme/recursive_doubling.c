/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive doubling (SparCML's SSAR_Recursive_double; the Zen paper's Hierarchical Centralization): in
 * stage i each rank exchanges all its elements with the rank 2^i away, and reduces both vectors.
 *
 * It takes few messages, and equal indices are reduced early: it suits few ranks, small messages and
 * vectors that overlap. A row is sent whole, with one index, where SparCML sends one for every value. If p
 * is not a power of two, the first 2 (p - 2^L) ranks pair up: the even ones send their elements to the odd
 * ones before the first stage, and receive the result after the last.
 *
 *     time = sum over i < L of (alpha + m(z gamma^(2^i)) beta + 2 z gamma^(2^i) gamma)
 *
 * L = floor(log2 p), z elements of a rank, m(z) bytes of a message of z elements in the cheapest format,
 * which is dense when sparse would be larger. If p is not a power of two there are two more messages, of z
 * and of the result, and gamma^(2^(i+1)) replaces gamma^(2^i), because pairs have the elements of two
 * ranks. With m(z) = 2 z s and without alpha and gamma this is the paper's Equation 2. */

#include "scheme/engine/pairwise.h"
#include "scheme/scheme.h"

static double seconds(const struct sar_agreed *a)
{
    return sar_pairwise_seconds(a, sar_pof2_below(a->machine.ranks));
}

/* Equation 2: sum over i = 1 … log2 n of gamma^(2^(i-1)) 2 M d. */
static double paper_bytes(const struct sar_agreed *a)
{
    double bytes = 0, values = a->data.nnz_mean * (double)a->desc.element_size;
    for (int power = 1; power < a->machine.ranks; power *= 2)
        bytes += sar_densification_at(&a->data.densification, power) * 2 * values;
    return bytes;
}

static const struct sar_stage stages[] = { SAR_PAIRWISE_STAGES_IN,
                                           SAR_PAIRWISE_STAGES_OUT,
                                           { .compute = NULL } };

const struct sar_scheme sar_scheme_recursive_doubling = {
    .name = "recursive_doubling",
    .summary = "log2 n stages in which pairs exchange and reduce all they have",
    .unsupported_reason = sar_agreed_sparse_unsupported,
    .seconds = seconds,
    .paper_bytes = paper_bytes,
    .state_size = sizeof(struct sar_pairwise),
    .stages = stages,
};
