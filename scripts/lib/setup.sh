# Shared by scripts/check, scripts/demo and .ci/run: packages, configure, build, and the tests' totals.
# Wants $top, the folder of configure.ac. Sets $build, the folder that scripts/check and scripts/demo build in: $SAR_BUILD, or build/.
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154  # the lists are for the caller, and top comes from it

build=${SAR_BUILD:-$top/build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac

base_packages="gcc libc6-dev make pkg-config libhwloc-dev libjansson-dev libstreamvbyte-dev"
tree_packages="autoconf automake libtool"
mpich_packages="mpich libmpich-dev"
openmpi_packages="openmpi-bin libopenmpi-dev"
cluster_packages="hostname iproute2 util-linux"
python_packages="python3-numpy python3-scipy python3-torch python3-mpi4py python3-pip python3-setuptools python3-wheel"
lint_packages="mandoc universal-ctags shellcheck black flake8"
test_packages="gfortran libcmocka-dev $python_packages $lint_packages"
site_packages="python3-venv doxygen chromium"
package_packages="cmake debhelper dh-python dpkg-dev lintian python3-jinja2 python3-venv python3-yaml"
optional_packages="clang-format-14"

heading() {
    printf '\n== %s\n' "$*"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif ! command -v sudo >/dev/null; then
        echo "not root, and there is no sudo"
        return 1
    elif [ -t 0 ]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

have_apt() {
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

# The packages among these that are not installed.
missing_packages() {
    for package; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
    done
}

apt() {
    mkdir -p "$build"
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@" >"$build/apt.log" 2>&1; then
        tail -n 20 "$build/apt.log"
        return 1
    fi
}

# Install what is missing of these packages. Says what it could not do and fails.
install_packages() {
    have_apt || return 0
    missing=$(missing_packages "$@" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    heading "installing $missing"
    apt update
    # shellcheck disable=SC2086  # a list of words
    apt install -y --no-install-recommends $missing || {
        echo "could not install $missing; going on with what is there"
        return 1
    }
}

# Install those of the packages that this release has.
install_if_known() {
    have_apt || return 0
    for package in $(missing_packages "$@"); do
        if apt-cache show "$package" >/dev/null 2>&1; then
            apt install -y --no-install-recommends "$package"
        fi
    done
}

# What tests/fuzz/run needs: clang, and its runtime where that is a package of its own.
prepare_fuzz() {
    install_packages clang libstreamvbyte-dev
    if command -v clang >/dev/null; then
        install_if_known "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    fi
}

# Where there is no apt: say which programs are missing.
tell_missing_programs() {
    have_apt && return
    for program; do
        command -v "$program" >/dev/null || echo "missing: $program"
    done
}

# All that configure and make need: packages, or their names where there is no apt. More packages as arguments.
prepare() {
    tree=
    if [ ! -x "$top/configure" ] || [ -e "$top/.git" ]; then
        tree=$tree_packages
    fi
    mpi=
    if [ -z "$MPICC" ]; then
        mpi=$mpich_packages
    fi
    # shellcheck disable=SC2086  # lists of words
    install_packages $base_packages $tree $mpi "$@"
    # shellcheck disable=SC2086
    tell_missing_programs cc make pkg-config ${tree:+autoconf automake libtoolize} "${MPICC:-mpicc}"
}

cores() {
    nproc 2>/dev/null || echo 2
}

# own_folder FOLDER: these scripts may empty the folder: it does not exist, or has nothing in it but their logs, or configure_in has made
# it, which writes `configured` there. Otherwise says why not and fails.
own_folder() {
    if [ -e "$1" ] && [ ! -e "$1/configured" ]; then
        if [ -e "$1/Makefile" ]; then
            why="was configured by hand"
        elif [ -n "$(built_in "$1" -print | head -n 1)" ]; then
            why="holds files that are not of this script"
        else
            return 0
        fi
        echo "${1#"$top"/}/ $why; remove it, or set SAR_BUILD to another folder"
        return 1
    fi
}

# built_in FOLDER ACTION...: find what is in a folder but the logs of these scripts and a build that was put aside.
built_in() {
    in=$1
    shift
    find "$in" -mindepth 1 -maxdepth 1 ! -name apt.log ! -name demo.log ! -name previous "$@"
}

# restore FOLDER: put the build back that configure_in had put aside; keep the log of the configure that failed.
restore() {
    [ -d "$1/previous" ] || return 0
    [ ! -f "$1/config.log" ] || mv "$1/config.log" "$1/previous/config-failed.log"
    built_in "$1" -exec rm -rf {} +
    find "$1/previous" -mindepth 1 -maxdepth 1 -exec mv {} "$1" \; && rmdir "$1/previous"
}

# configure_in FOLDER [ARGUMENT...]: configure out of tree, unless that was done already with these arguments. A build with other
# arguments is put aside, and put back if configure fails. Leaves a folder alone that own_folder refuses.
configure_in() {
    folder=$1
    shift
    own_folder "$folder" || return 1
    [ -x "$top/configure" ] || "$top/bootstrap" || return 1
    mkdir -p "$folder" || return 1
    restore "$folder" || return 1
    stamp="$folder $*"
    if [ -f "$folder/Makefile" ] && [ "$(cat "$folder/configured" 2>/dev/null)" = "$stamp" ]; then
        return 0
    fi
    if [ -f "$folder/Makefile" ]; then
        mkdir "$folder/previous" && built_in "$folder" -exec mv {} "$folder/previous" \; || return 1
    else
        built_in "$folder" -exec rm -rf {} +
    fi
    : >"$folder/configured"
    if ! (cd "$folder" && "$top/configure" "$@"); then
        restore "$folder"
        return 1
    fi
    echo "$stamp" >"$folder/configured"
    rm -rf "$folder/previous"
}

# The value of a variable in a Makefile: make_variable FOLDER NAME.
make_variable() {
    sed -n "s/^$2 = *//p" "$1/Makefile"
}

# Print the first Python that has every package the tests import: $PYTHON, or python3 on the path, or the system's.
choose_python() {
    for python in ${PYTHON:-python3 /usr/bin/python3}; do
        if "$python" -c 'import numpy, scipy, torch, mpi4py' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "$PYTHON"
}

# Configure $build for the MPI in $MPICC, or MPICH, or Open MPI where MPICH cannot start two ranks
# (as some releases have shipped it).
configure_build() {
    python=$(choose_python)
    [ -z "$python" ] || set -- PYTHON="$python" "$@"
    if [ -n "$MPICC" ]; then
        configure_in "$build" MPICC="$MPICC" "$@"
    elif command -v mpicc.mpich >/dev/null; then
        configure_in "$build" MPICC=mpicc.mpich "$@" || return 1
        [ -z "$(make_variable "$build" MPIEXEC)" ] || return 0
        heading "MPICH cannot start two ranks here; trying Open MPI"
        # shellcheck disable=SC2086  # a list of words
        install_packages $openmpi_packages || return 0
        configure_in "$build" MPICC=mpicc.openmpi "$@"
    else
        configure_in "$build" "$@"
    fi
}

# The totals of automake's test-suite.log in a folder, as three numbers: passed, failed, skipped.
test_totals() {
    awk '
        /^# PASS:/ || /^# XFAIL:/ { passed += $3 }
        /^# FAIL:/ || /^# XPASS:/ || /^# ERROR:/ { failed += $3 }
        /^# SKIP:/ { skipped += $3 }
        /^# ERROR:/ { ended = 1 }
        /^$/ && ended { exit }
        END { print passed + 0, failed + 0, skipped + 0 }' "$1/test-suite.log" 2>/dev/null || echo 0 0 0
}

# What was skipped and why, and the end of the log of what failed.
test_details() {
    find "$1" -name '*.trs' | sort | while read -r result; do
        log=${result%.trs}.log
        name=${log#"$1"/}
        name=${name%.log}
        case $(sed -n 's/^:global-test-result: //p' "$result") in
        SKIP) echo "skipped: $name: $(sed -n 's/^SKIP:* *//p' "$log" | head -n 1)" ;;
        FAIL | ERROR | XPASS)
            echo "FAILED: $name; the end of $log:"
            tail -n 40 "$log" | sed 's/^/    /'
            ;;
        esac
    done
}
