/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_DEVICE_DEVICE_H
#define SAR_DEVICE_DEVICE_H

#include "tensor/assemble.h"
#include "tensor/dense.h"
#include "tensor/expand.h"
#include "tensor/ingest.h"
#include "tensor/partition.h"
#include "tensor/reduce.h"

/** Where buffers live and who works on them. The host is one constant; a plug-in brings others. */
struct sar_device {
    const char *name;
    enum sar_status (*ingest)(const struct sar_shape *, const struct sar_coo *, struct sar_arena *,
                              struct sar_run *, long long *bad);
    enum sar_status (*compact)(const struct sar_shape *, const void *buf, size_t expected, struct sar_arena *,
                               struct sar_run *);
    void (*scatter)(const struct sar_shape *, const struct sar_run *, void *buf);
    void (*expand)(const struct sar_shape *, const struct sar_run runs[], size_t n, void *buf);
    void (*update)(const struct sar_shape *, const struct sar_run runs[], size_t n, void *buf);
    enum sar_status (*partition)(const struct sar_map *, const struct sar_shape *, const struct sar_run *,
                                 struct sar_arena *, struct sar_run parts[]);
    enum sar_status (*assemble)(const struct sar_map *, const struct sar_shape *,
                                const struct sar_run parts[], struct sar_arena *, struct sar_run *out);
    enum sar_status (*reduce)(const struct sar_shape *, const struct sar_run runs[], size_t n,
                              struct sar_arena *, struct sar_run *out);
};

extern const struct sar_device sar_device_host;

#endif
