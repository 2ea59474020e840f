# SPDX-License-Identifier: BSD-3-Clause
"""The exception for errors of the C library and of MPI."""


class Error(RuntimeError):
    """A call of the C library, or of MPI, failed. The text is the one that MPI_Error_string returns.

    Attributes:
        code: the MPI error code.
    """

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.code = code
