/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops on a team of OpenMP's, so that a program which uses OpenMP has no second set of threads. Each thread
 * takes the pieces of a range of its own in ascending order, and then pieces that are left in other ranges.
 * Neighbouring pieces on one thread share pages, and the processor's prefetches. A loop costs a few
 * microseconds more than its body, if the team's threads still spin from the loop before. OpenMP decides how
 * long they do: OMP_WAIT_POLICY.
 *
 * The thread sanitizer does not see the barriers of OpenMP's library. The counters of struct loop order all
 * accesses without them: the caller returns when every thread has left. */

#include "base/parallel.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "base/trace.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define NO_THREAD_SANITIZER __attribute__((no_sanitize("thread"), noinline))
#else
#define NO_THREAD_SANITIZER
#endif

enum { CACHE_LINE = 64, SPINS_TO_YIELD = 1000, RANGES_MAX = 64 };

size_t sar_parallel_piece_bytes = SAR_PIECE_BYTES;
int sar_parallel_loops;

static _Thread_local struct sar_parallel current = { .threads = 1 };
static _Thread_local bool forbidden, used;
static atomic_bool disabled;

struct sar_parallel sar_parallel_begin(struct sar_parallel parallel)
{
    struct sar_parallel former = current;
    current = parallel;
    return former;
}

void sar_parallel_end(struct sar_parallel former)
{
    current = former;
}

void sar_parallel_forbid(void)
{
    forbidden = true;
}

void sar_parallel_disable(void)
{
    atomic_store(&disabled, true);
}

#ifdef _OPENMP
/* A pause is the time after a late loop in which automatic loops have one thread. In nanoseconds: */
static const int64_t LATE = 500000; /* shortest wait that makes a loop late */
static const int64_t LONGEST_PAUSE = 4000000000;
static const int64_t LOGGED_PAUSE = 1500000000; /* shortest pause that is logged */
enum {
    WAITS_IN_PAUSE = 16 /* pause over the wait before it, at least: waits take 6 % of the time at most */
};

/* The end of this thread's last pause, 0 before the first one; and the length of that pause, which loops in
 * time halve. */
static _Thread_local int64_t paused_until, pause_ns;

static bool is_paused(void)
{
    return current.automatic && paused_until != 0 && sar_span_clock() < paused_until;
}
#endif

int sar_parallel_threads(void)
{
#ifdef _OPENMP
    return current.threads > 1 && !forbidden && !atomic_load(&disabled) && !omp_in_parallel() && !is_paused()
               ? current.threads
               : 1;
#else
    return 1;
#endif
}

size_t sar_parallel_pieces(size_t bytes)
{
    if (current.threads <= 1 || bytes < 2 * sar_parallel_piece_bytes)
        return 1;
    size_t threads = (size_t)sar_parallel_threads(), most = threads * SAR_THREAD_PIECES;
    size_t fit = bytes / sar_parallel_piece_bytes;
    return threads == 1 ? 1 : fit < most ? fit : most;
}

size_t sar_parallel_steps(size_t bytes, size_t least)
{
    size_t pieces = sar_parallel_pieces(bytes), step = SAR_STEP_PIECES * sar_parallel_piece_bytes;
    step = step > least ? step : least;
    if (pieces > 1 || current.progress == NULL || bytes < 2 * step)
        return pieces;
    return bytes / step < SAR_PIECES_MAX ? bytes / step : SAR_PIECES_MAX;
}

size_t sar_parallel_bound(size_t n, size_t unit, size_t pieces, size_t i)
{
    size_t units = n / unit + (n % unit != 0);
    size_t bound = (units / pieces * i + units % pieces * i / pieces) * unit;
    return i == pieces || bound > n ? n : bound;
}

static void call_progress(const struct sar_parallel *caller)
{
    if (caller->progress != NULL)
        caller->progress(caller->arg);
}

void sar_parallel_advance(void)
{
    call_progress(&current);
}

#ifdef _OPENMP
/* Pieces [next, end) that no thread has taken. `next` may pass the end. */
struct range {
    _Alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

/* One loop. A piece i that fails lowers `failure` to i << 16 | status, if that is less. */
struct loop {
    sar_parallel_body *body;
    void *arg;
    size_t n;
    struct sar_parallel caller;
    struct range range[RANGES_MAX];
    size_t ranges;
    atomic_size_t done;
    atomic_int left;
    _Atomic uint64_t failure;
    int64_t begins, waits; /* when the caller takes its first piece, and when no piece is left for it */
};

/* Takes a piece of range `own`, or of the first one after it that has any. */
static bool take_piece(struct loop *loop, size_t own, size_t *piece)
{
    for (size_t k = 0; k < loop->ranges; k++) {
        struct range *range = &loop->range[(own + k) % loop->ranges];
        if (atomic_load(&range->next) < range->end &&
            (*piece = atomic_fetch_add(&range->next, 1)) < range->end)
            return true;
    }
    return false;
}

static void run_piece(struct loop *loop, size_t i)
{
    enum sar_status status = loop->body(loop->arg, i);
    uint64_t failure = (uint64_t)i << 16 | (uint64_t)status, least = atomic_load(&loop->failure);
    while (status != SAR_OK && failure < least)
        if (atomic_compare_exchange_weak(&loop->failure, &least, failure))
            break;
    atomic_fetch_add(&loop->done, 1);
}

static enum sar_status status_of(struct loop *loop)
{
    uint64_t failure = atomic_load(&loop->failure);
    return failure == UINT64_MAX ? SAR_OK : (enum sar_status)(failure & 0xffff);
}

/* Advances messages until all pieces are done. */
static void progress_until_done(struct loop *loop)
{
    for (int spins = 0; atomic_load(&loop->done) < loop->n; spins++) {
        call_progress(&loop->caller);
        if (spins > SPINS_TO_YIELD)
            sched_yield();
    }
}

/* Takes pieces until none is left, in each thread of the team. Only the caller advances messages. The first
 * load shows the thread sanitizer that the caller has filled in the loop: it has increased the counter
 * since. */
static void work(struct loop *loop, int thread)
{
    bool is_caller = thread == 0, has_worked = false;
    int64_t start = sar_trace_loop_begin();
    size_t i;
    if (is_caller)
        loop->begins = sar_span_clock();
    (void)__atomic_load_n(&sar_parallel_loops, __ATOMIC_ACQUIRE);
    while (take_piece(loop, (size_t)thread % loop->ranges, &i)) {
        run_piece(loop, i);
        has_worked = true;
        if (is_caller)
            call_progress(&loop->caller);
    }
    sar_trace_loop_end(thread, has_worked ? start : 0);
    if (is_caller)
        loop->waits = sar_span_clock();
    if (is_caller && loop->caller.progress != NULL)
        progress_until_done(loop);
    atomic_fetch_add(&loop->left, 1);
}

NO_THREAD_SANITIZER static int run_team(struct loop *loop, int threads)
{
    int team = 1;
#pragma omp parallel num_threads(threads)
    {
        if (omp_get_thread_num() == 0)
            team = omp_get_num_threads();
        work(loop, omp_get_thread_num());
    }
    return team;
}

static void warn_fewer(int wanted, int got)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        SAR_LOG(WARN, BASE, "OpenMP gives %d of %d threads; see MPIX_SPARSE_THREADS", got, wanted);
}

static void log_pause(void)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&logged))
        SAR_LOG(WARN, BASE,
                "threads of this rank wait for processors; its calls run on one thread for some time; see "
                "MPIX_SPARSE_THREADS");
}

/* Begins a pause after a late loop, twice as long as the last one or longer. `waited` is before and after the
 * caller's pieces: OpenMP begins a loop when all threads have left the one before. */
static void note_wait(int64_t worked, int64_t waited, int64_t now)
{
    if (waited < LATE || waited < worked) {
        pause_ns /= 2;
        return;
    }
    int64_t least = WAITS_IN_PAUSE * waited;
    pause_ns = 2 * pause_ns > least ? 2 * pause_ns : least;
    pause_ns = pause_ns < LONGEST_PAUSE ? pause_ns : LONGEST_PAUSE;
    paused_until = now + pause_ns;
    if (pause_ns >= LOGGED_PAUSE)
        log_pause();
}

/* A range for each thread, as long as there are pieces and ranges. */
static void make_ranges(struct loop *loop, int threads)
{
    size_t most = loop->n < RANGES_MAX ? loop->n : RANGES_MAX;
    loop->ranges = (size_t)threads < most ? (size_t)threads : most;
    for (size_t r = 0; r < loop->ranges; r++) {
        atomic_init(&loop->range[r].next, sar_parallel_bound(loop->n, 1, loop->ranges, r));
        loop->range[r].end = sar_parallel_bound(loop->n, 1, loop->ranges, r + 1);
    }
}

/* A team has always as many threads, also for fewer pieces: OpenMP may end threads that a smaller team leaves
 * over, and make new ones for the next. */
static void run_parallel(struct loop *loop, int threads)
{
    used = true;
    __atomic_add_fetch(&sar_parallel_loops, 1, __ATOMIC_SEQ_CST);
    int64_t start = sar_span_clock();
    int got = run_team(loop, threads);
    while (atomic_load(&loop->left) < got)
        continue;
    int64_t end = sar_span_clock();
    __atomic_sub_fetch(&sar_parallel_loops, 1, __ATOMIC_SEQ_CST);
    if (got < threads)
        warn_fewer(threads, got);
    if (current.automatic)
        note_wait(loop->waits - loop->begins, loop->begins - start + end - loop->waits, end);
}
#endif

static enum sar_status run_serially(size_t n, sar_parallel_body *body, void *arg)
{
    enum sar_status first = SAR_OK;
    for (size_t i = 0; i < n; i++) {
        enum sar_status status = body(arg, i);
        first = first == SAR_OK ? status : first;
        if (i + 1 < n)
            call_progress(&current);
    }
    return first;
}

enum sar_status sar_parallel_for(size_t n, sar_parallel_body *body, void *arg)
{
#ifdef _OPENMP
    int threads = n > 1 ? sar_parallel_threads() : 1;
    if (threads > 1) {
        struct loop loop = { .body = body, .arg = arg, .n = n, .caller = current, .failure = UINT64_MAX };
        make_ranges(&loop, threads);
        run_parallel(&loop, threads);
        return status_of(&loop);
    }
#endif
    return run_serially(n, body, arg);
}

/* Does piece i, unless it is empty. */
static enum sar_status run_range(void *ranges, size_t i)
{
    const struct sar_ranges *r = ranges;
    size_t from = sar_parallel_bound(r->n, r->unit, r->pieces, i),
           to = sar_parallel_bound(r->n, r->unit, r->pieces, i + 1);
    if (from < to)
        r->body(r->arg, from, to);
    return SAR_OK;
}

void sar_ranges_run(struct sar_ranges ranges)
{
    if (ranges.pieces == 1)
        ranges.body(ranges.arg, 0, ranges.n);
    else
        (void)sar_parallel_for(ranges.pieces, run_range, &ranges);
}

struct copy {
    unsigned char *to;
    const unsigned char *from;
};

static void copy_range(void *copy, size_t from, size_t to)
{
    const struct copy *c = copy;
    memcpy(c->to + from, c->from + from, to - from);
}

void sar_parallel_copy(void *to, const void *from, size_t bytes)
{
    struct copy copy = { to, from };
    if (bytes != 0)
        sar_ranges_run(
            (struct sar_ranges){ bytes, CACHE_LINE, sar_parallel_pieces(2 * bytes), copy_range, &copy });
}

int sar_parallel_limit(int wanted)
{
#ifdef _OPENMP
    int limit = omp_get_thread_limit(), most = wanted > 0 ? wanted : omp_get_max_threads();
    return most < limit ? most : limit;
#else
    (void)wanted;
    return 1;
#endif
}

int sar_parallel_granted(void)
{
    return sar_parallel_limit(sar_parallel_threads());
}

void sar_parallel_close(void)
{
#if defined(_OPENMP) && defined(HAVE_OMP_PAUSE)
    if (used && !omp_in_parallel())
        omp_pause_resource_all(omp_pause_hard);
#endif
    used = false;
}
