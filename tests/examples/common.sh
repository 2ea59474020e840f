# Shared by the tests of the examples, which compare a program's output with that in its head comment.
# shellcheck shell=sh
#
#   SAR_BUILD      the build folder       [.]
#   SAR_TEST_LOCK, MPIEXEC, MPIEXEC_WHY, SAR_MPI: as in tests/run-mpi

top=${srcdir:-$(dirname "$0")/../..}
# shellcheck disable=SC2034  # for the scripts that include this
build=${SAR_BUILD:-.}
# shellcheck source=tests/support/common.sh
. "$top/tests/support/common.sh"
[ -n "$MPIEXEC" ] || skip "${MPIEXEC_WHY:-MPIEXEC is not set}"

folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
SAR_YIELD=$(make_yield "$folder")
export SAR_YIELD

# launch RANKS PROGRAM...: run a program; its output goes to $folder/out, its errors to $folder/err.
launch() {
    ranks=$1
    shift
    SAR_TEST_NP=$ranks SAR_TEST_LIMITS='' sh "$top/tests/run-mpi" "$@" >"$folder/all" 2>"$folder/err"
    status=$?
    grep -v '^# ' "$folder/all" >"$folder/out"
    return $status
}

# expected FILE: print the lines below "Output" in the head comment of an example.
expected() {
    awk '
        { line = $0; sub(/^( \*|!) ?/, "", line) }
        line ~ /^Output/ { found = 1; next }
        found && line ~ /^    / { print substr(line, 5); next }
        found && line != "" { exit }' "$1"
}

# matches WANTED FOUND: the lines of two files are equal; ... in a wanted line is any text.
matches() {
    awk -v wanted="$1" '
        function pattern(line) {
            gsub(/[][\\.^$*+?(){}|]/, "\\\\&", line)
            gsub(/\\\.\\\.\\\./, ".*", line)
            return "^" line "$"
        }
        { if ((getline line <wanted) <= 0 || $0 !~ pattern(line)) { print "line " NR ": " $0; failed = 1; exit } }
        END { exit failed || (getline line <wanted) > 0 }' "$2"
}

# compare NAME: what the last program wrote is what $folder/wanted has.
compare() {
    [ -s "$folder/wanted" ] || complain "$1: its head comment has no output"
    matches "$folder/wanted" "$folder/out" || {
        complain "$1: not the output of its head comment:"
        cat "$folder/out"
        tail -n 5 "$folder/err"
    }
}

# try_example SOURCE PROGRAM...: run an example on 2 ranks, and compare.
try_example() {
    source=$1
    shift
    expected "$top/$source" >"$folder/wanted"
    launch 2 "$@" || complain "$source: exit status $?"
    compare "$source"
}
