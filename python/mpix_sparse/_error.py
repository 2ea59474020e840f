# SPDX-License-Identifier: BSD-3-Clause
"""The exception for errors of the C library and of MPI."""

import re

# Functions of the C library whose names in Python are not those without MPIX_Sparse_.
_FUNCTIONS = {
    "allreduce_init": "Plan",
    "allreduce_coo_init": "CooPlan",
    "reduce_scatter_coo_init": "ReduceScatterCooPlan",
    "allgather_coo_init": "AllgatherCooPlan",
    "plan_start": "start of a plan",
    "plan_start_coo": "start of a plan",
    "comm_set_info": "set_info",
    "profile": "profile or barrier",
}
# Sentences about arguments that Python's functions do not have, or name otherwise.
_ARGUMENTS = {
    "argument indextype is": "the type of argument indices is",
    "argument old_version": "argument old",
    "argument new_version": "argument new",
    "argument plan is null": "the plan has been freed",
    "argument sendbuf differs": "argument out differs",
    "a buffer on rank": "another array on rank",
    "MPI_IN_PLACE on rank": "the array itself on rank",
}
_FUNCTION = re.compile(r"\bMPIX_(S|Is)parse_([a-z_]+)")
_OP = re.compile(r"\bMPI_(SUM|PROD|MAX|MIN|LAND|LOR|LXOR|BAND|BOR|BXOR)\b")


def in_python(sentence: str) -> str:
    """A sentence of the C library with the names of functions, arguments and ops that Python has."""

    def function(found: "re.Match[str]") -> str:
        name = found.group(2)
        return "i" + name if found.group(1) == "Is" else _FUNCTIONS.get(name, name)

    for theirs, ours in _ARGUMENTS.items():
        sentence = sentence.replace(theirs, ours)
    return _OP.sub(lambda found: found.group(1).lower(), _FUNCTION.sub(function, sentence))


class Error(RuntimeError):
    """A call of the C library, or of MPI, failed. The text is that of MPI_Error_string, with Python's names
    of functions and ops.

    Attributes:
        code: the MPI error code.
    """

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(in_python(sentence) if code else sentence)
        self.code = code
