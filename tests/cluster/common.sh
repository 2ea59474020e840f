# Shared by the tests of bench/cluster.
# shellcheck shell=bash

source=${srcdir:-$(dirname "$0")/../..}
# shellcheck source=tests/support/common.sh
. "$source/tests/support/common.sh"
folder=$(mktemp -d) || exit 99
# A cluster of one's own: other tests may have theirs.
prefix=t$$

cluster() {
    "$source/bench/cluster/cluster" --prefix "$prefix" "$@"
}

# expect STATUS ARGUMENT...: of bench/cluster/cluster; its output goes to $folder/out, its errors to $folder/err.
expect() {
    local status=$1 got
    shift
    cluster "$@" >"$folder/out" 2>"$folder/err" </dev/null
    got=$?
    [ $got -eq "$status" ] || {
        complain "exit status $got instead of $status: $*"
        tail -n 5 "$folder/out" "$folder/err" | cut -c 1-300
    }
}

# says FILE WORDS: of the last command's output or errors.
says() {
    grep -q -e "$2" "$folder/$1" || complain "no word on '$2': $(head -n 3 "$folder/$1")"
}

# nothing_left: no host of ours, and no process on one.
nothing_left() {
    local left
    left=$(find /run/netns -name "$prefix-*" 2>/dev/null)
    [ -z "$left" ] || complain "left behind: $left"
}
