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
