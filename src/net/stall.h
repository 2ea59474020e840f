/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SAR_NET_STALL_H
#define SAR_NET_STALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { SAR_HOST = 64, SAR_NAMES = 512 /* room for a list of ranks */ };

/** How long something has been waited for. All zero when a wait begins, or has got somewhere. */
struct sar_stall {
    unsigned looks;
    double since, told;
};

/** By what names the ranks of a communicator are told of. */
struct sar_roster {
    int ranks;
    int *number;            /**< in MPI_COMM_WORLD */
    char (*host)[SAR_HOST]; /**< or NULL while hosts are not known */
};

/** Called after each fruitless look: the seconds waited so far, or 0 where the clock was not looked at, as
 * most times. */
double sar_stall_clock(struct sar_stall *stall);

/** Whether so many seconds are to be told of: when they pass the limit, and each time that they have doubled
 * since. */
bool sar_stall_tells(struct sar_stall *stall, double waited, double limit);

/** Fill in roster->number; a rank that MPI_COMM_WORLD does not have keeps its own. Local. */
void sar_stall_number(MPI_Comm comm, struct sar_roster *roster);

/** List the ranks of a communicator for which `is` holds: "rank 2", "ranks 2, 5 to 7 on node3; 9 on node4".
 * What there is no room for becomes "..."; empty if there are none. */
void sar_stall_list(char *text, size_t room, const struct sar_roster *roster,
                    bool (*is)(const void *of, int rank), const void *of);

#endif
