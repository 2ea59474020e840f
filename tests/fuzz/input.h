/* SPDX-License-Identifier: BSD-3-Clause */
/* An input of the fuzzer: some bytes that choose what is expected and what the header says, then a payload.
 *
 *     byte 0      element size; index size; whether zeros are absent; 16-bit values; a piece of a broadcast
 *     byte 1      format; whether the header and the payload's length are made to fit
 *     bytes 2-3   span
 *     bytes 4-5   nnz
 *     then        the header where it is the input's own, and the payload */

#ifndef SAR_TESTS_FUZZ_INPUT_H
#define SAR_TESTS_FUZZ_INPUT_H

#include "wire/message.h"

/* Numbers are small, since large ones show nothing more and take longer, but more than two of any format's
 * blocks. */
enum { CONTROL = 6, PIECE = 0x40, FIT_HEADER = 0x80, FIT_LENGTH = 0x40, SPANS = 5000, NUMBERS = 5100 };

enum { FINGERPRINT = 1, EPOCH = 2 };

static inline struct sar_wire_layout input_layout(const uint8_t *control)
{
    static const size_t rows[] = { 1, 2, 3, 64 };
    static const enum sar_wire_precision values[] = { SAR_PRECISION_FULL, SAR_PRECISION_FULL,
                                                      SAR_PRECISION_BF16, SAR_PRECISION_FP16 };
    struct sar_wire_layout layout = { .slots = (control[2] + 256u * control[3]) % SPANS,
                                      .index_size = (control[0] & (4 | PIECE)) == 4 ? 8 : 4,
                                      .zero_is_absent = (control[0] & 8) != 0,
                                      .precision = values[control[0] >> 4 & 3] };
    layout.row_len = rows[control[0] & 3];
    if (control[0] & PIECE)
        layout.precision = SAR_PRECISION_FULL;
    layout.element_size = layout.row_len * (layout.precision == SAR_PRECISION_FULL ? 4 : 2);
    return layout;
}

static inline uint64_t input_nnz(const uint8_t *control)
{
    return (control[4] + 256u * control[5]) % NUMBERS;
}

static inline uint16_t input_wire(const uint8_t *control)
{
    uint16_t wires = 0;
    while (sar_wires[wires] != NULL)
        wires++;
    return (uint16_t)((control[1] & 0x3f) % wires);
}

#endif
