/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI functions that start requests and wait for them, for persistent requests that the library runs. Without
 * such requests the functions call MPI at once. */

#include "core/progress.h"
#include "preload/persistent.h"

#ifdef HAVE_MPI_ALLREDUCE_INIT

static int start(MPI_Request *request)
{
    int code;
    return request != NULL && sar_persistent_start(*request, &code) ? code : PMPI_Start(request);
}

int MPI_Start(MPI_Request *request)
{
    return start(request);
}

int MPI_Startall(int n, MPI_Request requests[])
{
    int code = MPI_SUCCESS;
    if (!sar_persistent_is_used())
        return PMPI_Startall(n, requests);
    for (int i = 0; i < n && code == MPI_SUCCESS; i++)
        code = start(&requests[i]);
    return code;
}

static int swap_out(bool swapped, int n, MPI_Request *requests, int code)
{
    if (swapped)
        sar_persistent_swap_out(n, requests);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    bool swapped = sar_persistent_swap_in(1, request);
    return swap_out(swapped, 1, request, PMPI_Wait(request, status));
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    bool swapped = sar_persistent_swap_in(1, request);
    return swap_out(swapped, 1, request, PMPI_Test(request, flag, status));
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Waitall(n, requests, statuses));
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Testall(n, requests, flag, statuses));
}

int MPI_Waitany(int n, MPI_Request requests[], int *which, MPI_Status *status)
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Waitany(n, requests, which, status));
}

int MPI_Testany(int n, MPI_Request requests[], int *which, int *flag, MPI_Status *status)
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Testany(n, requests, which, flag, status));
}

int MPI_Waitsome(int n, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Waitsome(n, requests, done, which, statuses));
}

int MPI_Testsome(int n, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
    bool swapped = sar_persistent_swap_in(n, requests);
    return swap_out(swapped, n, requests, PMPI_Testsome(n, requests, done, which, statuses));
}

int MPI_Request_free(MPI_Request *request)
{
    if (request != NULL && sar_persistent_is_used())
        sar_persistent_untrack(*request);
    return PMPI_Request_free(request);
}
#endif

/* MPI_Request_get_status makes no progress on the library's calls, so make progress first. */
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    sar_persistent_swap_in(1, &request);
    sar_progress();
    int code = PMPI_Request_get_status(request, flag, status);
    sar_persistent_swap_out(1, &request);
    return code;
}
