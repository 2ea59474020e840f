/* SPDX-License-Identifier: BSD-3-Clause */
/* Calibration files: the constants of a machine as JSON, with a fingerprint of the machine they hold for.
 * What a member is called, and where it is kept, is said once in the two tables below. */

#include "net/calibration.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_JANSSON
#include <jansson.h>
#endif

enum {
    SCHEMA = 1,
    MOST_BYTES = 1 << 16, /* of a file */
    MOST_SECONDS = 1000   /* of a constant */
};

struct member {
    const char *name;
    size_t offset;
};

#define MEMBER(field) { #field, offsetof(struct sar_machine, field) },

static const struct member constants[] = { SAR_MACHINE_CONSTANTS(MEMBER) };

enum {
    CONSTANTS = sizeof constants / sizeof constants[0],
    FIRST_CONSTANTS = 8 /* of the table, that every file has */
};

static double constant_of(const struct sar_machine *machine, const struct member *member)
{
    return *(const double *)((const char *)machine + member->offset);
}

#ifdef HAVE_JANSSON

#define MARK(field)                                                       \
    {                                                                     \
        .offset = offsetof(struct sar_fingerprint, field), .name = #field \
    }

static const struct member texts[] = { MARK(library), MARK(mpi), MARK(cpu), MARK(hosts) };
static const struct member numbers[] = { MARK(processors), MARK(ranks), MARK(nodes) };

enum { TEXTS = sizeof texts / sizeof texts[0], NUMBERS = sizeof numbers / sizeof numbers[0] };

static char *text_of(struct sar_fingerprint *fingerprint, const struct member *member)
{
    return (char *)fingerprint + member->offset;
}

static int *number_of(struct sar_fingerprint *fingerprint, const struct member *member)
{
    return (int *)((char *)fingerprint + member->offset);
}

bool sar_calibration_available(void)
{
    return true;
}

/* A file under way: where it is, and where to say what is wrong with it. */
struct reader {
    const char *path;
    char *why;
    size_t room;
};

static enum sar_status refuse(const struct reader *r, const char *problem, const char *detail)
{
    snprintf(r->why, r->room, "MPIX_SPARSE_CALIBRATION names '%.80s', %s%.100s", r->path, problem, detail);
    return SAR_BAD_KNOB;
}

/* Only a plain file of some size is opened: others may never end. */
static enum sar_status load(const struct reader *r, json_t **root)
{
    struct stat status;
    json_error_t error;
    if (stat(r->path, &status) != 0)
        return refuse(r, "which cannot be read: ", strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES)
        return refuse(r, "which is no calibration file: ", "not a plain file of at most 64 KiB");
    *root = json_load_file(r->path, JSON_REJECT_DUPLICATES, &error);
    if (*root != NULL)
        return SAR_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return SAR_NO_MEMORY;
    if (json_error_code(&error) == json_error_cannot_open_file)
        return refuse(r, "which cannot be read: ", error.text);
    char problem[64];
    snprintf(problem, sizeof problem, "which is malformed in line %d: ", error.line);
    return refuse(r, problem, error.text);
}

/* What costs nothing is never measured, and would make every call look free. */
static enum sar_status read_constants(const struct reader *r, const json_t *from, int n,
                                      struct sar_machine *machine)
{
    for (int i = 0; i < n; i++) {
        const json_t *member = json_object_get(from, constants[i].name);
        double seconds = json_number_value(member);
        if (!json_is_number(member) || !(seconds > 0 && seconds <= MOST_SECONDS))
            return refuse(r, "whose 'seconds' have no number above 0, up to 1000, called ",
                          constants[i].name);
        *(double *)((char *)machine + constants[i].offset) = seconds;
    }
    return SAR_OK;
}

static enum sar_status read_fingerprint(const struct reader *r, const json_t *from,
                                        struct sar_fingerprint *fingerprint)
{
    for (int i = 0; i < TEXTS; i++) {
        const char *text = json_string_value(json_object_get(from, texts[i].name));
        if (text == NULL)
            return refuse(r, "whose 'fingerprint' has no text called ", texts[i].name);
        snprintf(text_of(fingerprint, &texts[i]), SAR_FINGERPRINT_TEXT, "%s", text);
    }
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *member = json_object_get(from, numbers[i].name);
        json_int_t value = json_integer_value(member);
        if (!json_is_integer(member) || value < 1 || value > INT32_MAX)
            return refuse(r, "whose 'fingerprint' has no whole number from 1 on called ", numbers[i].name);
        *number_of(fingerprint, &numbers[i]) = (int)value;
    }
    return SAR_OK;
}

/* Whether it was written before there were all constants. */
static bool is_older(const struct reader *r, const json_t *from)
{
    for (int i = FIRST_CONSTANTS; i < CONSTANTS; i++)
        if (json_is_object(from) && json_object_get(from, constants[i].name) == NULL) {
            snprintf(r->why, r->room, "its 'seconds' have no %s: it is older than that", constants[i].name);
            return true;
        }
    return false;
}

/* The first difference, as a sentence; false when there is none. Numbers come first, since the hash of the
 * hosts changes with them. */
static bool differs(const struct reader *r, struct sar_fingerprint *there, struct sar_fingerprint *here)
{
    for (int i = 0; i < NUMBERS; i++) {
        int a = *number_of(there, &numbers[i]), b = *number_of(here, &numbers[i]);
        if (a == b)
            continue;
        snprintf(r->why, r->room, "it is for %d %s, here are %d", a, numbers[i].name, b);
        return true;
    }
    for (int i = 0; i < TEXTS; i++) {
        const char *a = text_of(there, &texts[i]), *b = text_of(here, &texts[i]);
        if (strcmp(a, b) == 0)
            continue;
        snprintf(r->why, r->room, "its %s is '%.80s', here it is '%.80s'", texts[i].name, a, b);
        return true;
    }
    return false;
}

/* The schema comes first: of another one nothing else is known. */
static enum sar_status examine(const struct reader *r, const json_t *root, const struct sar_fingerprint *here,
                               struct sar_calibration *calibration, bool *fits)
{
    struct sar_calibration found = { .machine = { 0 } };
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_integer(schema))
        return refuse(r, "which is no calibration file: ", "it has no whole number called schema");
    if (json_integer_value(schema) != SCHEMA) {
        snprintf(r->why, r->room, "its schema is %lld, this library's is %d",
                 (long long)json_integer_value(schema), SCHEMA);
        *fits = false;
        return SAR_OK;
    }
    SAR_TRY(read_fingerprint(r, json_object_get(root, "fingerprint"), &found.fingerprint));
    const json_t *seconds = json_object_get(root, "seconds");
    bool older = is_older(r, seconds);
    SAR_TRY(read_constants(r, seconds, older ? FIRST_CONSTANTS : CONSTANTS, &found.machine));
    found.machine.ranks = found.fingerprint.ranks;
    struct sar_fingerprint wanted = here == NULL ? found.fingerprint : *here;
    *fits = !differs(r, &found.fingerprint, &wanted) && !older;
    if (*fits)
        *calibration = found;
    return SAR_OK;
}

static enum sar_status read_file(const char *path, const struct sar_fingerprint *here,
                                 struct sar_calibration *calibration, bool *fits, char *why, size_t room)
{
    struct reader r = { path, why, room };
    json_t *root = NULL;
    SAR_TRY(load(&r, &root));
    enum sar_status status = examine(&r, root, here, calibration, fits);
    json_decref(root);
    return status;
}

/* NULL when memory is short. */
static json_t *json_of(const struct sar_calibration *calibration)
{
    struct sar_fingerprint f = calibration->fingerprint;
    json_t *fingerprint = json_object(), *seconds = json_object();
    int bad = 0;
    for (int i = 0; i < TEXTS; i++)
        bad |= json_object_set_new(fingerprint, texts[i].name, json_string(text_of(&f, &texts[i])));
    for (int i = 0; i < NUMBERS; i++)
        bad |= json_object_set_new(fingerprint, numbers[i].name, json_integer(*number_of(&f, &numbers[i])));
    for (int i = 0; i < CONSTANTS; i++)
        bad |= json_object_set_new(seconds, constants[i].name,
                                   json_real(constant_of(&calibration->machine, &constants[i])));
    json_t *root = json_pack("{si so so}", "schema", SCHEMA, "fingerprint", fingerprint, "seconds", seconds);
    if (bad == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* To the disk, so that the new name never stands for less than the whole. */
static bool write_all(const json_t *root, const char *path)
{
    FILE *file = fopen(path, "wx");
    if (file == NULL)
        return false;
    bool good = json_dumpf(root, file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0 && fputc('\n', file) != EOF;
    good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && good;
}

enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration, char *why,
                                      size_t room)
{
    char unfinished[4096];
    int length = snprintf(unfinished, sizeof unfinished, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof unfinished) {
        snprintf(why, room, "cannot write '%.80s': its name is too long", path);
        return SAR_BAD_KNOB;
    }
    json_t *root = json_of(calibration);
    if (root == NULL)
        return SAR_NO_MEMORY;
    bool good = write_all(root, unfinished) && rename(unfinished, path) == 0;
    json_decref(root);
    if (good)
        return SAR_OK;
    snprintf(why, room, "cannot write '%.80s': %s", path, strerror(errno));
    unlink(unfinished);
    return SAR_BAD_KNOB;
}

#else

bool sar_calibration_available(void)
{
    return false;
}

static enum sar_status read_file(const char *path, const struct sar_fingerprint *here,
                                 struct sar_calibration *calibration, bool *fits, char *why, size_t room)
{
    (void)here, (void)calibration, (void)fits;
    snprintf(why, room, "MPIX_SPARSE_CALIBRATION is '%.80s', and this library was built without Jansson",
             path);
    return SAR_BAD_KNOB;
}

enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration, char *why,
                                      size_t room)
{
    (void)calibration;
    snprintf(why, room, "cannot write '%.80s': this program was built without Jansson", path);
    return SAR_BAD_KNOB;
}

#endif

/* Where the knobs that stand for constants have their texts. */
struct source {
    const struct sar_machine *machine;
    char text[32]; /* the last answer */
};

static const char *look_up(const char *name, void *source)
{
    struct source *s = source;
    for (int i = 0; i < CONSTANTS; i++) {
        if (strcasecmp(constants[i].name, name) != 0)
            continue;
        snprintf(s->text, sizeof s->text, "%.17g", constant_of(s->machine, &constants[i]));
        return s->text;
    }
    return NULL;
}

enum sar_status sar_calibration_apply(struct sar_config *config, const struct sar_fingerprint *here,
                                      struct sar_machine *machine, bool *fits, char *why, size_t room)
{
    struct sar_calibration found;
    struct source source = { .machine = &found.machine };
    SAR_TRY(read_file(config->calibration, here, &found, fits, why, room));
    if (!*fits)
        return SAR_OK;
    SAR_TRY(
        sar_config_apply(config, &(struct sar_source){ SAR_FROM_CALIBRATION, look_up, &source }, why, room));
    *machine = found.machine;
    return SAR_OK;
}
