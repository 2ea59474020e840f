/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers tell their processes how many there are by variables of their own. SLURM_NTASKS is no evidence: a
 * batch script has it too. Only srun sets SLURM_STEP_NUM_TASKS.
 *
 * An MPI exports symbols that its mpi.h uses. Where those of another MPI are in the process, its calls of MPI
 * may crash, without a word from either. */

#include "mpi_ext/launcher.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

#ifdef OPEN_MPI
static const char mpi_name[] = "Open MPI", own_variable[] = "OMPI_COMM_WORLD_SIZE";
static const char other_name[] = "MPICH", other_symbol[] = "MPIR_Dup_fn";
#elif defined(MPICH_VERSION)
static const char mpi_name[] = "MPICH", own_variable[] = "PMI_SIZE";
static const char other_name[] = "Open MPI", other_symbol[] = "ompi_mpi_comm_world";
#else
static const char mpi_name[] = "the MPI that this library was built for", own_variable[] = "PMI_SIZE";
static const char other_name[] = "Open MPI", other_symbol[] = "ompi_mpi_comm_world";
#endif

__attribute__((constructor)) static void warn_of_other_mpi(void)
{
    if (dlsym(RTLD_DEFAULT, other_symbol) != NULL)
        SAR_LOG(
            WARN, MPI,
            "this library was built for %s, but the program has loaded %s too: its calls of MPI may crash; "
            "build the library with the mpicc of the program",
            mpi_name, other_name);
}

static long processes_by(const char *variable)
{
    const char *text = sar_env_get(variable);
    return text == NULL ? 0 : strtol(text, NULL, 10);
}

/* Returns the variable of a launcher that has started several processes, or NULL. The MPI's own launcher may
 * have started one process below another launcher. */
static const char *find_launcher(void)
{
    static const char *const variables[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",           "MPI_LOCALNRANKS",
                                             "MV2_COMM_WORLD_SIZE",  "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE",
                                             "SLURM_STEP_NUM_TASKS" };
    if (processes_by(own_variable) == 1)
        return NULL;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        if (processes_by(variables[i]) > 1)
            return variables[i];
    return NULL;
}

void sar_launcher_check(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const char *variable = find_launcher();
    int ranks;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1 || variable == NULL || atomic_flag_test_and_set(&warned))
        return;
    SAR_LOG(WARN, MPI,
            "%s says %ld processes, but this MPI has one rank: the launcher belongs to another MPI; start "
            "the program with the mpiexec of %s%s",
            variable, processes_by(variable), mpi_name,
            strncmp(variable, "SLURM", 5) == 0 ? ", or give srun the option --mpi that this MPI needs" : "");
}
