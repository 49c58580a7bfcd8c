#!/bin/bash
# layers.sh - the directions in which folders may include each other, checked
# over every #include line of the tree.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0

# Headers in quotes: those of a folder match LOCAL. Headers in <> that belong
# to a library match SYSTEM; all others are the C library's.
LIBRARIES='vulkan/|sqlite3\.h|n?curses\.h|term\.h|utf8proc\.h|md4c\.h|ini\.h|xxhash\.h'
allow() { # FOLDER LOCAL SYSTEM
    local file line header rest
    while IFS=: read -r file line rest; do
        header=$(sed -n 's/^ *# *include *\([<"][^>"]*\).*/\1/p' <<<"$rest")
        case $header in
        '"'*) [[ ${header#?} =~ ^($2)$ ]] && continue ;;
        '<'*)
            [[ ${header#?} =~ ^($LIBRARIES) ]] || continue
            [[ ${header#?} =~ ^($3) ]] && continue
            ;;
        esac
        echo "# $file:$line: $1 may not include ${header#?}"
        bad=$((bad + 1))
    done < <(grep -n '^ *# *include' /dev/null "$1"/*.[ch] 2>/dev/null)
}

allow app/base 'base/[a-z0-9_]+\.h' 'utf8proc\.h|xxhash\.h'
allow storage 'base/[a-z0-9_]+\.h|storage/[a-z0-9_]+\.h|storage/schema\.sql\.h' \
    'sqlite3\.h|xxhash\.h'
allow engine 'base/[a-z0-9_]+\.h|engine/[a-z0-9_]+\.h|shaders/push\.h|shaders/spirv\.h' \
    'vulkan/|xxhash\.h|utf8proc\.h'
allow ui 'base/[a-z0-9_]+\.h|ui/[a-z0-9_]+\.h' 'n?curses\.h|term\.h|utf8proc\.h|md4c\.h'
allow app 'base/[a-z0-9_]+\.h|app/[a-z0-9_]+\.h|ui/ui\.h|engine/engine\.h|storage/store\.h' \
    'ini\.h|xxhash\.h|utf8proc\.h'

# Only the device layer and what it hands out names the graphics interface.
while read -r file; do
    echo "# $file: names vulkan outside engine/gpu*"
    bad=$((bad + 1))
done < <(grep -l '^ *# *include *<vulkan/' engine/*.[ch] 2>/dev/null | grep -v '^engine/gpu')

# Libraries neither print nor exit.
while IFS= read -r line; do
    echo "# $line: a library may not print or exit"
    bad=$((bad + 1))
done < <(grep -nE '(^|[^a-z_])(printf|puts|putchar|perror|exit|_exit|quick_exit) *\(' \
    app/base/*.c engine/*.c storage/*.c ui/*.c 2>/dev/null | grep -vE '^[^:]*:[0-9]+: *(/?\*|//)')

[ "$bad" -eq 0 ] && echo "ok include_directions" || echo "not ok include_directions"
[ "$bad" -eq 0 ]
