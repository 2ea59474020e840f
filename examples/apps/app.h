/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the programs of this folder: options, lines of a file, random numbers, medians. */
#ifndef APP_H
#define APP_H

#include <mpi.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static const char *app_name; /* the program's name, in messages */
static int app_rank, app_ranks;

/* One option with a number. The program's default is in *value before app_start is called. */
struct app_option {
    const char *name; /* with its dashes */
    double *value;
    double min, max;
    const char *help;
    bool fraction; /* not only whole numbers */
};

/* Prints a sentence, and ends all ranks. The line is written at once, and a moment before the abort: mpiexec
 * may not print the output that it has not read by then. */
static inline void app_fail(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", app_name, line);
    thrd_sleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1); /* MPI_Abort does not return */
}

/* Returns memory for n elements in place of old, which may be NULL, or ends the program. */
static inline void *app_resize(void *old, size_t n, size_t size)
{
    void *memory = n <= SIZE_MAX / size ? realloc(old, (n > 0 ? n : 1) * size) : NULL;
    if (memory == NULL)
        app_fail("no memory for %zu elements of %zu bytes", n, size);
    return memory;
}

/* Returns zeros for n elements, or ends the program. */
static inline void *app_zeros(size_t n, size_t size)
{
    void *memory = calloc(n > 0 ? n : 1, size);
    if (memory == NULL)
        app_fail("no memory for %zu elements of %zu bytes", n, size);
    return memory;
}

/* Ends all ranks after a sentence about the command line, which is the same on all of them. */
static inline void app_refuse(const char *what, const char *word, const char *why)
{
    if (app_rank == 0)
        fprintf(stderr, "%s: %s '%s' %s; --help lists the options\n", app_name, what, word, why);
    MPI_Finalize();
    exit(2);
}

static inline void app_help(const char *usage, const struct app_option *options)
{
    if (app_rank == 0) {
        printf("usage: %s [OPTION...] [FILE]\n%s\n", app_name, usage);
        for (const struct app_option *option = options; option->name != NULL; option++)
            printf("  %-12s %s [%.10g]\n", option->name, option->help, *option->value);
        printf("  %-12s print this text\n", "--help");
    }
    MPI_Finalize();
    exit(0);
}

/* Sets the number of an option from its text. */
static inline void app_set(const struct app_option *option, const char *text)
{
    char *end, why[120];
    double value = text != NULL ? strtod(text, &end) : 0;
    if (text == NULL)
        app_refuse("option", option->name, "has no value");
    snprintf(why, sizeof why, "is no %s from %.10g to %.10g for %s",
             option->fraction ? "number" : "whole number", option->min, option->max, option->name);
    if (end == text || *end != '\0' || !(value >= option->min && value <= option->max) ||
        (!option->fraction && value != floor(value)))
        app_refuse("value", text, why);
    *option->value = value;
}

/* Initializes MPI and reads the command line. Returns FILE, or NULL. The list of options ends with a null
 * name. */
static inline const char *app_start(int argc, char **argv, const char *name, const char *usage,
                                    const struct app_option *options)
{
    const char *file = NULL;
    int threads;
    app_name = name;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* for requests with Open MPI */
    MPI_Comm_rank(MPI_COMM_WORLD, &app_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &app_ranks);
    for (int i = 1; i < argc; i++) {
        const struct app_option *option = options;
        if (strcmp(argv[i], "--help") == 0)
            app_help(usage, options);
        while (option->name != NULL && strcmp(argv[i], option->name) != 0)
            option++;
        if (option->name != NULL)
            app_set(option, argv[i + 1]), i++;
        else if (argv[i][0] == '-')
            app_refuse("option", argv[i], "is unknown");
        else if (file != NULL)
            app_refuse("argument", argv[i], "is a second file");
        else
            file = argv[i];
    }
    return file;
}

/* Returns the next line without its end, in memory that grows as needed; NULL at the end of the file. */
static inline char *app_next_line(FILE *file, char **line, size_t *capacity)
{
    size_t length = 0;
    int c;
    while ((c = getc(file)) != EOF && c != '\n') {
        if (length + 1 >= *capacity)
            *line = app_resize(*line, *capacity = 2 * *capacity + 256, 1);
        (*line)[length++] = (char)c;
    }
    if (c == EOF && length == 0)
        return NULL;
    if (*line == NULL)
        *line = app_resize(NULL, *capacity = 256, 1);
    if (length > 0 && (*line)[length - 1] == '\r')
        length--;
    (*line)[length] = '\0';
    return *line;
}

/* Ends the program with a sentence about the line that begins at the given byte of a file. */
static inline void app_fail_at(FILE *file, const char *path, long begin, const char *why)
{
    long number = 1;
    rewind(file);
    for (long i = 0; i < begin; i++)
        number += getc(file) == '\n';
    app_fail("%s:%ld: %s", path, number, why);
}

/* Moves to the first line that begins at the given byte or later. Returns where that line begins. */
static inline long app_seek_line(FILE *file, long begin)
{
    int c = '\n';
    fseek(file, begin > 0 ? begin - 1 : 0, SEEK_SET);
    if (begin > 0)
        do
            c = getc(file);
        while (c != '\n' && c != EOF);
    return ftell(file);
}

/* Calls use for each of this rank's lines: those whose first byte is in its share of the file. The function
 * returns NULL, or why the line is wrong; then the program ends with a sentence that has the line's number.
 * */
static inline void app_read_lines(const char *path, const char *(*use)(char *line, void *context),
                                  void *context)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        app_fail("%s: %s", path, strerror(errno));
    long size = ftell(file), share = size / app_ranks;
    long end = app_rank + 1 < app_ranks ? share * (app_rank + 1) : size;
    char *line = NULL;
    size_t capacity = 0;
    long begin = app_seek_line(file, share * app_rank);
    while (begin >= 0 && begin < end && app_next_line(file, &line, &capacity) != NULL) {
        const char *why = use(line, context);
        if (why != NULL)
            app_fail_at(file, path, begin, why);
        begin = ftell(file);
    }
    if (ferror(file))
        app_fail("%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
}

/* The next number of a sequence that is the same everywhere (SplitMix64). */
static inline uint64_t app_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in [0, 1). */
static inline double app_uniform(uint64_t *state)
{
    return (double)(app_random(state) >> 11) * 0x1p-53;
}

/* The largest of all ranks' numbers, such as the time of the slowest rank. */
static inline double app_max(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

static inline double app_total(double value)
{
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return value;
}

static inline int app_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of n numbers, which it sorts. */
static inline double app_median(double *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, app_compare);
    return n % 2 == 1 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

/* Prints the last line, finalizes MPI, and returns the exit status. */
static inline int app_end(double ours, double baseline, const char *unit, bool equal)
{
    if (app_rank == 0)
        printf("gain: %.2f times (%.3f ms %s, baseline %.3f ms); results %s\n", baseline / ours, ours * 1e3,
               unit, baseline * 1e3, equal ? "equal" : "DIFFER");
    MPI_Finalize();
    return equal ? 0 : 1;
}

#endif
