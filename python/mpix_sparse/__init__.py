# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce for vectors that are mostly zero: libmpix_sparse from Python.

    import numpy, mpix_sparse

    gradient = numpy.zeros(1_000_000, numpy.float32)
    gradient[mpix_sparse.rank()] = 1
    total = mpix_sparse.allreduce(gradient)

    result = mpix_sparse.allreduce_coo([7, 9], [1.0, 0.5], count=1_000_000)
    print(result.indices, result.values)

Run it with the launcher of the MPI that the C library was built with: mpiexec -n 4 python3 program.py.

Every function takes `comm`: None for MPI_COMM_WORLD, or a communicator of an mpi4py that is built for the
same MPI. The first function that needs MPI initialises it. A collective function must be called by all ranks
of the communicator, in the same order. Errors of the C library are raised as `Error`, with the library's
text. Other Python threads run during a call of the C library. Calls on one communicator follow MPI's rule
for collectives: one thread at a time.
"""

import sys as _sys

try:
    import numpy as _numpy  # noqa: F401
except ModuleNotFoundError:
    _why = f"mpix_sparse needs NumPy, which {_sys.executable} does not have"
    raise ImportError(f"{_why}; the summary of configure and make install name the Python to use") from None

from . import _end  # noqa: F401  (acts when the program ends)
from ._bcast import bcast_coo, bcast_delta
from ._coo import Result, allreduce_coo, iallreduce_coo
from ._dense import allreduce, iallreduce
from ._error import Error
from ._halves import (
    allgather_coo,
    iallgather_coo,
    ireduce_scatter,
    ireduce_scatter_coo,
    reduce_scatter,
    reduce_scatter_coo,
)
from ._pending import Handle, wait_all
from ._hints import get_info, set_info
from ._inquiry import Profile, Report, barrier, profile, report
from ._library import version
from ._mpi import finalize, init, is_initialized, rank, size
from ._plan import AllgatherCooPlan, CooPlan, Plan, ReduceScatterCooPlan, plan_start_all
from ._topk import dgc_step, topk_select, topk_threshold
from ._version import __version__

__all__ = [
    "AllgatherCooPlan",
    "CooPlan",
    "Error",
    "Handle",
    "Plan",
    "Profile",
    "ReduceScatterCooPlan",
    "Report",
    "Result",
    "__version__",
    "allgather_coo",
    "allreduce",
    "allreduce_coo",
    "barrier",
    "bcast_coo",
    "bcast_delta",
    "dgc_step",
    "finalize",
    "get_info",
    "iallgather_coo",
    "iallreduce",
    "iallreduce_coo",
    "init",
    "ireduce_scatter",
    "ireduce_scatter_coo",
    "is_initialized",
    "plan_start_all",
    "profile",
    "rank",
    "reduce_scatter",
    "reduce_scatter_coo",
    "report",
    "set_info",
    "size",
    "topk_select",
    "topk_threshold",
    "version",
    "wait_all",
]
