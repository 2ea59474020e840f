# Shared by the lint scripts, which run from any folder: automake sets srcdir.
# shellcheck shell=sh

cd "${srcdir:-$(dirname "$0")/../..}" || exit 1
# shellcheck source=tests/common.sh
. tests/common.sh

# The files below the folders and with the endings given, one a line: files "src bench" "c h".
files() {
    for folder in $1; do
        for ending in $2; do
            find "$folder" -type f -name "*.$ending"
        done
    done | sort
}

# C text with comments and the insides of strings blanked, lines kept, and "FILE:LINE:" put before each.
code() {
    [ $# -gt 0 ] || return 0
    awk '
        FNR == 1 { inside = 0 }
        {
            out = ""
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1); two = substr($0, i, 2)
                if (inside) {
                    if (two == "*/") { inside = 0; i++ }
                } else if (two == "/*") {
                    inside = 1; i++
                } else if (two == "//") {
                    break
                } else if (c == "\"" && $0 !~ /^#[ \t]*include/) {
                    for (i++; i <= length($0) && substr($0, i, 1) != "\""; i++)
                        if (substr($0, i, 1) == "\\") i++
                    out = out "\"\""
                } else {
                    out = out c
                }
            }
            print FILENAME ":" FNR ":" out
        }' "$@"
}
