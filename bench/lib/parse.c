/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers of option values. */

#include "bench/lib/parse.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
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

    if (domain->low == 0 && domain->high == 1 && number != 0 && number != 1) {
        snprintf(why, PERF_WHY_MAX, "is neither 0 nor 1");
        return false;
    }
    if (isnan(number) || number != floor(number)) {
        snprintf(why, PERF_WHY_MAX,
                 "is not a whole number in %.0f to %.0f, with k, M, G, Ki, Mi, Gi or nothing behind it",
                 domain->low, domain->high);
        return false;
    }
    if (number < domain->low || number > domain->high) {
        snprintf(why, PERF_WHY_MAX, "is not in %.0f to %.0f", domain->low, domain->high);
        return false;
    }
    *(long long *)out = (long long)number;
    return true;
}

bool perf_parse_seconds(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    if (perf_parse_count(domain, text, out, why))
        return true;
    snprintf(why, PERF_WHY_MAX, "is not a whole number of seconds in %.0f to %.0f, without a unit",
             domain->low, domain->high);
    return false;
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

/* Returns the index of a name in the domain, or -1. */
static int place_of(const struct perf_domain *domain, const char *text)
{
    for (int i = 0; domain->names(i) != NULL; i++)
        if (strcmp(domain->names(i), text) == 0)
            return i;
    return -1;
}

/* Appends words to a sentence, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void append(char *why, const char *format, ...)
{
    size_t used = strlen(why);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why + used, PERF_WHY_MAX - used, format, arguments);
    va_end(arguments);
}

/* Writes that a name is none of the domain, and the one that it may misspell. Returns false.
 * @param more  names that are allowed beside those of the domain */
static bool refuse_name(const struct perf_domain *domain, const char *name, const char *more, char *why)
{
    struct sar_nearest nearest = sar_nearest_begin(name, strlen(name));

    append(why, "is none of");
    for (int i = 0; domain->names(i) != NULL; i++) {
        append(why, "%s %s", i == 0 ? "" : ",", domain->names(i));
        sar_nearest_try(&nearest, domain->names(i));
    }
    append(why, "%s", more);
    if (nearest.found != NULL)
        append(why, "; did you mean %s?", nearest.found);
    return false;
}

/* As refuse_name, for an entry of a list. If the list has others, the text names the entry. */
static bool refuse_entry(const struct perf_domain *domain, const char *entry, bool has_others,
                         const char *more, char *why)
{
    why[0] = '\0';
    if (has_others)
        append(why, "has the entry '%s', which ", entry);
    return refuse_name(domain, entry, more, why);
}

bool perf_parse_choice(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    int place = place_of(domain, text);

    if (place < 0)
        return refuse_entry(domain, text, false, "", why);
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
    for (; text != NULL; list->n++) {
        if (!next_item(&text, list->n, item, why))
            return false;
        bool has_others = text != NULL || list->n > 0; /* "all" has none */
        list->at[list->n] = place_of(domain, item);
        if (list->at[list->n] < 0)
            return refuse_entry(domain, item, has_others, has_others ? "" : ", all", why);
    }
    return true;
}

static bool is_name(const struct perf_domain *domain, const char *item)
{
    return place_of(domain, item) >= 0;
}

/* True for FORMAT, or PUSH/PULL. */
static bool is_wire(const struct perf_domain *domain, const char *item)
{
    const char *slash = strchr(item, '/');
    char push[PERF_NAME_MAX];

    if (slash == NULL)
        return is_name(domain, item);
    snprintf(push, sizeof push, "%.*s", (int)(slash - item), item);
    return is_name(domain, push) && is_name(domain, slash + 1);
}

/* Writes which format of an entry FORMAT or PUSH/PULL is none. Returns false. */
static bool refuse_wire(const struct perf_domain *domain, const char *item, bool has_others, char *why)
{
    const char *slash = strchr(item, '/');
    char push[PERF_NAME_MAX];

    if (slash == NULL)
        return refuse_entry(domain, item, has_others, ", all; a pair is PUSH/PULL", why);
    snprintf(push, sizeof push, "%.*s", (int)(slash - item), item);
    return refuse_entry(domain, is_name(domain, push) ? slash + 1 : push, true, "; a pair is PUSH/PULL", why);
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
                  bool (*is_allowed)(const struct perf_domain *, const char *))
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
        } else if (!is_allowed(domain, item)) {
            bool has_others = text != NULL || list->n > 0;
            return is_allowed == is_wire ? refuse_wire(domain, item, has_others, why)
                                         : refuse_entry(domain, item, has_others, ", all", why);
        } else if (!all || !is_listed(list, item)) {
            snprintf(list->at[list->n++], PERF_NAME_MAX, "%s", item);
        }
    }
    return true;
}

bool perf_parse_names(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    return names(domain, text, out, why, is_name);
}

bool perf_parse_wires(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    return names(domain, text, out, why, is_wire);
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
    why[0] = '\0';
    return refuse_name(domain, text, ", random, text:FILE, trace:FILE", why);
}

bool perf_parse_flag(const struct perf_domain *domain, const char *text, void *out, char *why)
{
    (void)domain;
    (void)text;
    (void)why;
    *(bool *)out = true;
    return true;
}
