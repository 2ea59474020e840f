/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes PageRank from a list of edges: each rank has a share of the edges, and all ranks add the changes.
 *
 *     mpicc -O2 -o pagerank pagerank.c $(pkg-config --cflags --libs mpix-sparse) -lm
 *     mpirun -n 2 ./pagerank [FILE]
 *
 * FILE has an edge "SOURCE TARGET" on each line, with vertices numbered from 0; lines that begin with # are
 * comments. Without FILE, a power-law graph is made up.
 *
 * An active vertex, whose residual is above a tolerance, adds it to its rank and passes it on. While few
 * vertices are active, changes are added by coordinates; else as a dense vector. All ranks know all
 * residuals, and so switch together. The baseline does the same work with a dense MPI_Allreduce in each
 * iteration. */
#include "app.h"

#include <mpix_sparse.h>

#include <limits.h>
#include <math.h>

enum { TOP = 5 };
static const double damping = 0.85;

struct edges {
    size_t n, capacity;
    int32_t (*ends)[2]; /* source and target */
};

/* This rank's edges, by source; and the number of edges of each vertex on all ranks. */
struct graph {
    int32_t n;
    size_t *starts;
    int32_t *targets, *degrees;
};

/* The state of a computation, equal on all ranks but for the changes. */
struct solver {
    double *ranks, *residuals;
    int32_t *active, actives;
    double *changes; /* of this rank; zeros between iterations */
    int32_t *changed, changeds;
    double *values; /* those of changed */
};

static double vertices = 0, degree = 8, source = -1, tolerance = 1e-3, filled = 0.25, repeat = 3;
static const struct app_option options[] = {
    { "--vertices", &vertices, 0, INT_MAX, "number of vertices; 0 is the largest of FILE plus 1, or 1000000",
      false },
    { "--degree", &degree, 1, 1000, "edges for each vertex of the graph that is made up", true },
    { "--source", &source, -1, INT_MAX, "vertex to begin from (personalized PageRank); -1 is all", false },
    { "--tolerance", &tolerance, 1e-12, 1e9,
      "residual of a vertex that is passed on, times the number of vertices", true },
    { "--filled", &filled, 0, 1,
      "share of edges of active vertices, in vertices, from which on changes are dense", true },
    { "--repeat", &repeat, 1, 100, "times to measure; the median counts", false },
    { NULL, NULL, 0, 0, NULL, false },
};

static void add_edge(struct edges *to, int32_t from, int32_t target)
{
    if (to->n == to->capacity) {
        to->capacity = 2 * to->capacity + 1024;
        to->ends = app_resize(to->ends, to->capacity, sizeof *to->ends);
    }
    to->ends[to->n][0] = from;
    to->ends[to->n++][1] = target;
}

/* Reads one line. Returns NULL, or why it is wrong. */
static const char *read_line(char *line, void *context)
{
    static char why[120];
    long long ends[2], last = vertices > 0 ? (long long)vertices - 1 : INT_MAX - 1;
    char *word = line + strspn(line, " \t");
    if (*word == '#' || *word == '\0')
        return NULL;
    for (int i = 0; i < 2; i++) {
        char *end;
        ends[i] = strtoll(word, &end, 10);
        if (end == word || ends[i] < 0 || ends[i] > last || (*end != '\0' && strchr(" \t", *end) == NULL)) {
            snprintf(why, sizeof why, "'%.40s' does not begin with a vertex from 0 to %lld", word, last);
            return why;
        }
        word = end + strspn(end, " \t");
    }
    if (*word != '\0')
        return "there is more than SOURCE TARGET";
    add_edge(context, (int32_t)ends[0], (int32_t)ends[1]);
    return NULL;
}

/* Draws a vertex; few of them are frequent. These are spread over all numbers, by a factor that is prime. */
static int32_t draw(uint64_t *state, double power)
{
    uint64_t vertex = (uint64_t)(vertices * pow(app_uniform(state), power));
    return (int32_t)(vertex * 2654435761u % (uint64_t)vertices);
}

static void make_edges(struct edges *to)
{
    long long n = (long long)(vertices * degree);
    for (long long i = app_rank; i < n; i += app_ranks) {
        uint64_t state = (uint64_t)i << 8;
        int32_t from = draw(&state, 1.5);
        add_edge(to, from, draw(&state, 3));
    }
}

/* Sorts edges by source, by counting, and counts those of all ranks. */
static struct graph make_graph(const struct edges *edges)
{
    size_t n = (size_t)vertices;
    struct graph graph = { .n = (int32_t)vertices };
    graph.starts = app_zeros(n + 2, sizeof *graph.starts);
    graph.targets = app_resize(NULL, edges->n, sizeof *graph.targets);
    graph.degrees = app_zeros(n, sizeof *graph.degrees);
    for (size_t i = 0; i < edges->n; i++)
        graph.starts[edges->ends[i][0] + 2]++;
    for (size_t v = 0; v < n; v++) {
        graph.degrees[v] = (int32_t)graph.starts[v + 2];
        graph.starts[v + 2] += graph.starts[v + 1];
    }
    for (size_t i = 0; i < edges->n; i++)
        graph.targets[graph.starts[edges->ends[i][0] + 1]++] = edges->ends[i][1];
    MPI_Allreduce(MPI_IN_PLACE, graph.degrees, graph.n, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    return graph;
}

static struct solver make_solver(int32_t n)
{
    size_t size = (size_t)n;
    struct solver s = { 0 };
    s.ranks = app_zeros(size, sizeof *s.ranks);
    s.residuals = app_zeros(size, sizeof *s.residuals);
    s.active = app_zeros(size, sizeof *s.active);
    s.changes = app_zeros(size, sizeof *s.changes);
    s.changed = app_zeros(size, sizeof *s.changed);
    s.values = app_zeros(size, sizeof *s.values);
    return s;
}

/* Begins again: all ranks are zero, and the residuals are those of the first vertices. */
static void reset(struct solver *s, int32_t n)
{
    bool all = source < 0;
    s->actives = 0;
    for (int32_t v = 0; v < n; v++) {
        bool begins = all || v == (int32_t)source;
        s->ranks[v] = s->changes[v] = 0;
        s->residuals[v] = begins ? (1 - damping) / (all ? n : 1) : 0;
        if (begins)
            s->active[s->actives++] = v;
    }
}

/* Adds residuals of active vertices to their ranks, and to this rank's changes of the vertices they point to.
 * */
static void push(struct solver *s, const struct graph *graph)
{
    s->changeds = 0;
    for (int32_t i = 0; i < s->actives; i++) {
        int32_t v = s->active[i];
        double residual = s->residuals[v];
        s->ranks[v] += residual;
        s->residuals[v] = 0;
        for (size_t e = graph->starts[v]; e < graph->starts[v + 1]; e++) {
            int32_t target = graph->targets[e];
            if (s->changes[target] == 0)
                s->changed[s->changeds++] = target;
            s->changes[target] += damping * residual / graph->degrees[v];
        }
    }
    s->actives = 0;
}

static void receive(struct solver *s, int32_t v, double change, double least)
{
    s->residuals[v] += change;
    if (s->residuals[v] > least)
        s->active[s->actives++] = v;
}

/* Adds all ranks' changes by coordinates. */
static void add_sparse(struct solver *s, int32_t n, double least, MPIX_Sparse_result *result)
{
    for (int32_t i = 0; i < s->changeds; i++) {
        s->values[i] = s->changes[s->changed[i]];
        s->changes[s->changed[i]] = 0;
    }
    MPIX_Sparse_allreduce_coo(s->changed, s->values, s->changeds, MPI_INT32_T, n, MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD, result);
    MPI_Count nnz;
    const void *indices, *values;
    MPIX_Sparse_result_get(*result, &nnz, &indices, &values);
    for (MPI_Count k = 0; k < nnz; k++)
        receive(s, ((const int32_t *)indices)[k], ((const double *)values)[k], least);
}

/* Adds all ranks' changes as a dense vector. */
static void add_dense(struct solver *s, int32_t n, double least)
{
    MPI_Allreduce(MPI_IN_PLACE, s->changes, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int32_t v = 0; v < n; v++)
        if (s->changes[v] != 0) {
            receive(s, v, s->changes[v], least);
            s->changes[v] = 0;
        }
}

/* True if the edges of active vertices, on all ranks, are few beside the vertices. */
static bool is_sparse(const struct solver *s, const struct graph *graph)
{
    double edges = 0;
    for (int32_t i = 0; i < s->actives; i++)
        edges += graph->degrees[s->active[i]];
    return edges < filled * graph->n;
}

/* One iteration. Returns this rank's seconds. */
static double iterate(struct solver *s, const struct graph *graph, bool sparse, MPIX_Sparse_result *result)
{
    double least = tolerance / graph->n;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    push(s, graph);
    if (sparse)
        add_sparse(s, graph->n, least, result);
    else
        add_dense(s, graph->n, least);
    return MPI_Wtime() - start;
}

static int compare_ranks(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return x[0] != y[0] ? (x[0] < y[0]) - (x[0] > y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Divides by the sum, since vertices without edges pass nothing on. Returns pairs (rank, vertex), largest
 * ranks first. */
static double (*sort_ranks(struct solver *s, int32_t n))[2]
{
    double sum = 0, (*sorted)[2] = app_zeros((size_t)n, sizeof *sorted);
    for (int32_t v = 0; v < n; v++)
        sum += s->ranks[v];
    for (int32_t v = 0; v < n; v++) {
        sorted[v][0] = s->ranks[v] /= sum;
        sorted[v][1] = v;
    }
    qsort(sorted, (size_t)n, sizeof *sorted, compare_ranks);
    return sorted;
}

/* Prints the first vertices. Returns if both have ranks that are equal to 1e-12, and in the same order: ranks
 * that differ only by rounding may be in any. */
static bool compare(struct solver *ours, struct solver *theirs, int32_t n)
{
    double(*sorted)[2] = sort_ranks(ours, n), (*other)[2] = sort_ranks(theirs, n), difference = 0;
    bool ordered = true;
    for (int32_t i = 0; i < n; i++) {
        double *rank = theirs->ranks, here = rank[(int32_t)sorted[i][1]];
        difference = fmax(difference, fabs(ours->ranks[i] - rank[i]));
        ordered = ordered && fabs(here - other[i][0]) <= 1e-12 * here;
    }
    difference = app_max(difference), ordered = app_max(!ordered) == 0;
    if (app_rank == 0)
        printf("the vertices with the largest ranks:\n");
    for (int32_t i = 0; i < n && i < TOP && app_rank == 0; i++)
        printf("%10.0f  %.9f\n", sorted[i][1], sorted[i][0]);
    if (app_rank == 0)
        printf("largest difference of ranks %.1e, order %s\n", difference, ordered ? "equal" : "DIFFERS");
    free(sorted);
    free(other);
    return difference <= 1e-12 && ordered;
}

/* Seconds of one run, ours and the baseline's, and iterations; those that were sparse are also counted apart.
 * */
struct times {
    double all[2], sparse[2];
    int iterations, sparses;
};

/* Runs both, in turn, until no vertex is active. */
static struct times run(struct solver *ours, struct solver *theirs, const struct graph *graph)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    struct times times = { 0 };
    reset(ours, graph->n);
    reset(theirs, graph->n);
    for (; ours->actives > 0 || theirs->actives > 0; times.iterations++) {
        bool sparse = is_sparse(ours, graph);
        double seconds[2] = { iterate(ours, graph, sparse, &result), iterate(theirs, graph, false, NULL) };
        times.sparses += sparse;
        for (int i = 0; i < 2; i++) {
            times.all[i] += seconds[i];
            times.sparse[i] += sparse ? seconds[i] : 0;
        }
    }
    MPIX_Sparse_result_free(&result);
    return times;
}

/* The library's first call measures the machine. It is not timed, as MPI_Init is not. */
static void make_first_call(const struct graph *graph)
{
    MPIX_Sparse_result result = MPIX_SPARSE_RESULT_NULL;
    MPIX_Sparse_allreduce_coo(NULL, NULL, 0, MPI_INT32_T, graph->n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                              &result);
    MPIX_Sparse_result_free(&result);
}

/* Runs several times, and prints. Returns the medians. */
static struct times measure(struct solver *ours, struct solver *theirs, const struct graph *graph)
{
    size_t n = (size_t)repeat;
    double *seconds = app_zeros(4 * n, sizeof *seconds);
    struct times times;
    make_first_call(graph);
    for (size_t i = 0; i < n; i++) {
        times = run(ours, theirs, graph);
        for (size_t k = 0; k < 2; k++) {
            seconds[k * n + i] = app_max(times.all[k]);
            seconds[(k + 2) * n + i] = app_max(times.sparse[k]);
        }
    }
    for (size_t k = 0; k < 2; k++) {
        times.all[k] = app_median(seconds + k * n, n);
        times.sparse[k] = app_median(seconds + (k + 2) * n, n);
    }
    free(seconds);
    if (app_rank == 0)
        printf("%d iterations, %d of them by coordinates: these took %.3f ms, baseline %.3f ms\n",
               times.iterations, times.sparses, times.sparse[0] * 1e3, times.sparse[1] * 1e3);
    return times;
}

static struct graph load(const char *path)
{
    struct edges edges = { 0 };
    if (path != NULL) {
        app_read_lines(path, read_line, &edges);
        double largest = -1;
        for (size_t i = 0; i < 2 * edges.n; i++)
            largest = fmax(largest, edges.ends[i / 2][i % 2]);
        vertices = vertices > 0 ? vertices : app_max(largest) + 1;
    } else {
        vertices = vertices > 0 ? vertices : 1000000;
        make_edges(&edges);
    }
    double all = app_total((double)edges.n);
    if (all == 0 || source >= vertices)
        app_fail(all == 0 ? "%s has no edges" : "option --source: %s has fewer vertices",
                 path != NULL ? path : "the graph");
    if (app_rank == 0)
        printf("%.0f vertices, %.0f edges on %d ranks\n", vertices, all, app_ranks);
    struct graph graph = make_graph(&edges);
    free(edges.ends);
    return graph;
}

static void release(struct solver *s)
{
    free(s->ranks);
    free(s->residuals);
    free(s->active);
    free(s->changes);
    free(s->changed);
    free(s->values);
}

int main(int argc, char **argv)
{
    const char *usage = "Computes PageRank of the graph in FILE, lines of SOURCE TARGET, or of one made up.";
    const char *path = app_start(argc, argv, "pagerank", usage, options);
    struct graph graph = load(path);
    struct solver ours = make_solver(graph.n), theirs = make_solver(graph.n);
    struct times times = measure(&ours, &theirs, &graph);
    bool equal = compare(&ours, &theirs, graph.n);
    release(&ours);
    release(&theirs);
    free(graph.starts);
    free(graph.targets);
    free(graph.degrees);
    return app_end(times.all[0], times.all[1], "for all iterations", equal);
}
