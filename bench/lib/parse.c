/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers of option values. */

#include "bench/lib/parse.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"

static const struct {
    const char *name;
    double factor;
} suffixes[] = {
    { "", 1 },      { "k", 1e3 },      { "M", 1e6 },         { "G", 1e9 },
    { "Ki", 1024 }, { "Mi", 1048576 }, { "Gi", 1073741824 },
};

/* Parses a number with a suffix; NaN if the text is something else. */
static double scaled(const char *text)
{
    char *end;
    double number;

    if (!isdigit((unsigned char)*text) && *text != '.')
        return NAN;
    number = strtod(text, &end);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(end, suffixes[i].name) == 0)
            return number * suffixes[i].factor;
    return NAN;
}

bool perf_parse_count(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    double number = scaled(text);

    if (isnan(number) || number != floor(number)) {
        snprintf(why, PERF_WHY_MAX, "is not a whole number, with k, M, G, Ki, Mi, Gi or nothing behind it");
        return false;
    }
    if (number < domain->low || number > domain->high) {
        snprintf(why, PERF_WHY_MAX, "is not in %.0f to %.0f", domain->low, domain->high);
        return false;
    }
    *(long long *)out = (long long)number;
    return true;
}

bool perf_parse_real(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    char *end;
    double number = strtod(text, &end);

    if (end > text && strcmp(end, "%") == 0) {
        snprintf(why, PERF_WHY_MAX, "is not a number; a share of %g %% is %g", number, number / 100);
        return false;
    }
    if (end == text || *end != '\0' || isnan(number)) {
        snprintf(why, PERF_WHY_MAX, "is not a number");
        return false;
    }
    if (number < domain->low || number > domain->high) {
        snprintf(why, PERF_WHY_MAX, "is not in %g to %g", domain->low, domain->high);
        return false;
    }
    *(double *)out = number;
    return true;
}

/* Returns the end of the first list item. */
static const char *item_end(const char *text)
{
    const char *comma = strchr(text, ',');
    return comma != NULL ? comma : text + strlen(text);
}

/* Copies the item at *text and advances *text; NULL after the last item. Returns false if the list is full
 * or the item too long. */
static bool next_item(const char **text, int used, char *item, char *why)
{
    const char *end = item_end(*text);
    size_t length = (size_t)(end - *text);

    if (used == PERF_LIST_MAX) {
        snprintf(why, PERF_WHY_MAX, "has more than %d entries", PERF_LIST_MAX);
        return false;
    }
    if (length >= PERF_NAME_MAX) {
        snprintf(why, PERF_WHY_MAX, "has an entry of more than %d letters", PERF_NAME_MAX - 1);
        return false;
    }
    memcpy(item, *text, length);
    item[length] = '\0';
    *text = *end == ',' ? end + 1 : NULL;
    return true;
}

bool perf_parse_items(const char *text, struct perf_names *items, char *why)
{
    for (items->n = 0; text != NULL; items->n++)
        if (!next_item(&text, items->n, items->at[items->n], why))
            return false;
    return true;
}

bool perf_parse_counts(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    struct perf_counts *list = out;
    char item[PERF_NAME_MAX];

    for (list->n = 0; text != NULL; list->n++)
        if (!next_item(&text, list->n, item, why) || !perf_parse_count(domain, item, &list->at[list->n], why))
            return false;
    return true;
}

bool perf_parse_reals(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    struct perf_reals *list = out;
    char item[PERF_NAME_MAX];

    for (list->n = 0; text != NULL; list->n++)
        if (!next_item(&text, list->n, item, why) || !perf_parse_real(domain, item, &list->at[list->n], why))
            return false;
    return true;
}

/* Returns the index of a name in the list, or -1 and a sentence with all names. */
static int place_of(const struct perf_domain *domain, const char *text, char *why)
{
    int used;

    for (int i = 0; domain->names(i) != NULL; i++)
        if (strcmp(domain->names(i), text) == 0)
            return i;
    used = snprintf(why, PERF_WHY_MAX, "is none of");
    for (int i = 0; domain->names(i) != NULL && used < PERF_WHY_MAX; i++)
        used +=
            snprintf(why + used, (size_t)(PERF_WHY_MAX - used), "%s %s", i == 0 ? "" : ",", domain->names(i));
    return -1;
}

/* Append the name that a wrong one misspells. */
static bool suggest(const struct perf_domain *domain, const char *name, char *why)
{
    struct sar_nearest nearest = sar_nearest_begin(name, strlen(name));
    size_t used = strlen(why);

    for (int i = 0; domain->names(i) != NULL; i++)
        sar_nearest_try(&nearest, domain->names(i));
    if (nearest.found != NULL)
        snprintf(why + used, PERF_WHY_MAX - used, "; did you mean %s?", nearest.found);
    return false;
}

/* Of a list with several entries, name the wrong one. */
static bool refuse_item(const struct perf_domain *domain, const char *item, bool several, char *why)
{
    char sentence[PERF_WHY_MAX];

    if (strncmp(why, "is none of", strlen("is none of")) != 0)
        return false;
    snprintf(sentence, sizeof sentence, "%s", why);
    if (several)
        snprintf(why, PERF_WHY_MAX, "has the entry '%.*s', which %.*s, all", 40, item, PERF_WHY_MAX - 80,
                 sentence);
    else
        snprintf(why, PERF_WHY_MAX, "%.*s, all", PERF_WHY_MAX - 80, sentence);
    return suggest(domain, item, why);
}

bool perf_parse_choice(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    int place = place_of(domain, text, why);
    if (place < 0)
        return suggest(domain, text, why);
    *(int *)out = place;
    return true;
}

bool perf_parse_choices(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    struct perf_choices *list = out;
    char item[PERF_NAME_MAX];

    list->n = 0;
    if (strcmp(text, "all") == 0) {
        for (; domain->names(list->n) != NULL; list->n++)
            list->at[list->n] = list->n;
        return true;
    }
    for (; text != NULL; list->n++)
        if (!next_item(&text, list->n, item, why) || (list->at[list->n] = place_of(domain, item, why)) < 0)
            return refuse_item(domain, item, text != NULL || list->n > 0, why);
    return true;
}

static bool check_name(const struct perf_domain *domain, const char *item, char *why)
{
    return place_of(domain, item, why) >= 0;
}

/* Checks FORMAT, or PUSH/PULL. */
static bool check_wire(const struct perf_domain *domain, const char *item, char *why)
{
    const char *slash = strchr(item, '/');
    char push[PERF_NAME_MAX];

    if (slash == NULL)
        return check_name(domain, item, why);
    snprintf(push, sizeof push, "%.*s", (int)(slash - item), item);
    return check_name(domain, push, why) && check_name(domain, slash + 1, why);
}

/* Writes digits or "auto" to an item of PERF_NAME_MAX bytes. Returns false if the text is something else. */
static bool number_or_auto(const struct perf_domain *domain, const char *text, char *item, long long *number)
{
    char why[PERF_WHY_MAX];
    bool is_auto = strcmp(text, "auto") == 0;

    *number = 1;
    if (!is_auto && !perf_parse_count(domain, text, number, why))
        return false;
    if (is_auto)
        snprintf(item, PERF_NAME_MAX, "auto");
    else
        snprintf(item, PERF_NAME_MAX, "%lld", *number);
    return true;
}

static bool is_listed(const struct perf_names *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->at[i], name) == 0)
            return true;
    return false;
}

/* Adds all names that are not in the list. */
static void add_all(const struct perf_domain *domain, struct perf_names *list)
{
    for (int i = 0; domain->names(i) != NULL && list->n < PERF_LIST_MAX; i++)
        if (!is_listed(list, domain->names(i)))
            snprintf(list->at[list->n++], PERF_NAME_MAX, "%s", domain->names(i));
}

/* An entry "all" stands for the names that are not listed before it. */
static bool names(const struct perf_domain *domain, const char *text, struct perf_names *list, char *why,
                  bool (*check)(const struct perf_domain *, const char *, char *))
{
    char item[PERF_NAME_MAX];
    bool all = false;

    list->n = 0;
    while (text != NULL) {
        if (!next_item(&text, list->n, item, why))
            return false;
        if (strcmp(item, "all") == 0) {
            all = true;
            add_all(domain, list);
        } else if (!check(domain, item, why)) {
            return refuse_item(domain, item, text != NULL || list->n > 0, why);
        } else if (!all || !is_listed(list, item)) {
            snprintf(list->at[list->n++], PERF_NAME_MAX, "%s", item);
        }
    }
    return true;
}

bool perf_parse_names(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    return names(domain, text, out, why, check_name);
}

bool perf_parse_wires(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    return names(domain, text, out, why, check_wire);
}

bool perf_parse_grain(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    long long grain;

    if (number_or_auto(domain, text, out, &grain) && (grain & (grain - 1)) == 0)
        return true;
    snprintf(why, PERF_WHY_MAX, "is neither auto nor a power of two in %.0f to %.0f", domain->low,
             domain->high);
    return false;
}

bool perf_parse_numbers(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    struct perf_names *list = out;
    char item[PERF_NAME_MAX];
    long long number;

    for (list->n = 0; text != NULL; list->n++) {
        if (!next_item(&text, list->n, item, why))
            return false;
        if (!number_or_auto(domain, item, list->at[list->n], &number)) {
            snprintf(why, PERF_WHY_MAX,
                     "has an entry that is neither auto nor a whole number in %.0f to %.0f", domain->low,
                     domain->high);
            return false;
        }
    }
    return true;
}

bool perf_parse_path(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    (void)domain;
    if (*text == '\0' || strlen(text) >= PERF_PATH_MAX) {
        snprintf(why, PERF_WHY_MAX, "is not the name of a file");
        return false;
    }
    snprintf(out, PERF_PATH_MAX, "%s", text);
    return true;
}

/* Parses PREFIX followed by a path. */
static bool parse_file(const char *text, const char *prefix, struct perf_workload_spec *content, char *why)
{
    size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 && perf_parse_path(NULL, text + length, content->path, why);
}

bool perf_parse_workload(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    struct perf_workload_spec *content = out;

    *content = (struct perf_workload_spec){ .kind = PERF_RANDOM };
    if (strcmp(text, "random") == 0)
        return true;
    for (int i = 0; domain->names(i) != NULL; i++)
        if (strcmp(text, domain->names(i)) == 0) {
            content->kind = PERF_MODEL;
            content->model = i;
            return true;
        }
    content->kind = PERF_TEXT_FILE;
    if (parse_file(text, "text:", content, why))
        return true;
    content->kind = PERF_TRACE_FILE;
    if (parse_file(text, "trace:", content, why))
        return true;
    snprintf(why, PERF_WHY_MAX, "is neither random, a model, text:FILE nor trace:FILE");
    return false;
}

bool perf_parse_flag(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    (void)domain;
    (void)text;
    (void)why;
    *(bool *)out = true;
    return true;
}
