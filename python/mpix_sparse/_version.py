# SPDX-License-Identifier: BSD-3-Clause
"""The version of this package, which is that of the C library it goes with."""

__version__ = "0.1.0"
