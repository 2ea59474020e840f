/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens around a program's call. */

#include "preload/visit.h"

#include <string.h>

#include "device/accelerator.h"
#include "mpi_ext/types.h"
#include "preload/glance.h"

enum { WIDEST = 8 /* bytes of a basic type that the library reduces */ };

/* No scheme gains enough where as many elements are present as are not. */
static const double FEW = 0.5;

/* A glance cannot look at device memory, which MPI may be able to take as it is. */
static bool is_on_host(const void *buffer)
{
    return buffer == MPI_IN_PLACE || sar_accelerator_is_idle(buffer, buffer);
}

static bool buffers_are_good(const struct sar_asked *asked)
{
    return asked->sendbuf != NULL && asked->recvbuf != NULL && asked->recvbuf != MPI_IN_PLACE &&
           asked->sendbuf != asked->recvbuf && is_on_host(asked->sendbuf) && is_on_host(asked->recvbuf);
}

static bool eligible(const struct sar_asked *asked, struct sar_shape_key *key)
{
    struct sar_operation operation = sar_operation_look(asked->op);
    if (!sar_preload.on || asked->comm == MPI_COMM_NULL || !operation.native ||
        !sar_datatype_basic(asked->datatype, &operation, &key->base))
        return false;
    key->count = (int64_t)asked->count;
    key->op = operation.op;
    uint64_t size = sar_kernels_of(key->base, key->op)->size;
    return asked->count > 0 && (uint64_t)asked->count <= INT64_MAX / size &&
           sar_shape_bytes(key) >= sar_preload.config.preload_min_bytes && buffers_are_good(asked);
}

/* Whatever the type. Most calls of most programs are, and take no longer than a look at their arguments. */
static bool is_small(const struct sar_asked *asked)
{
    return (uint64_t)asked->count < sar_preload.config.preload_min_bytes / WIDEST;
}

struct sar_followed *sar_visit_follow(const struct sar_asked *asked, struct sar_shape_key *key)
{
    bool may_gain = !is_small(asked) && eligible(asked, key);
    struct sar_followed *followed = may_gain ? sar_preload_follow(asked->comm) : NULL;
    if (followed != NULL && !followed->never)
        return followed;
    if (sar_preload.reporting)
        __atomic_fetch_add(&sar_preload.others, 1, __ATOMIC_RELAXED);
    return NULL;
}

static const void *input_of(const struct sar_asked *asked)
{
    return asked->sendbuf == MPI_IN_PLACE ? asked->recvbuf : asked->sendbuf;
}

void sar_visit_describe(const struct sar_asked *asked, const struct sar_tabled_shape *shape, enum sar_how how,
                        int ranks, struct sar_note *note)
{
    bool due = sar_preload.reporting && (shape->calls & (shape->calls - 1)) == 0;
    *note = (struct sar_note){ .how = how, .key = shape->key, .ranks = ranks };
    note->density = due ? sar_glance_here(input_of(asked), &shape->key) : -1;
}

/* All ranks that go on are set up, or can be. */
static void glance(const struct sar_asked *asked, bool is_set_up, struct sar_visit *visit)
{
    struct sar_note *note = &visit->note;
    double start = PMPI_Wtime();
    bool can_pay = is_set_up || sar_preload_can_pay();
    note->looked = true;
    note->density = sar_glance(input_of(asked), &note->key, asked->comm, note->ranks, &can_pay);
    note->look_seconds = PMPI_Wtime() - start;
    bool few = note->density < FEW || !sar_preload.chooses;
    if (can_pay || !few)
        sar_shape_glanced(visit->shape, few);
    note->taken = visit->shape->open;
}

static void set_up(struct sar_followed *followed, struct sar_tabled_shape *shape)
{
    followed->is_set_up = true;
    sar_shape_set_up(shape, &sar_preload.habits);
    sar_preload_owe();
}

bool sar_visit_enter(const struct sar_asked *asked, struct sar_visit *visit)
{
    struct sar_shape_key key;
    struct sar_followed *followed = sar_visit_follow(asked, &key);
    if (followed == NULL)
        return false;
    visit->comm = asked->comm;
    visit->shape = sar_shapes_find(&followed->table, &key);
    enum sar_move move = sar_shape_call(visit->shape, &sar_preload.habits);
    sar_visit_describe(asked, visit->shape, SAR_BLOCKING, followed->ranks, &visit->note);
    visit->note.taken = move == SAR_TAKE;
    if (move == SAR_GLANCE)
        glance(asked, followed->is_set_up, visit);
    if (visit->note.taken && !followed->is_set_up)
        set_up(followed, visit->shape);
    visit->start = sar_preload.reporting ? PMPI_Wtime() : 0;
    return true;
}

/* A scheme that was asked for is no trial. Where data are dense, times that made another scheme than `dense`
 * look better were noise. */
enum sar_outcome sar_visit_outcome(const char *scheme, const char *choice, double density)
{
    bool ran = strcmp(scheme, "dense") == 0, best = strcmp(choice, "dense") == 0;
    if (!sar_preload.chooses)
        return ran ? SAR_IN_VAIN : SAR_WORTH_IT;
    if (density >= FEW)
        return ran ? SAR_IN_VAIN : SAR_A_LOSS;
    return ran != best ? SAR_A_TRIAL : ran ? SAR_IN_VAIN : SAR_WORTH_IT;
}

/* How a call fared that the library took. */
static enum sar_outcome learn(struct sar_visit *visit)
{
    MPIX_Sparse_report_t report;
    PMPIX_Sparse_get_report(visit->comm, &report);
    double density = (double)report.nnz_in_sum / ((double)report.count * report.ranks);
    enum sar_outcome outcome = sar_visit_outcome(report.scheme, report.choice, density);
    sar_shape_learn(visit->shape, &sar_preload.habits, outcome);
    visit->note.density = density;
    visit->note.predicted = report.predicted_seconds;
    memcpy(visit->note.scheme, report.scheme, sizeof visit->note.scheme);
    return outcome;
}

int sar_visit_leave(struct sar_visit *visit, int code)
{
    if (code != MPI_SUCCESS)
        return code;
    visit->note.seconds = sar_preload.reporting ? PMPI_Wtime() - visit->start : 0;
    bool gained = visit->note.taken && learn(visit) == SAR_WORTH_IT;
    if (gained || !visit->note.taken)
        sar_preload_pay(&visit->note.key, gained);
    sar_preload_note(&visit->note);
    return code;
}

/* What a nonblocking call's scheme was is known only once it is complete, which ranks need not see before
 * the same later call; and a glance or the library's set-up may wait for other ranks, which a nonblocking
 * call must not. So these calls follow what blocking ones learnt. */
bool sar_visit_passing(const struct sar_asked *asked)
{
    struct sar_shape_key key;
    struct sar_note note;
    struct sar_followed *followed = sar_visit_follow(asked, &key);
    if (followed == NULL)
        return false;
    struct sar_tabled_shape *shape = sar_shapes_find(&followed->table, &key);
    shape->calls++;
    sar_visit_describe(asked, shape, SAR_NONBLOCKING, followed->ranks, &note);
    note.taken = sar_preload.config.preload_nonblocking && shape->sparse;
    sar_preload_note(&note);
    return note.taken;
}
