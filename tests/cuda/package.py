# SPDX-License-Identifier: BSD-3-Clause
"""Test the Python package on device memory: it gives the results of host memory, bit for bit."""

import ctypes
import os
import sys
import unittest

import numpy

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "python"))

from common import draw, main  # noqa: E402

import mpix_sparse  # noqa: E402
from mpix_sparse import _arrays, _dlpack  # noqa: E402

COUNT = 20000
runtime = ctypes.CDLL("libmpix_sparse_cuda.so")  # and CUDA with it
RANK, SIZE = mpix_sparse.rank(), mpix_sparse.size()


def require(error):
    assert error == 0, f"CUDA's error {error}"


class Memory:
    """Device memory, freed with its last reference."""

    def __init__(self, size):
        self.address = ctypes.c_void_p()
        require(runtime.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)))

    def __del__(self):
        runtime.cudaFree(self.address)


class DeviceArray:
    """The part of an array library that the package uses."""

    def __init__(self, shape, dtype, memory=None):
        self.shape, self.dtype = shape, numpy.dtype(dtype)
        self.memory = memory or Memory(max(1, self.nbytes))

    @property
    def nbytes(self):
        return int(numpy.prod(self.shape)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self):
        data = self.memory.address.value, False
        return {"data": data, "shape": self.shape, "typestr": self.dtype.str, "version": 3}

    def __getitem__(self, piece):
        return type(self)((len(range(self.shape[0])[piece]), *self.shape[1:]), self.dtype, self.memory)


class Library(DeviceArray):
    """An array type that numpy.empty_like() creates."""

    def __array_function__(self, function, types, arguments, named):
        return Library(named["shape"], named["dtype"]) if function is numpy.empty_like else NotImplemented


class InStream(Library):
    """An array with a stream in its interface."""

    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__, "stream": self.stream}


class Dlpack:
    """An array that supports only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        address, name = self.array.memory.address.value, self.array.dtype.name
        return _dlpack.export(self.array, address, name, self.array.shape, (_dlpack.CUDA, 0))


def to_device(array, kind=Library):
    made = kind(array.shape, array.dtype)
    require(runtime.cudaMemcpy(made.memory.address, ctypes.c_void_p(array.ctypes.data), made.nbytes, 1))
    return made


def to_host(array):
    look = _arrays.view(array)
    made = _arrays.empty(look.shape, look.type)
    size = ctypes.c_size_t(made.nbytes)
    require(runtime.cudaMemcpy(ctypes.c_void_p(made.ctypes.data), ctypes.c_void_p(look.address), size, 2))
    return made


class Device(unittest.TestCase):
    def expect(self, device, host):
        for found, wanted in zip(device, host):
            self.assertTrue(_arrays.view(found).device)
            numpy.testing.assert_array_equal(to_host(found), wanted)

    def test_topk(self):
        mine = draw(1, RANK).normal(size=COUNT).astype("float32")
        there = to_device(mine)
        threshold = mpix_sparse.topk_threshold(mine, 0.02, sample=1)
        self.assertEqual(mpix_sparse.topk_threshold(there, 0.02, sample=1), threshold)
        for how in {}, {"capacity": 10, "index_dtype": "uint32"}:
            wanted = mpix_sparse.topk_select(mine, threshold, **how)
            found = mpix_sparse.topk_select(there, threshold, **how)
            self.assertIsInstance(found[1], Library)
            self.expect(found, wanted)

    def test_out(self):
        mine = draw(2, RANK).normal(size=COUNT)
        out = to_device(numpy.zeros(500, "int32"), DeviceArray), to_device(numpy.zeros(500), DeviceArray)
        wanted = mpix_sparse.topk_select(mine, 1.5, capacity=500, index_dtype="int32")
        for kind in to_device(mine, DeviceArray), Dlpack(to_device(mine)):
            found = mpix_sparse.topk_select(kind, 1.5, out=out)
            self.assertIs(found[0].memory, out[0].memory)
            self.expect(found, wanted)

    def test_steps(self):
        random = draw(3, RANK)
        host, device = numpy.zeros((2, COUNT), "float32"), [to_device(numpy.zeros(COUNT, "float32"))]
        device.append(to_device(host[1]))
        for step in range(3):
            gradient = random.normal(size=COUNT).astype("float32")
            how = {"seed": step, "masking": step == 1}
            wanted = mpix_sparse.dgc_step(gradient, *host, 0.05, **how)
            found = mpix_sparse.dgc_step(to_device(gradient), *device, 0.05, **how)
            self.expect((*found, *device), (*wanted, *host))
            total = mpix_sparse.allreduce_coo(*wanted, COUNT)
            there = mpix_sparse.allreduce_coo(*found, COUNT)
            self.expect((there.indices, there.values), (total.indices, total.values))

    def test_dense(self):
        mine = numpy.where(draw(4, RANK).random(COUNT) < 0.01, RANK + 1, 0).astype("float32")
        self.expect([mpix_sparse.allreduce(to_device(mine))], [mpix_sparse.allreduce(mine)])

    def test_stream(self):
        """A call waits for the array's own stream if a hint names one."""
        stream = ctypes.c_void_p()
        require(runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
        mpix_sparse.set_info(stream=stream.value)
        for seed in range(8):
            mine = draw(5 + seed, RANK).normal(size=COUNT).astype("float32")
            there = InStream(mine.shape, mine.dtype)
            there.stream = stream.value
            source, size = ctypes.c_void_p(mine.ctypes.data), ctypes.c_size_t(mine.nbytes)
            require(runtime.cudaMemcpyAsync(there.memory.address, source, size, 1, stream))
            self.expect([mpix_sparse.allreduce(there)], [mpix_sparse.allreduce(mine)])
        mpix_sparse.set_info(stream=0)
        require(runtime.cudaStreamDestroy(stream))

    def test_results_export(self):
        indices, values = numpy.array([3, 9]), numpy.array([[1.0, 2.0], [3.0, 4.0]])
        result = mpix_sparse.allreduce_coo(to_device(indices), to_device(values), 10)
        array = result.values
        self.assertEqual(array.__dlpack_device__(), (_dlpack.CUDA, 0))
        look = _arrays.view(Exported(array))
        self.assertEqual((look.shape, look.type, look.device), ((2, 2), "float64", True))
        numpy.testing.assert_array_equal(to_host(look), values * SIZE)
        del array
        with self.assertRaisesRegex(BufferError, "still in use"):
            result.free()
        del look
        result.free()

    def test_wrong(self):
        host = numpy.ones(10, "float32")
        there = to_device(host, DeviceArray)
        with self.assertRaisesRegex(TypeError, "out is needed: DeviceArray does not tell"):
            mpix_sparse.topk_select(there, 1.0)
        with self.assertRaisesRegex(mpix_sparse.Error, "indices is memory of the host"):
            mpix_sparse.topk_select(there, 1.0, out=(numpy.zeros(10, "int64"), host))
        with self.assertRaisesRegex(mpix_sparse.Error, "velocity is memory of the host"):
            mpix_sparse.dgc_step(to_device(host), host, to_device(host), 0.5)


class Exported:
    """Hide all interfaces except DLPack."""

    def __init__(self, array):
        self.__dlpack__ = array.__dlpack__


if __name__ == "__main__":
    main()
