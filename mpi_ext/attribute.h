/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_MPI_EXT_ATTRIBUTE_H
#define SAR_MPI_EXT_ATTRIBUTE_H

#include "plan/context.h"

/** The context of a communicator, made at its first use and freed with it or by MPI_Finalize. Collective
 * where it is not there yet.
 * @param sentence room for SAR_SENTENCE bytes, further words on SAR_BAD_KNOB and SAR_BAD_COMM */
enum sar_status sar_attribute_context(MPI_Comm comm, struct sar_context **context, char *sentence);

/** The context if there is one, else NULL. Local. */
enum sar_status sar_attribute_peek(MPI_Comm comm, struct sar_context **context, char *sentence);

/** sar_attribute_context for a function of the interface: raises what goes wrong, and returns the code. */
int sar_attribute_need(MPI_Comm comm, const char *function, struct sar_context **context);

/** The same for a function that takes intercommunicators too: their context is NULL. */
int sar_attribute_want(MPI_Comm comm, const char *function, struct sar_context **context);

#endif
