/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_FINGERPRINT_H
#define SAR_NET_FINGERPRINT_H

#include "net/net.h"

enum { SAR_FINGERPRINT_TEXT = 128 };

/** What must agree for the constants of one machine to hold for another. Texts are printable ASCII. */
struct sar_fingerprint {
    char library[SAR_FINGERPRINT_TEXT]; /**< version of this one */
    char mpi[SAR_FINGERPRINT_TEXT];     /**< first line of MPI_Get_library_version */
    char cpu[SAR_FINGERPRINT_TEXT];     /**< model of rank 0's processors */
    char hosts[SAR_FINGERPRINT_TEXT];   /**< hash of models and numbers of processors of all ranks' hosts */
    int processors;                     /**< of rank 0's host, that the job may use */
    int ranks, nodes;
};

/** The fingerprint of a communicator and the hosts it is on. Collective; cpu and processors differ where
 * hosts do. */
enum sar_status sar_fingerprint_make(const struct sar_net *net, struct sar_fingerprint *fingerprint);

/** First line of what the MPI library says of itself, blanks squeezed; MPI need not be up. */
void sar_fingerprint_mpi(char text[SAR_FINGERPRINT_TEXT]);

#endif
