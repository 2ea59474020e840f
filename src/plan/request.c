/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/request.h"

#include <string.h>

#include "device/worker.h"
#include "net/window.h"

void sar_request_begin(struct sar_request *request)
{
    struct sar_envelope envelope = { .fingerprint = request->fingerprint, .epoch = request->epoch };
    sar_message_failed(&envelope, &request->exchange.failure);
    request->stage = request->scheme->stages;
    request->stages_run = 0;
    request->dense = (struct sar_dense){ .collective.request = MPI_REQUEST_NULL };
    sar_exchange_phase(&request->exchange, request->epoch, 0);
}

static bool finished(const struct sar_stage *stage)
{
    return stage->compute == NULL && stage->post == NULL;
}

static void run_stage(struct sar_request *request)
{
    const struct sar_stage *stage = request->stage;
    struct sar_exchange *exchange = &request->exchange;
    int number = request->stages_run++;
    request->place = (int)(stage - request->scheme->stages);
    struct sar_span span = sar_request_span(request, "compute");
    if (stage->compute != NULL && exchange->status == SAR_OK)
        sar_exchange_fail(exchange, stage->compute(request));
    if (request->worker != NULL)
        sar_exchange_fail(exchange, sar_worker_wait(request->worker));
    sar_request_span_end(request, &span);
    sar_exchange_phase(exchange, request->epoch, number);
    exchange->piecemeal = stage->arrived != NULL;
    request->again = false;
    span = sar_request_span(request, "post");
    if (stage->post != NULL)
        stage->post(request);
    sar_request_span_end(request, &span);
    request->waiting = sar_request_span(request, "wait");
    request->meanwhile = stage->meanwhile;
    request->arrived = stage->arrived;
    if (!request->again)
        request->stage++;
}

/* What can be done while messages are under way, once they have been given a first push. */
static void use_the_wait(struct sar_request *request)
{
    enum sar_status (*meanwhile)(struct sar_request *) = request->meanwhile;
    bool moved;
    request->meanwhile = NULL;
    if (meanwhile == NULL || request->exchange.status != SAR_OK)
        return;
    sar_exchange_advance(&request->exchange, false, &moved);
    struct sar_span span = sar_request_span(request, "meanwhile");
    sar_exchange_fail(&request->exchange, meanwhile(request));
    sar_request_span_end(request, &span);
}

static void use_arrivals(struct sar_request *request)
{
    request->exchange.news = false;
    if (request->arrived != NULL && request->exchange.status == SAR_OK)
        sar_exchange_fail(&request->exchange, request->arrived(request));
}

void sar_request_advance(struct sar_request *request, bool block, bool *done)
{
    bool moved, reduced;
    for (;;) {
        *done = false;
        use_the_wait(request);
        sar_exchange_advance(&request->exchange, block, &moved);
        if (!moved) {
            use_arrivals(request);
            if (!block)
                return;
            continue;
        }
        enum sar_status status = sar_dense_advance(&request->dense, block, &reduced);
        sar_exchange_fail(&request->exchange, status);
        if ((status == SAR_OK && !reduced) || !sar_window_met(request->net, block))
            return;
        sar_request_span_end(request, &request->waiting);
        *done = finished(request->stage);
        if (*done)
            return;
        run_stage(request);
    }
}
