# SPDX-License-Identifier: BSD-3-Clause
"""Modules with the names of horovod.common that programs import. They need PyTorch."""
