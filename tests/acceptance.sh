#!/bin/bash
# acceptance.sh - every test that acceptance.md names exists, and every row names one.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0 n=0

# FILE alone is a program of its own; FILE:NAME a test function, or what a script prints.
exists() { # FILE NAME
    [ -f "$1" ] || return 1
    case $1 in
    *.c) [ -z "$2" ] || grep -q "T($2)" "$1" ;;
    *) grep -qE "(result|refused|ok|t_) ?\"?$2\b|t_$2\(\)" "$1" ;;
    esac
}

while IFS= read -r row; do
    tests=$(grep -o '`[^`]*`' <<<"$row" | tr -d '`')
    if [ -z "$tests" ]; then
        echo "# no test: $row"
        bad=$((bad + 1))
    fi
    for t in $tests; do
        n=$((n + 1))
        file=${t%%:*} name=
        [ "$file" = "$t" ] || name=${t#*:}
        exists "$file" "$name" && continue
        echo "# ${row:0:40}: there is no $t"
        bad=$((bad + 1))
    done
done < <(grep -E '^\| [a-z]' tests/acceptance.md | grep -vE '^\| (case|trap|mistake) ')
echo "# $n references"
if [ "$bad" -eq 0 ] && [ "$n" -gt 100 ]; then
    echo "ok acceptance_cases_have_tests"
else
    echo "not ok acceptance_cases_have_tests"
    exit 1
fi
