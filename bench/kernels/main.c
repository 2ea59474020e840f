/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_sparse_kernels: rates of the library's device kernels, compared with a device-to-device copy, and a
 * bitwise comparison of results with the host. A rate counts the bytes that must be read and written, not
 * the kernel's actual traffic. */

#include "bench/kernels/kernels.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/lib/command.h"

enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 77, WARMUP = 3, MOST_ITERATIONS = 1000 };

struct arguments {
    long long count, parts, iterations, runs;
    double density;
    bool help;
};

#define TO(field) offsetof(struct arguments, field)

/* clang-format off */
static const struct perf_option table[] = {
    { 'c', "count", "N", "214M", perf_parse_count, TO(count), { NULL, 1, 4e9 },
        "floats of the vector; suffixes k, M, G are powers of 1000, Ki, Mi, Gi of 1024" },
    { 'd', "density", "D", "0.02", perf_parse_real, TO(density), { NULL, 0, 1 },
        "share of nonzero elements" },
    { 'p', "parts", "N", "16", perf_parse_count, TO(parts), { NULL, 1, 4096 },
        "parts of the partition map, at most 4096" },
    { 'n', "iterations", "N", "20", perf_parse_count, TO(iterations), { NULL, 1, MOST_ITERATIONS },
        "measured calls, at most 1000" },
    { 'r', "runs", "N", "100", perf_parse_count, TO(runs), { NULL, 0, 1e6 },
        "runs of Algorithm 1 that must not lose an element" },
    { 'h', "help", NULL, NULL, perf_parse_flag, TO(help), { NULL, 0, 0 },
        "print this and exit" },
};
/* clang-format on */

enum { OPTIONS = sizeof table / sizeof table[0] };

static const struct perf_command command = {
    .program = "mpix_sparse_kernels",
    .usage = "usage: mpix_sparse_kernels [options]\n\n"
             "Measure the library's device kernels and compare their results with the host's.\n",
    .ending = "Exit status: 0 success, 1 a wrong result, 2 bad usage, 77 no CUDA device.\n",
    .options = table,
    .n = OPTIONS,
};

void kernels_require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "mpix_sparse_kernels: %s failed\n", what);
    exit(EXIT_WRONG);
}

/* Ends the program after --help or an error. */
static struct kernels_options read_options(int argc, char **argv)
{
    struct arguments read = { 0 };
    bool given[OPTIONS] = { false };
    if (!perf_command_read(&command, argc, argv, &read, given))
        exit(EXIT_USAGE);
    if (read.help) {
        perf_command_help(&command);
        exit(0);
    }
    return (struct kernels_options){ (size_t)read.count, read.density, (int)read.parts, (int)read.iterations,
                                     (int)read.runs };
}

static int ascend(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double kernels_time(struct kernels *k, enum sar_status (*run)(struct kernels *k))
{
    static double times[MOST_ITERATIONS];
    int n = k->options->iterations;
    for (int i = -WARMUP; i < n; i++) {
        float milliseconds = 0;
        cudaEventRecord(k->begin, k->stream);
        kernels_require(run(k) == SAR_OK, "a kernel");
        cudaEventRecord(k->end, k->stream);
        cudaEventSynchronize(k->end);
        cudaEventElapsedTime(&milliseconds, k->begin, k->end);
        if (i >= 0)
            times[i] = (double)milliseconds;
    }
    qsort(times, (size_t)n, sizeof *times, ascend);
    return times[n / 2];
}

/* Returns false if the result is wrong. */
static bool measure(struct kernels *k, const struct kernels_job *job, double *copy)
{
    k->wire = job->wire;
    if (job->prepare != NULL)
        job->prepare(k);
    double milliseconds = kernels_time(k, job->run), rate = job->bytes(k) / milliseconds / 1e6;
    bool correct = job->correct == NULL || job->correct(k);
    if (isnan(*copy))
        *copy = rate;
    printf("  %-20s %10.3f %10.1f %7.1f%%  %s\n", job->name, milliseconds, rate, 100 * rate / *copy,
           job->correct == NULL ? "-"
           : correct            ? "right"
                                : "WRONG");
    fflush(stdout);
    return correct;
}

static bool measure_all(struct kernels *k)
{
    static const struct kernels_job *const tables[] = { kernels_of_vectors, kernels_of_payloads,
                                                        kernels_of_selections };
    bool good = true;
    double copy = NAN;
    printf("# %-20s %10s %10s %8s  %s\n", "kernel", "ms", "GB/s", "of copy", "result");
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct kernels_job *job = tables[t]; job->name != NULL; job++)
            good &= measure(k, job, &copy);
    return good;
}

/* Times torch.nonzero on as many elements, if Python has torch. */
static void measure_torch(const struct kernels_options *options)
{
    static const char script[] =
        "python3 -c \"\nimport torch\n"
        "v = (torch.rand(%zu, device='cuda') < %g).float()\n"
        "b, e = [torch.cuda.Event(enable_timing=True) for _ in range(2)]\nt = []\n"
        "for _ in range(%d):\n"
        "    b.record(); torch.nonzero(v); e.record(); e.synchronize(); t.append(b.elapsed_time(e))\n"
        "print('%%.3f' %% sorted(t[3:])[len(t[3:]) // 2])\n\" 2>/dev/null";
    char line[sizeof script + 64];
    double milliseconds;
    snprintf(line, sizeof line, script, options->count, options->density, options->iterations + WARMUP);
    fflush(stdout);
    FILE *answer = popen(line, "r");
    if (answer != NULL && fscanf(answer, "%lf", &milliseconds) == 1)
        printf("  %-20s %10.3f\n", "torch.nonzero", milliseconds);
    else
        printf("# no torch.nonzero: there is no python3 with a torch that sees the device\n");
    if (answer != NULL)
        pclose(answer);
}

int main(int argc, char **argv)
{
    struct kernels_options options = read_options(argc, argv);
    struct kernels k;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "mpix_sparse_kernels: there is no device of CUDA here\n");
        return EXIT_NO_DEVICE;
    }
    kernels_open(&k, &options);
    printf("# mpix_sparse_kernels: %zu floats, %zu of them present, %d parts, median of %d\n", options.count,
           k.host.nnz, options.parts, options.iterations);
    bool good = measure_all(&k);
    measure_torch(&options);
    good &= kernels_study_hash(&k);
    kernels_close(&k);
    return good ? 0 : EXIT_WRONG;
}
