/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_DROP_H
#define SAR_NET_DROP_H

#include "net/net.h"

/** Post the receive of a message that nobody wants, or for which there is no memory. */
enum sar_status sar_drop(int bytes, int from, int tag, MPI_Comm comm, MPI_Request *request);

#endif
