# SPDX-License-Identifier: BSD-3-Clause
"""Test mpix_sparse.jax on communicators of mpi4py."""

import os
import unittest

import numpy
from common import main, need, skip_file

os.environ["JAX_PLATFORMS"] = "cpu"
jax = need("jax", "none; pip install jax")
need("jax.ffi", "none; pip install 'jax>=0.5'")
need("mpi4py", "python3-mpi4py")
import mpi4py  # noqa: E402

mpi4py.rc.initialize = False
from mpi4py import MPI  # noqa: E402

try:
    import mpix_sparse.jax as mpx
    from mpix_sparse.jax import _world

    mpx.init()
except ImportError as reason:
    skip_file(f"mpi4py is built for another MPI: {reason}")

import jax.numpy as jnp  # noqa: E402

RANK, SIZE = mpx.rank(), mpx.size()


class Communicators(unittest.TestCase):
    def equal(self, found, expected):
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)

    def test_half(self):
        half = MPI.COMM_WORLD.Split(RANK % 2, RANK)
        call = jax.jit(lambda x: mpx.allreduce(x, comm=half))
        self.equal(call(jnp.ones(3)), 3 * [half.size])
        worlds = len(_world._worlds)
        self.equal(call(jnp.ones(4)), 4 * [half.size])
        self.assertEqual(len(_world._worlds), worlds)

    def test_two(self):
        """Ranks that have used different numbers of communicators."""
        if RANK == 0:
            self.equal(mpx.allreduce(jnp.ones(2), comm=MPI.COMM_SELF), [1, 1])
        both = jax.jit(lambda x: (mpx.allreduce(x), mpx.allreduce(x, "max", comm=MPI.COMM_WORLD)))
        self.equal(both(jnp.full(2, RANK))[0], 2 * [SIZE * (SIZE - 1) // 2])
        self.equal(both(jnp.full(2, RANK))[1], 2 * [SIZE - 1])
        self.equal(mpx.allreduce(jnp.ones(2), comm=MPI.COMM_WORLD.Dup()), 2 * [SIZE])

    def test_freed(self):
        """A new communicator may have the handle of a freed one."""
        for members in (1, 2):
            comm = MPI.COMM_WORLD.Split(RANK // members, RANK)
            self.equal(mpx.allreduce(jnp.ones(2), comm=comm), 2 * [comm.size])
            comm.Free()

    def test_report(self):
        comm = MPI.COMM_WORLD.Dup()
        with self.assertRaisesRegex(mpx.Error, "no call has completed"):
            mpx.report(comm=comm)
        mpx.allreduce_coo([RANK], [1.0], 1000, comm=comm)
        self.assertEqual(mpx.report(comm=comm).nnz_out, SIZE)


if __name__ == "__main__":
    main()
