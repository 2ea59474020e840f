# SPDX-License-Identifier: BSD-3-Clause
"""Allreduce for vectors that are mostly zero, inside functions that jax compiles.

    import jax
    import mpix_sparse.jax as mpx

    @jax.jit
    def step(weights, batch):
        gradient = jax.grad(loss)(weights, batch)
        return weights - 0.1 * mpx.allreduce(gradient) / mpx.size()

allreduce() takes dense arrays and BCOO matrices, allreduce_coo() takes indices and values. Both are XLA
custom calls, on the CPU and, where the C library has its plug-in, on CUDA. They work under jit, grad, jvp,
scan, fori_loop, while_loop and cond; allreduce() also under vmap. Each process is one rank and has one
device of jax.

Order: every call has an ordered effect of jax, the same one for all communicators. jax passes a token from
call to call, within a compiled function and between functions, in the order of the program. XLA neither
reorders nor removes calls. So ranks that run the same program make the same calls in the same order. A
`token` argument adds a data dependency on another call; the order does not need it. The effect does not order
calls that different Python threads start: start all from one thread.

Calls of mpix_sparse, mpi4py and mpix_sparse.torch have other communicators, and so do not match calls of this
package. But XLA may run a function after the function has returned. Call barrier(), or
jax.block_until_ready() on a result, before calls of the other packages: if ranks wait in different orders,
they wait forever.

Gradients: the gradient of the sum over ranks is the sum over ranks of the gradients. So the gradient of
f(allreduce(x)) is the gradient of the sum of all ranks' f. If all ranks compute the same f from the sum,
divide by size(). mpi4jax instead returns the gradient of this rank's f, without communication.

Errors: before each call, ranks compare its function, type, shape, op, count and capacity, with an
MPI_Allreduce of 16 bytes. Errors in calls are jax.errors.JaxRuntimeError on all ranks. If XLA runs a function
asynchronously, reading a result raises the error, and jax raises it again in later calls of the thread, until
barrier() is called. Set jax_cpu_enable_async_dispatch to False to get errors from the function itself. Errors
in Python types and shapes are raised while jax traces a function, only on this rank.

MPI must have been initialised with MPI_THREAD_MULTIPLE, as init() does, since XLA calls from threads of its
own.
"""

from .. import Error, Report, finalize, init, is_initialized, rank, size
from ._allreduce import Coordinates, allreduce, allreduce_coo, create_token
from ._world import barrier, report, set_info

__all__ = [
    "Coordinates",
    "Error",
    "Report",
    "allreduce",
    "allreduce_coo",
    "barrier",
    "create_token",
    "finalize",
    "init",
    "is_initialized",
    "rank",
    "report",
    "set_info",
    "size",
]
