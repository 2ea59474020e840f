/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests vectors that other implementations of sparse allreduce reduce wrongly. Each test names the
 * implementation and its defect. Every scheme must reduce its vectors to the bits of MPI_Allreduce, in every
 * format, through both interfaces. known_defects_calls.c covers defects of the calls. */

#include <mpix_sparse.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "patterns.h"
#include "scheme/scheme.h"
#include "tensors.h"

enum { TIMEOUT = 280 /* seconds, for one test */, MOST_CONFIGS = 256 };

/* A communicator that runs one scheme. */
struct config {
    struct settings settings;
    MPI_Comm comm;
    MPIX_Sparse_result result; /* reused by later calls */
    bool plain;                /* the library selects formats and partition */
};

static struct config configs[MOST_CONFIGS];
static size_t config_count;
static size_t vectors; /* vectors so far */

/* Many ranks, or few processors: formats alternate. */
static bool few;

static void add_config(const char *scheme, const char *wire, const char *partition, const char *grain,
                       const char *segment)
{
    struct settings settings = { scheme, wire, partition, grain, segment };
    bool plain = wire == NULL && partition == NULL && segment == NULL;
    check(config_count < MOST_CONFIGS, "too many configurations");
    configs[config_count++] =
        (struct config){ settings, settings_comm(&settings), MPIX_SPARSE_RESULT_NULL, plain };
}

static void make_configs(void)
{
    for (size_t s = 0; sar_schemes[s] != NULL; s++) {
        if (!sar_scheme_serves(sar_schemes[s], SAR_ALLREDUCE))
            continue;
        add_config(sar_schemes[s]->name, NULL, NULL, NULL, NULL);
        add_config(sar_schemes[s]->name, NULL, NULL, NULL, "4096");
        for (size_t w = 0; sar_wires[w] != NULL && !sar_schemes[s]->on_dense_buffers; w++)
            add_config(sar_schemes[s]->name, sar_wires[w]->name, NULL, NULL, NULL);
    }
    add_config("balanced", NULL, "hash", "1", NULL);
    add_config("balanced", NULL, "cyclic", "1", NULL);
    add_config("balanced", NULL, "range", NULL, NULL);
    add_config("balanced", NULL, "hierarchical", NULL, NULL);
}

static void free_configs(void)
{
    for (size_t i = 0; i < config_count; i++) {
        check_success(MPIX_Sparse_result_free(&configs[i].result), "MPIX_Sparse_result_free");
        MPI_Comm_free(&configs[i].comm);
    }
}

static const char *present_test;

static void run(struct config *c, const struct tensor *t, const struct oracle *o, size_t api)
{
    const struct index_type *type = &index_types[vectors % INDEX_TYPES];
    check_case("%s, %s %s of %lld x %zu, %s, %s", present_test, base_types[t->desc.base].name,
               op_types[t->desc.op].name, (long long)t->desc.count, t->desc.row,
               api == 0 ? type->name : "dense interface", settings_text(&c->settings));
    if (api == 0)
        call_coo(t, o, type, c->comm, &c->result);
    else
        call_dense(o, api == 2, c->comm);
}

/* Reduce a vector in all configurations, and free it. If formats alternate, so do their interfaces. */
static void reduce(struct tensor *t)
{
    enum { APIS = 3 /* coordinates, dense, dense in place */ };
    struct oracle oracle;
    oracle_make(t, &oracle);
    for (size_t i = 0; i < config_count; i++)
        for (size_t api = 0; api < APIS; api++)
            if (!few || configs[i].plain || (i + vectors) % 12 == 4 * api)
                run(&configs[i], t, &oracle, api);
    vectors++;
    tensor_free(t);
    oracle_free(&oracle);
}

static struct tensor floats(int64_t count)
{
    return (struct tensor){ .desc = { FLOAT32, SUM, 1, count } };
}

static void put(struct tensor *t, int64_t index)
{
    uint64_t key = mix((uint64_t)index * 64 + (uint64_t)rank);
    put_numbers(&t->desc, key, tensor_add(t, (uint64_t)index));
}

/* One element in `step`, at other positions on each rank. */
static void put_some(struct tensor *t, int64_t step)
{
    for (int64_t i = rank % step; i < t->desc.count; i += step)
        put(t, i);
}

static void reduce_pattern(const char *name, struct tensor_desc desc)
{
    struct tensor t;
    tensor_draw(pattern_find(name), &desc, vectors, &t);
    reduce(&t);
}

/* Zen's released code: index 0 means an empty cell of hash memory, so that element 0 is lost. */
static void element_0(void)
{
    static const int64_t counts[] = { 1, 2, 300 };
    for (int i = 0; i < 3; i++) {
        struct tensor t = floats(counts[i]);
        put(&t, 0);
        reduce(&t);
    }
}

/* Zen's released code: parts disagree about their sizes unless the count is divisible by the ranks. */
static void indivisible_counts(void)
{
    const int64_t counts[] = { ranks + 1, 2 * ranks - 1, 1009 };
    for (int i = 0; i < 3; i++) {
        struct tensor t = floats(counts[i]);
        put_some(&t, 2);
        put(&t, 0);
        put(&t, counts[i] - 1);
        reduce(&t);
    }
}

/* SparCML: hangs at 3 elements on 4 ranks, and whenever a rank's part is empty. */
static void fewer_elements_than_ranks(void)
{
    const int64_t counts[] = { 0, 1, 3, ranks - 1 };
    for (int i = 0; i < 4; i++) {
        struct tensor t = floats(counts[i]);
        put_some(&t, 1);
        reduce(&t);
    }
}

/* SparCML: divides by the number of elements, SIGFPE when no rank has any. */
static void all_ranks_empty(void)
{
    for (int64_t count = 1; count < 10000; count *= 99) {
        struct tensor t = floats(count);
        reduce(&t);
    }
}

/* PyTorch (#87497) and GRACE (#16): error or hang when one rank has no elements. */
static void one_rank_empty(void)
{
    const int target[] = { 0, ranks / 2, ranks - 1 };
    for (int i = 0; i < 6; i++) {
        struct tensor t = floats(100);
        if ((rank == target[i % 3]) == (i < 3))
            put_some(&t, 3);
        reduce(&t);
    }
}

/* SparCML: index and value share a struct, whose padding breaks 8-byte values. Horovod (#966): 8-byte
 * indices. */
static void sizes_of_values_and_indices(void)
{
    static const enum base bases[] = { FLOAT64, INT64, FLOAT32 };
    for (int i = 0; i < 2 * INDEX_TYPES; i++) {
        struct tensor t = { .desc = { bases[i % 3], SUM, i % 2 == 0 ? 1 : 3, 257 } };
        put_some(&t, 4);
        reduce(&t);
    }
}

/* Zen's released code sums bfloat16 and nothing else. */
static void types_and_ops(void)
{
    for (int i = 0; i < BASES * OPS; i++) {
        struct tensor t = { .desc = { (enum base)(i / OPS), (enum op)(i % OPS), 1, 150 } };
        put_some(&t, 2);
        reduce(&t);
    }
}

/* SparCML: values of at most 1e-8 are taken for zeros. */
static void small_values(void)
{
    const char *const names[] = { "values below 1e-8", "denormals" };
    for (int i = 0; i < 4; i++)
        reduce_pattern(names[i % 2], (struct tensor_desc){ i < 2 ? FLOAT32 : FLOAT64, SUM, 1, 200 });
}

/* DeepSpeed (PR#8504): a row is taken for zero when its numbers add up to zero. */
static void rows_that_add_up_to_zero(void)
{
    struct tensor t = { .desc = { FLOAT32, SUM, 2, 120 } };
    for (int64_t i = rank % 3; i < t.desc.count; i += 3)
        memcpy(tensor_add(&t, (uint64_t)i), (float[]){ (float)(rank + 1), (float)(-rank - 1) },
               2 * sizeof(float));
    reduce(&t);
    reduce_pattern("rows with a single number", (struct tensor_desc){ FLOAT32, SUM, 5, 120 });
}

/* SparCML and implementations that compare with zero: explicit zeros, -0.0, NaN and sums that cancel are
 * values. */
static void values_that_compare_oddly(void)
{
    const char *const names[] = { "explicit zeros",         "-0.0", "nothing but -0.0", "cancelled sums",
                                  "sums cancelled to -0.0", "NaN",  "infinities" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        reduce_pattern(names[i], (struct tensor_desc){ i % 2 == 0 ? FLOAT32 : FLOAT64, SUM, 1, 160 });
}

/* Horovod (#3328, #341): repeated or unsorted indices. */
static void duplicates_and_disorder(void)
{
    const char *const names[] = { "duplicates", "descending", "shuffled" };
    for (int i = 0; i < 3; i++)
        reduce_pattern(names[i], (struct tensor_desc){ INT32, SUM, 1, 333 });
    struct tensor t = floats(10);
    for (int i = 0; i < 25; i++) /* more indices than the vector has elements */
        put_numbers(&t.desc, (uint64_t)(i * 64 + rank), tensor_add(&t, 7));
    reduce(&t);
}

/* Zen's lossy hash: of elements that hash to one cell all but one are lost, 17.5 % of them at a density of 10
 * %. Its released code checks a cell, then writes it, and loses an element that another thread wrote in
 * between. */
static void collisions(void)
{
    for (int i = 0; i < 2; i++) {
        struct tensor t = { .desc = { INT32, SUM, 1, 20011 } };
        put_some(&t, i == 0 ? 10 : 2);
        reduce(&t);
    }
}

/* Zen's released code: serial memory has the expected size, and is overrun when more elements collide. Cases:
 * contiguous indices, multiples of the number of ranks, and far more elements than in earlier calls. */
static void more_than_expected(void)
{
    static const int64_t steps[] = { 1500, 1, 3000 };
    struct tensor contiguous = floats(4096), strided = floats(4096);
    for (int64_t i = 0; i < 512; i++)
        put(&contiguous, 1024 + i);
    for (int64_t i = 0; i < strided.desc.count; i += ranks)
        put(&strided, i);
    reduce(&contiguous);
    reduce(&strided);
    for (int i = 0; i < 3; i++) {
        struct tensor t = floats(3001);
        put_some(&t, steps[i]);
        reduce(&t);
    }
}

/* OmniReduce: a last block of 256 that the vector fills partly, and blocks with one element each. */
static void blocks(void)
{
    static const int64_t counts[] = { 255, 256, 257, 256 * 9 + 3 };
    for (int i = 0; i < 4; i++) {
        struct tensor t = floats(counts[i]);
        for (int64_t at = 255; at < counts[i] - 1; at += 256)
            put(&t, at);
        put(&t, counts[i] - 1);
        reduce(&t);
    }
}

/* Horovod (#554) and PyTorch (#22226): all ranks' elements are padded to those of the fullest rank. */
static void uneven_ranks(void)
{
    reduce_pattern("growing", (struct tensor_desc){ FLOAT32, SUM, 1, 3000 });
    reduce_pattern("all on one rank", (struct tensor_desc){ FLOAT32, SUM, 1, 3000 });
}

/* SparCML's int lengths, and fixed-size buffers: messages far above every size at which the library cuts them
 * or changes protocol. */
static void long_messages(void)
{
    struct tensor t = { .desc = { FLOAT64, SUM, 1, 60013 } };
    put_some(&t, 1);
    reduce(&t);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        { "element 0", element_0 },
        { "indivisible counts", indivisible_counts },
        { "fewer elements than ranks", fewer_elements_than_ranks },
        { "all ranks empty", all_ranks_empty },
        { "one rank empty", one_rank_empty },
        { "sizes of values and indices", sizes_of_values_and_indices },
        { "types and ops", types_and_ops },
        { "small values", small_values },
        { "rows that add up to zero", rows_that_add_up_to_zero },
        { "values that compare oddly", values_that_compare_oddly },
        { "duplicates and disorder", duplicates_and_disorder },
        { "collisions", collisions },
        { "more than expected", more_than_expected },
        { "blocks", blocks },
        { "uneven ranks", uneven_ranks },
        { "long messages", long_messages },
    };
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    few = oversubscribed || ranks > 4;
    make_configs();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        check_alarm(TIMEOUT);
        present_test = tests[i].name;
        tests[i].run();
    }
    free_configs();
    return check_end("known_defects");
}
