# Shared by the tests that are shell scripts.
# shellcheck shell=sh
# shellcheck disable=SC2034  # failed is for the scripts that include this

failed=0

# complain WORDS...: the test goes on, and fails.
complain() {
    echo "$*"
    failed=1
}

# skip REASON: the test cannot run.
skip() {
    echo "SKIP: $*"
    exit 77
}

# make_yield FOLDER: print the library for LD_PRELOAD with which waiting ranks of MPICH yield (tests/preload/yield.c), built in
# the folder, or nothing. It has no sanitizer, whose library would have to come first.
make_yield() {
    if [ "$SAR_MPI" = mpich ] && [ -z "$SAR_SANITIZE" ]; then
        ${SAR_CC:-cc} -D_GNU_SOURCE -O1 -shared -fPIC -o "$1/libyield.so" "${srcdir:-$(dirname "$0")/../..}/tests/preload/yield.c" \
            -ldl >&2 && echo "$1/libyield.so"
    fi
}
