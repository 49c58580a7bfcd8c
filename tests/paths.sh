#!/bin/bash
# paths.sh - nothing in the tree names a path of the machine it was written on.
set -u
cd "$(dirname "$0")/.." || exit 1
list() {
    git ls-files -z --cached --others --exclude-standard 2>/dev/null ||
        find . \( -name .git -o -name 'build*' \) -prune -o -type f -print0
}
# A name of one letter, as in an example, is nobody's.
found=$(list | xargs -0 grep -nIE '(^|[^A-Za-z0-9_.})~-])/(home|root|work|Users)/[A-Za-z0-9_.-]{2}' /dev/null 2>/dev/null |
    cut -c 1-200)
if [ -z "$found" ]; then
    echo "ok no_private_paths"
else
    echo "# ${found//$'\n'/$'\n'# }"
    echo "not ok no_private_paths"
    exit 1
fi
