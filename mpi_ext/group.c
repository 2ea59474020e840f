/* SPDX-License-Identifier: BSD-3-Clause */
/* Several plans started at once. All their requests are made before any call begins, so that all start or
 * none does. Small plans that are alike then fly together, in the flight of the first of them; the requests
 * of all are completed at its end, the leader's last: until then nobody may free what they share. */

#include <stddef.h>
#include <stdio.h>

#include "mpi_ext/error.h"
#include "mpi_ext/memory.h"
#include "mpi_ext/plan.h"
#include "plan/group.h"
#include "plan/progress.h"

static const char function[] = "MPIX_Sparse_plan_start_all";

static int refuse(MPIX_Sparse_plan plan, int i, const struct sar_verdict *verdict)
{
    char title[64];
    snprintf(title, sizeof title, "%s: plans[%d]", function, i);
    if (!sar_plan_fits(plan, true))
        return sar_plan_refuse(plan, title);
    return sar_raise(plan->plan.context == NULL ? MPI_COMM_NULL : plan->flight.comm, title, verdict, NULL);
}

static int take(MPIX_Sparse_plan plan, int i)
{
    struct sar_verdict verdict = { .status = SAR_BAD_PLAN };
    if (sar_plan_fits(plan, true))
        verdict = sar_flight_take(&plan->flight);
    if (verdict.status != SAR_OK)
        return refuse(plan, i, &verdict);
    sar_memory_use_stream(&plan->call, plan->call.memory.stream);
    sar_memory_read(&plan->call);
    plan->flight.call = plan->call;
    plan->call.verdict.status = SAR_OK;
    plan->flight.function = function;
    plan->flight.place = i + 1;
    plan->flight.others = 0;
    plan->plan.companion = NULL;
    plan->aboard = false;
    return MPI_SUCCESS;
}

/* A plan that is named twice is in use when it comes again. */
static int take_all(int n, MPIX_Sparse_plan plans[])
{
    int taken = 0, code = MPI_SUCCESS;
    while (taken < n && (code = take(plans[taken], taken)) == MPI_SUCCESS)
        taken++;
    while (code != MPI_SUCCESS && taken-- > 0)
        sar_flight_drop(&plans[taken]->flight);
    return code;
}

/* Chain the plans that can fly with the first one; returns how many. */
static size_t take_along(int n, MPIX_Sparse_plan plans[])
{
    struct sar_plan *leader = &plans[0]->plan, *last = leader;
    size_t others = 0;
    if (!sar_plan_is_small(leader))
        return 0;
    for (int i = 1; i < n; i++) {
        struct sar_plan *plan = &plans[i]->plan;
        if (plans[i]->aboard || !sar_plans_are_alike(leader, plan) || !sar_plan_is_small(plan))
            continue;
        plans[i]->aboard = true;
        last = last->companion = plan;
        others++;
    }
    return others;
}

static void land(struct sar_pending *pending)
{
    struct sar_flight *flight = (struct sar_flight *)pending;
    struct sar_plan *leader = flight->plan, *next;
    int code = sar_flight_judge(flight);
    if (code == MPI_SUCCESS)
        sar_group_scatter(leader);
    for (struct sar_plan *plan = leader; plan != NULL; plan = plan->companion)
        code = sar_memory_write(flight->comm, function, &((MPIX_Sparse_plan)plan)->call, code);
    for (struct sar_plan *plan = leader->companion; plan != NULL; plan = next) {
        next = plan->companion;
        sar_flight_end(&((MPIX_Sparse_plan)plan)->flight, code);
    }
    sar_flight_end(flight, code);
}

/* Whether all that travel together could be read. */
static struct sar_verdict worst_of(MPIX_Sparse_plan leader)
{
    const struct sar_plan *plan = &leader->plan;
    while (plan->companion != NULL && ((MPIX_Sparse_plan)plan)->flight.call.verdict.status == SAR_OK)
        plan = plan->companion;
    return ((MPIX_Sparse_plan)plan)->flight.call.verdict;
}

/* A rank that has no memory for the group takes part and tells why; no rank is steady then. */
static void fly_together(MPIX_Sparse_plan leader, size_t others)
{
    struct sar_plan *plan = &leader->plan;
    struct sar_verdict verdict = worst_of(leader);
    leader->flight.others = others;
    sar_progress_halt(plan->context);
    sar_group_prepare(plan, &leader->flight.call);
    sar_progress_resume();
    if (leader->flight.call.verdict.status == SAR_OK)
        leader->flight.call.verdict = verdict;
    for (struct sar_plan *other = plan->companion; other != NULL; other = other->companion)
        sar_flight_join(&((MPIX_Sparse_plan)other)->flight, plan->context);
    if (leader->flight.call.verdict.status == SAR_OK)
        sar_group_gather(plan);
    sar_flight_leave(&leader->flight, plan->group == NULL ? NULL : &plan->group->plan, land);
}

static void start(int n, MPIX_Sparse_plan plans[])
{
    for (int i = 0; i < n; i++) {
        if (plans[i]->aboard)
            continue;
        size_t others = take_along(n - i, plans + i);
        if (others != 0)
            fly_together(plans[i], others);
        else
            sar_flight_leave(&plans[i]->flight, &plans[i]->plan, sar_flight_land);
    }
}

int PMPIX_Sparse_plan_start_all(int n, MPIX_Sparse_plan plans[], MPI_Request requests[])
{
    if (n < 0)
        return sar_error_code(function, SAR_BAD_N, n);
    if (n > 0 && (plans == NULL || requests == NULL))
        return sar_error_code(function, SAR_BAD_OUTPUT,
                              plans == NULL ? SAR_OUTPUT_PLANS : SAR_OUTPUT_REQUESTS);
    int code = take_all(n, plans);
    if (code != MPI_SUCCESS)
        return code;
    for (int i = 0; i < n; i++)
        requests[i] = plans[i]->flight.request;
    start(n, plans);
    return MPI_SUCCESS;
}

#pragma weak MPIX_Sparse_plan_start_all = PMPIX_Sparse_plan_start_all
