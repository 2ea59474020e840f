# Shared by the tests of the Python package: the environment in which it is found, and the reasons to skip.
# shellcheck shell=sh

# shellcheck source=tests/support/common.sh
. "$top/tests/support/common.sh"
[ -z "$PYTHON_WHY" ] || skip "$PYTHON_WHY"
[ -n "$MPIEXEC" ] || skip "${MPIEXEC_WHY:-MPIEXEC is not set}"
[ -z "$SAR_SANITIZE" ] || skip "a sanitizer's library must be loaded before Python"
PYTHON=${PYTHON:-python3}
LIBMPIX_SPARSE=${SAR_LIBRARY:-$PWD/src/.libs/libmpix_sparse.so}
[ -f "$LIBMPIX_SPARSE" ] || skip "no shared library at $LIBMPIX_SPARSE"
PYTHONPATH=$(cd "$top/python" && pwd)${PYTHONPATH:+:$PYTHONPATH}
# Nothing is written beside the sources; threads of numeric libraries would only get into each other's way.
PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export LIBMPIX_SPARSE PYTHONPATH PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS OPENBLAS_NUM_THREADS
