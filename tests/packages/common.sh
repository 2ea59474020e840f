# Shared by the tests of packages: a temporary folder, and functions that run commands.
# shellcheck shell=sh
# shellcheck disable=SC2034  # version is for the scripts that include this

top=$(cd "${srcdir:-$(dirname "$0")/../..}" && pwd)
# shellcheck source=tests/support/common.sh
. "$top/tests/support/common.sh"
folder=$(mktemp -d) || exit 99
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
version=$(sed -n 's/^AC_INIT(\[mpix-sparse\], \[\([0-9.]*\)\].*/\1/p' "$top/configure.ac")

# run COMMAND...: its output is in $folder/out; a failure is the test's, and prints the end of it.
run() {
    "$@" >"$folder/out" 2>&1 && return
    complain "this has failed: $*"
    tail -n 30 "$folder/out"
    return 1
}

# says PATTERN: the last output has it.
says() {
    grep -qE "$1" "$folder/out" && return
    complain "no '$1' in:"
    tail -n 30 "$folder/out"
}

# ranks MPI NUMBER COMMAND...: run a command on ranks of mpich or openmpi.
ranks() {
    mpi=$1 number=$2
    shift 2
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 timeout -k 5 60 "mpiexec.$mpi" -n "$number" "$@"
}
