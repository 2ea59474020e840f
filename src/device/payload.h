/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_PAYLOAD_H
#define SAR_DEVICE_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

/** The formats that devices read and write: doc/formats.md. Any number of elements takes the same bytes
 * wherever they are. */
enum sar_packing {
    SAR_PACKING_NONE, /**< of formats that only the host knows */
    SAR_PACKING_COO,
    SAR_PACKING_ELIAS_FANO,
    SAR_PACKING_HASH_BITMAP
};

/** What a message holds behind its header. */
struct sar_payload {
    enum sar_packing packing;
    void *memory; /**< at a multiple of 8 */
    size_t bytes;
    size_t nnz; /**< elements */
};

#endif
