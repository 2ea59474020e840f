# SPDX-License-Identifier: BSD-3-Clause
"""Test profile, report and version; the structures match the header."""

import os
import re
import unittest
import unittest.mock

import numpy
from common import main

import mpix_sparse
from mpix_sparse import _inquiry, _library

RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/mpix_sparse.h")
KINDS = {"MPI_Count": "c_long", "int": "c_int", "double": "c_double", "char": "c_char"}


def declared(struct):
    """Read the types and names of a structure's fields from the header."""
    with open(HEADER, encoding="utf-8") as header:
        body = re.search(r"typedef struct \{([^}]*)\} " + struct, header.read()).group(1)
    return re.findall(r"^ *(\w+) +(\w+)(?:\[(\w+)\])?;", body, re.MULTILINE)


class Inquiry(unittest.TestCase):
    def test_structures(self):
        pairs = (("MPIX_Sparse_profile_t", _inquiry.CProfile), ("MPIX_Sparse_report_t", _inquiry.CReport))
        for struct, mirror in pairs:
            wanted = [(name, KINDS[kind]) for kind, name, _ in declared(struct)]
            found = [(name, re.sub("_Array.*", "", kind.__name__)) for name, kind in mirror._fields_]
            self.assertEqual([(name, kind.replace("longlong", "long")) for name, kind in found], wanted)

    def test_profile(self):
        array = numpy.zeros(10000, "float32")
        array[:100] = 1
        array[100 + RANK] = 1
        found = mpix_sparse.profile(array)
        self.assertEqual((found.count, found.ranks, found.sampled), (10000, SIZE, 10000))
        self.assertAlmostEqual(found.density, 0.0101)
        self.assertAlmostEqual(found.density_out, (100 + SIZE) / 10000)
        if SIZE > 1:
            self.assertEqual(list(found.gamma)[-1], SIZE)
            self.assertAlmostEqual(found.gamma[SIZE], (100 + SIZE) / 101)
        self.assertEqual(mpix_sparse.profile(array, row=100).count, 100)

    def test_report(self):
        result = mpix_sparse.allreduce_coo([RANK], numpy.ones(1, "float32"), 1000)
        found = mpix_sparse.report()
        self.assertEqual((found.count, found.ranks, found.nnz_in, found.nnz_out), (1000, SIZE, 1, result.nnz))
        self.assertTrue(found.scheme and found.reason)

    def test_version(self):
        self.assertEqual(".".join(map(str, mpix_sparse.version())), mpix_sparse.__version__)

    def test_library_of_another_version(self):
        major, minor, patch = mpix_sparse.version()
        for other, fits in (
            ((major, minor, patch + 1), True),
            ((major, minor + 1, 0), False),
            ((major + 1, 0, 0), False),
        ):
            with unittest.mock.patch.object(_library, "version", lambda: other):
                if fits:
                    _library._refuse_version()
                else:
                    self.assertRaisesRegex(ImportError, "is of version", _library._refuse_version)


if __name__ == "__main__":
    main()
