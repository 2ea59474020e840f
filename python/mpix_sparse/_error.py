# SPDX-License-Identifier: BSD-3-Clause
"""What is raised when the C library refuses a call."""


class Error(RuntimeError):
    """A call of the C library, or of MPI, failed; the text is the library's own sentence.

    Attributes:
        code: the MPI error code.
    """

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.code = code
