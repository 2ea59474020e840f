/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives a libFuzzer target where libFuzzer is not there: replays the files named, or else changes bytes
 * at random. Of libFuzzer's options it knows
 *
 *     -max_total_time=SECONDS   how long, 0 for ever
 *     -runs=INPUTS              how many at most
 *     -seed=NUMBER
 *
 * An input that ends the program is left in the file crash-input. */

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 4096, KEPT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Function of the address sanitizer, if it is linked. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
    uint8_t data[MOST_BYTES];
    size_t size;
};

static struct input input; /* the one that is being run */
static uint64_t random_state;

/* SplitMix64. */
static uint64_t roll(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Memory of exactly the input's size, so that reads behind it are seen. */
static void run_exactly(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size == 0 ? 1 : size);
    if (copy == NULL)
        abort();
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run_exactly(data, size);
    return 0;
}

static void leave_input(void)
{
    int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ssize_t written = file < 0 ? -1 : write(file, input.data, input.size);
    (void)written;
}

static void on_signal(int number)
{
    leave_input();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch(void)
{
    signal(SIGABRT, on_signal);
    if (__sanitizer_set_death_callback != NULL)
        __sanitizer_set_death_callback(leave_input);
    else
        signal(SIGSEGV, on_signal);
}

/* Sparse bytes, since a payload that means something has more zeros than ones. */
static void invent(struct input *to)
{
    unsigned thinning = (unsigned)(roll() % 4);
    to->size = roll() % (roll() % 4 == 0 ? MOST_BYTES : 300);
    for (size_t i = 0; i < to->size; i++) {
        to->data[i] = (uint8_t)roll();
        for (unsigned k = 0; k < thinning; k++)
            to->data[i] &= (uint8_t)roll();
    }
    to->data[1] |= 0xc0;
    to->data[3] = (uint8_t)(roll() % 3 == 0 ? roll() % 20 : 0);
    to->data[5] = (uint8_t)(roll() % 3 == 0 ? roll() % 20 : 0);
}

static void change(struct input *in)
{
    for (uint64_t n = 1 + roll() % 6; n > 0 && in->size > 0; n--) {
        size_t at = roll() % in->size;
        switch (roll() % 4) {
        case 0: in->data[at] ^= (uint8_t)(1u << (roll() % 8)); break;
        case 1: in->data[at] = (uint8_t)roll(); break;
        case 2: in->size = roll() % 8 == 0 ? at : in->size; break;
        default: in->data[at] = 0; break;
        }
    }
}

static void mutate(unsigned long seconds, unsigned long runs, uint64_t seed)
{
    static struct input kept[KEPT];
    time_t start = time(NULL);
    uint64_t executions = 0;
    random_state = seed;
    watch();
    for (; executions < runs; executions++) {
        if (executions % 1024 == 0 && seconds != 0 && time(NULL) >= start + (time_t)seconds)
            break;
        struct input *from = &kept[roll() % KEPT];
        if (roll() % 16 == 0)
            invent(from);
        input = *from;
        change(&input);
        run_exactly(input.data, input.size);
        if (roll() % 8 == 0)
            *from = input;
    }
    printf("%llu executions, seed %llu\n", (unsigned long long)executions, (unsigned long long)seed);
}

/* True if an argument is the option of that name; writes its number to *number. */
static bool option(const char *argument, const char *name, unsigned long *number)
{
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0)
        return false;
    *number = strtoul(argument + length, NULL, 10);
    return true;
}

int main(int argc, char **argv)
{
    unsigned long seconds = 0, runs = ULONG_MAX, seed = (unsigned long)time(NULL);
    int failed = 0, files = 0;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (option(a, "-max_total_time=", &seconds) || option(a, "-runs=", &runs) ||
            option(a, "-seed=", &seed))
            continue;
        if (a[0] == '-') {
            fprintf(stderr, "%s: no option %s\n", argv[0], a);
            return 2;
        }
        failed |= replay(a);
        files++;
    }
    if (files == 0)
        mutate(seconds, runs, seed);
    return failed;
}
