/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests random small calls against MPI_Allreduce, bit for bit.
 *
 *     random_small [CASES [SEED [FIRST]]]
 *
 * A failure prints its case. FIRST starts with that case. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

static const char *const schemes[] = { "dense", EVERY_SPARSE_SCHEME, "balanced", "auto" };
static const char *const wires[] = { "auto",      "smallest",         "coo/hash_bitmap",
                                     "dense/coo", "block/elias_fano", EVERY_WIRE };
static const char *const partitions[] = { "hash", "cyclic", "range", "hierarchical" };
static const char *const grains[] = { "auto", "1", "2", "4", "16", "64", "256" };
static const char *const segments[] = { NULL, "50", "1000" };

enum { MOST_COMMS = 96, CASES = 2000, MOST_COUNT = 2000, TIMED = 10000 };

#define ONE_OF(list, bits) ((list)[(bits) % (sizeof(list) / sizeof((list)[0]))])

struct setting {
    struct settings settings;
    MPI_Comm comm;
    MPIX_Sparse_result result;
};

/* Drawn once: the first use of a communicator takes far longer than a call. */
static struct setting settings[MOST_COMMS];

static struct setting *find_setting(uint64_t seed, uint64_t bits)
{
    size_t number = bits % (oversubscribed ? MOST_COMMS / 4 : MOST_COMMS);
    struct setting *s = &settings[number];
    if (s->settings.scheme != NULL)
        return s;
    uint64_t draw = mix(seed * MOST_COMMS + number);
    s->settings =
        (struct settings){ ONE_OF(schemes, draw), ONE_OF(wires, draw >> 16), ONE_OF(partitions, draw >> 32),
                           ONE_OF(grains, draw >> 48), ONE_OF(segments, draw >> 56) };
    s->comm = settings_comm(&s->settings);
    s->result = MPIX_SPARSE_RESULT_NULL;
    return s;
}

static struct pattern draw_pattern(uint64_t bits)
{
    size_t n = 0;
    while (patterns[n].name != NULL)
        n++;
    struct pattern p = patterns[bits % n];
    if (p.density != 0)
        p.density = pow(10, -4.0 * (double)(bits >> 40) / (double)(1 << 24));
    return p;
}

/* Short vectors are as likely as long ones. */
static int64_t draw_count(uint64_t bits)
{
    uint64_t most = (uint64_t)1 << (1 + bits % 11);
    return (int64_t)((bits >> 8) % (most < MOST_COUNT ? most : MOST_COUNT));
}

static struct tensor_desc draw_kind(uint64_t bits, const struct pattern *p)
{
    uint64_t row = bits % 8;
    return (struct tensor_desc){
        .base = (enum base)((bits >> 8) % (p->floats_only ? 2 : BASES)),
        .op = p->sums_only ? SUM : (enum op)((bits >> 16) % OPS),
        .row = row < 4 ? 1 : (size_t)row - 2,
        .count = draw_count(bits >> 24),
    };
}

static void run_case(uint64_t seed, long number)
{
    uint64_t key = mix(seed ^ mix((uint64_t)number)), bits = mix(key);
    struct setting *s = find_setting(seed, bits);
    struct pattern p = draw_pattern(mix(key + 1));
    struct tensor_desc desc = draw_kind(mix(key + 2), &p);
    const struct index_type *type = &ONE_OF(index_types, bits >> 8);
    struct tensor tensor;
    struct oracle oracle;
    check_case("case %ld of seed %llu: %s, density %g, %s %s of %lld x %zu, %s", number,
               (unsigned long long)seed, p.name, p.density, base_types[desc.base].name,
               op_types[desc.op].name, (long long)desc.count, desc.row, settings_text(&s->settings));
    tensor_draw(&p, &desc, key, &tensor);
    oracle_make(&tensor, &oracle);
    if (bits >> 16 & 1)
        call_dense(&oracle, bits >> 17 & 1, s->comm);
    else
        call_coo(&tensor, &oracle, type, s->comm, &s->result);
    if ((bits >> 18) % 8 == 0)
        check_success(MPIX_Sparse_result_free(&s->result), "MPIX_Sparse_result_free");
    tensor_free(&tensor);
    oracle_free(&oracle);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    long slowness = getenv("SAR_TEST_SLOWNESS") != NULL ? atol(getenv("SAR_TEST_SLOWNESS")) : 1;
    long cases = argc > 1 ? atol(argv[1]) : CASES / slowness, first = argc > 3 ? atol(argv[3]) : 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    double start = MPI_Wtime();
    for (long i = first; i < first + cases; i++)
        run_case(seed, i);
    for (size_t i = 0; i < MOST_COMMS; i++) {
        if (settings[i].settings.scheme == NULL)
            continue;
        check_success(MPIX_Sparse_result_free(&settings[i].result), "MPIX_Sparse_result_free");
        MPI_Comm_free(&settings[i].comm);
    }
    if (rank == 0 && cases >= TIMED)
        printf("# random_small: %ld cases in %.0f seconds\n", cases, MPI_Wtime() - start);
    return check_end("random_small");
}
