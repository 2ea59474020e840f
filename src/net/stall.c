/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net.h"

#include <stdio.h>
#include <string.h>

enum { LOOKS = 64 /* from one look at the clock to the next */, ENTRY = SAR_HOST + 48 };

double sar_stall_clock(struct sar_stall *stall)
{
    if (++stall->looks % LOOKS != 0)
        return 0;
    double now = PMPI_Wtime();
    if (stall->since == 0)
        stall->since = now;
    return now - stall->since;
}

bool sar_stall_tells(struct sar_stall *stall, double waited, double limit)
{
    if (waited < limit || waited < 2 * stall->told)
        return false;
    stall->told = waited;
    return true;
}

void sar_stall_number(MPI_Comm comm, struct sar_roster *roster)
{
    MPI_Group group, world;
    for (int r = 0; r < roster->ranks; r++)
        roster->number[r] = r;
    if (!sar_net_world_is_up())
        return;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < roster->ranks; r++) {
        int number = MPI_UNDEFINED;
        PMPI_Group_translate_ranks(group, 1, &r, world, &number);
        roster->number[r] = number == MPI_UNDEFINED ? r : number;
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
}

/* What is listed. */
struct list {
    const struct sar_roster *roster;
    bool (*is)(const void *of, int rank);
    const void *of;
};

static int next_listed(const struct list *list, int from)
{
    while (from < list->roster->ranks && !list->is(list->of, from))
        from++;
    return from;
}

static bool same_host(const struct sar_roster *roster, int a, int b)
{
    return roster->host == NULL || strcmp(roster->host[a], roster->host[b]) == 0;
}

/* The last of the ranks from `first` on that can be told of as one range. */
static int last_of_range(const struct list *list, int first)
{
    const struct sar_roster *roster = list->roster;
    int last = first;
    while (last + 1 < roster->ranks && list->is(list->of, last + 1) && same_host(roster, first, last + 1) &&
           roster->number[last + 1] == roster->number[last] + 1)
        last++;
    return last;
}

/* `next` is listed after the range, or roster->ranks. */
static void print_range(char entry[ENTRY], const struct sar_roster *roster, int first, int last, int next)
{
    char until[16] = "", host[SAR_HOST + 4] = "";
    bool end = next == roster->ranks, host_ends = end || !same_host(roster, first, next);
    const char *mark = end ? "" : host_ends ? "; " : ", ";
    if (last > first)
        snprintf(until, sizeof until, " to %d", roster->number[last]);
    if (roster->host != NULL && host_ends)
        snprintf(host, sizeof host, " on %s", roster->host[first]);
    snprintf(entry, ENTRY, "%d%s%s%s", roster->number[first], until, host, mark);
}

void sar_stall_list(char *text, size_t room, const struct sar_roster *roster,
                    bool (*is)(const void *of, int rank), const void *of)
{
    static const char cut[] = "...";
    struct list list = { roster, is, of };
    char entry[ENTRY];
    size_t used = 0;
    int first = next_listed(&list, 0);
    bool one = next_listed(&list, first + 1) >= roster->ranks;
    text[0] = '\0';
    if (first < roster->ranks)
        used = (size_t)snprintf(text, room, one ? "rank " : "ranks ");
    for (int next; first < roster->ranks; first = next) {
        int last = last_of_range(&list, first);
        next = next_listed(&list, last + 1);
        print_range(entry, roster, first, last, next);
        bool fits = used + strlen(entry) + sizeof cut <= room;
        used += (size_t)snprintf(text + used, room - used, "%s", fits ? entry : cut);
        if (!fits)
            return;
    }
}
