/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/device.h"

const struct sar_device sar_device_host = {
    .name = "host",
    .ingest = sar_ingest,
    .compact = sar_dense_compact,
    .scatter = sar_dense_scatter,
    .expand = sar_dense_expand,
    .update = sar_dense_update,
    .partition = sar_partition,
    .assemble = sar_assemble,
    .reduce = sar_reduce,
};
