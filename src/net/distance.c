/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/distance.h"

#include <math.h>

#include "base/log.h"
#include "net/line.h"

/* Whether lines are timed: not where time is simulated (bench/smpi.h). */
#ifndef SAR_DISTANCE_TIMED
#define SAR_DISTANCE_TIMED true
#endif

enum {
    TRIES = 20,      /* at timing a line */
    TRIES_AGAIN = 5, /* while calls wait */
};

double sar_distance_far = 150e-9;
uint64_t sar_distance_first = 8, sar_distance_every = 1024;

static double time_lines(const struct sar_net *net, struct sar_window *window)
{
    struct sar_lines lines = { .of = sar_window_line,
                               .lines = window,
                               .rank = window->rank,
                               .ranks = window->ranks,
                               .comm = net->comm,
                               .tries = window->timings == 0 ? TRIES : TRIES_AGAIN,
                               .before = window->timings };
    window->timings++;
    return sar_line_seconds(&lines);
}

/* As before where ranks found no partner at work, unless all are far or none. */
static bool is_far(const struct sar_window *window, double seconds)
{
    bool depends = sar_distance_far >= 0 && sar_distance_far < INFINITY;
    return window->timed && seconds == 0 && depends ? window->far : seconds > sar_distance_far;
}

void sar_distance_find(const struct sar_net *net, struct sar_window *window, bool timed)
{
    bool first = window->timings == 0, before = window->far;
    window->timed = SAR_DISTANCE_TIMED && timed && window->ranks > 1;
    double seconds = window->timed ? time_lines(net, window) : 0;
    window->far = is_far(window, seconds);
    if (window->timed && (first || window->far != before))
        SAR_LOG(DEBUG, NET, "a line of cache takes %.0f ns to a far rank%s", seconds * 1e9,
                window->far ? ": what all read goes past the caches" : "");
}

/* Ranks that start are often on one socket, and are moved once all of them work: so twice as far from look to
 * look at first. */
static bool is_time(uint64_t waits)
{
    uint64_t times = waits / sar_distance_first;
    bool doubled = waits % sar_distance_first == 0 && (times & (times - 1)) == 0;
    return doubled || waits % sar_distance_every == 0;
}

void sar_distance_watch(const struct sar_net *net)
{
    struct sar_window *window = net->window;
    if (window != NULL && is_time(++window->waits))
        sar_distance_find(net, window, window->timed);
}
