# SPDX-License-Identifier: BSD-3-Clause
"""Test what XLA calls for arrays on a device of CUDA, without a device: a call frame made here, a driver
whose device memory is the host's, and the order in which the stream is waited for and memory is copied."""

import ctypes
import os
import unittest
import unittest.mock

import numpy
from common import main, need, skip_file

os.environ["JAX_PLATFORMS"] = "cpu"
jax = need("jax", "none; pip install jax")
need("jax.ffi", "none; pip install 'jax>=0.5'")

import jax.export  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import mpix_sparse.jax as mpx  # noqa: E402
from mpix_sparse.jax import _calls, _device, _ffi  # noqa: E402

RANK, SIZE = mpx.rank(), mpx.size()
if SIZE > 3:
    skip_file("XLA compiles on every rank")
STREAM, TOKEN = 0x123, 4


class Memory:
    """The driver's functions on the host's memory."""

    def __init__(self, broken=False):
        self.broken, self.calls = broken, []

    def cuStreamSynchronize(self, stream):
        self.calls.append(("wait", stream.value))
        return 700 if self.broken else 0

    def cuMemcpy(self, target, source, size):
        self.calls.append(("copy", size.value))
        ctypes.memmove(target.value, source.value, size.value)
        return 0


class Frame:
    """A call frame of XLA.

    Attributes:
        error: the text of the error that the handler made; empty if it made none.
    """

    def __init__(self, call, operands, results):
        self.error, self._kept = "", [operands, results]
        text = ctypes.create_string_buffer(call.text().encode())
        span = _ffi._Span(ctypes.addressof(text), len(text) - 1)
        types, spans = (ctypes.c_int * 1)(_ffi.ATTRIBUTE_STRING), (ctypes.POINTER(_ffi._Span) * 1)()
        spans[0] = ctypes.pointer(span)
        attributes = _ffi._Attributes(ctypes.sizeof(_ffi._Attributes), None, 1, types, None, spans)
        api = _ffi._Api(ctypes.sizeof(_ffi._Api))
        api.error_create = type(api.error_create)(self._create_error)
        api.stream_get = type(api.stream_get)(self._get_stream)
        frame = _ffi._Frame(ctypes.sizeof(_ffi._Frame), None, ctypes.pointer(api))
        frame.stage, frame.attrs = _ffi.STAGE_EXECUTE, attributes
        frame.args, frame.rets = self._buffers(operands), self._buffers(results)
        self._kept += [text, span, types, spans, api]
        self.frame = frame

    def _buffers(self, arrays):
        pointers = (ctypes.POINTER(_ffi._Buffer) * len(arrays))()
        for i, array in enumerate(arrays):
            buffer = _ffi._Buffer(ctypes.sizeof(_ffi._Buffer), None, 0, array.ctypes.data)
            self._kept.append(buffer)
            pointers[i] = ctypes.pointer(buffer)
        self._kept.append(pointers)
        return _ffi._Buffers(ctypes.sizeof(_ffi._Buffers), None, len(arrays), None, pointers)

    def _create_error(self, args):
        self.error = args.contents.message.decode()
        return 1

    def _get_stream(self, args):
        args.contents.stream = STREAM
        return None

    def run(self, memory):
        handler = _ffi._handler(_calls.run, on_device=True)
        with unittest.mock.patch.object(_device, "driver", lambda: _device.Driver(memory)):
            return handler(ctypes.addressof(self.frame))


class Device(unittest.TestCase):
    def setUp(self):
        mpx.allreduce(jnp.ones(1))  # the first World
        jax.effects_barrier()

    def test_dense(self):
        source, target = numpy.arange(6, dtype="float32") + RANK, numpy.zeros(6, "float32")
        token, after = numpy.full(1, 7, "float32"), numpy.zeros(1, "float32")
        call = _calls.Call("allreduce", "sum", 0, "float32", (2, 3), has_token=True)
        none, memory = numpy.zeros(1, "float32"), Memory()
        frame = Frame(call, [source, token, none], [target, after, none])
        self.assertFalse(frame.run(memory))
        self.assertEqual(frame.error, "")
        numpy.testing.assert_array_equal(target, SIZE * numpy.arange(6) + SIZE * (SIZE - 1) // 2)
        self.assertEqual(after.tolist(), [7])
        self.assertEqual(memory.calls, [("wait", STREAM), ("copy", TOKEN)])

    def test_coordinates(self):
        count, capacity = 1000, SIZE + 3
        indices = numpy.array([7, 100 + RANK, count], "int32")  # the last one is padding
        values = numpy.array([1, 2, 9], "float32")
        results = [
            numpy.full(capacity, -1, "int32"),
            numpy.full(capacity, -1, "float32"),
            numpy.zeros(1, "int32"),
        ]
        call = _calls.Call("allreduce_coo", "sum", 0, "float32", (), False, "int32", 3, count, capacity)
        none, memory = numpy.zeros(1, "float32"), Memory()
        frame = Frame(call, [indices, values, none], [*results, none])
        self.assertFalse(frame.run(memory))
        self.assertEqual(frame.error, "")
        found = SIZE + 1
        self.assertEqual(results[2].tolist(), [found])
        self.assertEqual(results[0].tolist(), [7, *range(100, 100 + SIZE), *[count] * (capacity - found)])
        self.assertEqual(results[1].tolist(), [SIZE, *[2] * SIZE, *[0] * (capacity - found)])
        copies = [("copy", 12)] * 2 + [("copy", 4 * capacity)] * 2 + [("copy", 4)]
        self.assertEqual(memory.calls, [("wait", STREAM), *copies])

    def test_broken(self):
        """A stream that fails on one rank is an error on all ranks."""
        broken = RANK == SIZE - 1
        source, target = numpy.ones(4, "float32"), numpy.zeros(4, "float32")
        call = _calls.Call("allreduce", "sum", 0, "float32", (4,))
        none = numpy.zeros(1, "float32")
        frame = Frame(call, [source, none], [target, none])
        self.assertTrue(frame.run(Memory(broken)))
        expected = "cuStreamSynchronize .* code 700" if broken else "another rank cannot read its arrays"
        self.assertRegex(frame.error, expected)
        self.assertEqual(target.tolist(), [0] * 4)

    def test_lowering(self):
        check = jax.export.DisabledSafetyCheck.custom_call(_ffi.TARGET)
        how = {"platforms": ["cuda"], "disabled_checks": [check]}
        exported = jax.export.export(jax.jit(lambda x: mpx.allreduce(x)), **how)(jnp.ones(3))
        self.assertIn(_ffi.TARGET, exported.mlir_module())


if __name__ == "__main__":
    main()
