/* SPDX-License-Identifier: BSD-3-Clause */
/* A calibration file has the constants of a machine as JSON, with the fingerprint of the machine. The tables
 * below map each JSON key to a struct member. Rank 0 reads a file when a communicator is opened;
 * `mpix_sparse_perf --calibrate` writes it. */

#include "comm/calibration.h"

#include <ctype.h>
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

#include "comm/topology.h"
#include "hash/murmur3.h"

enum {
    SCHEMA = 1,
    MAX_FILE_BYTES = 1 << 16,
    MAX_SECONDS = 1000 /* largest constant */
};

struct member {
    const char *name;
    size_t offset;
};

#define MEMBER(field, key) { key, offsetof(struct sar_machine, field) },

static const struct member constants[] = { SAR_MACHINE_CONSTANTS(MEMBER) };

enum {
    CONSTANTS = sizeof constants / sizeof constants[0],
    SCHEMA_BASE_CONSTANTS = 8 /* constants that every file has, the first in the table */
};

/* Returns the member of a struct sar_machine or sar_fingerprint. */
static void *find_member(const void *structure, const struct member *member)
{
    return (char *)structure + member->offset;
}

#ifdef HAVE_JANSSON

#define FINGERPRINT_MEMBER(field)                                         \
    {                                                                     \
        .offset = offsetof(struct sar_fingerprint, field), .name = #field \
    }

static const struct member texts[] = { FINGERPRINT_MEMBER(library), FINGERPRINT_MEMBER(mpi),
                                       FINGERPRINT_MEMBER(cpu), FINGERPRINT_MEMBER(hosts) };
static const struct member numbers[] = { FINGERPRINT_MEMBER(processors), FINGERPRINT_MEMBER(ranks),
                                         FINGERPRINT_MEMBER(nodes) };

enum { TEXTS = sizeof texts / sizeof texts[0], NUMBERS = sizeof numbers / sizeof numbers[0] };

/* The file to read, and the buffer for a message about it. */
struct reader {
    const char *path;
    char *message;
    size_t capacity;
};

static enum sar_status set_error(const struct reader *r, const char *problem, const char *detail)
{
    snprintf(r->message, r->capacity, "MPIX_SPARSE_CALIBRATION names '%.80s', %s%.100s", r->path, problem,
             detail);
    return SAR_BAD_SETTING;
}

/* Only a plain file of limited size is opened: reading from a pipe or device may never end. */
static enum sar_status load(const struct reader *r, json_t **root)
{
    struct stat status;
    json_error_t error;
    if (stat(r->path, &status) != 0)
        return set_error(r, "which cannot be read: ", strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_size > MAX_FILE_BYTES)
        return set_error(r, "which is no calibration file: ", "not a plain file of at most 64 KiB");
    *root = json_load_file(r->path, JSON_REJECT_DUPLICATES, &error);
    if (*root != NULL)
        return SAR_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return SAR_NO_MEMORY;
    if (json_error_code(&error) == json_error_cannot_open_file)
        return set_error(r, "which cannot be read: ", error.text);
    char problem[64];
    snprintf(problem, sizeof problem, "which is malformed in line %d: ", error.line);
    return set_error(r, problem, error.text);
}

/* A constant of 0 is never measured, and would make calls look free. */
static enum sar_status read_constants(const struct reader *r, const json_t *from, int n,
                                      struct sar_machine *machine)
{
    for (int i = 0; i < n; i++) {
        const json_t *member = json_object_get(from, constants[i].name);
        double seconds = json_number_value(member);
        if (!json_is_number(member) || !(seconds > 0 && seconds <= MAX_SECONDS))
            return set_error(r, "whose 'seconds' have no number above 0, up to 1000, called ",
                             constants[i].name);
        *(double *)find_member(machine, &constants[i]) = seconds;
    }
    return SAR_OK;
}

static enum sar_status read_fingerprint(const struct reader *r, const json_t *from,
                                        struct sar_fingerprint *fingerprint)
{
    for (int i = 0; i < TEXTS; i++) {
        const char *text = json_string_value(json_object_get(from, texts[i].name));
        if (text == NULL)
            return set_error(r, "whose 'fingerprint' has no text called ", texts[i].name);
        snprintf(find_member(fingerprint, &texts[i]), SAR_FINGERPRINT_CHARS, "%s", text);
    }
    for (int i = 0; i < NUMBERS; i++) {
        const json_t *member = json_object_get(from, numbers[i].name);
        json_int_t value = json_integer_value(member);
        if (!json_is_integer(member) || value < 1 || value > INT32_MAX)
            return set_error(r, "whose 'fingerprint' has no whole number from 1 on called ", numbers[i].name);
        *(int *)find_member(fingerprint, &numbers[i]) = (int)value;
    }
    return SAR_OK;
}

/* True if the file is of a version of this library that had fewer constants. */
static bool is_older(const struct reader *r, const json_t *from)
{
    for (int i = SCHEMA_BASE_CONSTANTS; i < CONSTANTS; i++)
        if (json_is_object(from) && json_object_get(from, constants[i].name) == NULL) {
            snprintf(r->message, r->capacity, "its 'seconds' have no %s: it is older than that",
                     constants[i].name);
            return true;
        }
    return false;
}

/* True if the fingerprints differ; then the message says how. Numbers are compared first, since the hash of
 * the hosts depends on them. */
static bool differs(const struct reader *r, const struct sar_fingerprint *there,
                    const struct sar_fingerprint *here)
{
    for (int i = 0; i < NUMBERS; i++) {
        const int *a = find_member(there, &numbers[i]), *b = find_member(here, &numbers[i]);
        if (*a == *b)
            continue;
        snprintf(r->message, r->capacity, "it is for %d %s, here are %d", *a, numbers[i].name, *b);
        return true;
    }
    for (int i = 0; i < TEXTS; i++) {
        const char *a = find_member(there, &texts[i]), *b = find_member(here, &texts[i]);
        if (strcmp(a, b) == 0)
            continue;
        snprintf(r->message, r->capacity, "its %s is '%.80s', here it is '%.80s'", texts[i].name, a, b);
        return true;
    }
    return false;
}

/* A file of another schema may have any other members. */
static enum sar_status parse(const struct reader *r, const json_t *root, const struct sar_fingerprint *here,
                             struct sar_calibration *calibration, bool *fits)
{
    struct sar_calibration found = { .machine = { 0 } };
    const json_t *schema = json_object_get(root, "schema");
    if (!json_is_integer(schema))
        return set_error(r, "which is no calibration file: ", "it has no whole number called schema");
    if (json_integer_value(schema) != SCHEMA) {
        snprintf(r->message, r->capacity, "its schema is %lld, this library's is %d",
                 (long long)json_integer_value(schema), SCHEMA);
        *fits = false;
        return SAR_OK;
    }
    SAR_TRY(read_fingerprint(r, json_object_get(root, "fingerprint"), &found.fingerprint));
    const json_t *seconds = json_object_get(root, "seconds");
    bool older = is_older(r, seconds);
    SAR_TRY(read_constants(r, seconds, older ? SCHEMA_BASE_CONSTANTS : CONSTANTS, &found.machine));
    found.machine.ranks = found.fingerprint.ranks;
    *fits = (here == NULL || !differs(r, &found.fingerprint, here)) && !older;
    if (*fits)
        *calibration = found;
    return SAR_OK;
}

static enum sar_status read_file(const char *path, const struct sar_fingerprint *here,
                                 struct sar_calibration *calibration, bool *fits, char *message,
                                 size_t capacity)
{
    struct reader r = { path, message, capacity };
    json_t *root = NULL;
    SAR_TRY(load(&r, &root));
    enum sar_status status = parse(&r, root, here, calibration, fits);
    json_decref(root);
    return status;
}

/* Returns NULL without memory. */
static json_t *json_of(const struct sar_calibration *calibration)
{
    const struct sar_fingerprint *f = &calibration->fingerprint;
    json_t *fingerprint = json_object(), *seconds = json_object();
    int bad = 0;
    for (int i = 0; i < TEXTS; i++)
        bad |= json_object_set_new(fingerprint, texts[i].name, json_string(find_member(f, &texts[i])));
    for (int i = 0; i < NUMBERS; i++)
        bad |= json_object_set_new(fingerprint, numbers[i].name,
                                   json_integer(*(int *)find_member(f, &numbers[i])));
    for (int i = 0; i < CONSTANTS; i++)
        bad |= json_object_set_new(seconds, constants[i].name,
                                   json_real(*(double *)find_member(&calibration->machine, &constants[i])));
    json_t *root = json_pack("{si so so}", "schema", SCHEMA, "fingerprint", fingerprint, "seconds", seconds);
    if (bad == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* fsync before the rename, so that a crash cannot leave an incomplete file under the final name. */
static bool write_all(const json_t *root, const char *path)
{
    FILE *file = fopen(path, "wx");
    if (file == NULL)
        return false;
    bool good = json_dumpf(root, file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0 && fputc('\n', file) != EOF;
    good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && good;
}

enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration,
                                      char *message, size_t capacity)
{
    char temporary[4096];
    int length = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof temporary) {
        snprintf(message, capacity, "cannot write '%.80s': its name is too long", path);
        return SAR_BAD_SETTING;
    }
    json_t *root = json_of(calibration);
    if (root == NULL)
        return SAR_NO_MEMORY;
    bool good = write_all(root, temporary) && rename(temporary, path) == 0;
    json_decref(root);
    if (good)
        return SAR_OK;
    snprintf(message, capacity, "cannot write '%.80s': %s", path, strerror(errno));
    unlink(temporary);
    return SAR_BAD_SETTING;
}

#else

static enum sar_status read_file(const char *path, const struct sar_fingerprint *here,
                                 struct sar_calibration *calibration, bool *fits, char *message,
                                 size_t capacity)
{
    (void)here, (void)calibration, (void)fits;
    snprintf(message, capacity,
             "MPIX_SPARSE_CALIBRATION is '%.80s', and this library was built without Jansson", path);
    return SAR_BAD_SETTING;
}

enum sar_status sar_calibration_write(const char *path, const struct sar_calibration *calibration,
                                      char *message, size_t capacity)
{
    (void)calibration;
    snprintf(message, capacity, "cannot write '%.80s': this program was built without Jansson", path);
    return SAR_BAD_SETTING;
}

#endif

/* Copy the first line of a text. Blanks become one space, and characters beyond printable ASCII question
 * marks. */
static void copy_line(char to[SAR_FINGERPRINT_CHARS], const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && *from != '\n' && n < SAR_FINGERPRINT_CHARS - 1; from++) {
        if (!isspace((unsigned char)*from))
            to[n++] = isgraph((unsigned char)*from) ? *from : '?';
        else if (n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
    }
    if (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
}

void sar_fingerprint_mpi_version(char text[SAR_FINGERPRINT_CHARS])
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    PMPI_Get_library_version(all, &length);
    copy_line(text, all);
}

static uint64_t hash_of_host(const struct sar_fingerprint *f)
{
    uint64_t hash = (uint64_t)f->processors;
    for (const char *c = f->cpu; *c != '\0'; c++)
        hash = sar_mix64(hash ^ (unsigned char)*c);
    return sar_mix64(hash);
}

/* The hashes of the hosts are summed up, so that the order of the hosts does not matter. */
enum sar_status sar_fingerprint_make(const struct sar_comm *comm, struct sar_fingerprint *fingerprint)
{
    struct sar_fingerprint made = { .processors = sar_topology_cpus(),
                                    .ranks = comm->ranks,
                                    .nodes = comm->nodes.n };
    uint64_t own_hash, hash_sum;
    copy_line(made.library, PACKAGE_VERSION);
    copy_line(made.cpu, sar_topology_cpu_model());
    sar_fingerprint_mpi_version(made.mpi);
    own_hash = hash_of_host(&made);
    SAR_TRY(sar_mpi(PMPI_Allreduce(&own_hash, &hash_sum, 1, MPI_UINT64_T, MPI_SUM, comm->mpi_comm)));
    snprintf(made.hosts, sizeof made.hosts, "%016llx", (unsigned long long)hash_sum);
    *fingerprint = made;
    return SAR_OK;
}

/* A configuration source: the settings that have the names of constants. */
struct source {
    const struct sar_machine *machine;
    char text[32]; /* value of the last setting that was looked up */
};

static const char *find_constant(const char *name, void *source)
{
    struct source *s = source;
    for (int i = 0; i < CONSTANTS; i++) {
        if (strcasecmp(constants[i].name, name) != 0)
            continue;
        snprintf(s->text, sizeof s->text, "%.17g", *(double *)find_member(s->machine, &constants[i]));
        return s->text;
    }
    return NULL;
}

enum sar_status sar_calibration_apply(struct sar_config *config, const struct sar_fingerprint *here,
                                      struct sar_machine *machine, bool *fits, char *message, size_t capacity)
{
    struct sar_calibration found;
    struct source source = { .machine = &found.machine };
    SAR_TRY(read_file(config->calibration, here, &found, fits, message, capacity));
    if (!*fits)
        return SAR_OK;
    SAR_TRY(sar_config_apply(config,
                             &(struct sar_config_layer){ SAR_SOURCE_CALIBRATION, find_constant, &source },
                             message, capacity));
    *machine = found.machine;
    return SAR_OK;
}
