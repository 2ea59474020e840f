# SPDX-License-Identifier: BSD-3-Clause
# The command run of bench/cluster/cluster: starts an MPI program on the hosts, by Open MPI or MPICH, and ends all of its
# processes.
# shellcheck shell=bash
# shellcheck disable=SC2154  # bench/cluster/cluster sets the variables of a cluster

# Defaults of the options.
ranks_per_host=1 mpi=openmpi allreduce='' seconds='' once='' dense_best='' parameters=() variables=() taken=0

# Locks the namespace of the bridge. One program at a time, because messages of another one would disturb its times.
lock_cluster() {
    need_cluster
    [ "$(hosts | wc -l)" -ge "$1" ] || bad_usage "there are $(hosts | wc -l) hosts, not $1"
    exec {lock}<"/run/netns/$switch"
    flock -n "$lock" || fail $TRY_LATER "cluster $prefix is in use"
}

# need_same_mpi PROGRAM LIBRARY: fails if the program is linked with LIBRARY, which belongs to the other MPI. The launcher
# of another MPI would start each rank as a program of one rank.
need_same_mpi() {
    local path
    path=$(command -v "$1") || bad_usage "there is no program $1"
    if ldd "$path" 2>/dev/null | grep -q "$2"; then
        bad_usage "$1 is built for another MPI than $mpi; --mpi tells which"
    fi
}

# The agent is a file, because launchers split the agent's command line at spaces.
write_agent() {
    printf '#!/bin/sh\nexec %q --prefix %q on "$@"\n' "$self" "$prefix" >"$folder/agent"
    chmod +x "$folder/agent"
}

# Rules of Open MPI: one collective, number 2 (allreduce), one size of communicators and two sizes of messages. Small
# messages, such as consistency checks, keep recursive doubling.
write_rules() {
    printf '%s\n' 1 2 1 2 2 '0 3 0 0' "65536 $1 0 0" >"$folder/rules"
}

# address_list HOSTS: the addresses, each with its number of ranks.
address_list() {
    seq -s , -f "$network.%g:$ranks_per_host" "$1"
}

# openmpi_words HOSTS: the launcher's command line. By default Open MPI queues a whole long message (put) before the
# message that lets the peer send, so an exchange of pairs takes twice as long. The kernel's part of the queue would
# grow to megabytes.
openmpi_words() {
    local name
    words=("$launcher" --allow-run-as-root --mca plm_rsh_agent "$folder/agent" --mca plm_rsh_no_tree_spawn 1
        --mca orte_tmpdir_base "$folder" --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0
        --mca btl_tcp_flags send --mca btl_tcp_sndbuf 131072
        --mca pml ob1 --mca mpi_yield_when_idle 1 --bind-to none --host "$(address_list "$1")" -np $(($1 * ranks_per_host)))
    if [ "$ranks_per_host" -eq 1 ]; then
        words+=(--mca btl "tcp,self")
    else
        words+=(--mca btl "tcp,self,vader")
    fi
    if [ -n "$allreduce" ]; then
        write_rules "$allreduce"
        words+=(--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename "$folder/rules")
    fi
    for name in "${variables[@]}"; do
        words+=(-x "$name")
    done
    words+=("${parameters[@]}")
}

mpich_words() {
    local name
    # UCX treats hosts with one kernel as one machine, so shared memory must be off.
    # shellcheck disable=SC2054  # literal commas
    words=("$launcher" -launcher ssh -launcher-exec "$folder/agent" -iface eth0 -hosts "$(address_list "$1")"
        -n $(($1 * ranks_per_host)) -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0)
    for name in "${variables[@]}"; do
        [[ $name != *=* ]] || words+=(-genv "${name%%=*}" "${name#*=}")
    done
}

# start COMMAND...: runs a command on the first host and returns its exit status. The command runs in the background,
# because bash handles signals only while it waits.
start() {
    local status
    on_host 1 "$@" </dev/null {lock}<&- &
    wait $!
    status=$?
    end_processes 2
    return $status
}

# launch HOSTS PROGRAM ARGUMENT...: starts the program by the launcher.
launch() {
    local count=$1 words
    shift
    "${mpi}_words" "$count"
    if [ -n "$seconds" ]; then
        words=(timeout --foreground -k 5 "$seconds" "${words[@]}")
    fi
    start "${words[@]}" "$@"
}

# find_dense HOSTS PROGRAM ARGUMENT...: sets $allreduce to the fastest algorithm of MPI_Allreduce. The least time of
# several calls counts, because a busy machine only makes calls slower.
find_dense() {
    local algorithm best='' least='' taken
    for algorithm in 2 3 4 5 6; do
        allreduce=$algorithm
        launch "$@" -S dense -n 3 -w 1 --format csv --json "$folder/dense.json" >"$folder/dense.csv" 2>"$folder/dense.err" ||
            { cat "$folder/dense.err" >&2; fail $FAILED "cannot time MPI_Allreduce with $2"; }
        taken=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
            NR > 1 && $at["scheme"] == "dense" { sum += $at["min_s"] } END { print sum }' "$folder/dense.csv")
        echo "# MPI_Allreduce, algorithm $algorithm of Open MPI: $taken s" >&2
        if [ -z "$least" ] || awk "BEGIN { exit !($taken < $least) }"; then
            best=$algorithm least=$taken
        fi
    done
    allreduce=$best
}

cleanup() {
    trap '' INT TERM HUP
    end_processes 0
    [ -z "$once" ] || remove
    rm -rf "$folder"
}

# Before MPICH 4.2, some ranks wait in a barrier of the process manager while others still flush connections to them.
need_clean_exit() {
    local version
    version=$($launcher --version | sed -n 's/^ *Version: *//p')
    [ -n "$seconds" ] || printf '4.2\n%s\n' "$version" | sort -CV ||
        fail $CANNOT "MPICH $version may hang in MPI_Finalize over TCP, and 4.2 does not; --timeout ends it"
}

need_launcher() {
    if [ "$mpi" = mpich ]; then
        launcher=mpiexec.hydra
        need $launcher=mpich
        need_clean_exit
        return
    fi
    launcher=mpirun.openmpi
    if ! command -v $launcher >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
        launcher=mpirun
    fi
    need $launcher=openmpi-bin
}

# take_options OPTION...: sets variables, and `taken` to the number of words read.
take_options() {
    local given=$#
    while [[ ${1-} == -* ]]; do
        case $1 in
        -k | --ranks-per-host) ranks_per_host=${2-} ;;
        -x) variables+=("${2-}") ;;
        --mpi) mpi=${2-} ;;
        --mca) parameters+=(--mca "${2-}" "${3-}") ;;
        --allreduce) allreduce=${2-} ;;
        --timeout) seconds=${2-} ;;
        --once) once=${2-} ;;
        --dense-best) dense_best=yes ;;
        *) bad_usage "run has no option $1" ;;
        esac
        case $1 in
        --dense-best) shift ;;
        --mca) shift 3 ;;
        *) shift 2 ;;
        esac || bad_usage "an option lacks its value"
    done
    taken=$((given - $#))
}

check_options() {
    is_number "$ranks_per_host" || bad_usage "--ranks-per-host is a number, not '$ranks_per_host'"
    [[ $mpi =~ ^(openmpi|mpich)$ ]] || bad_usage "--mpi is openmpi or mpich, not '$mpi'"
    [ -z "$allreduce" ] || [[ $allreduce =~ ^[1-6]$ ]] || bad_usage "--allreduce is 1 to 6, not '$allreduce'"
    [ -z "$seconds" ] || is_number "$seconds" || bad_usage "--timeout is in seconds, not '$seconds'"
    if [ "$mpi" = mpich ] && [ -n "$allreduce$dense_best${parameters[*]}" ]; then
        bad_usage "--mca, --allreduce and --dense-best are for Open MPI"
    fi
    [ $# -ge 2 ] || bad_usage "run takes N PROGRAM"
    is_number "$1" || bad_usage "N is a number of hosts, not '$1'"
}

run() {
    mapfile -t variables < <(compgen -e MPIX_SPARSE_)
    take_options "$@"
    shift $taken
    check_options "$@"
    need_all
    need_launcher
    case $mpi in
    openmpi) need_same_mpi "$2" libmpich ;;
    mpich) need_same_mpi "$2" libmpi.so.40 ;;
    esac
    if [ -n "$once" ]; then
        # shellcheck disable=SC2086  # one word or two
        make_hosts "$1" ${once/,/ }
    fi
    lock_cluster "$1"
    folder=$(mktemp -d) || fail $FAILED "no folder for temporary files"
    trap cleanup EXIT
    write_agent
    [ -z "$dense_best" ] || find_dense "$@"
    launch "$@"
}
