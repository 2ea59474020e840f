/* SPDX-License-Identifier: BSD-3-Clause */
/* The study `formats`: what each format makes of one owner's part of a vector that is hashed onto ranks, and
 * which one the library would take.
 *
 * Only the density of the part matters to a format, so the table stands for pushes and for pulls. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/machine.h"
#include "stats.h"
#include "knobs.h"
#include "study.h"
#include "tensor/partition.h"
#include "wire/wire.h"

struct line {
    const char *study, *wire;
    bool chosen, smallest;
    long long parts, count, row, grain, slots, nnz, bytes, wrong;
    double density, size, floor, encode, decode, expected, values_rate, dense_rate;
    double beta, gamma;
};

#define FIELD(key, kind, member) PERF_FIELD(line, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row),
    FIELD("parts", PERF_INTEGER, parts),
    FIELD("grain", PERF_INTEGER, grain),
    FIELD("density", PERF_REAL, density),
    FIELD("slots", PERF_INTEGER, slots),
    FIELD("nnz", PERF_INTEGER, nnz),
    FIELD("wire", PERF_TEXT, wire),
    FIELD("bytes", PERF_INTEGER, bytes),
    FIELD("size", PERF_REAL, size),
    FIELD("floor", PERF_REAL, floor),
    FIELD("chosen", PERF_BOOL, chosen),
    FIELD("smallest", PERF_BOOL, smallest),
    FIELD("encode_ns", PERF_REAL, encode),
    FIELD("decode_ns", PERF_REAL, decode),
    FIELD("expected_ns", PERF_REAL, expected),
    FIELD("values_gbs", PERF_REAL, values_rate),
    FIELD("dense_gbs", PERF_REAL, dense_rate),
    FIELD("wrong", PERF_INTEGER, wrong),
    FIELD("beta_s", PERF_REAL, beta),
    FIELD("gamma_s", PERF_REAL, gamma),
};
static const struct perf_schema schema = PERF_SCHEMA(fields);

static const double densities[] = { 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.95 };

enum { COUNT = 1 << 22, WARMUP = 2 };

/* One part, and the memory that its messages take. */
struct part {
    struct sar_map map;
    struct sar_layout layout;
    struct sar_run run;
    struct sar_arena arena, scratch;
    size_t iterations;
};

static struct part part_make(struct perf_study *study, const struct perf_case *c)
{
    struct perf_set set = perf_workload_draw(c, study->source, 0, 1);
    struct sar_run whole = perf_study_run_make(c, &set);
    struct part part = { .map = perf_study_map(study, c->count, set.n) };
    struct sar_shape shape = { .count = c->count,
                               .row = c->row,
                               .element_size = c->element_bytes,
                               .index_size = sar_index_size(c->count) };
    struct sar_run *parts = perf_alloc(part.map.parts, sizeof *parts);

    perf_study_must(sar_partition(&part.map, &shape, &whole, &part.arena, parts));
    part.run = parts[0];
    part.layout = (struct sar_layout){ sar_map_slots(&part.map, 0), c->element_bytes, 4,
                                       c->options->interface == PERF_DENSE, SAR_VALUES_FULL };
    part.iterations = (size_t)c->options->iterations;
    free(parts);
    perf_study_run_free(&whole);
    perf_set_free(&set);
    return part;
}

static void part_free(struct part *part)
{
    sar_arena_free(&part->arena);
    sar_arena_free(&part->scratch);
}

/* Elements that are not what was encoded. */
static long long differing(const struct part *part, const struct sar_run *read)
{
    size_t size = part->layout.element_size;
    const char *sent = part->run.value, *got = read->value;
    long long wrong = 0;

    if (read->nnz != part->run.nnz)
        return (long long)part->run.nnz;
    for (size_t i = 0; i < read->nnz; i++)
        wrong += sar_index_get(part->run.index, 4, i) != sar_index_get(read->index, 4, i) ||
                 memcmp(sent + i * size, got + i * size, size) != 0;
    return wrong;
}

/* Write and read the part so many times. */
static void measure(struct part *part, const struct sar_wire *wire, struct line *line)
{
    double *encode = perf_alloc(part->iterations, sizeof *encode);
    double *decode = perf_alloc(part->iterations, sizeof *decode);
    double nnz = (double)part->run.nnz, start, middle;

    for (size_t i = 0; i < part->iterations + WARMUP; i++) {
        struct sar_run read = { NULL, NULL, part->run.nnz };
        void *payload;

        sar_arena_reset(&part->scratch);
        perf_study_must(sar_arena_take(&part->scratch, (size_t)line->bytes, 1, &payload));
        start = MPI_Wtime();
        wire->encode(&part->layout, &part->run, payload);
        middle = MPI_Wtime();
        perf_study_must(wire->decode(&part->layout, payload, (uint64_t)line->bytes, &part->scratch, &read));
        decode[i < WARMUP ? 0 : i - WARMUP] = MPI_Wtime() - middle;
        encode[i < WARMUP ? 0 : i - WARMUP] = middle - start;
        if (i == 0)
            line->wrong = differing(part, &read);
    }
    line->encode = perf_times_of(encode, (int)part->iterations).median;
    line->decode = perf_times_of(decode, (int)part->iterations).median;
    line->values_rate = nnz * (double)part->layout.element_size / (line->encode + line->decode) / 1e9;
    line->dense_rate =
        (double)part->layout.span * (double)part->layout.element_size / (line->encode + line->decode) / 1e9;
    line->encode *= 1e9 / nnz;
    line->decode *= 1e9 / nnz;
    free(encode);
    free(decode);
}

static void put_part(struct perf_study *study, struct part *part, struct line *line)
{
    const struct sar_wire *cheapest =
        sar_wire_cheapest(&part->layout, &part->run, (struct sar_wire_price){ line->beta, line->gamma });
    const struct sar_wire *smallest =
        sar_wire_cheapest(&part->layout, &part->run, (struct sar_wire_price){ line->beta, 0 });
    double slots = (double)part->layout.span, nnz = (double)part->run.nnz;
    double size = (double)part->layout.element_size;

    line->grain = 1ll << part->map.grain_shift;
    line->slots = (long long)part->layout.span;
    line->nnz = (long long)part->run.nnz;
    line->floor = nnz * (size + perf_index_bytes(slots, nnz)) / (slots * size);
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        uint64_t bytes = sar_wire_bytes(sar_wires[i], &part->layout, &part->run);
        if (bytes > (uint64_t)PTRDIFF_MAX)
            continue;
        line->wire = sar_wires[i]->name;
        line->chosen = sar_wires[i] == cheapest;
        line->smallest = sar_wires[i] == smallest;
        line->expected = sar_wires[i]->work(&part->layout, nnz) * line->gamma * 1e9 / nnz;
        line->bytes = (long long)bytes;
        line->size = (double)bytes / (slots * size);
        measure(part, sar_wires[i], line);
        study->wrong += line->wrong;
        perf_study_put(study, line);
    }
}

/* The constants that the library would measure here, unless the environment has others. */
static void find_prices(struct line *line)
{
    struct sar_config config = perf_knobs_config();
    struct sar_machine machine = { 0 };
    struct sar_net net;

    perf_study_must(sar_net_open(MPI_COMM_WORLD, &net));
    perf_study_must(sar_machine_measure(&net, &machine));
    sar_net_close(&net);
    line->beta = config.beta > 0 ? config.beta : machine.beta;
    line->gamma = config.gamma > 0 ? config.gamma : machine.gamma;
}

void perf_study_formats(struct perf_study *study)
{
    static const struct perf_world alone = { .rank = 0, .ranks = 1 };
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at =
        perf_study_densities(study, densities, (int)(sizeof densities / sizeof *densities));
    struct line line = { .study = perf_study_name(PERF_FORMATS), .parts = study->options->parts };
    struct perf_case c;

    find_prices(&line);
    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    perf_case_make(&c, &alone, study->options, study->options->type.at[0], PERF_SUM);
    line.row = (long long)c.row;
    for (int i = 0; i < counts.n; i++)
        for (int d = 0; d < at.n; d++) {
            struct part part;
            perf_case_size(&c, (size_t)counts.at[i], at.at[d]);
            part = part_make(study, &c);
            line.count = counts.at[i];
            line.density = at.at[d];
            if (part.run.nnz > 0)
                put_part(study, &part, &line);
            part_free(&part);
        }
    perf_case_free(&c);
}
