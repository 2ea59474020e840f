/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the bytes that schemes send, exactly. Apart from headers, Balanced Parallelism with coordinates in
 * the push and a hash bitmap in the pull must send the bytes that the Zen paper states. Rank r, with I_r^j of
 * its elements in part j, sends
 *
 *     sum over j != r of |I_r^j| (4 + s)  +  (n - 1) (|I^r| s + ceil(slots of part r / 8))
 *
 * bytes, where I^r are the elements of part r that any rank has. */

#include <mpix_sparse.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "tensors.h"

enum { HEADER = 64, INDEX = 4 };

/* The elements of each rank. */
struct presence {
    struct tensor_desc desc;
    size_t count;
    bool dense;         /* elements of dense buffers */
    unsigned char *has; /* for each rank, a row of `count` bytes */
};

/* In a dense buffer an element of zero bits is absent. */
static bool is_there(const struct oracle *o, size_t index)
{
    size_t bytes = element_bytes(&o->desc);
    unsigned char any = 0;
    for (size_t i = 0; i < bytes; i++)
        any |= o->mine[index * bytes + i];
    return any != 0;
}

static void gather_presence(const struct tensor *t, const struct oracle *o, bool dense, struct presence *p)
{
    *p = (struct presence){ t->desc, (size_t)t->desc.count, dense,
                            get_memory((size_t)t->desc.count * (size_t)ranks, 1) };
    unsigned char *mine = get_memory(p->count, 1);
    for (size_t i = 0; dense && i < p->count; i++)
        mine[i] = is_there(o, i);
    for (size_t i = 0; !dense && i < t->nnz; i++)
        mine[t->index[i]] = 1;
    MPI_Allgather(mine, (int)p->count, MPI_BYTE, p->has, (int)p->count, MPI_BYTE, MPI_COMM_WORLD);
    free(mine);
}

static bool has(const struct presence *p, int r, size_t index)
{
    return p->has[(size_t)r * p->count + index] != 0;
}

static bool any_has(const struct presence *p, size_t index)
{
    bool any = false;
    for (int r = 0; r < ranks; r++)
        any |= has(p, r, index);
    return any;
}

/* Partitions with maps that this test knows. */
struct partition {
    const char *name, *grain;
};

static int part_of(const struct presence *p, const struct partition *partition, size_t index)
{
    size_t n = (size_t)ranks, span = (p->count + n - 1) / n;
    if (strcmp(partition->name, "range") == 0)
        return (int)(index / span);
    return (int)(index / strtoul(partition->grain, NULL, 10) % n);
}

/* Elements of rank r in part j; r = -1 counts the union, r = -2 all slots. */
static long long in_part(const struct presence *p, const struct partition *partition, int r, int j)
{
    long long n = 0;
    for (size_t i = 0; i < p->count; i++) {
        bool counts = r == -2 || (r == -1 ? any_has(p, i) : has(p, r, i));
        n += counts && part_of(p, partition, i) == j;
    }
    return n;
}

static long long elements(const struct presence *p, int r)
{
    long long n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += r < 0 ? any_has(p, i) : has(p, r, i);
    return n;
}

static MPIX_Sparse_report_t call(const struct tensor *t, const struct oracle *o, bool dense, MPI_Comm comm)
{
    MPIX_Sparse_report_t report;
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    if (dense)
        call_dense(o, false, comm);
    else
        call_coo(t, o, &index_types[0], comm, &result);
    check_success(MPIX_Sparse_result_free(&result), "MPIX_Sparse_result_free");
    check_success(MPIX_Sparse_get_report(comm, &report), "MPIX_Sparse_get_report");
    return report;
}

static void expect(long long found, long long expected, const char *what)
{
    check(found == expected, "expected %lld %s, found %lld", expected, what, found);
}

static void expect_real(double found, double expected, const char *what)
{
    check(fabs(found - expected) <= 1e-9 * fabs(expected), "expected %s of %.12g, found %.12g", what,
          expected, found);
}

/* Relations that hold for every scheme that sends its own messages. */
static void check_counts(const MPIX_Sparse_report_t *r, const struct presence *p, long long messages)
{
    long long nnz = 0, most = 0;
    for (int q = 0; q < ranks; q++) {
        nnz += elements(p, q);
        most = elements(p, q) > most ? elements(p, q) : most;
    }
    expect(r->messages_sent, messages, "messages");
    expect(r->header_bytes_sent, HEADER * messages, "bytes of headers");
    expect(r->nnz_in, elements(p, rank), "elements on this rank");
    expect(r->nnz_in_sum, nnz, "elements on all ranks");
    expect(r->nnz_in_max, most, "elements on the fullest rank");
    if (!p->dense || r->nnz_out > elements(p, -1)) /* elements of dense buffers may cancel */
        expect(r->nnz_out, elements(p, -1), "elements of the result");
    int64_t sums[] = { (int64_t)r->bytes_sent, (int64_t)r->bytes_received };
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(sums[1], sums[0], "bytes received on all ranks, as many as sent");
}

/* Bytes of a pull with this number of sums in a part with this number of slots. */
static long long pull_bytes(const char *wire, long long sums, long long slots, long long s)
{
    return strcmp(wire, "coo") == 0 ? sums * (INDEX + s) : sums * s + (slots + 7) / 8;
}

static void check_imbalance(const MPIX_Sparse_report_t *r, const struct presence *p,
                            const struct partition *partition)
{
    long long mine = 0, sums = 0;
    for (int j = 0; j < ranks; j++) {
        long long here = in_part(p, partition, rank, j), all = in_part(p, partition, -1, j);
        mine = here > mine ? here : mine;
        sums = all > sums ? all : sums;
    }
    long long nnz = elements(p, rank), nnz_out = elements(p, -1);
    expect_real(r->push_imbalance, nnz == 0 ? 1 : (double)(mine * ranks) / (double)nnz, "a push imbalance");
    expect_real(r->pull_imbalance, nnz_out == 0 ? 1 : (double)(sums * ranks) / (double)nnz_out,
                "a pull imbalance");
}

static void check_balanced(const MPIX_Sparse_report_t *r, const struct presence *p,
                           const struct partition *partition, const char *pull)
{
    long long s = (long long)element_bytes(&p->desc), sent = 0, received = 0, messages = 2 * (ranks - 1);
    for (int j = 0; j < ranks; j++) {
        long long slots = in_part(p, partition, -2, j), sums = in_part(p, partition, -1, j);
        long long message = pull_bytes(pull, sums, slots, s);
        sent += j == rank ? (ranks - 1) * message : in_part(p, partition, rank, j) * (INDEX + s);
        received += j == rank ? 0 : message + in_part(p, partition, j, rank) * (INDEX + s);
    }
    check_counts(r, p, messages);
    check_imbalance(r, p, partition);
    expect(r->bytes_sent - r->header_bytes_sent, sent, "bytes of payload sent");
    expect(r->bytes_received - HEADER * messages, received, "bytes of payload received");
    check(strcmp(r->partition, partition->name) == 0, "expected partition %s, found %s", partition->name,
          r->partition);
    check(ranks == 1 || (strcmp(r->push_wire, "coo") == 0 && strcmp(r->pull_wire, pull) == 0),
          "expected coo and %s, found %s and %s", pull, r->push_wire, r->pull_wire);
}

/* The test does not know the hash's map, but any partition bounds the bytes. */
static void check_hashed(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    long long s = (long long)element_bytes(&p->desc), nnz = 0, count = (long long)p->count;
    int64_t sent = (int64_t)(r->bytes_sent - r->header_bytes_sent);
    for (int q = 0; q < ranks; q++)
        nnz += elements(p, q);
    check_counts(r, p, 2 * (ranks - 1));
    MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    long long bitmaps = sent - (ranks - 1) * elements(p, -1) * s, least = (ranks - 1) * ((count + 7) / 8);
    check(bitmaps >= least && bitmaps <= least + (ranks - 1) * ranks + nnz * (INDEX + s),
          "expected %lld bytes of bitmaps and at most %lld of pushes, found %lld", least, nnz * (INDEX + s),
          bitmaps);
    check(r->push_imbalance >= 1 && r->push_imbalance <= ranks, "expected an imbalance of 1 to %d, found %g",
          ranks, r->push_imbalance);
    check(r->pull_imbalance >= 1 && r->pull_imbalance <= ranks, "expected an imbalance of 1 to %d, found %g",
          ranks, r->pull_imbalance);
    if (elements(p, rank) == count && count % ranks == 0)
        expect_real(r->push_imbalance, 1, "a push imbalance");
}

static void check_allgather(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    long long element = INDEX + (long long)element_bytes(&p->desc), received = 0;
    for (int q = 0; q < ranks; q++)
        received += q == rank ? 0 : elements(p, q);
    check_counts(r, p, ranks - 1);
    expect(r->bytes_sent - r->header_bytes_sent, (ranks - 1) * elements(p, rank) * element,
           "bytes of payload sent");
    expect(r->bytes_received - HEADER * (ranks - 1), received * element, "bytes of payload received");
}

/* True if any of the ranks first, first + 1 … first + n - 1 has an element. */
static bool any_of(const struct presence *p, int first, int n, size_t index)
{
    bool any = false;
    for (int r = first; r < first + n; r++)
        any |= has(p, r, index);
    return any;
}

static long long union_of(const struct presence *p, int first, int n)
{
    long long sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += any_of(p, first, n, i);
    return sum;
}

/* Powers of two only: at distance d a rank sends the union of d neighbours. Of dense buffers it sends fewer
 * elements if sums cancel. */
static void check_doubling(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    long long element = INDEX + (long long)element_bytes(&p->desc), sent = 0, messages = 0;
    if ((ranks & (ranks - 1)) != 0)
        return;
    for (int d = 1; d < ranks; d *= 2, messages++)
        sent += union_of(p, rank / d * d, d) * element;
    check_counts(r, p, messages);
    long long found = (long long)(r->bytes_sent - r->header_bytes_sent);
    if (!p->dense || found > sent)
        expect(found, sent, "bytes of payload sent");
}

static const struct partition ranges = { "range", NULL };

/* A push to the owners, and the sums of all parts except those of the next ranks. */
static void check_split(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    long long element = INDEX + (long long)element_bytes(&p->desc), sent = 0, messages = ranks - 1;
    for (int j = 0; j < ranks; j++)
        sent += j == rank ? 0 : in_part(p, &ranges, rank, j);
    for (int parts = 1, n; parts < ranks; parts += n, messages++) {
        n = parts < ranks - parts ? parts : ranks - parts;
        for (int i = 0; i < n; i++)
            sent += in_part(p, &ranges, -1, (rank + i) % ranks);
    }
    check_counts(r, p, messages);
    expect(r->bytes_sent - r->header_bytes_sent, sent * element, "bytes of payload sent");
}

/* Elements of a part that any of n ranks has, starting from one rank around the ring. */
static long long union_in_part(const struct presence *p, int part, int first, int n)
{
    long long sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        bool any = false;
        for (int r = 0; r < n; r++)
            any |= has(p, (first + r) % ranks, i);
        sum += any && part_of(p, &ranges, i) == part;
    }
    return sum;
}

/* In step i a rank sends the part that started i ranks before, with the union of these ranks; later it sends
 * sums. */
static void check_ring(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    long long element = INDEX + (long long)element_bytes(&p->desc), sent = 0;
    for (int i = 0; i < 2 * (ranks - 1); i++) {
        int part = (rank + 2 * ranks - i) % ranks;
        sent += union_in_part(p, part, part, i < ranks ? i + 1 : ranks);
    }
    check_counts(r, p, 2 * (ranks - 1));
    expect(r->bytes_sent - r->header_bytes_sent, sent * element, "bytes of payload sent");
}

/* Powers of two only. Groups grow while 3 s k 2^T < count; after that there are two messages a level. */
static void check_hybrid(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    double value = (double)element_bytes(&p->desc), most = 1, group = ranks < 2 ? 1 : 2;
    if ((ranks & (ranks - 1)) != 0)
        return;
    for (int q = 0; q < ranks; q++)
        most = elements(p, q) > most ? (double)elements(p, q) : most;
    while (group < ranks && 3 * (value + INDEX) / value * most * 2 * group <= (double)p->count)
        group *= 2;
    check_counts(r, p, llround(log2(group) + 2 * log2(ranks / group)));
}

/* Two nodes; the first may have one rank more. A rank sends to its owners the node's elements of their parts,
 * and sends its part of the result to one rank of the other node. */
static void check_two_level(const MPIX_Sparse_report_t *r, const struct presence *p)
{
    const struct partition cyclic = { "cyclic", "1" };
    long long element = INDEX + (long long)element_bytes(&p->desc), sent = 0, messages = 0;
    int half = (ranks + 1) / 2, first = rank < half ? 0 : half, n = first == 0 ? half : ranks - half;
    if (ranks <= 2)
        return;
    for (int j = 0, other = 0; j < ranks; j++) {
        bool home = j >= first && j < first + n;
        long long here = 0;
        for (size_t i = 0; i < p->count && !home; i++)
            here += part_of(p, &cyclic, i) == j && any_of(p, first, n, i);
        if (home || first + other++ % n != rank)
            continue;
        sent += here;
        messages++;
    }
    long long parts = (ranks - n + n - 1) / n, slots = ((long long)p->count + ranks - 1) / ranks;
    check(sent <= parts * slots, "expected no more than %lld parts of %lld, found %lld elements", parts,
          slots, sent);
    sent += in_part(p, &cyclic, -1, rank);
    check_counts(r, p, messages + 1);
    expect(r->bytes_sent - r->header_bytes_sent, sent * element, "bytes of payload sent");
}

enum { PARTITIONS = 4 };

static const struct partition open_maps[PARTITIONS] = {
    { "range", NULL }, { "cyclic", "1" }, { "cyclic", "4" }, { "cyclic", "1" }
};
static const char *const pulls[PARTITIONS] = { "hash_bitmap", "hash_bitmap", "hash_bitmap", "coo" };

static const struct {
    struct settings settings;
    void (*check)(const MPIX_Sparse_report_t *report, const struct presence *p);
} others[] = {
    { { "balanced", "coo/hash_bitmap", "hash", "1", NULL }, check_hashed },
    { { "allgather", "coo", NULL, NULL, NULL }, check_allgather },
    { { "recursive_doubling", "coo", NULL, NULL, NULL }, check_doubling },
    { { "split_allgather", "coo", NULL, NULL, NULL }, check_split },
    { { "split_dense", "coo", NULL, NULL, NULL }, check_split },
    { { "ring", "coo", NULL, NULL, NULL }, check_ring },
    { { "hybrid", "coo", NULL, NULL, NULL }, check_hybrid },
    { { "two_level", "coo", "cyclic", "1", NULL }, check_two_level },
};

enum { OTHERS = sizeof others / sizeof others[0], COMMS = PARTITIONS + OTHERS };
static MPI_Comm comms[COMMS];

static void make_comms(void)
{
    for (int i = 0; i < PARTITIONS; i++) {
        const char *wire = strcmp(pulls[i], "coo") == 0 ? "coo" : "coo/hash_bitmap";
        comms[i] = settings_comm(
            &(struct settings){ "balanced", wire, open_maps[i].name, open_maps[i].grain, NULL });
    }
    for (int i = 0; i < OTHERS; i++)
        comms[PARTITIONS + i] = settings_comm(&others[i].settings);
}

static void run(const struct tensor *t, bool dense)
{
    struct oracle oracle;
    struct presence p;
    oracle_make(t, &oracle);
    gather_presence(t, &oracle, dense, &p);
    for (int i = 0; i < COMMS; i++) {
        MPIX_Sparse_report_t report = call(t, &oracle, dense, comms[i]);
        if (i < PARTITIONS)
            check_balanced(&report, &p, &open_maps[i], pulls[i]);
        else
            others[i - PARTITIONS].check(&report, &p);
    }
    free(p.has);
    oracle_free(&oracle);
}

int main(int argc, char **argv)
{
    static const int64_t counts[] = { 1, 13, 64, 1000, 1037 };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    setenv("MPIX_SPARSE_SPECULATE", "off", 1); /* each call has other elements, and would send some twice */
    make_comms();
    for (size_t i = 0; patterns[i].name != NULL; i++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            bool dense = (i + c) % 2 == 1;
            struct tensor_desc desc = { i % 3 == 0 ? FLOAT64 : FLOAT32, SUM, 1 + c % 2, counts[c] };
            struct tensor t;
            check_case("%s, %lld elements, %s interface", patterns[i].name, (long long)desc.count,
                       dense ? "dense" : "COO");
            tensor_draw(&patterns[i], &desc, i, &t);
            run(&t, dense);
            tensor_free(&t);
        }
    }
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    return check_end("volume");
}
