#!/bin/bash
# docs.sh - help, manual page and completions come from the tables that the program
# goes by, and other keys of the configuration do what they say.
set -u
cd "$(dirname "$0")/../.." || exit 1
TERN=${TERN:-$PWD/build/tern}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home LC_ALL=C.UTF-8
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME
mkdir -p "$HOME/.config/tern"
failed=0
result() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        failed=1
    fi
}

# ---- manual page ----------------------------------------------------------------

awk '/^\.\\" @/ { system("\"" tern "\" manual " substr($2, 2)); next } { print; fflush() }' \
    tern="$TERN" assets/tern.1 >"$scratch/tern.1"
plain=$(sed 's/\\f.//g; s/\\-/-/g; s/\\&//g' "$scratch/tern.1")
missing=
for name in $("$TERN" help | sed -n 's/^  tern \([a-z][a-z]*\) .*/\1/p') \
    $("$TERN" help | sed -n 's/.*\(--[a-z-]*\) .*/\1/p') \
    $("$TERN" help chat | sed 's/ .*//') $("$TERN" help config | awk '{ print $1 }'); do
    grep -qF -- "$name" <<<"$plain" || missing="$missing $name"
done
[ -z "$missing" ] || echo "# not in the manual page:$missing"
[ -z "$missing" ] && [ "$("$TERN" help chat | wc -l)" -gt 20 ]
result manual_page_has_all $?
while read -r action _; do
    grep -qw -- "$action" <<<"$plain" || echo "# no action $action"
done < <("$TERN" help keys | sed -n '/^$/q; s/^  \([a-z_]*\) .*[a-z]$/\1/p' | grep -vE '^(left|right|home|end|select_|erase_)') >"$scratch/actions"
[ ! -s "$scratch/actions" ]
result manual_page_has_the_keys $?
! grep -q '@' <<<"$(grep '^\.\\"' "$scratch/tern.1")"
result manual_page_is_filled_in $?
if command -v groff >/dev/null; then
    warnings=$(groff -man -Tutf8 -ww -z "$scratch/tern.1" 2>&1)
    [ -z "$warnings" ] || echo "# $warnings"
    [ -z "$warnings" ]
    result manual_page_is_proper $?
else
    echo "skip manual_page_is_proper: groff is not installed"
fi

# ---- completions ------------------------------------------------------------------

for shell in bash zsh fish; do
    "$TERN" completion $shell >"$scratch/$shell"
    if ! command -v $shell >/dev/null; then
        echo "skip completion_of_$shell: it is not installed"
        continue
    fi
    $shell -n "$scratch/$shell"
    result "completion_of_$shell" $?
done
complete() { # WORDS...: what bash offers for the last one
    bash -c '. "$1"; shift; COMP_WORDS=(tern "$@"); COMP_CWORD=$#; _tern; echo "${COMPREPLY[*]}"' \
        _ "$scratch/bash" "$@" | tr ' ' '\n' | sort -u | tr '\n' ' '
}
touch "$scratch/a.gguf"
[ "$(complete ex)" = 'export ' ] && [ "$(complete export --form)" = '--format ' ] &&
    [ "$(complete export --format j)" = 'json ' ] && [ "$(complete --think '')" = 'off on ' ] &&
    [ "$(complete completion f)" = 'fish ' ] &&
    [ "$(complete info "$scratch/a.")" = "$scratch/a.gguf " ] &&
    [ "$(complete -m "$scratch/a.")" = "$scratch/a.gguf " ]
result completion_in_bash $?
"$TERN" completion tcsh 2>"$scratch/err"
[ $? -eq 1 ] && grep -q 'bash, zsh and fish' "$scratch/err"
result completion_of_another_shell $?

# ---- keys -------------------------------------------------------------------------

printf '[keys]\nedit = F4, Alt+E\nmouse = none\nfly = F5\nfind = x\n' >"$HOME/.config/tern/config"
"$TERN" help keys >"$scratch/keys"
grep -q '^  edit  *F4, Alt+E ' "$scratch/keys" && grep -qE '^  mouse  +mouse on' "$scratch/keys" &&
    grep -q '^  find  *Ctrl+F ' "$scratch/keys"
result other_keys_in_the_help $?
exit $failed
