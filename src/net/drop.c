/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages received into nothing: blocks one over the other and a rest, so that all but the last bytes are
 * lost. MPI would truncate what finds no room, an error that MPICH raises on MPI_COMM_WORLD.
 *
 * The standard calls it erroneous to receive into overlapping entries (MPI 4.0, 5.1.11). This relies on
 * MPICH and Open MPI to write them one after the other; nobody reads what they hold, so that messages of all
 * threads may share the place. What the standard allows needs memory as large as the message, which is what
 * there is none of here. */

#include "net/drop.h"

enum { BLOCK = 64 << 10 };

static enum sar_status dropping_type(int bytes, MPI_Datatype *type)
{
    MPI_Datatype blocks, types[2];
    int lengths[2] = { 1, bytes % BLOCK };
    MPI_Aint places[2] = { 0, 0 };
    SAR_TRY(sar_mpi(PMPI_Type_vector(bytes / BLOCK, BLOCK, 0, MPI_BYTE, &blocks)));
    types[0] = blocks;
    types[1] = MPI_BYTE;
    enum sar_status status = sar_mpi(PMPI_Type_create_struct(2, lengths, places, types, type));
    PMPI_Type_free(&blocks);
    SAR_TRY(status);
    status = sar_mpi(PMPI_Type_commit(type));
    if (status != SAR_OK)
        PMPI_Type_free(type);
    return status;
}

enum sar_status sar_drop(int bytes, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    static unsigned char nothing[BLOCK];
    MPI_Datatype type;
    SAR_TRY(dropping_type(bytes, &type));
    int code = PMPI_Irecv(nothing, 1, type, from, tag, comm, request);
    PMPI_Type_free(&type);
    return sar_mpi(code);
}
