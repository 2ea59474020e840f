/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that devices encode and decode. doc/formats.md has the layouts. */

#ifndef SAR_DEVICE_ENCODED_H
#define SAR_DEVICE_ENCODED_H

#include <stddef.h>
#include <stdint.h>

/** Wire formats that devices know. The bytes of a payload depend on the number of elements only. */
enum sar_codec_id {
    SAR_CODEC_NONE, /**< any format that only the host knows */
    SAR_CODEC_COO,
    SAR_CODEC_ELIAS_FANO,
    SAR_CODEC_HASH_BITMAP,
    SAR_CODEC_VALUES /**< values alone; the receiver has the indices */
};

/** Payload of a message: the bytes after its header. */
struct sar_encoded {
    enum sar_codec_id codec_id;
    void *memory; /**< not owned; aligned to 8 bytes */
    size_t bytes;
    size_t nnz; /**< elements */
};

#endif
