#!/bin/bash
# sizes.sh - sizes of functions, files and parameter lists. Functions are found
# by the layout that .clang-format fixes: a body is what lies between a line
# "{" and a line "}" in the first column.
set -u
cd "$(dirname "$0")/.." || exit 1
folders="app/base app engine storage ui shaders tests tests/*/"
files=$(for d in $folders; do ls "${d%/}"/*.[ch] "${d%/}"/*.glsl "${d%/}"/*.comp; done 2>/dev/null | sort -u)
bad=0

check() { # NAME, "# detail" lines on standard input
    local detail
    detail=$(cat)
    if [ -z "$detail" ]; then
        echo "ok $1"
    else
        echo "$detail"
        echo "not ok $1"
        bad=1
    fi
}

# A function's length is that of its body, braces included.
# shellcheck disable=SC2086
check functions_of_100_lines < <(awk '
    FNR == 1 { start = 0 }
    /^[a-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
    /^{$/ { start = FNR }
    /^}$/ && start {
        if (FNR - start + 1 > 100)
            printf "# %s:%d: %s has %d lines\n", FILENAME, start, name, FNR - start + 1
        start = 0
    }' $files)

# A declaration or definition begins in the first column with a type and a
# name; its parameter list may go on over several lines. The struct err that
# most of them end with is not counted. Tests and shaders are only noted.
# shellcheck disable=SC2086
long_lists() {
    awk '
    function count(text,    i, c, depth, n) {
        n = 1
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (c == "(") depth++
            if (c == ")" && --depth == 0) break
            if (c == "," && depth == 1) n++
        }
        if (depth != 0) return 0
        return n - (substr(text, 1, i) ~ /struct err \*[a-z]*\)$/)
    }
    FNR == 1 { text = "" }
    text == "" && /^[a-z_][a-z0-9_ ]*[ *]+\**[a-z_][a-z0-9_]*\(/ && !/^(return|else)/ {
        at = FNR; text = $0
        name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
        sub(/^[^(]*/, "", text)
        more = 0
    }
    text != "" {
        if (more) text = text " " $0
        more = 1
        n = count(text)
        if (n > 6) printf "# %s:%d: %s has %d parameters\n", FILENAME, at, name, n
        if (n > 0 || FNR - at > 12) text = ""
    }' $files
}
check six_parameters < <(long_lists | grep -vE '^# (tests|shaders)/')
long_lists | grep -E '^# (tests|shaders)/' | sed 's/^#/# note:/'

# shellcheck disable=SC2086
check sources_of_800_lines < <(awk '
    FNR == 1 && NR > 1 && n > 800 { printf "# %s has %d lines\n", file, n }
    { file = FILENAME; n = FNR }
    END { if (n > 800) printf "# %s has %d lines\n", file, n }' $files)

# Long headers are named, but are no failure: an interface is as long as it is.
grep '\.h$' <<<"$files" | while read -r h; do
    n=$(wc -l <"$h")
    [ "$n" -le 150 ] || echo "# note: $h has $n lines"
done
exit "$bad"
