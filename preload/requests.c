/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of MPI that start requests and wait for them, for persistent requests whose work the library
 * does. Programs without such requests go straight on to MPI. */

#include "plan/progress.h"
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
    if (!sar_persistent_any())
        return PMPI_Startall(n, requests);
    for (int i = 0; i < n && code == MPI_SUCCESS; i++)
        code = start(&requests[i]);
    return code;
}

static int back(bool lent, int n, MPI_Request *requests, int code)
{
    if (lent)
        sar_persistent_return(n, requests);
    return code;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    bool lent = sar_persistent_lend(1, request);
    return back(lent, 1, request, PMPI_Wait(request, status));
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    bool lent = sar_persistent_lend(1, request);
    return back(lent, 1, request, PMPI_Test(request, flag, status));
}

int MPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Waitall(n, requests, statuses));
}

int MPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Testall(n, requests, flag, statuses));
}

int MPI_Waitany(int n, MPI_Request requests[], int *which, MPI_Status *status)
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Waitany(n, requests, which, status));
}

int MPI_Testany(int n, MPI_Request requests[], int *which, int *flag, MPI_Status *status)
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Testany(n, requests, which, flag, status));
}

int MPI_Waitsome(int n, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Waitsome(n, requests, done, which, statuses));
}

int MPI_Testsome(int n, MPI_Request requests[], int *done, int which[], MPI_Status statuses[])
{
    bool lent = sar_persistent_lend(n, requests);
    return back(lent, n, requests, PMPI_Testsome(n, requests, done, which, statuses));
}

int MPI_Request_free(MPI_Request *request)
{
    if (request != NULL && sar_persistent_any())
        sar_persistent_forget(*request);
    return PMPI_Request_free(request);
}
#endif

/* This function moves nothing of the library's by itself. */
int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    sar_persistent_lend(1, &request);
    sar_progress();
    int code = PMPI_Request_get_status(request, flag, status);
    sar_persistent_return(1, &request);
    return code;
}
