# Shared by the tests of the benchmark.
# shellcheck shell=sh
#
#   SAR_PERF          the program                      [bench/mpix_sparse_perf]
#   SAR_TEST_LOCK             file to lock, as in tests/run-mpi
#   MPIEXEC, MPIEXEC_WHY, SAR_MPI: found by configure

perf=${SAR_PERF:-bench/mpix_sparse_perf}
manual=${srcdir:-$(dirname "$0")/../..}/doc/man

# shellcheck source=tests/support/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/support/common.sh"
[ -n "$MPIEXEC" ] || skip "${MPIEXEC_WHY:-MPIEXEC is not set}"
[ -x "$perf" ] || skip "no $perf"

folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT

launch=$MPIEXEC
if [ "$SAR_MPI" = openmpi ]; then
    launch="$launch --oversubscribe"
    if [ "$(id -u)" -eq 0 ]; then
        launch="$launch --allow-run-as-root"
    fi
fi
# More ranks than processors: without this each wait takes time slices.
yield=$(make_yield "$folder")
launch="${yield:+env LD_PRELOAD=$yield }timeout -k 10 300 $launch"
if [ -n "$SAR_TEST_LOCK" ] && command -v flock >/dev/null; then
    launch="flock $SAR_TEST_LOCK $launch"
fi

# expect STATUS RANKS OPTION...: run the benchmark; its output goes to $folder/out, its errors to $folder/err.
expect() {
    status=$1
    ranks=$2
    shift 2
    # shellcheck disable=SC2086  # a list of words
    $launch -n "$ranks" "$perf" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ $got -eq "$status" ] || {
        complain "exit status $got instead of $status on $ranks ranks: $*"
        tail -n 3 "$folder/out" "$folder/err" | cut -c 1-300
    }
}

# refuse WORD OPTION...: the sentence on the options must hold the word.
refuse() {
    word=$1
    shift
    expect 2 2 "$@"
    grep -q -e "$word" "$folder/err" || complain "no word on $word: $*"
}

# keys_of FILE: the keys of the first object, one a line.
keys_of() {
    head -n 1 "$1" | grep -o '"[a-z0-9_]*":' | tr -d '":'
}

# explained FILE: the manual pages tell what each key of the first object is.
explained() {
    for key in $(keys_of "$1"); do
        grep -qE "^\\.It Cm .*$key" "$manual/mpix_sparse_perf_output.5" "$manual/mpix_sparse_studies.7" ||
            complain "no manual page names $key"
    done
}

# holds CONDITION: each line of the CSV in $folder/out, a study's, makes an awk expression true in which v["KEY"] is a value.
holds() {
    [ "$(wc -l <"$folder/out")" -gt 1 ] || complain "no line to hold: $1"
    awk -F, "NR == 1 { for (i = 1; i <= NF; i++) key[i] = \$i; next }
        { for (i = 1; i <= NF; i++) v[key[i]] = \$i }
        !($1) { print; failed = 1 }
        END { exit failed }" "$folder/out" || complain "does not hold: $1"
}
