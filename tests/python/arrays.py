# SPDX-License-Identifier: BSD-3-Clause
"""Test array arguments: buffers, DLPack, __cuda_array_interface__; and handles of MPI constants."""

import array
import ctypes
import unittest

import numpy
from common import main

import mpix_sparse
from mpix_sparse import _arrays, _dlpack, _mpi, _types
from mpix_sparse._library import library

SIZE = mpix_sparse.size()
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"


class OnlyDlpack:
    """An array that supports only DLPack."""

    def __init__(self, inside):
        self.inside = inside

    def __dlpack__(self, stream=None):
        return self.inside.__dlpack__()


class Exporting:
    """An array that the package exports."""

    def __init__(self, inside):
        self.inside = inside

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, stream=None):
        data, device = self.inside, self.__dlpack_device__()
        return _dlpack.export(data, data.ctypes.data, data.dtype.name, data.shape, device)


class OnDevice:
    """An array that claims to be on a device."""

    def __init__(self, address, shape, strides=None):
        interface = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": "<f4",
            "version": 3,
        }
        self.__cuda_array_interface__ = interface


class Arrays(unittest.TestCase):
    def test_buffers(self):
        for source in (
            array.array("d", [1, 2, 3]),
            memoryview(array.array("d", [1, 2, 3])),
            [1.0, 2, 3],
            (1.0, 2, 3),
        ):
            numpy.testing.assert_array_equal(mpix_sparse.allreduce(source), [SIZE, 2 * SIZE, 3 * SIZE])
        out = array.array("d", [0, 0, 0])
        mpix_sparse.allreduce(array.array("d", [1, 2, 3]), out=out)
        self.assertEqual(list(out), [SIZE, 2 * SIZE, 3 * SIZE])
        bytes_in, bytes_out = bytes([1, 2]), bytearray(2)
        mpix_sparse.allreduce(bytes_in, out=bytes_out)
        self.assertEqual(list(bytes_out), [SIZE, 2 * SIZE])
        with self.assertRaisesRegex(ValueError, "read-only"):
            mpix_sparse.allreduce(bytes_in, out=bytes_in)

    def test_dlpack(self):
        for name in TYPES.split():
            if name == "bool":
                continue
            data = numpy.arange(24).reshape(2, 3, 4).astype(name)
            for inside in (data, data[:, 1:], data[::-1], data.T, data[:1], data[:0]):
                look = _arrays.view(OnlyDlpack(inside))
                self.assertEqual((look.type, look.shape), (name, inside.shape))
                self.assertEqual(look.contiguous, inside.flags.c_contiguous)
                if inside.size:
                    self.assertEqual(look.address, inside.ctypes.data)
        source, out = numpy.arange(5.0), numpy.zeros(5)
        mpix_sparse.allreduce(OnlyDlpack(source), out=OnlyDlpack(out))
        numpy.testing.assert_array_equal(out, source * SIZE)

    def test_dlpack_export(self):
        """Test device results in memory that NumPy can read."""
        for name in "float32 int64 uint8 complex128".split():
            data = numpy.arange(6).reshape(2, 3).astype(name)
            found = numpy.from_dlpack(Exporting(data))
            numpy.testing.assert_array_equal(found, data)
            self.assertTrue(numpy.shares_memory(found, data))
            del found
            Exporting(data).__dlpack__()
            self.assertEqual(len(_dlpack._exported), 0)

    def test_device(self):
        look = _arrays.view(OnDevice(4096, (2, 3)))
        self.assertEqual((look.address, look.type, look.size, look.device), (4096, "float32", 6, True))
        self.assertEqual(look.pointer.value, 4096)
        self.assertTrue(_arrays.view(OnDevice(4096, (2, 3), (12, 4))).contiguous)
        apart = _arrays.view(OnDevice(4096, (2, 3), (24, 4)))
        self.assertEqual(apart.pointer.value, ctypes.c_void_p(-13).value)
        with self.assertRaisesRegex(TypeError, "out is needed"):
            mpix_sparse.allreduce(OnDevice(4096, (2, 3)))

    def test_types_are_those_of_mpi(self):
        text, length, size = ctypes.create_string_buffer(1024), ctypes.c_int(), ctypes.c_int()
        for name, (mpi_name, item_size) in _types._TYPES.items():
            handle = _types.datatype(name)
            _mpi.check(library.MPI_Type_get_name(handle, text, ctypes.byref(length)))
            _mpi.check(library.MPI_Type_size(handle, ctypes.byref(size)))
            found = text.value.decode().replace("MPI_C_COMPLEX", "MPI_C_FLOAT_COMPLEX")
            self.assertEqual((found, size.value), (f"MPI_{mpi_name}", item_size))

    def test_rank_and_size(self):
        self.assertEqual(mpix_sparse.allreduce(numpy.array([1]))[0], SIZE)
        self.assertLess(mpix_sparse.rank(), SIZE)
        self.assertTrue(mpix_sparse.is_initialized())


if __name__ == "__main__":
    main()
