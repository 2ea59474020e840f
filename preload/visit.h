/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_PRELOAD_VISIT_H
#define SAR_PRELOAD_VISIT_H

#include "preload/state.h"

/** A program's call. */
struct sar_asked {
    const void *sendbuf;
    void *recvbuf;
    MPI_Count count;
    MPI_Datatype datatype;
    MPI_Op op;
    MPI_Comm comm;
};

/** A call that is followed. */
struct sar_visit {
    struct sar_tabled_shape *shape;
    MPI_Comm comm;
    struct sar_note note;
    double start;
};

/** Whether the library could gain anything, and for which shape on which communicator; else NULL, and the
 * call is counted among the others. What handles stand for is compared only, so that none need be valid. */
struct sar_followed *sar_visit_follow(const struct sar_asked *asked, struct sar_shape_key *key);

/** Begin a blocking call, which the library is to take where visit->note.taken. Collective.
 * @return false for a call that is left to MPI and forgotten */
bool sar_visit_enter(const struct sar_asked *asked, struct sar_visit *visit);

/** End it, with the code that it returned. */
int sar_visit_leave(struct sar_visit *visit, int code);

/** Whether the library takes a nonblocking call. Local, but the same on all ranks: what blocking calls have
 * shown of the shape decides. */
bool sar_visit_passing(const struct sar_asked *asked);

/** Begin the note of a call that shape has counted. The report knows a density of shapes that no other rank
 * looks at, too: of calls 1, 2, 4, 8, … */
void sar_visit_describe(const struct sar_asked *asked, const struct sar_tabled_shape *shape, enum sar_how how,
                        int ranks, struct sar_note *note);

/** How a call fared, from the scheme that ran, the best one, and the mean density of all ranks. */
enum sar_outcome sar_visit_outcome(const char *scheme, const char *choice, double density);

#endif
