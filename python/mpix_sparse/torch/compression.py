# SPDX-License-Identifier: BSD-3-Clause
"""The names of horovod.torch.compression. Compressors of this package are objects, not classes."""

from ._compression import Compression, Compressor

__all__ = ["Compression", "Compressor", "FP16Compressor", "NoneCompressor"]

NoneCompressor = Compression.none
FP16Compressor = Compression.fp16
