#!/bin/bash
# trouble.sh - the whole program with a scripted engine where nothing can be
# written: a limit on files, a full disk, one that is read only, and two programs
# that come to it at once. The answer is given, the trouble told in one line, and
# what was stored before is as it was.
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
FAKE=${FAKE:-$BUILD/tests/app/fake_tern}
export LC_ALL=C.UTF-8 TERN_MODEL=fake.gguf ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out err=$scratch/err
failed=0

result() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "# stdout: $(head -c 300 "$out")"
        echo "# stderr: $(head -c 600 "$err")"
        echo "not ok $1"
        failed=1
    fi
}
home() { # NAME: a new one, with a conversation in it
    export HOME=$scratch/$1
    mkdir -p "$HOME"
    FAKE_ANSWERS='kept from before' "$FAKE" run -q "the first question" >"$out" 2>"$err"
}
sound() { # the database, and what was in it first
    "$FAKE" show 1 >"$out" 2>"$err" && grep -qx 'the first question' "$out" &&
        grep -qx 'kept from before' "$out"
}
long=$(printf 'words and more words %.0s' $(seq 400))

# ---- a limit on files -----------------------------------------------------------

home limit
(
    ulimit -f $(($(stat -c %s "$HOME/.local/share/tern/tern.db") / 1024 + 8)) # kB
    FAKE_ANSWERS="$long$long$long" FAKE_CTX=30000 "$FAKE" run "a long one" >"$out" 2>"$err"
    echo $? >"$scratch/rc"
)
# What cannot be kept is told; a signal is no answer.
[ "$(cat "$scratch/rc")" -eq 1 ] && grep -qE 'tern.db: .*(free some disk space|limit on files)' "$err" &&
    { [ ! -s "$out" ] || [ "$(tr -d '\n' <"$out")" = "$long$long$long" ]; }
result file_limit $?
sound
result file_limit_leaves_all_sound $?
FAKE_ANSWERS='again' "$FAKE" run -q -c 1 "and now?" >"$out" 2>"$err" && [ "$(cat "$out")" = again ]
result file_limit_over $?

# ---- a disk of its own ------------------------------------------------------------

# In a name space of its own anybody may mount a small disk.
disk() { # SCRIPT: runs in a home on a disk of 600 kB
    FAKE=$FAKE LONG=$long OUT=$out ERR=$err unshare -Urm bash -c "
        mount -t tmpfs -o size=600k none '$scratch/disk' || exit 77
        export HOME=$scratch/disk
        $1"
}
mkdir "$scratch/disk"
if ! unshare -Urm mount -t tmpfs -o size=600k none "$scratch/disk" 2>/dev/null; then
    echo "skip disk_full: no name spaces for mounting"
    exit $failed
fi
disk '
    FAKE_ANSWERS="kept from before" "$FAKE" run -q "the first question" >"$OUT" 2>"$ERR" || exit 1
    head -c 600000 /dev/zero >"$HOME/ballast" 2>/dev/null
    FAKE_ANSWERS="$LONG" FAKE_CTX=30000 "$FAKE" run "more" >"$OUT" 2>"$ERR"
    [ $? -lt 2 ] || exit 2
    [ "$(tr -d "\n" <"$OUT")" = "$LONG" ] || [ ! -s "$OUT" ] || exit 3
    grep -q "free some disk space" "$ERR" || exit 4
    rm "$HOME/ballast"
    "$FAKE" show 1 | grep -qx "kept from before" || exit 5
    FAKE_ANSWERS="again" "$FAKE" run -q "and now?" >"$OUT" 2>"$ERR" || exit 6
    [ "$(cat "$OUT")" = again ]'
result disk_full $?
# The disk fills while the answer comes: it goes on, and is saved once there is room.
disk '
    FAKE_ANSWERS="$LONG$LONG" FAKE_STEP_MS=0.2 FAKE_CTX=30000 "$FAKE" run "a long one" \
        >"$OUT" 2>"$ERR" &
    sleep 0.5
    head -c 600000 /dev/zero >"$HOME/ballast" 2>/dev/null
    sleep 1.5
    rm "$HOME/ballast"
    wait $! || exit 1
    [ "$(tr -d "\n" <"$OUT")" = "$LONG$LONG" ] || exit 2
    [ "$("$FAKE" show 1 | grep -c "words and more words")" -eq 1 ]'
result disk_full_for_a_while $?
disk '
    FAKE_ANSWERS="kept from before" "$FAKE" run -q "the first question" >"$OUT" 2>"$ERR" || exit 1
    mount -o remount,ro "$HOME" || exit 77
    FAKE_ANSWERS="an answer all the same" "$FAKE" run "more" >"$OUT" 2>"$ERR"
    grep -qx "an answer all the same" "$OUT" && grep -q "not saved: " "$ERR" || exit 2
    "$FAKE" ls >"$OUT" 2>"$ERR"
    [ $? -lt 2 ] && [ "$(wc -l <"$ERR")" -le 1 ]'
result read_only_disk $?

# ---- at once ------------------------------------------------------------------------

export HOME=$scratch/many
mkdir "$HOME"
for i in 1 2 3 4 5; do
    FAKE_ANSWERS="answer $i" FAKE_STEP_MS=2 "$FAKE" run -q "question $i" >"$scratch/out$i" 2>"$scratch/err$i" &
done
wait
good=0
for i in 1 2 3 4 5; do
    [ "$(cat "$scratch/out$i")" = "answer $i" ] && [ ! -s "$scratch/err$i" ] || good=1
done
"$FAKE" ls >"$out" 2>"$err"
[ $good -eq 0 ] && [ "$(wc -l <"$out")" -eq 5 ]
result five_first_starts_at_once $?
exit $failed
