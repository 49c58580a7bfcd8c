#!/bin/bash
# timelines.sh - one conversation through many processes, with the shipped model:
# each reads its own words and no others, whatever happened to the ones before.
set -u
cd "$(dirname "$0")/../.." || exit 1
TERN=${TERN:-$PWD/build/tern}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home LC_ALL=C.UTF-8
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR
export TERN_MODEL=$PWD/assets/tern-mini.gguf
mkdir -p "$HOME"
out=$scratch/out err=$scratch/err log=$HOME/.local/state/tern/log
snapshots=$HOME/.cache/tern/snapshots
failed=0
umask 022

result() { # NAME, status of the condition
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "# stdout: $(head -c 600 "$out")"
        echo "# stderr: $(head -c 600 "$err")"
        echo "# log: $(tail -n 5 "$log" 2>/dev/null)"
        echo "not ok $1"
        failed=1
    fi
}

run() { # one turn; $rc, $out and $err hold what came of it
    "$TERN" run --temp 0 --json "$@" >"$out" 2>"$err" </dev/null
    rc=$?
}

json() { # KEY: a number or word of the one-line object in $out
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$out"
}

if ! "$TERN" devices >"$out" 2>"$err"; then
    echo "skip timelines: $(head -n 1 "$err")"
    exit 0
fi

# ---- turn after turn ---------------------------------------------------------

words=("What is the capital of France?" "define serendipity"
    "What is the capital of Italy?")
run -s "You are a helpful assistant." "${words[0]}"
before=$(($(json prompt_tokens) + $(json generated_tokens)))
id=$(json conversation)
good=0
texts=
for i in 1 2; do
    run -c "$id" "${words[$i]}"
    # The last token of the answer before and the new message are evaluated.
    [ "$rc" -eq 0 ] && [ "$(json reused_tokens)" -eq $((before - 1)) ] &&
        [ "$(json evaluated_tokens)" -eq $(($(json prompt_tokens) - before + 1)) ] &&
        [ "$(json evaluated_tokens)" -lt 30 ] || good=1
    before=$(($(json prompt_tokens) + $(json generated_tokens)))
    texts="$texts|$(json text)"
done
result each_process_reads_its_own_words $good
! grep -q 'kept timeline' "$log"
result nothing_to_complain_about $?
[ "$(find "$snapshots" -type d ! -perm 0700 | wc -l)" -eq 0 ] &&
    [ "$(find "$snapshots" -type f ! -perm 0600 | wc -l)" -eq 0 ] &&
    [ "$(find "$snapshots/$id" -name '*.kv' | wc -l)" -eq 1 ] &&
    [ "$(find "$snapshots/$id" -name '*.state' | wc -l)" -eq 3 ]
result files_are_private $?

# The same questions to a program that may keep nothing: the same answers.
mkdir -p "$HOME/.config/tern"
echo 'snapshots_gb = 0' >"$HOME/.config/tern/config"
run -s "You are a helpful assistant." "${words[0]}"
other=$(json conversation)
anew=
for i in 1 2; do
    run -c "$other" "${words[$i]}"
    [ "$(json reused_tokens)" -eq 0 ] || anew="kept"
    anew="$anew|$(json text)"
done
[ "$anew" = "$texts" ] && [ ! -e "$snapshots/$other" ]
result answers_are_those_without_files $?
rm "$HOME/.config/tern/config"

# ---- killed ------------------------------------------------------------------

for delay in 0.02 0.4 0.8; do
    "$TERN" run --temp 0 -c "$id" "${words[0]}" >/dev/null 2>&1 &
    pid=$!
    sleep "$delay"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
# The same history without any file to read from.
mkdir -p "$scratch/data" "$scratch/cache"
cp -r "$HOME/.local/share/tern" "$scratch/data"
run -c "$id" "define hello"
text=$(json text)
[ "$rc" -eq 0 ] && [ "$(json reused_tokens)" -gt 40 ]
good=$?
XDG_DATA_HOME=$scratch/data XDG_CACHE_HOME=$scratch/cache run -c "$id" "define hello"
[ "$rc" -eq 0 ] && [ "$(json reused_tokens)" -eq 0 ] && [ "$(json text)" = "$text" ] ||
    good=1
result killed_programs_leave_no_trouble $good

# ---- gone ----------------------------------------------------------------------

[ -e "$snapshots/$id" ] && "$TERN" rm "$id" >"$out" 2>"$err" && [ ! -e "$snapshots/$id" ]
result files_go_with_the_conversation $?
exit $failed
