# Shared by the tests that start programs: a temporary folder, and functions that run program text.
# shellcheck shell=sh

folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
SAR_YIELD=$(make_yield "$folder")
export SAR_YIELD
# shellcheck disable=SC2034  # for the scripts that include this
failed=0

# launch RANKS PROGRAM: run program text; writes the output to $folder/out, returns the launcher's status.
launch() {
    SAR_TEST_NP=$1 SAR_TEST_LIMITS='' SAR_TEST_TIMEOUT=60 sh "$top/tests/run-mpi" "$PYTHON" -c "$2" \
        >"$folder/out" 2>&1
}

# complain MESSAGE: print it with the output of the last run.
complain() {
    echo "$*:"
    tail -n 20 "$folder/out"
    # shellcheck disable=SC2034
    failed=1
}

# ends RANKS PROGRAM: check that it succeeds.
ends() {
    launch "$1" "$2" || complain "on $1 ranks this ended with status $?: $2"
}

# fails RANKS MESSAGE PROGRAM: check that it fails by itself, and prints the message.
fails() {
    launch "$1" "$3"
    status=$?
    case $status in
    0 | 124 | 137) complain "on $1 ranks this ended with status $status: $3" ;;
    esac
    grep -q "$2" "$folder/out" || complain "on $1 ranks no '$2' from: $3"
}
