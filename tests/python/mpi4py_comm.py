# SPDX-License-Identifier: BSD-3-Clause
"""Test communicators of mpi4py; one built for another MPI is refused with a message."""

import subprocess
import sys
import unittest

from common import main, need, skip_file

need("mpi4py", "python3-mpi4py")
try:
    import mpix_sparse
except ImportError as reason:
    skip_file(f"libmpix_sparse cannot be loaded: {reason}")

import mpi4py  # noqa: E402

mpi4py.rc.initialize = False
from mpi4py import MPI  # noqa: E402

import numpy  # noqa: E402

from mpix_sparse import _library, _mpi  # noqa: E402

try:
    _library.refuse_foreign_mpi4py()
except ImportError as refusal:
    foreign = str(refusal)
else:
    foreign = ""


class Foreign(unittest.TestCase):
    """mpi4py is built for another MPI than the C library."""

    def setUp(self):
        if not foreign:
            self.skipTest("mpi4py is built for the same MPI")

    def test_sentence(self):
        self.assertRegex(foreign, "mpi4py is built for .*, and libmpix_sparse is built for .*; use an mpi4py")

    def test_communicator(self):
        with self.assertRaisesRegex(ImportError, "two MPIs in one process"):
            mpix_sparse.allreduce(numpy.ones(3), comm=MPI.COMM_SELF)

    def test_import(self):
        text = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; import mpix_sparse"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: two MPIs in one process", done.stderr)


class Comm(unittest.TestCase):
    def setUp(self):
        if foreign:
            self.skipTest(foreign)

    def test_world_and_split(self):
        world = MPI.COMM_WORLD
        self.assertEqual((mpix_sparse.rank(world), mpix_sparse.size(world)), (world.rank, world.size))
        half = world.Split(world.rank % 2)
        out = mpix_sparse.allreduce(numpy.ones(30000), comm=half)
        self.assertTrue((out == half.size).all())
        self.assertEqual(mpix_sparse.size(half), half.size)
        result = mpix_sparse.iallreduce_coo([world.rank], [1.0], 100, comm=half).wait()
        self.assertEqual(result.nnz, half.size)
        half.Free()

    def test_check_of_arguments(self):
        """All calls are checked, unless the user has set the hint `forward`. Handles are reused."""
        for hint, found in (("", "0"), ("9", "9"), ("", "0")):
            twin = MPI.COMM_WORLD.Dup()
            if hint:  # as a program in C does
                with _mpi.Info({"forward": hint}) as info:
                    _mpi.check(_library.library.MPIX_Sparse_comm_set_info(_mpi.communicator(twin), info))
            mpix_sparse.allreduce(numpy.ones(3), comm=twin)
            self.assertEqual(mpix_sparse.get_info(twin)["forward"], found)
            twin.Free()
            twin = MPI.COMM_WORLD.Dup()
            mpix_sparse.set_info(twin, mpix_sparse_forward=63)
            mpix_sparse.allreduce(numpy.ones(3), comm=twin)
            self.assertEqual(mpix_sparse.get_info(twin)["forward"], "63")
            twin.Free()

    def test_mismatch(self):
        twin = MPI.COMM_WORLD.Dup()
        if twin.size > 1:
            for mine in (3 + (twin.rank == 0), 500 + 100 * (twin.rank == 0)):
                with self.assertRaisesRegex(mpix_sparse.Error, "count differs between ranks"):
                    mpix_sparse.allreduce(numpy.ones(mine), comm=twin)
        twin.Free()

    def test_errors(self):
        twin = MPI.COMM_WORLD.Dup()
        with self.assertRaisesRegex(mpix_sparse.Error, "count"):
            mpix_sparse.allreduce_coo([1], [1.0], -1, comm=twin)
        twin.Free()


if __name__ == "__main__":
    if foreign:
        unittest.main()
    MPI.Init_thread()
    main()
    mpix_sparse.finalize()
    assert not MPI.Is_finalized(), "MPI is ended by whom it was begun by"
    MPI.Finalize()
