# Shared by the tests of libmpix_sparse_preload.
# shellcheck shell=sh
# shellcheck disable=SC2034  # for those who include it

# shellcheck source=tests/support/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/support/common.sh"
preload=${SAR_PRELOAD:-$PWD/preload/.libs/libmpix_sparse_preload.so}
take_all="LD_PRELOAD=$preload MPIX_SPARSE_PRELOAD_MIN_BYTES=0 MPIX_SPARSE_PRELOAD_LIMIT=1e9"

# fetch_source PACKAGE FOLDER: Debian's source package, unpacked in FOLDER/PACKAGE, with lists of apt's own in FOLDER.
fetch_source() {
    command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || return 1
    mkdir -p "$2/lists/partial" "$2/cache/archives/partial"
    # shellcheck source=/dev/null
    echo "deb-src http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME") main" \
        >"$2/sources.list"
    (
        cd "$2" || exit 1
        set -- "$1" -o Dir::Etc::SourceList="$2/sources.list" -o Dir::Etc::SourceParts=/dev/null \
            -o Dir::State::Lists="$2/lists" -o Dir::Cache="$2/cache" -o Acquire::http::Timeout=30
        package=$1
        shift
        apt-get "$@" update && apt-get "$@" source --download-only "$package" &&
            dpkg-source --no-check -x "$package"_*.dsc "$package"
    ) >"$2/fetch.log" 2>&1
}

# taken REPORT: the calls that it says were taken.
taken() {
    awk '!/^#/ { n += $7 } END { print n + 0 }' "$1"
}
