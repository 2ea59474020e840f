/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the host cannot touch. Who copies to and from it is a plug-in, libmpix_sparse_cuda.so, which is
 * opened when an address is asked for while a driver of CUDA is in the process: whoever has device memory has
 * loaded that. Other programs load nothing. */

#ifndef SAR_DEVICE_ACCELERATOR_H
#define SAR_DEVICE_ACCELERATOR_H

#include "base/status.h"
#include "device/payload.h"
#include "hash/map.h"
#include "tensor/dgc.h"
#include "tensor/ingest.h"
#include "tensor/parcel.h"

/** Of struct sar_accelerator: a plug-in of another version is not used. */
enum { SAR_ACCELERATOR_VERSION = 8 };

/** The name under which a plug-in shows its struct sar_accelerator. */
#define SAR_ACCELERATOR_SYMBOL "sar_accelerator"

/** A dense vector in device memory, or what coordinates there are of. */
struct sar_vector {
    const struct sar_shape *shape;
    void *buf; /**< NULL for coordinates */
    int place;
    void *stream;
};

/** Which elements of a vector have a bit set: in the device's memory, a bit each; and how many. */
struct sar_marks {
    void *bits;
    size_t nnz;
};

/** How a vector is split: by a map of lines into parts, and these into segments, `width` slots of each part,
 * a multiple of 64. */
struct sar_division {
    struct sar_map map;
    uint64_t width;
    uint32_t segments;
};

/** Which elements are selected: as sar_topk_run does for so many. */
struct sar_cutoff {
    uint64_t least; /**< magnitude */
    size_t capacity;
};

/** Streams of the plug-in's own, so that copies run beside what callers have queued; events, which tell how
 * far a stream has come; and memory that comes and goes in the order of a stream. */
struct sar_lanes {
    enum sar_status (*open)(int place, void **lane);
    void (*close)(int place, void *lane);
    enum sar_status (*make_event)(int place, void **event);
    void (*drop_event)(int place, void *event);
    /** Let the event stand for what is queued in a stream by now. */
    enum sar_status (*record)(int place, void *event, void *stream);
    /** Let what is queued in a stream from now on wait for the event. */
    enum sar_status (*follow)(int place, void *event, void *stream);
    /** Wait for the event. */
    enum sar_status (*await)(int place, void *event);
    /** Memory of the device's pool, which costs nothing once the pool has grown. */
    enum sar_status (*take)(int place, size_t bytes, void *stream, void **memory);
    void (*give_back)(int place, void *memory, void *stream);
};

/** One part of a map. */
struct sar_part {
    struct sar_map map;
    uint32_t number;
};

/** What a device has found, each 0 or 1. */
struct sar_findings {
    uint32_t corrupt;    /**< a payload that was decoded is none */
    uint32_t minus_zero; /**< a value that is -0.0 */
};

/** What a plug-in does. A place is the number of a device. A stream is the plug-in's own, NULL the default
 * one of the place; what is queued there follows on what the caller has queued. */
struct sar_accelerator {
    unsigned version; /**< first in all versions */
    const char *name;
    /** The place of an address, or -1 for the host's memory. Fails where a device is beyond telling. */
    enum sar_status (*place)(const void *address, int *place);
    enum sar_status (*allocate)(int place, size_t bytes, void **memory);
    void (*release)(int place, void *memory);
    /** Memory of the host that copies are fast from. */
    enum sar_status (*allocate_pinned)(int place, size_t bytes, void **memory);
    void (*release_pinned)(int place, void *memory);
    /** Queue a copy between two arrays of any memory. */
    enum sar_status (*copy)(int place, void *to, const void *from, size_t bytes, void *stream);
    /** Queue a call of a function, which may not call CUDA. */
    enum sar_status (*call)(int place, void (*function)(void *), void *argument, void *stream);
    /** Wait for all that is queued. */
    enum sar_status (*wait)(int place, void *stream);
    /** Whether work can be queued in a stream: SAR_CAPTURED where it would go into a graph, to be done when
     * that is launched, or where the default stream would have to wait for one that is captured. Leaves what
     * is captured as it is. */
    enum sar_status (*ready)(int place, void *stream);
    /** Copy coordinates into a run in any memory, whose indices have the caller's size. Where their indices
     * do not ascend and all are below the shape's count, they are sorted, and equal ones reduced, on the way;
     * values that a logical op takes become 0 or 1. run->nnz is what is left. *ascends tells whether the
     * run's do, all of them below the count. On return it is done. */
    enum sar_status (*ingest)(const struct sar_vector *vector, const struct sar_coo *coo, struct sar_run *run,
                              bool *ascends);
    /** Mark the elements with a bit set. On return it is done, and the marks are to be given back. */
    enum sar_status (*mark)(const struct sar_vector *vector, struct sar_marks *marks);
    /** Give marks back, behind what is queued. */
    void (*unmark)(const struct sar_vector *vector, struct sar_marks *marks);
    /** Queue a copy of the marked elements into a run of so many, in any memory. */
    enum sar_status (*compact)(const struct sar_vector *vector, const struct sar_marks *marks,
                               const struct sar_run *run);
    /** The same in the order of segments, then parts, then slots. The run's indices are slots of 4 bytes that
     * count from the segment on; part p of segment s begins at first[s * parts + p]. */
    enum sar_status (*split)(const struct sar_vector *vector, const struct sar_marks *marks,
                             const struct sar_division *split, const struct sar_run *run,
                             unsigned long long first[]);
    /** Queue writing n runs, in any memory, to their places; with clear, all else is zero then. */
    enum sar_status (*scatter)(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                               bool clear);
    /** Queue writing a vector into a parcel in pinned memory, where elements are those with a bit set. Once
     * it is done *parcel->nnz, in pinned memory too, tells what is there; before, nothing sets it. */
    enum sar_status (*pack)(const struct sar_vector *vector, const struct sar_parcel *parcel);
    /** Queue writing what such a parcel holds by then to the vector. */
    enum sar_status (*unpack)(const struct sar_vector *vector, const struct sar_parcel *parcel);
    /** What sar_dgc_sample does of values there; magnitudes are the host's. On return it is done. */
    enum sar_status (*sample)(const struct sar_vector *vector, const struct sar_dgc *of, size_t n,
                              uint32_t seed, uint64_t *magnitudes);
    /** Advance all values, see tensor/dgc.h, and mark those that are selected. On return it is done, and the
     * marks are to be given back. */
    enum sar_status (*select)(const struct sar_vector *vector, const struct sar_dgc *of,
                              const struct sar_cutoff *cutoff, struct sar_marks *marks);
    /** Queue zeroing the marked values, and the velocities of those whose magnitudes reach `masked`. */
    enum sar_status (*clear)(const struct sar_vector *vector, const struct sar_dgc *of, uint64_t masked,
                             const struct sar_marks *marks);

    /* What follows works on runs, payloads and findings in the device's memory, of shapes whose count is the
     * number of slots; vectors have no buf. See device/worker.h. */

    /** Queue looking for a -0.0 among a run's values. */
    enum sar_status (*look)(const struct sar_vector *vector, const struct sar_run *run,
                            struct sar_findings *findings);
    /** Queue writing a run as a payload of its format, to the host's bytes. */
    enum sar_status (*encode)(const struct sar_vector *vector, const struct sar_run *run,
                              const struct sar_payload *payload);
    /** Queue reading a payload: its indices into run->index, and run->value is made to point into it.
     * Whatever its bytes are, indices are below the shape's count; findings tell if they are not what encode
     * writes. */
    enum sar_status (*decode)(const struct sar_vector *vector, const struct sar_payload *payload,
                              struct sar_run *run, struct sar_findings *findings);
    /** Reduce runs to the host's bits, in their order, into one with room for all of theirs. Waits for what
     * is queued, since out->nnz is set. */
    enum sar_status (*reduce)(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                              struct sar_run *out);
    /** Queue splitting a run of fewer than 2^32 elements, whose indices are the vector's, into another one,
     * as split does marked elements. `first` is the host's. */
    enum sar_status (*partition)(const struct sar_vector *vector, const struct sar_division *how,
                                 const struct sar_run *from, const struct sar_run *to,
                                 unsigned long long first[]);
    /** Queue turning slots of 4 bytes of one part into indices of the shape's size. */
    enum sar_status (*unsplit)(const struct sar_vector *vector, const struct sar_part *part,
                               const struct sar_run *run, void *index);

    /** Give back what is kept for later calls, of which more may come. */
    void (*close)(void);

    const struct sar_lanes *lanes;
};

/** Find the plug-in whose memory an address is in, and the place; NULL for the host's. Device memory without
 * a plug-in is SAR_UNSUPPORTED. Where a device has failed, so that nobody knows, *accelerator is set all the
 * same, for the host may not be able to touch the memory. */
enum sar_status sar_accelerator_find(const void *address, const struct sar_accelerator **accelerator,
                                     int *place);

/** Whether two addresses are both in the host's memory; takes one search for a driver at most. */
bool sar_accelerator_is_idle(const void *first, const void *second);

/** Have the plug-in, if there is one, give back what it keeps. */
void sar_accelerator_cleanup(void);

#endif
