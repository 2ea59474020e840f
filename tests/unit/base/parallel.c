/* SPDX-License-Identifier: BSD-3-Clause */
/* Parallel loops: every piece once, the first failure, nesting, progress, late threads, pieces of an arena,
 * and the threads that exist before, between and after loops. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "array_length.h"
#include "base/arena.h"
#include "base/parallel.h"
#include "process_threads.h"

enum { PIECES = 1000 };

static const int teams[] = { 1, 2, 3, 8 };
enum { TEAMS = LENGTH(teams) };

static bool has_openmp(void)
{
#ifdef _OPENMP
    return true;
#else
    return false;
#endif
}

static struct sar_parallel with(int threads)
{
    return (struct sar_parallel){ .threads = threads };
}

static int threads_at_start; /* 1, and a thread of a sanitizer */

static enum sar_status count_piece(void *arg, size_t i)
{
    atomic_int *count = arg;
    atomic_fetch_add(&count[i], 1);
    return SAR_OK;
}

static void no_thread_before_the_first_loop(void **state)
{
    (void)state;
    atomic_int count[PIECES] = { 0 };
    assert_true(threads_at_start > 0);
    struct sar_parallel former = sar_parallel_begin(with(8));
    assert_int_equal(sar_parallel_for(1, count_piece, count), SAR_OK);
    assert_int_equal(process_threads(), threads_at_start);
    sar_parallel_end(former);
    assert_int_equal(sar_parallel_for(PIECES, count_piece, count), SAR_OK);
    assert_int_equal(process_threads(), threads_at_start);
}

static void every_piece_once(void **state)
{
    (void)state;
    for (int t = 0; t < TEAMS; t++) {
        atomic_int count[PIECES] = { 0 };
        struct sar_parallel former = sar_parallel_begin(with(teams[t]));
        for (int repeat = 1; repeat <= 20; repeat++) {
            assert_int_equal(sar_parallel_for(PIECES, count_piece, count), SAR_OK);
            for (int i = 0; i < PIECES; i++)
                assert_int_equal(atomic_load(&count[i]), repeat);
        }
        assert_int_equal(sar_parallel_for(0, count_piece, NULL), SAR_OK);
        sar_parallel_end(former);
    }
}

/* The first piece that each thread takes. */
struct first_pieces {
    atomic_size_t taken;
    size_t piece[PIECES];
};

static _Thread_local const struct first_pieces *has_begun;

static enum sar_status note_first_piece(void *arg, size_t i)
{
    struct first_pieces *first = arg;
    if (has_begun == first)
        return SAR_OK;
    has_begun = first;
    first->piece[atomic_fetch_add(&first->taken, 1)] = i;
    while (atomic_load(&first->taken) < 2)
        sched_yield();
    return SAR_OK;
}

/* Threads begin in ranges of their own: of two, one with the first piece and one with the middle one. */
static void threads_begin_in_ranges_of_their_own(void **state)
{
    (void)state;
    if (!has_openmp())
        return;
    static struct first_pieces first;
    struct sar_parallel former = sar_parallel_begin(with(2));
    assert_int_equal(sar_parallel_for(PIECES, note_first_piece, &first), SAR_OK);
    sar_parallel_end(former);
    assert_int_equal(atomic_load(&first.taken), 2);
    assert_int_equal(first.piece[0] + first.piece[1], PIECES / 2);
    assert_true(first.piece[0] == 0 || first.piece[1] == 0);
}

static enum sar_status fail_two(void *arg, size_t i)
{
    (void)arg;
    return i == 321 ? SAR_CORRUPT : i == 654 ? SAR_NO_MEMORY : SAR_OK;
}

static void first_failure(void **state)
{
    (void)state;
    for (int t = 0; t < TEAMS; t++) {
        struct sar_parallel former = sar_parallel_begin(with(teams[t]));
        for (int repeat = 0; repeat < 50; repeat++)
            assert_int_equal(sar_parallel_for(PIECES, fail_two, NULL), SAR_CORRUPT);
        sar_parallel_end(former);
    }
}

static enum sar_status report_threads(void *arg, size_t i)
{
    int *threads = arg;
    threads[i] = sar_parallel_threads();
    return SAR_OK;
}

static void loops_do_not_nest(void **state)
{
    (void)state;
    int threads[PIECES];
    struct sar_parallel former = sar_parallel_begin(with(3));
    assert_int_equal(sar_parallel_threads(), has_openmp() ? 3 : 1);
    sar_parallel_for(PIECES, report_threads, threads);
    for (int i = 0; has_openmp() && i < PIECES; i++)
        assert_int_equal(threads[i], 1);
    sar_parallel_end(former);
    assert_int_equal(sar_parallel_threads(), 1);
}

static void *forbid_and_ask(void *threads)
{
    sar_parallel_forbid();
    sar_parallel_begin(with(4));
    *(int *)threads = sar_parallel_threads();
    return NULL;
}

static void forbidden_threads(void **state)
{
    (void)state;
    pthread_t thread;
    int threads = 0;
    assert_int_equal(pthread_create(&thread, NULL, forbid_and_ask, &threads), 0);
    pthread_join(thread, NULL);
    assert_int_equal(threads, 1);
}

static pthread_t progress_thread;

static void count_progress(void *arg)
{
    assert_true(pthread_equal(pthread_self(), progress_thread));
    ++*(long *)arg;
}

/* Gives the processor away, so that no thread does all pieces. */
static enum sar_status sleep_in_piece(void *arg, size_t i)
{
    struct timespec pause = { .tv_nsec = 10000 };
    (void)arg, (void)i;
    nanosleep(&pause, NULL);
    return SAR_OK;
}

static void caller_makes_progress(void **state)
{
    (void)state;
    long calls = 0;
    progress_thread = pthread_self();
    struct sar_parallel former =
        sar_parallel_begin((struct sar_parallel){ .threads = 2, .progress = count_progress, .arg = &calls });
    sar_parallel_for(PIECES, sleep_in_piece, NULL);
    sar_parallel_end(former);
    assert_true(calls > 0);
}

/* Takes 20 ms in a thread that a loop has made. The calling thread waits for such a thread to begin. */
static enum sar_status be_late(void *arg, size_t i)
{
    struct timespec pause = { .tv_nsec = 20000000 };
    atomic_bool *begun = arg;
    (void)i;
    if (!pthread_equal(pthread_self(), progress_thread)) {
        atomic_store(begun, true);
        nanosleep(&pause, NULL);
    }
    while (sar_parallel_any() && !atomic_load(begun))
        sched_yield();
    return SAR_OK;
}

/* Returns the threads of a loop after one whose second thread takes longer than the calling one. */
static int threads_after_late_loop(bool automatic)
{
    atomic_bool begun = false;
    struct sar_parallel former =
        sar_parallel_begin((struct sar_parallel){ .threads = 2, .automatic = automatic });
    sar_parallel_for(2, be_late, &begun);
    int threads = sar_parallel_threads();
    sar_parallel_end(former);
    return threads;
}

/* A number that a user asks for stays. */
static void late_loops_stop_automatic_threads(void **state)
{
    (void)state;
    progress_thread = pthread_self();
    assert_int_equal(threads_after_late_loop(false), has_openmp() ? 2 : 1);
    assert_int_equal(threads_after_late_loop(true), 1);
    assert_int_equal(threads_after_late_loop(false), has_openmp() ? 2 : 1);
}

/* Returns the threads of a loop when a pause has ended, after ten seconds at most. */
static int wait_for_threads(void)
{
    struct timespec pause = { .tv_nsec = 50000000 };
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = 2, .automatic = true });
    int threads = sar_parallel_threads();
    for (int i = 0; i < 200 && threads < 2; i++) {
        nanosleep(&pause, NULL);
        threads = sar_parallel_threads();
    }
    sar_parallel_end(former);
    return threads;
}

/* Threads come back by themselves, after 16 times the wait. */
static void late_loops_are_forgotten(void **state)
{
    (void)state;
    assert_int_equal(threads_after_late_loop(true), 1);
    assert_int_equal(wait_for_threads(), has_openmp() ? 2 : 1);
}

/* A thread of a team that stays in a signal handler for 20 ms between two loops, so that the second one
 * begins late. */
struct held {
    pthread_t thread;
    atomic_bool has_thread, has_caller; /* each has begun its piece */
};

static atomic_bool holds;

static void hold_thread(int signal)
{
    struct timespec pause = { .tv_nsec = 20000000 };
    (void)signal;
    atomic_store(&holds, true);
    nanosleep(&pause, NULL);
}

/* Waits for ten seconds at most, since OpenMP may give a loop one thread. */
static bool becomes_true(atomic_bool *flag)
{
    struct timespec pause = { .tv_nsec = 100000 };
    for (int i = 0; i < 100000 && !atomic_load(flag); i++)
        nanosleep(&pause, NULL);
    return atomic_load(flag);
}

/* The calling thread sends the signal last, when the other thread has long been waiting for the loop's
 * end. */
static enum sar_status hold_other_thread(void *arg, size_t i)
{
    struct timespec pause = { .tv_nsec = 2000000 };
    struct held *held = arg;
    (void)i;
    if (!pthread_equal(pthread_self(), progress_thread)) {
        held->thread = pthread_self();
        atomic_store(&held->has_thread, true);
        becomes_true(&held->has_caller);
        return SAR_OK;
    }
    atomic_store(&held->has_caller, true);
    if (becomes_true(&held->has_thread)) {
        nanosleep(&pause, NULL);
        assert_int_equal(pthread_kill(held->thread, SIGUSR1), 0);
        becomes_true(&holds);
    }
    return SAR_OK;
}

/* Returns the threads of a loop after one that begins late. On a busy machine the loop before may be late
 * itself, as often as not: *before is 1 then. */
static int threads_after_late_begin(int *before)
{
    struct held held = { .has_thread = false, .has_caller = false };
    atomic_int count[2] = { 0 };
    atomic_store(&holds, false);
    struct sar_parallel former = sar_parallel_begin((struct sar_parallel){ .threads = 2, .automatic = true });
    sar_parallel_for(2, hold_other_thread, &held);
    *before = sar_parallel_threads();
    sar_parallel_for(2, count_piece, count);
    int after = sar_parallel_threads();
    sar_parallel_end(former);
    return after;
}

static void loops_that_begin_late_stop_automatic_threads(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__) || !defined(_OPENMP)
    skip(); /* a thread sanitizer calls handlers later */
#endif
    struct sigaction action = { .sa_handler = hold_thread }, former_action;
    int before = 1, after = 0;
    progress_thread = pthread_self();
    sigaction(SIGUSR1, &action, &former_action);
    for (int i = 0; i < 10 && before == 1; i++) {
        wait_for_threads();
        after = threads_after_late_begin(&before);
    }
    sigaction(SIGUSR1, &former_action, NULL);
    assert_int_equal(before, 2);
    assert_int_equal(after, 1);
}

struct pieces_of_arena {
    struct sar_arena arena;
    unsigned char *piece[PIECES];
};

static enum sar_status take_piece(void *arg, size_t i)
{
    struct pieces_of_arena *p = arg;
    void *memory;
    SAR_TRY(sar_arena_alloc(&p->arena, 1 + i % 300, 1, &memory));
    p->piece[i] = memory;
    memset(memory, (int)i, 1 + i % 300);
    return SAR_OK;
}

static void threads_share_an_arena(void **state)
{
    (void)state;
    for (int t = 0; t < TEAMS; t++) {
        struct pieces_of_arena p = { 0 };
        struct sar_parallel former = sar_parallel_begin(with(teams[t]));
        assert_int_equal(sar_parallel_for(PIECES, take_piece, &p), SAR_OK);
        sar_parallel_end(former);
        for (size_t i = 0; i < PIECES; i++)
            for (size_t byte = 0; byte < 1 + i % 300; byte++)
                assert_int_equal(p.piece[i][byte], (unsigned char)i);
        sar_arena_free(&p.arena);
    }
}

static void bounds_cover_all_items(void **state)
{
    (void)state;
    const size_t sizes[] = { 0, 1, 63, 64, 65, 1000, 4096, 1000003 };
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t unit = 1; unit <= 512; unit *= 8)
            for (size_t pieces = 1; pieces <= 13; pieces++) {
                assert_int_equal(sar_parallel_bound(sizes[s], unit, pieces, 0), 0);
                assert_int_equal(sar_parallel_bound(sizes[s], unit, pieces, pieces), sizes[s]);
                for (size_t i = 1; i < pieces; i++) {
                    size_t bound = sar_parallel_bound(sizes[s], unit, pieces, i);
                    assert_true(bound % unit == 0 || bound == sizes[s]);
                    assert_true(bound >= sar_parallel_bound(sizes[s], unit, pieces, i - 1));
                }
            }
}

static void small_loops_are_one_piece(void **state)
{
    (void)state;
    struct sar_parallel former = sar_parallel_begin(with(4));
    assert_int_equal(sar_parallel_pieces(SAR_PIECE_BYTES), 1);
    assert_int_equal(sar_parallel_pieces((size_t)SAR_PIECE_BYTES * 3), has_openmp() ? 3 : 1);
    assert_int_equal(sar_parallel_pieces((size_t)1 << 30), has_openmp() ? 16 : 1);
    sar_parallel_end(former);
    assert_int_equal(sar_parallel_pieces((size_t)1 << 30), 1);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void threads_sleep_and_end(void **state)
{
    (void)state;
    atomic_int count[PIECES] = { 0 };
    struct sar_parallel former = sar_parallel_begin(with(3));
    sar_parallel_for(PIECES, count_piece, count);
    sar_parallel_end(former);
    assert_true(process_threads() >= threads_at_start + (has_openmp() ? 2 : 0));
    struct timespec pause = { .tv_nsec = 200000000 };
    double used = 1;
    for (int i = 0; i < 20 && used > 0.02; i++) { /* OpenMP's threads spin for a while */
        double before = cpu_seconds();
        nanosleep(&pause, NULL);
        used = cpu_seconds() - before;
    }
    assert_true(used <= 0.02);
    sar_parallel_close();
#if !defined(_OPENMP) || defined(HAVE_OMP_PAUSE)
    assert_int_equal(process_threads_settled(threads_at_start), threads_at_start);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_thread_before_the_first_loop),
        cmocka_unit_test(every_piece_once),
        cmocka_unit_test(threads_begin_in_ranges_of_their_own),
        cmocka_unit_test(first_failure),
        cmocka_unit_test(loops_do_not_nest),
        cmocka_unit_test(forbidden_threads),
        cmocka_unit_test(caller_makes_progress),
        cmocka_unit_test(late_loops_stop_automatic_threads),
        cmocka_unit_test(late_loops_are_forgotten),
        cmocka_unit_test(loops_that_begin_late_stop_automatic_threads),
        cmocka_unit_test(threads_share_an_arena),
        cmocka_unit_test(bounds_cover_all_items),
        cmocka_unit_test(small_loops_are_one_piece),
        cmocka_unit_test(threads_sleep_and_end),
    };
    threads_at_start = process_threads_at_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
