/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/fingerprint.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "hash/murmur3.h"
#include "net/topology.h"

/* The first line of a text, with one space for any blanks and a question mark for what is not ASCII. */
static void copy_line(char to[SAR_FINGERPRINT_TEXT], const char *from)
{
    size_t n = 0;
    for (; *from != '\0' && *from != '\n' && n < SAR_FINGERPRINT_TEXT - 1; from++) {
        if (!isspace((unsigned char)*from))
            to[n++] = isgraph((unsigned char)*from) ? *from : '?';
        else if (n > 0 && to[n - 1] != ' ')
            to[n++] = ' ';
    }
    if (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = '\0';
}

void sar_fingerprint_mpi(char text[SAR_FINGERPRINT_TEXT])
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    PMPI_Get_library_version(all, &length);
    copy_line(text, all);
}

static uint64_t hash_of_host(const struct sar_fingerprint *f)
{
    uint64_t hash = (uint64_t)f->processors;
    for (const char *c = f->cpu; *c != '\0'; c++)
        hash = sar_mix64(hash ^ (unsigned char)*c);
    return sar_mix64(hash);
}

/* Summed, since the order of the hosts does not matter. */
enum sar_status sar_fingerprint_make(const struct sar_net *net, struct sar_fingerprint *fingerprint)
{
    struct sar_fingerprint made = { .processors = sar_topology_processors(),
                                    .ranks = net->ranks,
                                    .nodes = net->nodes.n };
    uint64_t mine, all;
    copy_line(made.library, PACKAGE_VERSION);
    copy_line(made.cpu, sar_topology_model());
    sar_fingerprint_mpi(made.mpi);
    mine = hash_of_host(&made);
    SAR_TRY(sar_mpi(PMPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, net->comm)));
    snprintf(made.hosts, sizeof made.hosts, "%016llx", (unsigned long long)all);
    *fingerprint = made;
    return SAR_OK;
}
