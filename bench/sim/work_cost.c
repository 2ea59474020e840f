/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs of work: lists and files. */

#include "bench/sim/work_cost.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

const struct perf_work_cost *perf_work_cost_find(const struct perf_work_cost_list *list, const char *kind,
                                                 const char *format, int threads)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->at[i].threads == threads && strcmp(list->at[i].kind, kind) == 0 &&
            strcmp(list->at[i].format, format) == 0)
            return &list->at[i];
    return NULL;
}

int perf_work_cost_threads(const struct perf_work_cost_list *list)
{
    int most = 0;

    for (size_t i = 0; i < list->n; i++)
        most = list->at[i].threads > most ? list->at[i].threads : most;
    return most;
}

void perf_work_cost_append(struct perf_work_cost_list *list, const struct perf_work_cost *cost)
{
    if (list->n == list->capacity) {
        struct perf_work_cost *more = perf_alloc(2 * list->capacity + 8, sizeof *more);
        for (size_t i = 0; i < list->n; i++)
            more[i] = list->at[i];
        free(list->at);
        list->at = more;
        list->capacity = 2 * list->capacity + 8;
    }
    list->at[list->n++] = *cost;
}

void perf_work_cost_free(struct perf_work_cost_list *list)
{
    free(list->at);
    *list = (struct perf_work_cost_list){ 0 };
}

/* A member of a cost in JSON, and its offset in struct perf_work_cost. */
struct member {
    const char *name;
    size_t offset;
};

#define MEMBER(name, field)                          \
    {                                                \
        name, offsetof(struct perf_work_cost, field) \
    }

static const struct member text_members[] = { MEMBER("work", kind), MEMBER("format", format) };
static const struct member number_members[] = { MEMBER("piece_s", piece), MEMBER("element_s", element),
                                                MEMBER("byte_s", byte), MEMBER("slot_s", slot) };

enum {
    TEXTS = sizeof text_members / sizeof text_members[0],
    NUMBERS = sizeof number_members / sizeof number_members[0]
};

void perf_work_cost_write(FILE *file, const struct perf_work_cost *cost, double misfit)
{
    putc('{', file);
    for (int i = 0; i < TEXTS; i++)
        fprintf(file, "\"%s\": \"%s\", ", text_members[i].name, (const char *)cost + text_members[i].offset);
    for (int i = 0; i < NUMBERS; i++)
        fprintf(file, "\"%s\": %.4g, ", number_members[i].name,
                *(const double *)((const char *)cost + number_members[i].offset));
    fprintf(file, "\"threads\": %d, \"misfit\": %.2g}", cost->threads, misfit);
}

#ifdef HAVE_JANSSON

/* A file that is being read. */
struct reader {
    const char *path;
    bool is_root;
    size_t number; /* ordinal of the current cost, from 1 */
};

__attribute__((format(printf, 2, 3))) static bool print_error(const struct reader *r, const char *problem,
                                                              ...)
{
    va_list arguments;

    if (!r->is_root)
        return false;
    fprintf(stderr, "mpix_sparse_perf: option --charge: '%s' ", r->path);
    va_start(arguments, problem);
    vfprintf(stderr, problem, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}

static bool read_texts(const struct reader *r, const json_t *from, struct perf_work_cost *cost)
{
    for (int i = 0; i < TEXTS; i++) {
        const char *text = json_string_value(json_object_get(from, text_members[i].name));
        if (text == NULL || text[0] == '\0' || strlen(text) >= PERF_KIND_MAX)
            return print_error(r, "is no file of costs: cost %zu has no text of 1 to %d letters called %s",
                               r->number, PERF_KIND_MAX - 1, text_members[i].name);
        snprintf((char *)cost + text_members[i].offset, PERF_KIND_MAX, "%s", text);
    }
    return true;
}

static bool read_seconds(const struct reader *r, const json_t *from, struct perf_work_cost *cost)
{
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *member = json_object_get(from, number_members[i].name);
        double value = json_number_value(member);
        if (!json_is_number(member) || value < 0)
            return print_error(r, "has no number from 0 on called %s in the cost of '%s %s'",
                               number_members[i].name, cost->kind, cost->format);
        *(double *)((char *)cost + number_members[i].offset) = value;
    }
    return true;
}

/* A cost without a number of threads is that of one. */
static bool read_threads(const struct reader *r, const json_t *from, struct perf_work_cost *cost)
{
    const json_t *member = json_object_get(from, "threads");
    json_int_t threads = member == NULL ? 1 : json_integer_value(member);

    if (threads < 1 || threads > SAR_THREADS_MAX)
        return print_error(r, "has no whole number from 1 to %d called threads in the cost of '%s %s'",
                           SAR_THREADS_MAX, cost->kind, cost->format);
    cost->threads = (int)threads;
    return true;
}

static bool read_copy_rate(const struct reader *r, const json_t *root, struct perf_work_cost_list *list)
{
    const json_t *member = json_object_get(root, "copy_gbs");

    list->copy_rate = 1e9 * json_number_value(member);
    if (member != NULL && !(list->copy_rate > 0))
        return print_error(r, "has a member called copy_gbs that is not a number above 0");
    return true;
}

static bool read_costs(struct reader *r, const json_t *costs, struct perf_work_cost_list *list)
{
    const json_t *from;
    size_t i;

    json_array_foreach(costs, i, from)
    {
        struct perf_work_cost cost;
        r->number = i + 1;
        if (!read_texts(r, from, &cost) || !read_seconds(r, from, &cost) || !read_threads(r, from, &cost))
            return false;
        if (perf_work_cost_find(list, cost.kind, cost.format, cost.threads) != NULL)
            return print_error(r, "has two costs of '%s %s' by %d thread%s", cost.kind, cost.format,
                               cost.threads, cost.threads == 1 ? "" : "s");
        perf_work_cost_append(list, &cost);
    }
    return true;
}

static bool parse_costs(struct reader *r, const char *content, size_t bytes, struct perf_work_cost_list *list)
{
    json_error_t error;
    json_t *root = json_loadb(content, bytes, JSON_REJECT_DUPLICATES, &error);
    const json_t *costs = json_object_get(root, "costs");
    bool good;

    if (root == NULL)
        return print_error(r, "is no JSON, in line %d: %s", error.line, error.text);
    if (json_array_size(costs) == 0)
        good = print_error(r, "is no file of costs: it is no object with an array of them called costs");
    else
        good = read_costs(r, costs, list) && read_copy_rate(r, root, list);
    json_decref(root);
    return good;
}

bool perf_work_cost_read(struct perf_work_cost_list *list, const char *path, const struct perf_world *world)
{
    struct reader r = { path, world->rank == 0, 0 };
    size_t bytes;
    char *content = perf_file_load(path, &bytes, world);
    bool good;

    if (content == NULL)
        return false;
    good = parse_costs(&r, content, bytes, list);
    free(content);
    return good;
}

#else

bool perf_work_cost_read(struct perf_work_cost_list *list, const char *path, const struct perf_world *world)
{
    (void)list, (void)path;
    if (world->rank == 0)
        fprintf(stderr, "mpix_sparse_perf: option --charge: this program was built without Jansson\n");
    return false;
}

#endif
