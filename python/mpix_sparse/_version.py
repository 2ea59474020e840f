# SPDX-License-Identifier: BSD-3-Clause
"""The version of this package, the same as the C library's."""

__version__ = "0.1.0"
