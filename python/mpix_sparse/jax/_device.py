# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of XLA in device memory of CUDA: streams and copies, by functions of CUDA's driver. XLA calls with
its context current."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Sequence

import numpy

from .. import Error


class Driver:
    """Functions of CUDA's driver.

    Args:
        library: the driver, opened by ctypes.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def _check(self, function: str, code: int) -> None:
        if code != 0:
            raise Error(f"{function} of CUDA's driver fails with code {code}")

    def synchronize(self, stream: int) -> None:
        """Wait for the work queued on a stream."""
        self._check("cuStreamSynchronize", self._library.cuStreamSynchronize(ctypes.c_void_p(stream)))

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes between addresses on the host or on devices."""
        if size > 0:
            addresses = ctypes.c_uint64(target), ctypes.c_uint64(source)
            self._check("cuMemcpy", self._library.cuMemcpy(*addresses, ctypes.c_size_t(size)))


@functools.lru_cache(maxsize=None)
def driver() -> Driver:
    """The driver of this process.

    Raises:
        Error: there is none.
    """
    try:
        return Driver(ctypes.CDLL("libcuda.so.1"))
    except OSError as reason:
        raise Error(f"CUDA's driver cannot be opened: {reason}") from reason


def to_host(addresses: Sequence[int], sizes: Sequence[int]) -> list[numpy.ndarray]:
    """Copies of device arrays, as bytes in host memory."""
    copies = [numpy.empty(size, numpy.uint8) for size in sizes]
    for copy, address, size in zip(copies, addresses, sizes):
        driver().copy(copy.ctypes.data, address, size)
    return copies


def to_device(addresses: Sequence[int], copies: Sequence[numpy.ndarray]) -> None:
    """Write bytes of host memory to device arrays."""
    for copy, address in zip(copies, addresses):
        driver().copy(address, copy.ctypes.data, copy.nbytes)
