/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions to capture a stream around library calls. */

#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>

#include "device_memory.h"

static inline void begin_capture(cudaStream_t captured)
{
    require(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
}

/* Check that the graph is valid and contains no work of the library. */
static inline void end_capture(cudaStream_t captured)
{
    cudaGraph_t graph;
    size_t nodes = 0;
    require(cudaStreamEndCapture(captured, &graph));
    require(cudaGraphGetNodes(graph, NULL, &nodes));
    check(nodes == 0, "expected an empty graph, found %zu nodes", nodes);
    require(cudaGraphDestroy(graph));
}

static inline void expect_refusal(int code, const char *where, int at_fault)
{
    char says[128];
    snprintf(says, sizeof says, "%s is being captured into a CUDA graph", where);
    check_error(code, says, at_fault);
}

static inline MPI_Info stream_info(cudaStream_t stream)
{
    char address[32];
    MPI_Info info;
    snprintf(address, sizeof address, "%p", (void *)stream);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_sparse_stream", address);
    return info;
}

#endif
