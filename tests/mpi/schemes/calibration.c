/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests machine constants. A calibration file is used if it matches, ignored if it does not match, and
 * refused if it is malformed. Measuring the constants stays within its bounds of messages and bytes.
 *
 * Link with -Wl,--wrap=PMPI_Sendrecv,--wrap=PMPI_Allreduce and the library's objects, to access internals. */

#include <math.h>
#include <mpix_sparse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "mpi_ext/attribute.h"
#include "comm/calibration.h"

int __real_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);
int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status);
int __real_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int __wrap_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

/* Messages and bytes that this rank has sent since the last reset. */
static struct {
    long long messages, bytes, reductions, reduced;
} sent;

int __wrap_PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                         MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status)
{
    int size;
    MPI_Type_size(type, &size);
    sent.messages++;
    sent.bytes += (long long)n * size;
    return __real_PMPI_Sendrecv(out, n, type, to, tag, in, m, type_in, from, tag_in, comm, status);
}

int __wrap_PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int size;
    MPI_Type_size(type, &size);
    sent.reductions++;
    sent.reduced += (long long)n * size;
    return __real_PMPI_Allreduce(in, out, n, type, op, comm);
}

enum { TEXT = 4096 };

static char folder[] = "/tmp/mpix_sparse_XXXXXX"; /* of rank 0 */
static char path[64], good[TEXT];
static struct sar_calibration calibration;

static const struct sar_machine invented = { 0,       1.25e-6, 3.1e-11, 4.7e-9, 1.1e-10, 2e-6,
                                             7.3e-10, 1.25e-6, 3.1e-11, 2.2e-7, 2.2e-7,  1 };

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    check(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "expected to write %s", path);
}

static void read_text(const char *from, char text[TEXT])
{
    FILE *file = fopen(from, "r");
    check(file != NULL, "expected to open %s", from);
    size_t n = fread(text, 1, TEXT - 1, file);
    text[n] = '\0';
    fclose(file);
}

/* Write a file for this communicator with invented constants. */
static void make_file(void)
{
    struct sar_comm net;
    char why[SAR_ERROR_TEXT_SIZE] = "";
    check(sar_comm_open(MPI_COMM_WORLD, &net) == SAR_OK, "expected to open the net");
    check(sar_fingerprint_make(&net, &calibration.fingerprint) == SAR_OK, "expected a fingerprint");
    sar_comm_close(&net);
    calibration.machine = invented;
    calibration.machine.ranks = ranks;
    if (rank != 0)
        return;
    check(mkdtemp(folder) != NULL, "expected a folder");
    snprintf(path, sizeof path, "%s/constants.json", folder);
    check(sar_calibration_write(path, &calibration, why, sizeof why) == SAR_OK, "expected a file: %s", why);
    read_text(path, good);
}

/* Open a new communicator with CALIBRATION=value on rank 0; returns the status. */
static enum sar_status open_with(const char *value, MPI_Comm *comm, struct sar_comm_state **context,
                                 char sentence[SAR_ERROR_TEXT_SIZE])
{
    *comm = comm_duplicate();
    if (rank == 0)
        setenv("MPIX_SPARSE_CALIBRATION", value, 1);
    sar_machine_forget();
    memset(&sent, 0, sizeof sent);
    enum sar_status status = sar_comm_state_get_status(*comm, context, sentence);
    unsetenv("MPIX_SPARSE_CALIBRATION");
    return status;
}

static bool equal_constants(const struct sar_machine *a, const struct sar_machine *b)
{
    return a->ranks == b->ranks &&
           memcmp(&a->alpha, &b->alpha, 10 * sizeof a->alpha) == 0; /* all constants */
}

static void check_call(MPI_Comm comm)
{
    int one = 1, sum = 0;
    check_success(MPIX_Sparse_allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), "MPIX_Sparse_allreduce");
    check(sum == ranks, "expected %d, found %d", ranks, sum);
}

/* Source of a setting's value. */
static enum sar_config_source origin_of(const struct sar_comm_state *context, const char *setting)
{
    const char *name = "", *fallback, *help;
    char text[SAR_SETTING_PATH];
    enum sar_config_source origin = SAR_SOURCES;
    size_t i = 0;
    while (sar_config_setting(i, &name, &fallback, &help) && strcmp(name, setting) != 0)
        i++;
    sar_config_format(&context->settings.policy.config, i, text, sizeof text, &origin);
    return origin;
}

static void try_file_that_fits(void)
{
    MPI_Comm comm;
    struct sar_comm_state *context = NULL;
    char sentence[SAR_ERROR_TEXT_SIZE];
    check_case("a file that fits");
    check(open_with(path, &comm, &context, sentence) == SAR_OK, "expected a context: %s", sentence);
    check(equal_constants(&context->settings.machine, &calibration.machine), "expected the file's constants");
    check(sent.messages == 0, "expected nothing to be measured, found %lld messages", sent.messages);
    check(origin_of(context, "ALPHA") == SAR_SOURCE_CALIBRATION, "expected alpha from the file");
    check(origin_of(context, "CALIBRATION") == SAR_SOURCE_ENVIRONMENT, "expected the environment");
    check_call(comm);
    MPI_Comm_free(&comm);

    check_case("a file that fits, and a setting that goes before it");
    if (rank == 0)
        setenv("MPIX_SPARSE_BETA", "9e-10", 1);
    check(open_with(path, &comm, &context, sentence) == SAR_OK, "expected a context: %s", sentence);
    unsetenv("MPIX_SPARSE_BETA");
    check(context->settings.machine.alpha == invented.alpha && context->settings.machine.beta == 9e-10,
          "expected alpha of the file and beta of the environment, found %g and %g",
          context->settings.machine.alpha, context->settings.machine.beta);
    check(origin_of(context, "BETA") == SAR_SOURCE_ENVIRONMENT, "expected beta from the environment");
    MPI_Comm_free(&comm);
}

/* A modification of the valid file. */
struct edit {
    const char *from, *to;
    const char *says; /* text that the message must contain */
};

/* Replace the rest of the line after `from`; if `from` is NULL, replace the file. */
static void apply_edit(const struct edit *e, char text[TEXT])
{
    const char *at = e->from == NULL ? good : strstr(good, e->from);
    check(at != NULL, "expected %s in the file", e->from);
    size_t begin = (size_t)(at - good) + (e->from == NULL ? 0 : strlen(e->from));
    const char *rest = e->from == NULL ? "" : good + begin + strcspn(good + begin, "\n");
    rest -= e->from != NULL && rest[-1] == ',';
    snprintf(text, TEXT, "%.*s%s%s", (int)begin, good, e->to, rest);
}

static const struct edit misfits[] = {
    { "\"schema\":", "2", "schema is 2" },
    { "\"schema\":", "-7", "schema is -7" },
    { "\"library\":", "\"0.0.9\"", "library is '0.0.9'" },
    { "\"mpi\":", "\"Nobody's MPI\"", "mpi is 'Nobody's MPI'" },
    { "\"cpu\":", "\"Z80\"", "cpu is 'Z80'" },
    { "\"hosts\":", "\"0\"", "hosts is '0'" },
    { "\"processors\":", "99999", "it is for 99999 processors" },
    { "\"ranks\":", "100000", "it is for 100000 ranks" },
    { "\"nodes\":", "100000", "it is for 100000 nodes" },
    { "\"over", "look\": 1", "no overhead: it is older" }, /* written by a version without this constant */
};

/* Open a communicator with rank 0's standard error in a file. */
static enum sar_status open_redirected(MPI_Comm *comm, struct sar_comm_state **context, char log[TEXT])
{
    char name[64], sentence[SAR_ERROR_TEXT_SIZE];
    int kept = -1;
    snprintf(name, sizeof name, "%s/log", folder);
    if (rank == 0) {
        kept = dup(STDERR_FILENO);
        check(freopen(name, "w", stderr) != NULL, "expected to open %s", name);
        setenv("MPIX_SPARSE_EXPLAIN", "1", 1);
    }
    enum sar_status status = open_with(path, comm, context, sentence);
    if (rank == 0) {
        fflush(stderr);
        dup2(kept, STDERR_FILENO);
        close(kept);
        unsetenv("MPIX_SPARSE_EXPLAIN");
        read_text(name, log);
        unlink(name);
    }
    return status;
}

/* The constants are measured, and MPIX_SPARSE_EXPLAIN prints the reason. */
static void try_misfit(const struct edit *e)
{
    MPI_Comm comm;
    struct sar_comm_state *context = NULL;
    char text[TEXT], log[TEXT] = "";
    check_case("a file with %s %s", e->from, e->to);
    if (rank == 0) {
        apply_edit(e, text);
        write_text(text);
    }
    check(open_redirected(&comm, &context, log) == SAR_OK, "expected a context");
    check(sent.messages > 0, "expected the constants to be measured");
    check(context->settings.machine.ranks == ranks &&
              context->settings.machine.dense_beta != invented.dense_beta,
          "expected other constants than the file's");
    check(origin_of(context, "ALPHA") == SAR_SOURCE_DEFAULT, "expected no setting from the file");
    check(rank != 0 || strstr(log, e->says) != NULL, "expected '%s' in: %s", e->says, log);
    MPI_Comm_free(&comm);
}

static const struct edit bad_files[] = {
    { NULL, "", "malformed" },
    { NULL, "{", "malformed" },
    { NULL, "[]", "schema" },
    { NULL, "{}", "schema" },
    { NULL, "{\"schema\": \"1\"}", "schema" },
    { NULL, "{\"schema\": 1}", "fingerprint" },
    { NULL, "{\"schema\": 1, \"schema\": 1}", "malformed" },
    { "\"mpi\":", "7", "mpi" },
    { "\"ranks\":", "\"4\"", "ranks" },
    { "\"nodes\":", "0", "nodes" },
    { "\"nodes\":", "1.5", "nodes" },
    { "\"processors\":", "4294967297", "processors" },
    { "\"alpha\":", "-1e-6", "above 0, up to 1000, called alpha" },
    { "\"alpha\":", "0", "above 0, up to 1000, called alpha" },
    { "\"dense_beta\":", "0.0", "above 0, up to 1000, called dense_beta" },
    { "\"beta\":", "NaN", "malformed" },
    { "\"beta\":", "\"fast\"", "beta" },
    { "\"gamma\":", "1e300", "gamma" },
    { "\"memory\":", "1001", "memory" },
    { "\"dense_alpha\":", "[]", "dense_alpha" },
    { "\"overhead\":", "0", "above 0, up to 1000, called overhead" },
    { "\"near_overhead\":", "{}", "near_overhead" },
};

/* Every rank gets the same error, which names the setting. The communicator is as good as new. */
static void check_refused(const char *value, const char *says)
{
    MPI_Comm comm = comm_duplicate();
    int one = 1, sum = 0;
    if (rank == 0)
        setenv("MPIX_SPARSE_CALIBRATION", value, 1);
    memset(&sent, 0, sizeof sent);
    int code = MPIX_Sparse_allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check_error(code, "MPIX_SPARSE_CALIBRATION", -1);
    check_error(code, says, -1);
    check(sent.messages == 0, "expected nothing to be measured, found %lld messages", sent.messages);
    unsetenv("MPIX_SPARSE_CALIBRATION");
    MPI_Comm_free(&comm);
}

static void try_bad_file(const struct edit *e)
{
    char text[TEXT];
    check_case("a file with %s %s", e->from == NULL ? "nothing but" : e->from, e->to);
    if (rank == 0) {
        apply_edit(e, text);
        write_text(text);
    }
    check_refused(path, e->says);
}

static void try_missing_members(void)
{
    static const char *const names[] = { "library", "mpi",   "cpu",   "hosts",     "processors",
                                         "ranks",   "nodes", "alpha", "near_beta", "dense_beta" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_case("a file without %s", names[i]);
        if (rank == 0) {
            char text[TEXT], quoted[32];
            snprintf(quoted, sizeof quoted, "\"%s\"", names[i]);
            snprintf(text, sizeof text, "%s", good);
            char *at = strstr(text, quoted);
            check(at != NULL, "expected %s in the file", quoted);
            at[1] = '#';
            write_text(text);
        }
        check_refused(path, names[i]);
    }
}

static void try_no_file(void)
{
    static const struct {
        const char *path, *says;
    } table[] = { { "/nowhere/at/all.json", "cannot be read" },
                  { "/tmp", "no calibration file" },
                  { "/dev/zero", "no calibration file" } };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        check_case("the file %s", table[i].path);
        check_refused(table[i].path, table[i].says);
    }
    check_case("a large file");
    if (rank == 0) {
        write_text("{}");
        check(truncate(path, 1 << 20) == 0, "expected to stretch %s", path);
    }
    check_refused(path, "64 KiB");
}

/* A failed write leaves the old file unchanged, and no other file. */
static void try_writing(void)
{
    char why[SAR_ERROR_TEXT_SIZE] = "", text[TEXT], other[64];
    check_case("writing");
    if (rank != 0)
        return;
    write_text("what was there");
    check(sar_calibration_write(path, &calibration, why, sizeof why) == SAR_OK, "expected a file: %s", why);
    read_text(path, text);
    check(strcmp(text, good) == 0, "expected the same file again, found %s", text);
    snprintf(other, sizeof other, "%s/folder", folder);
    check(mkdir(other, 0700) == 0, "expected a folder");
    check(sar_calibration_write(other, &calibration, why, sizeof why) == SAR_BAD_SETTING,
          "expected a refusal");
    check(strstr(why, other) != NULL, "expected %s in: %s", other, why);
    check(rmdir(other) == 0, "expected a folder that is still empty");
    snprintf(other, sizeof other, "%s/none/file", folder);
    check(sar_calibration_write(other, &calibration, why, sizeof why) == SAR_BAD_SETTING,
          "expected a refusal");
    check(access(other, F_OK) != 0, "expected no file");
    check(unlink(path) == 0 && rmdir(folder) == 0, "expected nothing else in %s", folder);
}

/* Seconds of a first use that measures the constants. */
static double time_first_use(void)
{
    MPI_Comm comm;
    struct sar_comm_state *context = NULL;
    char sentence[SAR_ERROR_TEXT_SIZE];
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    check(open_with("none", &comm, &context, sentence) == SAR_OK, "expected a context: %s", sentence);
    double seconds = MPI_Wtime() - start;
    MPI_Comm_free(&comm);
    return seconds;
}

/* The measurement takes less than 50 ms on 4 ranks of one idle node. The test checks the bounds of messages
 * and bytes, and prints the time. */
static void try_cost(void)
{
    enum { MOST_MESSAGES = 28, MOST_BYTES = 4 << 20, TIMES = 5 };
    bool slept_before = sleep_in_waits;
    double least = 1e9;
    check_case("what measuring costs");
    sleep_in_waits = sleep_in_waits && oversubscribed;
    for (int i = 0; i < TIMES; i++)
        least = fmin(least, time_first_use());
    sleep_in_waits = slept_before;
    check(sent.messages > 0 && sent.messages <= MOST_MESSAGES, "expected at most %d messages, found %lld",
          MOST_MESSAGES, sent.messages);
    check(sent.bytes <= MOST_BYTES && sent.reduced <= MOST_BYTES,
          "expected at most %d bytes sent and reduced, found %lld and %lld", MOST_BYTES, sent.bytes,
          sent.reduced);
    if (rank == 0)
        printf("# calibration: %lld messages, %lld bytes, %lld reductions of %lld bytes, %.1f ms\n",
               sent.messages, sent.bytes, sent.reductions, sent.reduced, least * 1e3);
}

static void try_files(void)
{
    make_file();
    try_file_that_fits();
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++)
        try_misfit(&misfits[i]);
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++)
        try_bad_file(&bad_files[i]);
    try_missing_members();
    try_no_file();
    try_writing();
}

#ifdef HAVE_JANSSON
static const bool has_jansson = true;
#else
static const bool has_jansson = false;
#endif

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    unsetenv("MPIX_SPARSE_LOG_FILE"); /* the test reads warnings from the standard error */
    try_cost();
    if (has_jansson)
        try_files();
    else
        check_refused("some.json", "without Jansson");
    return check_end("calibration");
}
