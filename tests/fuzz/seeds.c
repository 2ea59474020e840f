/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs for the fuzzer to start from: what the encoders write, of every format and layout.
 *
 *     fuzz-seeds FOLDER */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"

enum { MOST = 4096, LAYOUTS = 64 };

/* Indices from a starting point on, so far apart. */
static const struct pattern {
    uint64_t span, first, step, room;
} patterns[] = {
    { 0, 0, 1, 0 },      { 1, 0, 1, 1 },      { 65, 64, 1, 1 },       { 64, 0, 1, 64 },
    { 300, 3, 7, 40 },   { 1000, 990, 1, 9 }, { 4097, 17, 400, 100 }, { 4999, 2000, 1, 70 },
    { 4800, 0, 2, 2100 } /* more than one block of any format */
};

static struct sar_spvec make_run(const struct sar_wire_layout *layout, const struct pattern *pattern)
{
    static uint64_t index[MOST];
    static float value[MOST * 64];
    size_t numbers = layout->element_size / (layout->precision == SAR_PRECISION_FULL ? 4 : 2);
    struct sar_spvec run = { index, value, 0 };
    for (uint64_t i = pattern->first; i < pattern->span && run.nnz < pattern->room; i += pattern->step)
        sar_index_set(index, layout->index_size, run.nnz++, i);
    for (size_t i = 0; i < run.nnz * numbers; i++)
        value[i] = (float)(i % 5) - 1;
    return run;
}

static void write_seed(const char *folder, const uint8_t *control, const unsigned char *rest, size_t size)
{
    static unsigned number;
    char path[4096];
    snprintf(path, sizeof path, "%s/seed-%05u", folder, number++);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(control, 1, CONTROL, file) != CONTROL || fwrite(rest, 1, size, file) != size ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* Once without its header and once, of the shorter ones, with it. */
static void seed(const char *folder, unsigned layout_bits, unsigned wire, const struct pattern *pattern)
{
    uint8_t control[CONTROL] = { (uint8_t)layout_bits, (uint8_t)(wire | FIT_HEADER), (uint8_t)pattern->span,
                                 (uint8_t)(pattern->span >> 8) };
    struct sar_msg_key msg_key = { input_layout(control), FINGERPRINT, EPOCH, 0 };
    struct sar_arena arena = { 0 };
    struct sar_msg message;
    struct sar_spvec run = make_run(&msg_key.layout, pattern);
    control[4] = (uint8_t)run.nnz;
    control[5] = (uint8_t)(run.nnz >> 8);
    if (sar_msg_encode(&msg_key, sar_wires[wire], &run, &arena, &message) != SAR_OK)
        exit(1);
    const unsigned char *bytes = message.buffer;
    write_seed(folder, control, bytes + SAR_MSG_HEADER_BYTES, (size_t)message.bytes - SAR_MSG_HEADER_BYTES);
    if (msg_key.layout.index_size == 4 && msg_key.layout.precision == SAR_PRECISION_FULL) {
        control[0] |= PIECE;
        write_seed(folder, control, bytes + SAR_MSG_HEADER_BYTES,
                   (size_t)message.bytes - SAR_MSG_HEADER_BYTES);
        control[0] = (uint8_t)layout_bits;
    }
    control[1] = 0;
    if (layout_bits % 5 == 0 && message.bytes < 1000)
        write_seed(folder, control, bytes, (size_t)message.bytes);
    sar_arena_free(&arena);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    for (unsigned w = 0; sar_wires[w] != NULL; w++)
        for (unsigned layout = 0; layout < LAYOUTS; layout++)
            for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++)
                if (patterns[p].room * (layout % 4 == 3 ? 64 : 1 + layout % 4) <= 2100)
                    seed(argv[1], layout, w, &patterns[p]);
    return 0;
}
