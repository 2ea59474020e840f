/* SPDX-License-Identifier: BSD-3-Clause */
/* What each thread of the kernels in reduce.cu and coalesce.cu does. */

#ifndef SAR_CUDA_REDUCE_CUH
#define SAR_CUDA_REDUCE_CUH

#include "cuda/bits.cuh"
#include "cuda/fold.cuh"

/** Sum i before anything has reached it. */
struct sar_identity_body {
    sar_arithmetic arithmetic; /* of sums */
    uint64_t identity;         /* its bits */
    void *sums;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        arithmetic.copy(sums, i, &identity, 0);
    }
};

/** Fold value i of a run whose indices differ into the sums, at its index' place among the union's: the
 * outcome's values, or floats that are to be rounded. Host twin: fold_run in tensor/reduce.c. */
template <class Index> struct sar_fold_body {
    sar_arithmetic arithmetic;
    size_t row; /* values of an element */
    const Index *index;
    const void *value;
    const uint32_t *bits; /* the union */
    const unsigned long long *before;
    void *sums;
    uint32_t *hits; /* runs that reached an element; or NULL */

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = row == 1 ? i : sar_quotient(i, row), within = i - element * row;
        size_t place = (size_t)sar_bits_before(bits, before, index[element]);
        if (arithmetic.is_rounded())
            arithmetic.fold_wide((float *)sums + place * row + within, value, i);
        else
            arithmetic.fold(sums, place * row + within, value, i);
        if (hits != NULL && within == 0)
            hits[place]++;
    }
};

/** Fold a zero into sum i where some run lacks its element. Host twin: fold_absent in tensor/sums.c. */
struct sar_absent_body {
    sar_arithmetic arithmetic; /* of sums */
    size_t row, runs;
    const uint32_t *hits;
    void *sums;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t zero = 0;
        if (hits[row == 1 ? i : sar_quotient(i, row)] != runs)
            arithmetic.fold(sums, i, &zero, 0);
    }
};

/** Value i of the outcome, of floats. Host twin: sar_sums_end. */
struct sar_round_body {
    sar_arithmetic arithmetic;
    const float *sums;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        arithmetic.round(out, i, sums[i]);
    }
};

/** Value i of a run, folded into an identity: 0 or 1 where the op is logical. Host twin: settle_truth in
 * tensor/ingest.c. */
struct sar_truth_body {
    sar_arithmetic arithmetic;
    uint64_t identity; /* its bits */
    const void *value;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        uint64_t truth = identity;
        arithmetic.fold(&truth, 0, value, i);
        arithmetic.copy(out, i, &truth, 0);
    }
};

/** What is to be known of indices before they are sorted. */
struct sar_looks {
    uint32_t outside, descends; /* whether any is beyond the count, or not above the one before it */
};

/** Host twin: look32 in tensor/ingest.c. Negative indices look huge. */
template <class Key> struct sar_look_body {
    const Key *key;
    uint64_t count;
    sar_looks *looks;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        if (key[i] >= count)
            sar_tell(&looks->outside);
        if (i > 0 && key[i] <= key[i - 1])
            sar_tell(&looks->descends);
    }
};

struct sar_count_up_body {
    uint32_t *position;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        position[i] = (uint32_t)i;
    }
};

/** Which of four sorted keys are the first of their value. */
template <class Key> struct sar_head_quad {
    const Key *key;
    size_t n;

    SAR_HOST_DEVICE unsigned operator()(size_t q) const
    {
        unsigned found = 0;
        for (unsigned j = 0; j < 4 && 4 * q + j < n; j++) {
            size_t i = 4 * q + j;
            found |= (unsigned)(i == 0 || key[i] != key[i - 1]) << j;
        }
        return found;
    }
};

/** Value i of the outcome: the first of its index, and the others folded in, in the order in which they
 * stood, and rounded once. Host twin: add in tensor/sort.c. */
template <class Key> struct sar_pile_body {
    sar_arithmetic arithmetic;
    size_t row, n;
    const Key *key;           /* sorted */
    const uint32_t *position; /* of what they go with */
    const uint32_t *head;     /* first key of each index */
    const void *value;
    Key *index;
    void *out;

    SAR_HOST_DEVICE void operator()(size_t i) const
    {
        size_t element = row == 1 ? i : sar_quotient(i, row), within = i - element * row;
        size_t at = head[element];
        arithmetic.copy(out, i, value, position[at] * row + within);
        if (within == 0)
            index[element] = key[at];
        if (at + 1 < n && key[at + 1] == key[at] && arithmetic.is_rounded())
            fold_rounded(i, at, within);
        else
            for (size_t next = at + 1; next < n && key[next] == key[at]; next++)
                arithmetic.fold(out, i, value, position[next] * row + within);
    }

    SAR_HOST_DEVICE void fold_rounded(size_t i, size_t at, size_t within) const
    {
        float sum = arithmetic.widen(value, position[at] * row + within);
        for (size_t next = at + 1; next < n && key[next] == key[at]; next++)
            arithmetic.fold_wide(&sum, value, position[next] * row + within);
        arithmetic.round(out, i, sum);
    }
};

#endif
