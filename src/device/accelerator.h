/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the host cannot touch. Who copies to and from it is a plug-in, libmpix_sparse_cuda.so, which is
 * opened when an address is asked for while a driver of CUDA is in the process: whoever has device memory has
 * loaded that. Other programs load nothing. */

#ifndef SAR_DEVICE_ACCELERATOR_H
#define SAR_DEVICE_ACCELERATOR_H

#include "base/status.h"
#include "tensor/shape.h"

/** Of struct sar_accelerator: a plug-in of another version is not used. */
enum { SAR_ACCELERATOR_VERSION = 1 };

/** The name under which a plug-in shows its struct sar_accelerator. */
#define SAR_ACCELERATOR_SYMBOL "sar_accelerator"

/** A dense vector in device memory. */
struct sar_vector {
    const struct sar_shape *shape;
    void *buf;
    int place;
    void *stream;
};

/** What a plug-in does. A place is the number of a device. A stream is the plug-in's own, NULL the default
 * one of the place; what is queued there follows on what the caller has queued. */
struct sar_accelerator {
    unsigned version; /**< first in all versions */
    const char *name;
    /** The place of an address, or -1 for the host's memory. */
    int (*place)(const void *address);
    enum sar_status (*allocate)(int place, size_t bytes, void **memory);
    void (*release)(void *memory);
    /** Memory of the host that copies are fast from. */
    enum sar_status (*allocate_pinned)(size_t bytes, void **memory);
    void (*release_pinned)(void *memory);
    /** Queue a copy between two arrays of any memory. */
    enum sar_status (*copy)(int place, void *to, const void *from, size_t bytes, void *stream);
    /** Queue a call of a function, which may not call CUDA. */
    enum sar_status (*call)(int place, void (*function)(void *), void *argument, void *stream);
    /** Wait for all that is queued. */
    enum sar_status (*wait)(int place, void *stream);
    /** Count the elements with a bit set. On return it is done. */
    enum sar_status (*count)(const struct sar_vector *vector, size_t *nnz);
    /** Queue a copy of these elements into a run of so many, in memory of the host. */
    enum sar_status (*compact)(const struct sar_vector *vector, const struct sar_run *run);
    /** Queue writing n runs of the host's to their places; with clear, all else is zero then. */
    enum sar_status (*scatter)(const struct sar_vector *vector, const struct sar_run runs[], size_t n,
                               bool clear);
};

/** The plug-in whose memory an address is in, and the place, or NULL for the host's. */
const struct sar_accelerator *sar_accelerator_of(const void *address, int *place);

#endif
