/* SPDX-License-Identifier: BSD-3-Clause */
/* Replacements of blocking MPI functions for more ranks than processors. MPICH spins in these functions and
 * does not yield, so each call costs a time slice, a hundred times its usual time. The replacements call the
 * nonblocking functions in a loop that yields. The library, which calls the PMPI names, and the test programs
 * get them at link time. */

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "check.h"

enum { LOOKS = 20 /* before the first yield */, YIELDS = 100 /* before the first sleep */ };

/* Yield or sleep after this many unsuccessful polls. If other programs use the processor, a sleeping process
 * is scheduled sooner than one that yielded. */
static void rest(int looks)
{
    if (!sleep_in_waits)
        return;
    if (looks > YIELDS)
        nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    else if (looks > LOOKS)
        sched_yield();
}

static int finish(MPI_Request *request, MPI_Status *status)
{
    int flag = 0, code = MPI_SUCCESS;
    for (int i = 0; !flag && code == MPI_SUCCESS; i++) {
        code = PMPI_Test(request, &flag, status);
        if (!flag)
            rest(i);
    }
    return code;
}

/* Complete a nonblocking call, and return its code. */
static int finish_call(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? finish(request, MPI_STATUS_IGNORE) : code;
}

/* Find MPI's function of this name. */
static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    check(found != NULL, "expected %s in the MPI library", name);
    memcpy(function, &found, sizeof found);
}

/* MPI_Wait and MPI_Test treat generalized requests differently. */
int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int (*wait)(MPI_Request *, MPI_Status *);
    if (sleep_in_waits)
        return finish(request, status);
    find("PMPI_Wait", &wait);
    return wait(request, status);
}

/* The library's progress loop probes for messages with this function. */
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    static _Thread_local int looks;
    static _Thread_local int (*probe)(int, int, MPI_Comm, int *, MPI_Status *);
    if (probe == NULL)
        find("PMPI_Iprobe", &probe);
    int code = probe(source, tag, comm, flag, status);
    looks = *flag ? 0 : looks + 1;
    rest(looks);
    return code;
}

int PMPI_Barrier(MPI_Comm comm)
{
    MPI_Request request;
    return finish_call(PMPI_Ibarrier(comm, &request), &request);
}

int PMPI_Bcast(void *buffer, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    MPI_Request request;
    return finish_call(PMPI_Ibcast(buffer, n, type, root, comm, &request), &request);
}

int PMPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    return finish_call(PMPI_Iallreduce(in, out, n, type, op, comm, &request), &request);
}

int PMPI_Allgather(const void *in, int n, MPI_Datatype type, void *out, int m, MPI_Datatype to, MPI_Comm comm)
{
    MPI_Request request;
    return finish_call(PMPI_Iallgather(in, n, type, out, m, to, comm, &request), &request);
}

int PMPI_Sendrecv(const void *out, int n, MPI_Datatype type, int to, int tag, void *in, int m,
                  MPI_Datatype type_in, int from, int tag_in, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request receives, sends;
    int code = PMPI_Irecv(in, m, type_in, from, tag_in, comm, &receives);
    if (code != MPI_SUCCESS)
        return code;
    code = finish_call(PMPI_Isend(out, n, type, to, tag, comm, &sends), &sends);
    int received = finish(&receives, status);
    return code == MPI_SUCCESS ? received : code;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    MPI_Request request;
    return finish_call(PMPI_Comm_idup(comm, copy, &request), &request);
}

/* Allocates no memory, since alloc_failure.c makes allocations fail. */
static int all_on_one_node(MPI_Comm comm)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    PMPI_Get_processor_name(name, &length);
    uint64_t hash = hash_bytes(name, strlen(name), 0), least[2] = { hash, ~hash };
    PMPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_UINT64_T, MPI_MIN, comm);
    return least[0] == ~least[1];
}

/* Has no nonblocking form, and is the slowest function. If all ranks share a node, each gets a duplicate. */
int PMPI_Comm_split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *part)
{
    int (*split)(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
    if (sleep_in_waits && kind == MPI_COMM_TYPE_SHARED && all_on_one_node(comm))
        return PMPI_Comm_dup(comm, part);
    find("PMPI_Comm_split_type", &split);
    return split(comm, kind, key, info, part);
}

#pragma weak MPI_Wait = PMPI_Wait
#pragma weak MPI_Iprobe = PMPI_Iprobe
#pragma weak MPI_Barrier = PMPI_Barrier
#pragma weak MPI_Bcast = PMPI_Bcast
#pragma weak MPI_Allreduce = PMPI_Allreduce
#pragma weak MPI_Allgather = PMPI_Allgather
#pragma weak MPI_Sendrecv = PMPI_Sendrecv
#pragma weak MPI_Comm_dup = PMPI_Comm_dup
#pragma weak MPI_Comm_split_type = PMPI_Comm_split_type
