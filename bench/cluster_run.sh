# SPDX-License-Identifier: BSD-3-Clause
# The command run of bench/cluster: start an MPI program on the hosts, by Open MPI or MPICH, and end all of it.
# shellcheck shell=bash
# shellcheck disable=SC2154  # names, and what else there is of a cluster, are in bench/cluster

# Its options, as they are unless given.
ranks_per_host=1 mpi=openmpi allreduce='' seconds='' once='' dense_best='' parameters=() variables=() taken=0

# Only one program at a time, since another one's messages would be in its way. It is the bridge that is locked.
take_cluster() {
    need_cluster
    [ "$(hosts | wc -l)" -ge "$1" ] || bad_usage "there are $(hosts | wc -l) hosts, not $1"
    exec {lock}<"/run/netns/$switch"
    flock -n "$lock" || fail $TRY_LATER "cluster $prefix is in use"
}

# need_same_mpi PROGRAM LIBRARY: the program is not linked with this one, another MPI's. By a foreign launcher every
# rank would be started alone.
need_same_mpi() {
    local path
    path=$(command -v "$1") || bad_usage "there is no program $1"
    if ldd "$path" 2>/dev/null | grep -q "$2"; then
        bad_usage "$1 is built for another MPI than $mpi; --mpi tells which"
    fi
}

# The agent is a file, since launchers cut what they are told at its spaces.
write_agent() {
    printf '#!/bin/sh\nexec %q --prefix %q on "$@"\n' "$self" "$prefix" >"$folder/agent"
    chmod +x "$folder/agent"
}

# Rules of Open MPI: one collective, 2 (allreduce), one size of communicators and two of messages. Small ones, such as
# those by which ranks agree, keep recursive doubling.
write_rules() {
    printf '%s\n' 1 2 1 2 2 '0 3 0 0' "65536 $1 0 0" >"$folder/rules"
}

# address_list HOSTS: with the ranks of each.
address_list() {
    seq -s , -f "$network.%g:$ranks_per_host" "$1"
}

# The launcher's words: openmpi_words HOSTS. By itself Open MPI puts all of a long message into the queue of a
# connection (put), before what lets the other side send: an exchange of pairs takes twice as long then. The
# kernel's part of that queue would grow to megabytes.
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
    # UCX takes hosts of one kernel for one machine, so it must not use shared memory.
    # shellcheck disable=SC2054  # commas are meant
    words=("$launcher" -launcher ssh -launcher-exec "$folder/agent" -iface eth0 -hosts "$(address_list "$1")"
        -n $(($1 * ranks_per_host)) -genv UCX_TLS tcp,self -genv UCX_NET_DEVICES eth0)
    for name in "${variables[@]}"; do
        [[ $name != *=* ]] || words+=(-genv "${name%%=*}" "${name#*=}")
    done
}

# start COMMAND...: on the first host, with its exit status. In the background, for bash hears signals only then.
start() {
    local status
    on_host 1 "$@" </dev/null {lock}<&- &
    wait $!
    status=$?
    sweep 2
    return $status
}

# launch HOSTS PROGRAM ARGUMENT...
launch() {
    local count=$1 words
    shift
    "${mpi}_words" "$count"
    if [ -n "$seconds" ]; then
        words=(timeout --foreground -k 5 "$seconds" "${words[@]}")
    fi
    start "${words[@]}" "$@"
}

# find_dense HOSTS PROGRAM ARGUMENT...: the algorithm by which MPI_Allreduce takes least time; the least of several
# calls, since a busy machine only makes them slower.
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

leave() {
    trap '' INT TERM HUP
    sweep 0
    [ -z "$once" ] || remove
    rm -rf "$folder"
}

# Before 4.2 some ranks wait in a barrier of the process manager while others still flush their connections to them.
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

# take_options OPTION...: into variables; counts the words in `taken`.
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
    take_cluster "$1"
    folder=$(mktemp -d) || fail $FAILED "no folder for temporary files"
    trap leave EXIT
    write_agent
    [ -z "$dense_best" ] || find_dense "$@"
    launch "$@"
}
