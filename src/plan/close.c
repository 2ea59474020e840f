/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of contexts. What ranks have told each other of stalls must be received before the library's
 * communicator may go, and how much that is they know only once all of them have freed the user's. MPI
 * libraries do not wait in MPI_Comm_free, and programs rely on it: one rank may free a communicator and then
 * send what another receives before it frees its own. So a context whose ranks do not come at once is put
 * aside, without its memory, and goes when some other is opened or closed, or with MPI. */

#include <stdatomic.h>

#include "base/trace.h"
#include "net/roll.h"
#include "net/window.h"
#include "plan/context.h"
#include "plan/plan.h"
#include "plan/progress.h"

enum { LOOKS = 1000 /* for the other ranks, a fraction of a millisecond */ };

static struct sar_context *_Atomic aside;

void sar_context_leave(struct sar_context *context)
{
    sar_roll_end(&context->net);
}

static void put_aside(struct sar_context *context)
{
    context->next_aside = atomic_load(&aside);
    while (!atomic_compare_exchange_weak(&aside, &context->next_aside, context))
        continue;
}

/* Whether all ranks have left it; after so many looks, or once they have if that is 0. */
static bool is_left(const struct sar_net *net, int most)
{
    int looks = 0;
    for (int i = 1; !sar_roll_counted(net); i++) {
        if (i == most)
            return false;
        if (sar_progress_meanwhile(net, &looks))
            sar_net_pause(net, &looks);
    }
    return true;
}

static void end(struct sar_context *context)
{
    sar_roll_settle(&context->net);
    sar_net_close(&context->net);
    sar_context_discard(context);
}

/* Threads that come here at the same time each have some of them. */
void sar_context_sweep(bool wait)
{
    struct sar_context *context = atomic_exchange(&aside, NULL), *next;
    for (; context != NULL; context = next) {
        next = context->next_aside;
        if (is_left(&context->net, wait ? 0 : 1))
            end(context);
        else
            put_aside(context);
    }
}

void sar_context_close(struct sar_context *context)
{
    sar_trace_flush();
    sar_context_leave(context);
    for (struct sar_plan *plan = context->plans; plan != NULL; plan = plan->next)
        plan->context = NULL;
    sar_arena_free(&context->arena);
    for (int i = 0; i < SAR_SCRATCHES; i++)
        sar_arena_free(&context->scratch[i]);
    for (int i = 0; i < 2; i++)
        sar_buffer_free(&context->outcome[i]);
    sar_window_close(context->net.window);
    context->net.window = NULL;
    sar_context_sweep(false);
    if (is_left(&context->net, LOOKS))
        end(context);
    else
        put_aside(context);
}
