/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the n-grams of a text, by a hash of 30 bits: each rank counts its lines, and one call adds all
 * counts.
 *
 *     mpicc -O2 -o ngrams ngrams.c $(pkg-config --cflags --libs mpix-sparse) -lm
 *     mpirun -n 2 ./ngrams [FILE]
 *
 * A dense vector of 2^30 counts would take 8 GB on each rank. So the baseline is what programs do without
 * this library: MPI_Allgatherv of all ranks' keys and counts, which each rank merges. Without FILE, the text
 * has words drawn by Zipf's law. An n-gram lies in one line. */
#include "app.h"

#include <mpix_sparse.h>

#include <limits.h>

enum { KEY_BITS = 30, ORDER_MAX = 16, TOP = 5, LINE_WORDS = 50 };

/* The counts of keys that occur, with ascending keys. */
struct histogram {
    size_t n, capacity;
    int32_t *keys;
    int64_t *counts;
};

/* Settings, and the options that set them. */
static double order = 3, words = 4e6, vocabulary = 1e5, repeat = 7;
static const struct app_option options[] = {
    { "--order", &order, 1, ORDER_MAX, "words of an n-gram", false },
    { "--words", &words, 1, 1e11, "words of the text that is made up without FILE", false },
    { "--vocabulary", &vocabulary, 1, 1e8, "different words of that text", false },
    { "--repeat", &repeat, 1, 1000, "times to measure; the median counts", false },
    { NULL, NULL, 0, 0, NULL, false },
};

/* Called for each n-gram: its words in order, and its key. */
typedef void (*ngram_fn)(char *const *gram, int32_t key, void *context);

struct reader {
    ngram_fn use;
    void *context;
};

static int32_t key_of(const uint64_t *hashes)
{
    uint64_t state = 0;
    for (int i = 0; i < (int)order; i++)
        state = app_random(&state) ^ hashes[i];
    return (int32_t)(app_random(&state) >> (64 - KEY_BITS));
}

static uint64_t hash_word(const char *word)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *word != '\0'; word++)
        hash = (hash ^ (unsigned char)*word) * 0x100000001b3u;
    return hash;
}

/* Splits a line into words, and passes each n-gram on. */
static const char *read_line(char *line, void *context)
{
    const struct reader *reader = context;
    char *gram[ORDER_MAX];
    uint64_t hashes[ORDER_MAX];
    int n = (int)order, have = 0;
    for (char *word = strtok(line, " \t\r\v\f"); word != NULL; word = strtok(NULL, " \t\r\v\f")) {
        if (have == n) {
            memmove(gram, gram + 1, (size_t)(n - 1) * sizeof *gram);
            memmove(hashes, hashes + 1, (size_t)(n - 1) * sizeof *hashes);
            have--;
        }
        gram[have] = word;
        hashes[have++] = hash_word(word);
        if (have == n)
            reader->use(gram, key_of(hashes), reader->context);
    }
    return NULL;
}

/* Cumulative probabilities by Zipf's law. */
static double *make_zipf(size_t n)
{
    double sum = 0, *cumulative = app_resize(NULL, n, sizeof *cumulative);
    for (size_t i = 0; i < n; i++)
        cumulative[i] = sum += 1.0 / (double)(i + 1);
    for (size_t i = 0; i < n; i++)
        cumulative[i] /= sum;
    return cumulative;
}

static size_t draw(const double *cumulative, size_t n, double u)
{
    size_t low = 0, high = n - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (cumulative[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Makes up this rank's lines. The text is the same on any number of ranks. */
static void make_text(struct reader *reader)
{
    size_t n = (size_t)vocabulary;
    double *zipf = make_zipf(n);
    long long lines = ((long long)words + LINE_WORDS - 1) / LINE_WORDS;
    for (long long i = app_rank; i < lines; i += app_ranks) {
        char line[LINE_WORDS * 12 + 1];
        int length = 0;
        uint64_t state = (uint64_t)i << 32;
        for (long long k = i * LINE_WORDS; k < (i + 1) * LINE_WORDS && k < (long long)words; k++)
            length += snprintf(line + length, sizeof line - (size_t)length, "w%zu ",
                               draw(zipf, n, app_uniform(&state)));
        read_line(line, reader);
    }
    free(zipf);
}

/* Calls use for each n-gram of this rank's lines. */
static void read_text(const char *path, ngram_fn use, void *context)
{
    struct reader reader = { use, context };
    if (path != NULL)
        app_read_lines(path, read_line, &reader);
    else
        make_text(&reader);
}

static void reserve(struct histogram *to, size_t n)
{
    if (n < to->capacity)
        return;
    to->capacity = n + n / 2 + 1;
    to->keys = app_resize(to->keys, to->capacity, sizeof *to->keys);
    to->counts = app_resize(to->counts, to->capacity, sizeof *to->counts);
}

static void add_key(char *const *gram, int32_t key, void *context)
{
    struct histogram *to = context;
    (void)gram;
    reserve(to, to->n + 1);
    to->keys[to->n++] = key;
}

static int compare_keys(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Counts this rank's n-grams. Returns how many they are. */
static size_t count_ngrams(const char *path, struct histogram *counted)
{
    reserve(counted, 0);
    read_text(path, add_key, counted);
    size_t all = counted->n, n = 0;
    qsort(counted->keys, all, sizeof *counted->keys, compare_keys);
    for (size_t i = 0, end; i < all; i = end, n++) {
        for (end = i; end < all && counted->keys[end] == counted->keys[i]; end++)
            ;
        counted->keys[n] = counted->keys[i];
        counted->counts[n] = (int64_t)(end - i);
    }
    counted->n = n;
    return all;
}

/* Merges two sorted lists behind the end of a third. */
static void merge(const struct histogram *a, const struct histogram *b, struct histogram *to)
{
    size_t i = 0, j = 0;
    while (i < a->n || j < b->n) {
        bool left = j == b->n || (i < a->n && a->keys[i] <= b->keys[j]);
        bool right = i == a->n || (j < b->n && b->keys[j] <= a->keys[i]);
        to->keys[to->n] = left ? a->keys[i] : b->keys[j];
        to->counts[to->n++] = (left ? a->counts[i] : 0) + (right ? b->counts[j] : 0);
        i += left;
        j += right;
    }
}

/* The baseline. Gathers all ranks' lists into a buffer, and merges neighbours until one list is left. Returns
 * its buffer. */
static struct histogram *gather(const struct histogram *mine, struct histogram buffers[2])
{
    struct histogram *from = &buffers[0], *to = &buffers[1];
    int *sizes = app_resize(NULL, 2 * (size_t)app_ranks, sizeof *sizes), *starts = sizes + app_ranks;
    int n = (int)mine->n;
    size_t all = 0;
    MPI_Allgather(&n, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < app_ranks; all += (size_t)sizes[i++])
        starts[i] = (int)all;
    if (all > INT_MAX)
        app_fail("the baseline cannot gather %zu keys: MPI counts in int", all);
    reserve(from, all);
    reserve(to, all);
    MPI_Allgatherv(mine->keys, n, MPI_INT32_T, from->keys, sizes, starts, MPI_INT32_T, MPI_COMM_WORLD);
    MPI_Allgatherv(mine->counts, n, MPI_INT64_T, from->counts, sizes, starts, MPI_INT64_T, MPI_COMM_WORLD);
    from->n = all;
    for (int lists = app_ranks; lists > 1; lists = (lists + 1) / 2) {
        to->n = 0;
        for (int i = 0; i < lists; i += 2) {
            struct histogram a = { (size_t)sizes[i], 0, from->keys + starts[i], from->counts + starts[i] },
                             b = { 0 };
            if (i + 1 < lists)
                b = (struct histogram){ (size_t)sizes[i + 1], 0, from->keys + starts[i + 1],
                                        from->counts + starts[i + 1] };
            starts[i / 2] = (int)to->n;
            merge(&a, &b, to);
            sizes[i / 2] = (int)to->n - starts[i / 2];
        }
        struct histogram *swap = from;
        from = to, to = swap;
    }
    free(sizes);
    return from;
}

/* The most frequent keys, and one n-gram of each. */
struct top {
    int n;
    int32_t keys[TOP];
    int64_t counts[TOP];
    char texts[TOP][128];
};

static void find_text(char *const *gram, int32_t key, void *context)
{
    struct top *top = context;
    for (int i = 0; i < top->n; i++) {
        char *text = top->texts[i];
        for (int k = 0, length = 0; top->keys[i] == key && k < (int)order && length < 127; k++)
            length += snprintf(text + length, (size_t)(128 - length), k > 0 ? " %s" : "%s", gram[k]);
    }
}

/* Prints the most frequent n-grams. Several n-grams may have a key; the text is the last of the lowest rank
 * with any. */
static void print_top(const char *path, const struct histogram *all)
{
    struct top top = { 0 };
    for (size_t i = 0; i < all->n; i++) {
        int k = top.n < TOP ? top.n++ : TOP;
        for (; k > 0 && top.counts[k - 1] < all->counts[i]; k--)
            if (k < TOP)
                top.keys[k] = top.keys[k - 1], top.counts[k] = top.counts[k - 1];
        if (k < TOP)
            top.keys[k] = all->keys[i], top.counts[k] = all->counts[i];
    }
    read_text(path, find_text, &top);
    for (int i = 0; i < top.n; i++) {
        int owner = top.texts[i][0] != '\0' ? app_rank : app_ranks;
        MPI_Allreduce(MPI_IN_PLACE, &owner, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        MPI_Bcast(top.texts[i], sizeof top.texts[i], MPI_CHAR, owner, MPI_COMM_WORLD);
        if (app_rank == 0)
            printf("%10lld  %s\n", (long long)top.counts[i], top.texts[i]);
    }
}

/* True if a result has the keys and counts of a list. */
static bool same(MPIX_Sparse_result result, const struct histogram *list)
{
    MPI_Count n;
    const void *keys, *counts;
    MPIX_Sparse_result_get(result, &n, &keys, &counts);
    if (n == 0 || (size_t)n != list->n)
        return n == 0 && list->n == 0;
    return memcmp(keys, list->keys, list->n * sizeof *list->keys) == 0 &&
           memcmp(counts, list->counts, list->n * sizeof *list->counts) == 0;
}

/* Measures both ways in turn, and prints medians beside the times of the first calls. Returns the baseline's
 * list. */
static struct histogram *measure(const struct histogram *mine, MPIX_Sparse_result *result,
                                 struct histogram buffers[2], double medians[2])
{
    struct histogram *merged = NULL;
    int runs = (int)repeat + 1;
    double *ours = app_zeros((size_t)runs, sizeof *ours), *theirs = app_zeros((size_t)runs, sizeof *theirs);
    for (int i = 0; i < runs; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPIX_Sparse_allreduce_coo(mine->keys, mine->counts, (MPI_Count)mine->n, MPI_INT32_T,
                                  (MPI_Count)1 << KEY_BITS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, result);
        ours[i] = app_max(MPI_Wtime() - start);
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        merged = gather(mine, buffers);
        theirs[i] = app_max(MPI_Wtime() - start);
    }
    double first[2] = { ours[0], theirs[0] };
    medians[0] = app_median(ours + 1, (size_t)runs - 1),
    medians[1] = app_median(theirs + 1, (size_t)runs - 1);
    if (app_rank == 0)
        printf("MPIX_Sparse_allreduce_coo  %9.3f ms, the first call %9.3f ms\n"
               "MPI_Allgatherv and merge   %9.3f ms, the first call %9.3f ms\n",
               medians[0] * 1e3, first[0] * 1e3, medians[1] * 1e3, first[1] * 1e3);
    free(ours);
    free(theirs);
    return merged;
}

static void release(struct histogram *list)
{
    free(list->keys);
    free(list->counts);
}

int main(int argc, char **argv)
{
    const char *usage =
        "Counts the n-grams of the text in FILE, or of one made up by Zipf's law, over all ranks.";
    const char *path = app_start(argc, argv, "ngrams", usage, options);
    struct histogram mine = { 0 }, buffers[2] = { { 0 } };
    double all = app_total((double)count_ngrams(path, &mine)), distinct = app_max((double)mine.n), medians[2];
    if (app_rank == 0)
        printf("%.0f n-grams of %d words on %d ranks; a rank has at most %.0f different keys\n", all,
               (int)order, app_ranks, distinct);
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    const struct histogram *merged = measure(&mine, &result, buffers, medians);

    double sum = 0;
    for (size_t i = 0; i < merged->n; i++)
        sum += (double)merged->counts[i];
    bool equal = app_max(!same(result, merged) || sum != all) == 0;
    if (app_rank == 0)
        printf("%zu different keys together; the most frequent:\n", merged->n);
    print_top(path, merged);
    MPIX_Sparse_result_free(&result);
    release(&mine);
    release(&buffers[0]);
    release(&buffers[1]);
    return app_end(medians[0], medians[1], "a call", equal);
}
