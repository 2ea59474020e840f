/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire formats: how a sparse vector is written as the payload of a message. doc/formats.md has the
 * layouts. */

#ifndef SAR_WIRE_WIRE_H
#define SAR_WIRE_WIRE_H

#include "base/arena.h"
#include "base/config.h"
#include "device/encoded.h"
#include "vector/spvec.h"

/** The index space of one message: a part of the vector, or all of it. Equal on sender and receiver. */
struct sar_wire_layout {
    uint64_t slots;                    /**< indices are below slots */
    size_t element_size;               /**< bytes of an element in a message */
    size_t row_len;                    /**< basic values in an element */
    unsigned index_size;               /**< bytes of an index in memory, 4 or 8 */
    bool zero_is_absent;               /**< elements whose bits are zero may be dropped (dense interface) */
    enum sar_wire_precision precision; /**< rounding of values (wire/round16.h); no part of a format */
};

/** A wire format. One constant a file. */
struct sar_wire {
    const char *name;
    const char *summary;
    enum sar_codec_id codec_id; /**< number of the format on devices, or SAR_CODEC_NONE */
    /** Returns the fewest bytes that nnz elements can take; the exact number if exact_bytes is NULL. */
    uint64_t (*min_bytes)(const struct sar_wire_layout *layout, uint64_t nnz);
    /** Returns the exact bytes of vec, UINT64_MAX if the format cannot hold it. NULL if min_bytes is
     * exact. */
    uint64_t (*exact_bytes)(const struct sar_wire_layout *layout, const struct sar_spvec *vec);
    /** Returns the mean bytes of nnz elements at random slots. NULL if exact_bytes is NULL. */
    double (*expected_bytes)(const struct sar_wire_layout *layout, double nnz);
    /** Time to encode and decode an element, and a slot that is scanned (sar_wire_cost). */
    double nnz_cost, slot_cost;
    /** Time for an element of a pull, and for a slot that is scanned; in addition sar_wire_merge_work, unless
     * bits are put in place without a list of slots (sar_wire_pull_cost). */
    double pull_nnz_cost, pull_slot_cost;
    bool pulls_bits;
    /** Returns the expected share of slots that are scanned. NULL: all. */
    double (*scanned_share)(const struct sar_wire_layout *layout, double nnz);
    /** Writes vec to the payload of sar_wire_bytes(wire, layout, vec) bytes. */
    void (*encode)(const struct sar_wire_layout *layout, const struct sar_spvec *vec, void *payload);
    /** Reads vec->nnz elements from a payload that may be damaged. vec may point into the payload or the
     * arena. Returns SAR_CORRUPT unless encode can have written the payload: nnz ascending indices below
     * slots. */
    enum sar_status (*decode)(const struct sar_wire_layout *layout, void *payload, uint64_t bytes,
                              struct sar_arena *arena, struct sar_spvec *vec);
};

/** All formats, ended by NULL. If prices tie, the first format is chosen. */
extern const struct sar_wire *const sar_wires[];

extern const struct sar_wire sar_wire_coo;
extern const struct sar_wire sar_wire_hash_bitmap;
extern const struct sar_wire sar_wire_packed; /**< in sar_wires if the build found StreamVByte */
extern const struct sar_wire sar_wire_elias_fano;
extern const struct sar_wire sar_wire_bitmap;
extern const struct sar_wire sar_wire_block;
extern const struct sar_wire sar_wire_dense;

/** Returns the format with this name, or NULL. */
const struct sar_wire *sar_wire_find(const char *name);

/** Returns the position of a format in sar_wires. */
uint16_t sar_wire_number(const struct sar_wire *wire);

/** Returns the format at a position in sar_wires, or NULL if there is none. */
const struct sar_wire *sar_wire_of_number(uint16_t number);

/** Returns the exact bytes of vec in a format. */
uint64_t sar_wire_bytes(const struct sar_wire *wire, const struct sar_wire_layout *layout,
                        const struct sar_spvec *vec);

/** Returns the mean bytes of nnz elements at random slots. */
double sar_wire_expected(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz);

/** Returns the time to encode and decode nnz elements, in units of gamma, the time to reduce one value.
 * Gamma was 2.06 ns where `mpix_sparse_perf --study formats` measured them. Copies of longer rows are not
 * counted. */
double sar_wire_cost(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz);

/** Returns the time to put nnz elements of lists of slots in place, block by block, in units of gamma. */
double sar_wire_merge_work(double nnz, double blocks);

/** As sar_wire_cost, for a message of a pull that is put in place in blocks of so many slots: the time to
 * decode its elements and to write them there. Its writer encodes it once for all receivers, each of whom
 * decodes the messages of all writers; so encoding is left out. */
double sar_wire_pull_cost(const struct sar_wire *wire, const struct sar_wire_layout *layout, double nnz,
                          unsigned block);

/** Price of a message: seconds for a byte, and for one unit of work, which is free if values are rounded. */
struct sar_wire_price {
    double beta, gamma;
    unsigned block; /**< slots of a block if work is sar_wire_pull_cost; 0: work is sar_wire_cost */
};

/** Returns the cheapest format for vec, by exact bytes; with gamma 0, the smallest one. */
const struct sar_wire *sar_wire_cheapest(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                                         struct sar_wire_price price);

/** Returns the smallest format for nnz elements among those that devices encode. */
const struct sar_wire *sar_wire_for_devices(const struct sar_wire_layout *layout, size_t nnz);

/** Returns the format with the least expected price for nnz elements. */
const struct sar_wire *sar_wire_cheapest_expected(const struct sar_wire_layout *layout, double nnz,
                                                  struct sar_wire_price price);

/** Returns log2 of the slots in a block of sar_wire_block: blocks of 256 values, or of one row of 16 values
 * and more. */
unsigned sar_wire_block_shift(size_t row_len);

/** Lists the bits of a bitmap of sar_bitmap_bytes(layout->slots) bytes, unaligned, as nnz ascending indices.
 * Returns SAR_CORRUPT if the number of bits is not nnz, or a bit is at layout->slots or above. */
enum sar_status sar_bitmap_decode(const struct sar_wire_layout *layout, const unsigned char *bitmap,
                                  size_t nnz, void *index);

/** Writes the bitmap of vec. */
void sar_bitmap_encode(const struct sar_wire_layout *layout, const struct sar_spvec *vec,
                       unsigned char *bitmap);

struct sar_part_bitmap;

/** Describes a payload of sar_wire_hash_bitmap of nnz elements, without decoding it. Returns SAR_CORRUPT if
 * its size is wrong, or a bit is at layout->slots or above. The number of bits is not checked. */
enum sar_status sar_hash_bitmap_open(const struct sar_wire_layout *layout, const void *payload,
                                     uint64_t bytes, size_t nnz, struct sar_part_bitmap *part);

/** Returns the bytes of a bitmap with one bit a slot. */
static inline uint64_t sar_bitmap_bytes(uint64_t slots)
{
    return slots / 8 + (slots % 8 != 0);
}

#endif
