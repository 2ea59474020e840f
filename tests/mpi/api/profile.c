/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests MPIX_Sparse_profile, and the profiles that calls make of coordinates and of dense buffers, against a
 * slow reference, which gathers all ranks' indices and visits every choice of k ranks. A call tells its
 * profile to the log alone. */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* mkstemp, setenv */
#endif

#include <mpix_sparse.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

/* For each rank, a row of `count` bytes that mark its elements. */
struct presence {
    size_t count;
    unsigned char *has;
};

static void expect(double found, double expected, double tolerance, const char *what)
{
    check(fabs(found - expected) <= tolerance * fabs(expected) + 1e-12, "expected %s %.9g, found %.9g", what,
          expected, found);
}

static long long size_of(const struct presence *p, int r)
{
    long long n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->has[(size_t)r * p->count + i];
    return n;
}

static long long both_have(const struct presence *p, int r, int q)
{
    long long n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->has[(size_t)r * p->count + i] & p->has[(size_t)q * p->count + i];
    return n;
}

/* Number of elements that any rank of the set has; bit r of the set stands for rank r. */
static long long union_of(const struct presence *p, unsigned set)
{
    long long n = 0;
    for (size_t i = 0; i < p->count; i++) {
        unsigned char any = 0;
        for (int r = 0; r < ranks; r++)
            any |= set >> r & 1 ? p->has[(size_t)r * p->count + i] : 0;
        n += any;
    }
    return n;
}

static double mean_union(const struct presence *p, int k)
{
    double sum = 0, sets = 0;
    for (unsigned set = 0; set < 1u << ranks; set++) {
        if (__builtin_popcount(set) != k)
            continue;
        sum += (double)union_of(p, set);
        sets++;
    }
    return sum / sets;
}

static double overlap(const struct presence *p)
{
    double both = 0, smaller = 0;
    for (int r = 0; r < ranks; r++) {
        for (int q = 0; q < r; q++) {
            both += (double)both_have(p, r, q);
            smaller += fmin((double)size_of(p, r), (double)size_of(p, q));
        }
    }
    return smaller > 0 ? both / smaller : 0;
}

static double skewness(const struct presence *p)
{
    double sum = 0;
    size_t n = (size_t)ranks, width = (p->count + n - 1) / n;
    for (int r = 0; r < ranks; r++) {
        long long most = 0, nnz = size_of(p, r);
        for (size_t j = 0; j < n; j++) {
            long long here = 0;
            for (size_t i = j * width; i < (j + 1) * width && i < p->count; i++)
                here += p->has[(size_t)r * p->count + i];
            most = here > most ? here : most;
        }
        sum += nnz == 0 ? 1 : (double)most / (double)nnz * ranks;
    }
    return sum / ranks;
}

static void check_densities(const MPIX_Sparse_profile_t *found, const struct presence *p)
{
    double sum = 0, most = 0, count = (double)p->count;
    for (int r = 0; r < ranks; r++) {
        sum += (double)size_of(p, r);
        most = fmax(most, (double)size_of(p, r));
    }
    expect(found->density, count > 0 ? sum / ranks / count : 0, 1e-9, "density");
    expect(found->density_max, count > 0 ? most / count : 0, 1e-9, "largest density");
    expect(found->density_out, count > 0 ? (double)union_of(p, (1u << ranks) - 1) / count : 0, 1e-9,
           "density of the union");
    expect(found->overlap, overlap(p), 1e-9, "overlap");
    if (p->count > 0)
        expect(found->skewness, skewness(p), 1e-5, "skewness");
}

static void check_gammas(const MPIX_Sparse_profile_t *found, const struct presence *p)
{
    double one = mean_union(p, 1);
    int k = 1;
    for (int i = 0; i < found->gammas; i++) {
        k = 2 * k < ranks ? 2 * k : ranks;
        check(found->gamma_ranks[i] == k, "expected a ratio at %d ranks, found one at %d", k,
              found->gamma_ranks[i]);
        expect(found->gamma[i], one > 0 ? mean_union(p, k) / one : 1, 1e-9, "densification");
    }
    check(ranks == 1 || k == ranks, "expected ratios up to %d ranks, found them up to %d", ranks, k);
}

static MPIX_Sparse_profile_t measure(const struct oracle *o, MPI_Comm comm)
{
    MPIX_Sparse_profile_t profile;
    MPI_Datatype type = row_type(&o->desc);
    memset(&profile, 0, sizeof profile);
    check_success(MPIX_Sparse_profile(o->mine, o->desc.count, type, comm, &profile), "MPIX_Sparse_profile");
    row_type_free(&o->desc, &type);
    check(profile.count == o->desc.count && profile.ranks == ranks,
          "expected %lld elements on %d ranks, found %lld on %d", (long long)o->desc.count, ranks,
          (long long)profile.count, profile.ranks);
    check_equal_on_ranks(hash_bytes(&profile, sizeof profile, 1), "the profile");
    return profile;
}

/* `mine` marks this rank's elements; frees it. */
static struct presence gather(unsigned char *mine, size_t count)
{
    struct presence p = { count, get_memory(count * (size_t)ranks, 1) };
    MPI_Allgather(mine, (int)count, MPI_BYTE, p.has, (int)count, MPI_BYTE, MPI_COMM_WORLD);
    free(mine);
    return p;
}

static struct presence presence_of_dense(const struct oracle *o)
{
    size_t count = (size_t)o->desc.count, bytes = element_bytes(&o->desc);
    unsigned char *mine = get_memory(count, 1), *zero = get_memory(bytes, 1);
    for (size_t i = 0; i < count; i++)
        mine[i] = memcmp(o->mine + i * bytes, zero, bytes) != 0;
    free(zero);
    return gather(mine, count);
}

static struct presence presence_of_coo(const struct tensor *tensor)
{
    unsigned char *mine = get_memory((size_t)tensor->desc.count, 1);
    for (size_t i = 0; i < tensor->nnz; i++)
        mine[tensor->index[i]] = 1;
    return gather(mine, (size_t)tensor->desc.count);
}

static void try_pattern(const struct pattern *pattern, const struct tensor_desc *desc, MPI_Comm comm)
{
    struct tensor tensor;
    struct oracle oracle;
    check_case("%s, %lld x %zu elements", pattern->name, (long long)desc->count, desc->row);
    tensor_draw(pattern, desc, 5, &tensor);
    oracle_make(&tensor, &oracle);
    struct presence p = presence_of_dense(&oracle);
    MPIX_Sparse_profile_t found = measure(&oracle, comm);
    check(found.sampled == desc->count, "expected exact figures, found %lld elements sampled",
          (long long)found.sampled);
    check_densities(&found, &p);
    check_gammas(&found, &p);
    free(p.has);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

static char log_path[] = "/tmp/mpix_sparse_profile_XXXXXX";
static long log_end; /* of what was read */

/* Checks the profile that the last call logged, to the digits of the log. */
static void check_logged(const struct presence *p, double tolerance)
{
    static const char key[] = "profile: density ";
    char line[1024];
    double density = -1, out = -1, shared = -1, skew = -1;
    FILE *file = fopen(log_path, "r");
    check(file != NULL && fseek(file, log_end, SEEK_SET) == 0, "expected a log in %s", log_path);
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        if (strstr(line, key) != NULL)
            sscanf(strstr(line, key) + strlen(key), "%lf, of the result %lf, overlap %lf, skewness %lf",
                   &density, &out, &shared, &skew);
    log_end = ftell(file);
    fclose(file);
    double count = (double)p->count, one = mean_union(p, 1) / count;
    expect(density, one, 0.005, "density");
    expect(out, (double)union_of(p, (1u << ranks) - 1) / count, 0.005 + tolerance, "density of the union");
    check(fabs(shared - overlap(p)) < 0.00051 + tolerance, "expected overlap %g, found %g", overlap(p),
          shared);
    check(fabs(skew - skewness(p)) < 0.0051, "expected skewness %g, found %g", skewness(p), skew);
}

/* Each call has a communicator of its own, as only the first call of a tensor makes a profile. */
static void try_calls(const struct pattern *pattern, const struct tensor_desc *desc, double tolerance)
{
    struct tensor tensor;
    struct oracle oracle;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    tensor_draw(pattern, desc, 6, &tensor);
    oracle_make(&tensor, &oracle);
    for (int dense = 0; dense < 2; dense++) {
        struct presence p = dense ? presence_of_dense(&oracle) : presence_of_coo(&tensor);
        MPI_Comm comm = settings_comm(&(struct settings){ "balanced", NULL, NULL, NULL, NULL });
        check_case("%s of %s, %lld x %zu", dense ? "dense buffer" : "coordinates", pattern->name,
                   (long long)desc->count, desc->row);
        if (dense)
            call_dense(&oracle, false, comm);
        else
            call_coo(&tensor, &oracle, &index_types[0], comm, &result);
        check_logged(&p, tolerance);
        free(p.has);
        MPI_Comm_free(&comm);
    }
    MPIX_Sparse_result_free(&result);
    tensor_free(&tensor);
    oracle_free(&oracle);
}

/* Beyond 2^20 elements the profile uses a sample, whose figures must be close. */
static void try_sample(MPI_Comm comm)
{
    const double density = 0.02, tolerance = 0.1;
    struct tensor_desc desc = { FLOAT32, SUM, 1, 1 << 21 };
    struct oracle o = { .desc = desc, .mine = get_memory((size_t)desc.count, sizeof(float)) };
    double all = 1 - pow(1 - density, ranks);
    check_case("a sample");
    for (int64_t i = 0; i < desc.count; i++)
        if ((double)(mix((uint64_t)i * 64 + (uint64_t)rank) >> 11) < density * 0x1p53)
            ((float *)o.mine)[i] = 1;
    MPIX_Sparse_profile_t found = measure(&o, comm);
    expect(found.density, density, tolerance, "density");
    expect(found.density_out, all, tolerance, "density of the union");
    if (ranks > 1)
        expect(found.gamma[found.gammas - 1], all / density, tolerance, "densification");
    check(found.overlap < 2 * density + 0.01, "expected an overlap of %g, found %g", density, found.overlap);
    check(found.skewness >= 1 && found.skewness < 1.1, "expected a skewness of 1, found %g", found.skewness);
    memset(o.mine, 0, (size_t)desc.count * sizeof(float));
    for (int64_t i = 0; i < desc.count; i += 50)
        ((float *)o.mine)[i] = 1;
    found = measure(&o, comm);
    if (ranks > 1) {
        expect(found.gamma[found.gammas - 1], 1, tolerance, "densification of the identical");
        expect(found.overlap, 1, tolerance, "overlap of the identical");
    }
    free(o.mine);
}

/* The largest vector with exact figures. */
static void try_exact_limit(MPI_Comm comm)
{
    struct tensor_desc desc = { FLOAT32, SUM, 1, 1 << 20 };
    struct oracle o = { .desc = desc, .mine = get_memory((size_t)desc.count, sizeof(float)) };
    check_case("2^20 elements");
    for (int64_t i = rank % 4; i < desc.count; i += 4)
        ((float *)o.mine)[i] = 1;
    MPIX_Sparse_profile_t found = measure(&o, comm);
    double classes = ranks < 4 ? ranks : 4; /* ranks that are equal modulo 4 have equal elements */
    check(found.sampled == desc.count, "expected exact figures, found %lld elements sampled",
          (long long)found.sampled);
    expect(found.density, 0.25, 1e-9, "density");
    expect(found.density_out, classes / 4, 1e-9, "density of the union");
    if (ranks > 1)
        expect(found.gamma[found.gammas - 1], classes, 1e-9, "densification");
    free(o.mine);
}

static const size_t rows[] = { 1, 2, 5, 64 };
enum { ROWS = sizeof rows / sizeof *rows };

/* Up to 64 elements, and up to 65536 with enough of them present, the profile of a call is exact. */
static void try_all_calls(void)
{
    const double sampled = 0.1;
    for (size_t i = 0; patterns[i].name != NULL; i++)
        try_calls(&patterns[i], &(struct tensor_desc){ FLOAT64, SUM, rows[i % ROWS], 61 }, 0);
    for (size_t i = 0; i < ROWS; i++)
        try_calls(pattern_find("shuffled"), &(struct tensor_desc){ FLOAT32, SUM, rows[i], 40 * ranks + 3 },
                  0);
    for (size_t i = 0; i < 3; i++)
        try_calls(pattern_find("random 0.1"), &(struct tensor_desc){ FLOAT32, SUM, rows[i], 70001 }, sampled);
}

int main(int argc, char **argv)
{
    int log = mkstemp(log_path);
    check(log >= 0 && setenv("MPIX_SPARSE_LOG_FILE", log_path, 1) == 0 &&
              setenv("MPIX_SPARSE_LOG", "debug:core", 1) == 0,
          "expected room for a log");
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm comm = settings_comm(&(struct settings){ NULL, NULL, NULL, NULL, NULL });
    const int64_t counts[] = { 24 * ranks, 0, 1, 201 };
    for (size_t i = 0; patterns[i].name != NULL; i++) {
        size_t turn = i % 4;
        struct tensor_desc desc = { i % 2 == 0 ? FLOAT32 : FLOAT64, SUM, rows[(i + i / 4) % ROWS],
                                    counts[turn] };
        try_pattern(&patterns[i], &desc, comm);
        desc.count = counts[0];
        if (turn != 0)
            try_pattern(&patterns[i], &desc, comm);
    }
    try_exact_limit(comm);
    try_sample(comm);
    if (ranks > 1)
        try_all_calls();
    MPI_Comm_free(&comm);
    close(log);
    unlink(log_path);
    return check_end("profile");
}
