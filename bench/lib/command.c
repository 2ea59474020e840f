/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines from tables of options. */

#include "bench/lib/command.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* Columns of the help text: where the texts of options begin, and where lines end. */
enum { HELP_LEFT = 31, HELP_END = 100 };

/* Prints words in lines that begin at HELP_LEFT. *column is the end of the last word. */
static void print_words(const char *text, int *column)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (*column > HELP_LEFT && *column + 1 + length > HELP_END) {
            printf("\n%*s", HELP_LEFT, "");
            *column = HELP_LEFT;
        }
        *column += printf("%s%.*s", *column > HELP_LEFT ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
}

/* Prints the right column of an option's help: text, accepted names, default. */
static void print_right(const struct perf_option *o)
{
    const char *(*names)(int) = o->domain.names;
    int column = HELP_LEFT;
    char word[PERF_NAME_MAX + 2];

    print_words(o->help, &column);
    for (int i = 0; names != NULL && names(i) != NULL; i++) {
        if (i == 0)
            column += printf(":");
        snprintf(word, sizeof word, "%s%s", names(i), names(i + 1) != NULL ? "," : "");
        print_words(word, &column);
    }
    if (o->fallback != NULL) {
        snprintf(word, sizeof word, "(%s)", o->fallback);
        print_words(word, &column);
    }
    putchar('\n');
}

/* Prints the title of the group that option number i begins, if it begins one. */
static void print_group(const struct perf_command *command, int i)
{
    for (int j = 0; j < command->n_groups; j++)
        if (command->groups[j].first == i)
            printf("%s%s:\n", j == 0 ? "" : "\n", command->groups[j].title);
}

void perf_command_help(const struct perf_command *command)
{
    printf("%s\n", command->usage);
    for (int i = 0; i < command->n; i++) {
        const struct perf_option *o = &command->options[i];
        char left[HELP_LEFT], letter[5] = "    ";
        print_group(command, i);
        if (o->help == NULL)
            continue;
        if (o->letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "  %s--%s %s", letter, o->name, o->value != NULL ? o->value : "");
        printf("%-*s", HELP_LEFT, left);
        print_right(o);
    }
    printf("\n%s", command->ending);
}

/* Finds the option of an argument. *value is the value in the same argument ("--name=value", "-nvalue"), or
 * NULL. */
static const struct perf_option *find(const struct perf_command *command, const char *argument,
                                      const char **value)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    bool is_long = argument[0] == '-' && argument[1] == '-';

    for (const struct perf_option *o = command->options; o < command->options + command->n; o++) {
        if (is_long && strlen(o->name) + 2 == length && strncmp(argument + 2, o->name, length - 2) == 0) {
            *value = equals != NULL ? equals + 1 : NULL;
            return o;
        }
        if (!is_long && argument[0] == '-' && o->letter != 0 && argument[1] == o->letter) {
            *value = argument[2] != '\0' ? argument + 2 : NULL;
            return o;
        }
    }
    return NULL;
}

/* Parses a value. `prefix` precedes the option's name in the sentence on a wrong value. */
static bool set(const struct perf_command *command, const char *dashes, const struct perf_option *o,
                const char *text, void *to)
{
    char why[PERF_WHY_MAX];

    if (o->parse(&o->domain, text, (char *)to + o->to, why))
        return true;
    fprintf(stderr, "%s: %s%s: '%s' %s\n", command->program, dashes, o->name, text, why);
    return false;
}

static bool print_error(const struct perf_command *command, const char *before, const char *name,
                        const char *behind)
{
    fprintf(stderr, "%s: %s%s%s\n", command->program, before, name, behind);
    return false;
}

static bool print_unknown(const struct perf_command *command, const char *argument)
{
    size_t length = strncmp(argument, "--", 2) == 0 ? strcspn(argument + 2, "=") : 0;
    struct sar_nearest nearest = sar_nearest_begin(argument + 2, length);

    for (int i = 0; i < command->n && length > 1; i++)
        sar_nearest_try(&nearest, command->options[i].name);
    fprintf(stderr, "%s: unknown option '%s'%s%s; --help lists them\n", command->program, argument,
            nearest.found == NULL ? "" : "; did you mean --", nearest.found == NULL ? "" : nearest.found);
    return false;
}

/* Reads the option at argv[*i] and its value, which may be the next argument. */
static bool read_option(const struct perf_command *command, char **argv, int *i, void *to, bool *given)
{
    const char *value = NULL;
    const struct perf_option *o = find(command, argv[*i], &value);

    if (o == NULL)
        return print_unknown(command, argv[*i]);
    if (o->value == NULL && value != NULL)
        return print_error(command, "option --", o->name, " takes no value");
    if (o->value != NULL && value == NULL)
        value = argv[++*i];
    if (o->value != NULL && value == NULL)
        return print_error(command, "option --", o->name, " needs a value");
    given[o - command->options] = true;
    return set(command, "option --", o, value, to);
}

/* Called after all options have been read, because the option that operands belong to may follow them. */
static bool read_operands(const struct perf_command *command, const char *const *texts, int n, void *to,
                          bool *given)
{
    const struct perf_option *owner = &command->options[command->operands_of];

    if (n > 0 && (command->n_operands == 0 || !given[command->operands_of])) {
        fprintf(stderr, "%s: argument '%s' belongs to no option", command->program, texts[0]);
        if (command->n_operands > 0)
            fprintf(stderr, "; only --%s takes arguments, and it is missing", owner->name);
        fputs("; --help lists the options\n", stderr);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (i == command->n_operands)
            return print_error(command, "one argument too many: '", texts[i], "'");
        if (!set(command, "", &command->operands[i], texts[i], to))
            return false;
        given[command->n + i] = true;
    }
    return true;
}

bool perf_command_read(const struct perf_command *command, int argc, char **argv, void *to, bool *given)
{
    const char *texts[PERF_MAX_OPERANDS];
    int operands = 0;

    for (int i = 0; i < command->n; i++)
        if (command->options[i].fallback != NULL &&
            !set(command, "option --", &command->options[i], command->options[i].fallback, to))
            return false;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (!read_option(command, argv, &i, to, given))
                return false;
        } else if (operands < PERF_MAX_OPERANDS) {
            texts[operands++] = argv[i];
        }
    }
    return read_operands(command, texts, operands, to, given);
}

static void print_version(const char *name, int version, const char *end)
{
    printf("%s %d.%d.%d%s", name, version >> 16, version >> 8 & 255, version & 255, end);
}

void perf_command_version(const struct perf_command *command, int own, int library)
{
    print_version(command->program, own, ", ");
    print_version("library", library, "\n");
}
