/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call's time teaches. The next agreement makes it known to all ranks. How long a rank waits in an
 * agreement for the others says nothing of the scheme: its time counts from there on. */

#include "plan/steps.h"

double sar_call_seconds(const struct sar_pending *op)
{
    return PMPI_Wtime() - op->start - op->apart;
}

void sar_call_do_homework(struct sar_pending *op)
{
    struct sar_homework *h = &op->context->homework;
    const struct sar_ballot *all = &op->agreement.all;
    if (h->record != NULL && all->seconds > 0) {
        sar_lesson_entry(&h->record->lessons, (double)all->entry * 1e-9);
        sar_lesson(&h->record->lessons, h->scheme, h->predicted, (double)all->seconds * 1e-9);
    }
    h->record = NULL;
}

/* From here on ranks may fare differently: what later choices depend on is set before. */
void sar_call_set_homework(struct sar_pending *op)
{
    int runs = op->selection.runs;
    op->context->homework = (struct sar_homework){ op->record, runs, op->selection.prices[runs].predicted,
                                                   (int64_t)(op->entry * 1e9), 0 };
    op->record->lessons.settled = op->selection.choice + 1;
}

void sar_call_end_homework(struct sar_pending *op)
{
    if (op->context->homework.record == op->record)
        op->context->homework.nanoseconds = (int64_t)((sar_call_seconds(op) - op->entry) * 1e9);
}
