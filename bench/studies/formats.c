/* SPDX-License-Identifier: BSD-3-Clause */
/* Study `formats`: size and coding time of each format for one owner's part of a hashed vector, and the
 * format that the library would choose. Formats of others have a size alone. Only the density of the part
 * matters, so the table holds for pushes and pulls. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lib/settings.h"
#include "bench/lib/stats.h"
#include "bench/studies/other_formats.h"
#include "bench/studies/study.h"
#include "comm/machine.h"
#include "vector/partition.h"
#include "wire/wire.h"

struct record {
    const char *study, *wire;
    bool chosen, smallest;
    long long parts, count, row_len, grain, slots, nnz, bytes, wrong;
    double density, size, floor, encode, decode, expected, values_rate, dense_rate;
    double beta, gamma;
};

#define FIELD(key, kind, member) PERF_FIELD(record, key, kind, member)

static const struct perf_field fields[] = {
    FIELD("study", PERF_TEXT, study),
    FIELD("count", PERF_INTEGER, count),
    FIELD("row", PERF_INTEGER, row_len),
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

/* One part, and memory for its messages. */
struct part {
    struct sar_partition_map map;
    struct sar_wire_layout layout;
    struct sar_spvec vec;
    struct sar_arena arena, scratch;
    size_t iterations;
};

static struct part part_make(struct perf_study *study, const struct perf_case *c)
{
    struct perf_set set = perf_workload_draw(c, study->source, 0, 1);
    struct sar_spvec whole = perf_study_vector_make(c, &set);
    struct part part = { .map = perf_study_map(study, c->count, set.n) };
    struct sar_vec_desc desc = { .count = c->count,
                                 .row_len = c->row_len,
                                 .element_size = c->element_bytes,
                                 .index_size = sar_index_size(c->count) };
    struct sar_spvec *parts = perf_alloc(part.map.parts, sizeof *parts);

    perf_study_require(sar_partition_split(&part.map, &desc, &whole, &part.arena, parts));
    part.vec = parts[0];
    part.layout = (struct sar_wire_layout){ .slots = sar_partition_map_slots(&part.map, 0),
                                            .element_size = c->element_bytes,
                                            .row_len = c->row_len,
                                            .index_size = 4,
                                            .zero_is_absent = c->options->interface == PERF_DENSE };
    part.iterations = (size_t)c->options->iterations;
    free(parts);
    perf_study_vector_free(&whole);
    perf_set_free(&set);
    return part;
}

static void part_free(struct part *part)
{
    sar_arena_free(&part->arena);
    sar_arena_free(&part->scratch);
}

/* Returns the elements that differ from the encoded ones. */
static long long count_wrong(const struct part *part, const struct sar_spvec *read)
{
    size_t size = part->layout.element_size;
    const char *sent = part->vec.value, *got = read->value;
    long long wrong = 0;

    if (read->nnz != part->vec.nnz)
        return (long long)part->vec.nnz;
    for (size_t i = 0; i < read->nnz; i++)
        wrong += sar_index_get(part->vec.index, 4, i) != sar_index_get(read->index, 4, i) ||
                 memcmp(sent + i * size, got + i * size, size) != 0;
    return wrong;
}

/* Encodes and decodes the part repeatedly. */
static void measure(struct part *part, const struct sar_wire *wire, struct record *record)
{
    double *encode = perf_alloc(part->iterations, sizeof *encode);
    double *decode = perf_alloc(part->iterations, sizeof *decode);
    double nnz = (double)part->vec.nnz, start, middle;

    for (size_t i = 0; i < part->iterations + WARMUP; i++) {
        struct sar_spvec read = { NULL, NULL, part->vec.nnz };
        void *payload;

        sar_arena_reset(&part->scratch);
        perf_study_require(sar_arena_alloc(&part->scratch, (size_t)record->bytes, 1, &payload));
        start = MPI_Wtime();
        wire->encode(&part->layout, &part->vec, payload);
        middle = MPI_Wtime();
        perf_study_require(
            wire->decode(&part->layout, payload, (uint64_t)record->bytes, &part->scratch, &read));
        decode[i < WARMUP ? 0 : i - WARMUP] = MPI_Wtime() - middle;
        encode[i < WARMUP ? 0 : i - WARMUP] = middle - start;
        if (i == 0)
            record->wrong = count_wrong(part, &read);
    }
    record->encode = perf_times_of(encode, (int)part->iterations).median;
    record->decode = perf_times_of(decode, (int)part->iterations).median;
    record->values_rate = nnz * (double)part->layout.element_size / (record->encode + record->decode) / 1e9;
    record->dense_rate = (double)part->layout.slots * (double)part->layout.element_size /
                         (record->encode + record->decode) / 1e9;
    record->encode *= 1e9 / nnz;
    record->decode *= 1e9 / nnz;
    free(encode);
    free(decode);
}

/* Adds records of the formats that the library does not send. */
static void report_other_formats(struct perf_study *study, const struct part *part, struct record other)
{
    double slots = (double)part->layout.slots, size = (double)part->layout.element_size;

    other.chosen = other.smallest = false;
    other.encode = other.decode = other.expected = other.values_rate = other.dense_rate = NAN;
    other.wrong = -1;
    for (const struct perf_other_format *format = perf_other_formats; format->name != NULL; format++) {
        double bytes = format->bytes(slots, (double)part->vec.nnz, size);

        other.wire = format->name;
        other.bytes = (long long)bytes;
        other.size = bytes / (slots * size);
        perf_study_add(study, &other);
    }
}

static void report_part(struct perf_study *study, struct part *part, struct record *record)
{
    const struct sar_wire *cheapest =
        sar_wire_cheapest(&part->layout, &part->vec,
                          (struct sar_wire_price){ record->beta, record->gamma, 0 });
    const struct sar_wire *smallest =
        sar_wire_cheapest(&part->layout, &part->vec, (struct sar_wire_price){ record->beta, 0, 0 });
    double slots = (double)part->layout.slots, nnz = (double)part->vec.nnz;
    double size = (double)part->layout.element_size;

    record->grain = 1ll << part->map.grain_shift;
    record->slots = (long long)part->layout.slots;
    record->nnz = (long long)part->vec.nnz;
    record->floor = nnz * (size + perf_index_bytes(slots, nnz)) / (slots * size);
    for (size_t i = 0; sar_wires[i] != NULL; i++) {
        uint64_t bytes = sar_wire_bytes(sar_wires[i], &part->layout, &part->vec);
        if (bytes > (uint64_t)PTRDIFF_MAX)
            continue;
        record->wire = sar_wires[i]->name;
        record->chosen = sar_wires[i] == cheapest;
        record->smallest = sar_wires[i] == smallest;
        record->expected = sar_wire_cost(sar_wires[i], &part->layout, nnz) * record->gamma * 1e9 / nnz;
        record->bytes = (long long)bytes;
        record->size = (double)bytes / (slots * size);
        measure(part, sar_wires[i], record);
        study->wrong += record->wrong;
        perf_study_add(study, record);
    }
    report_other_formats(study, part, *record);
}

/* Sets the constants that the library would use: from the environment, else measured. Collective. */
static void find_constants(struct record *record)
{
    struct sar_config config = perf_settings_config();
    struct sar_machine machine = { 0 };
    struct sar_comm comm;

    perf_study_require(sar_comm_open(MPI_COMM_WORLD, &comm));
    perf_study_require(sar_machine_measure(&comm, &machine));
    sar_comm_close(&comm);
    record->beta = config.beta > 0 ? config.beta : machine.beta;
    record->gamma = config.gamma > 0 ? config.gamma : machine.gamma;
}

void perf_study_formats(struct perf_study *study)
{
    static const struct perf_world one_rank = { .rank = 0, .ranks = 1 };
    struct perf_counts counts = perf_study_counts(study, COUNT);
    struct perf_reals at =
        perf_study_densities(study, densities, (int)(sizeof densities / sizeof *densities));
    struct record record = { .study = perf_study_name(PERF_FORMATS), .parts = study->options->parts };
    struct perf_case c;

    find_constants(&record);
    if (study->world->rank != 0)
        return;
    perf_study_table(study, &schema);
    perf_case_make(&c, &one_rank, study->options, study->options->type.at[0], PERF_SUM);
    record.row_len = (long long)c.row_len;
    for (int i = 0; i < counts.n; i++)
        for (int d = 0; d < at.n; d++) {
            struct part part;
            perf_case_size(&c, (size_t)counts.at[i], at.at[d]);
            part = part_make(study, &c);
            record.count = counts.at[i];
            record.density = at.at[d];
            if (part.vec.nnz > 0)
                report_part(study, &part, &record);
            part_free(&part);
        }
    perf_case_free(&c);
}
