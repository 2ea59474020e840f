/* SPDX-License-Identifier: BSD-3-Clause */
/* Coordinates in device memory, and dense vectors of which only elements travel or are selected. On return
 * all is done, but for the arrival of what was split. */

#ifndef SAR_DEVICE_OFFLOAD_H
#define SAR_DEVICE_OFFLOAD_H

#include "device/arrival.h"

/** Copy coordinates into memory of their own there, from which they can arrive, as struct sar_accelerator
 * says.
 * @param arrival  to be ended by the caller, also on failure */
enum sar_status sar_offload_ingest(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_coo *coo, struct sar_arrival *arrival, bool *ascends);

/** Mark the elements of buf with a bit set; the caller gives the marks back. */
enum sar_status sar_offload_mark(const struct sar_memory *memory, const struct sar_shape *shape, void *buf,
                                 struct sar_marks *marks);
void sar_offload_unmark(const struct sar_memory *memory, struct sar_marks *marks);

/** Marked elements of a vector, and the arena and the bytes of a block by which they come. */
struct sar_load {
    const struct sar_memory *memory;
    const struct sar_shape *shape;
    void *buf;
    const struct sar_marks *marks;
    struct sar_arena *arena;
    size_t room;
};

/** Make a run of them, all of which are there then.
 * @param arrival  to be ended by the caller, also on failure */
enum sar_status sar_offload_compact(const struct sar_load *load, struct sar_arrival *arrival);

/** Make one that is split, as struct sar_accelerator says, and let it come.
 * @param first  room for one number more than parts of segments; the last tells the end */
enum sar_status sar_offload_split(const struct sar_load *load, const struct sar_division *split,
                                  struct sar_arrival *arrival, unsigned long long first[]);

/** The same into a run anywhere, that has room for all marked elements. Queued. */
enum sar_status sar_offload_queue_split(const struct sar_load *load, const struct sar_division *split,
                                        const struct sar_run *run, unsigned long long first[]);

/** Queue writing a vector into a parcel in pinned memory, and what is in one then to a vector. */
enum sar_status sar_offload_queue_pack(const struct sar_memory *memory, const struct sar_shape *shape,
                                       void *buf, const struct sar_parcel *parcel);
enum sar_status sar_offload_queue_unpack(const struct sar_memory *memory, const struct sar_shape *shape,
                                         void *buf, const struct sar_parcel *parcel);

/** What is written to a vector: n runs, and zeros elsewhere if it is to be cleared. */
struct sar_delivery {
    const struct sar_run *runs;
    size_t n;
    bool clear;
    bool there; /**< the runs are in the device's memory */
};

/** The vector that it is written to, and the bytes of a ring's block. */
struct sar_destination {
    const struct sar_memory *memory;
    const struct sar_shape *shape;
    void *buf;
    size_t room;
};

/** Of runs on the host a block of elements is copied while another is written to its places. */
enum sar_status sar_offload_write(const struct sar_destination *to, const struct sar_delivery *delivery);

/** An array of the host's, and the device's that it is copied to. */
struct sar_shipment {
    void *to;
    const void *from;
    size_t bytes;
};

/** Copy n arrays, a block of so many bytes at a time: one is filled while others are copied. */
enum sar_status sar_offload_send(const struct sar_memory *memory, size_t room,
                                 const struct sar_shipment arrays[], size_t n);

/** The magnitudes of a sample, see tensor/dgc.h, of values in device memory. */
enum sar_status sar_offload_sample(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_dgc *of, size_t n, uint32_t seed, uint64_t *magnitudes);

/** Do what sar_topk_run does for values in device memory, and if there is a gradient, what sar_dgc_clear
 * does. Values have changed even where this fails.
 * @param run  in: arrays in device memory, for the cutoff's capacity; out: what is selected, in indices of
 *             the shape's size */
enum sar_status sar_offload_select(const struct sar_memory *memory, const struct sar_shape *shape,
                                   const struct sar_dgc *of, const struct sar_cutoff *cutoff,
                                   struct sar_run *run);

#endif
