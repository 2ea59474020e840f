/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_WIRE_WIRE_H
#define SAR_WIRE_WIRE_H

#include "base/arena.h"
#include "base/config.h"
#include "device/payload.h"
#include "tensor/shape.h"

/** The index space of one message: a part of the vector, or all of it. Equal at both ends. */
struct sar_layout {
    uint64_t span;          /**< indices are in [0, span) */
    size_t element_size;    /**< bytes of an element in a message */
    unsigned index_size;    /**< bytes of an index in a run, 4 or 8 */
    bool zero_is_absent;    /**< an element of zero bits may be lost on the way (dense interface) */
    enum sar_values values; /**< what is done to values on the way: see wire/narrow.h; no format looks here */
};

/** A way to write a run as bytes. One constant per file. doc/formats.md has the layouts. */
struct sar_wire {
    const char *name;
    const char *summary;
    enum sar_packing packing; /**< what devices call it */
    /** Fewest bytes that nnz elements can take: exactly what any nnz elements take where `bytes` is NULL. */
    uint64_t (*least)(const struct sar_layout *layout, uint64_t nnz);
    /** Bytes of a run, exactly, where they depend on its indices. UINT64_MAX when it cannot be written. */
    uint64_t (*bytes)(const struct sar_layout *layout, const struct sar_run *run);
    /** Bytes to expect of nnz elements that lie anywhere; NULL where `bytes` is. */
    double (*expected)(const struct sar_layout *layout, double nnz);
    /** What writing and reading them costs, in elements reduced: the unit of gamma, about 4.5 ns where these
     * figures were measured. */
    double (*work)(const struct sar_layout *layout, double nnz);
    /** Write a run. payload has room for sar_wire_bytes(wire, layout, run). */
    void (*encode)(const struct sar_layout *layout, const struct sar_run *run, void *payload);
    /** Read nnz elements from `bytes` bytes that cannot be trusted. The run may point into payload.
     * SAR_CORRUPT unless the bytes are what encode writes: indices ascending below span, nnz of them. */
    enum sar_status (*decode)(const struct sar_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_run *run);
};

/** All formats, ended by NULL; where prices tie the earlier one is taken. */
extern const struct sar_wire *const sar_wires[];

extern const struct sar_wire sar_wire_coo;
extern const struct sar_wire sar_wire_hash_bitmap;
extern const struct sar_wire sar_wire_packed; /**< in sar_wires where StreamVByte was found */
extern const struct sar_wire sar_wire_elias_fano;
extern const struct sar_wire sar_wire_bitmap;
extern const struct sar_wire sar_wire_block;
extern const struct sar_wire sar_wire_dense;

/** The format with this name, or NULL. */
const struct sar_wire *sar_wire_find(const char *name);

/** Bytes of a run in a format, exactly. */
uint64_t sar_wire_bytes(const struct sar_wire *wire, const struct sar_layout *layout,
                        const struct sar_run *run);

/** Bytes to expect of nnz elements that lie anywhere. */
double sar_wire_expected(const struct sar_wire *wire, const struct sar_layout *layout, double nnz);

/** What a message costs: seconds for a byte, and for the work of one element reduced. */
struct sar_wire_price {
    double beta, gamma;
};

/** The cheapest format for a run, from exact bytes; gamma 0 asks for the fewest bytes. */
const struct sar_wire *sar_wire_cheapest(const struct sar_layout *layout, const struct sar_run *run,
                                         struct sar_wire_price price);

/** The one of the fewest bytes among those that devices write. */
const struct sar_wire *sar_wire_of_devices(const struct sar_layout *layout, size_t nnz);

/** The format expected to be the cheapest for nnz elements. */
const struct sar_wire *sar_wire_likely(const struct sar_layout *layout, double nnz,
                                       struct sar_wire_price price);

/** Decode a bitmap over a layout's span into nnz ascending indices; SAR_CORRUPT when it holds another
 * number of bits, or bits behind the span. `bitmap` has sar_bitmap_bytes(span) bytes at any address. */
enum sar_status sar_bitmap_decode(const struct sar_layout *layout, const unsigned char *bitmap, size_t nnz,
                                  void *index);

/** Write the bitmap of a run. */
void sar_bitmap_encode(const struct sar_layout *layout, const struct sar_run *run, unsigned char *bitmap);

static inline uint64_t sar_bitmap_bytes(uint64_t span)
{
    return span / 8 + (span % 8 != 0);
}

#endif
