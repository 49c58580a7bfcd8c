#!/bin/bash
# long.sh - an hour of chatting (MINUTES=N) by a seeded script (SEED=N): two programs
# on the screen and others beside them, with questions, other answers, edits, forks,
# searches, removals and restarts, with the shipped model or MODEL. Prints each
# minute what the programs take, and fails if that grows: memory, descriptors,
# threads, files, or if anything else goes wrong. On demand: make long.
set -u
cd "$(dirname "$0")/.." || exit 1
TERN=${TERN:-$PWD/build/tern}
case $TERN in /*) ;; *) TERN=$PWD/$TERN ;; esac
MINUTES=${MINUTES:-60}
RANDOM=${SEED:-1}
for tool in tmux "$TERN"; do
    command -v "$tool" >/dev/null || { echo "long.sh needs $tool"; exit 1; }
done
scratch=$(mktemp -d) || exit 1
export HOME=$scratch/home LC_ALL=C.UTF-8 TERN_MODEL=${MODEL:-$PWD/assets/tern-mini.gguf}
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR TMUX
mkdir -p "$HOME/.config/tern"
KEEP_MB=200 # of kept timelines
echo "snapshots_gb = 0.$KEEP_MB" >"$HOME/.config/tern/config"
mux() { tmux -S "$scratch/socket" -f /dev/null "$@" 2>/dev/null; }
trap 'mux kill-server; sleep 1; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

bad=0
trouble() {
    echo "TROUBLE: $*"
    bad=$((bad + 1))
}
screen() { mux capture-pane -p -t "$1"; }
await() { # PANE REGEX [TENTHS]
    for _ in $(seq "${3:-600}"); do
        screen "$1" | grep -qE -- "$2" && return 0
        sleep 0.1
    done
    trouble "pane $1 does not show $2"
    screen "$1" | sed 's/^/    |/'
    return 1
}
type() { mux send-keys -t "$1" -l -- "$2"; }
enter() { mux send-keys -t "$1" Enter; }
pid_of() { pgrep -P "$(mux list-panes -t "$1" -F '#{pane_pid}')" -x tern; }

WORDS=(capital of France define serendipity a short story about fox and hen what is the
    weather tell me more why river city list three kinds of tree who wrote it '漢字' '**bold**')
sentence() {
    local s= i
    for ((i = 2 + RANDOM % 9; i; i--)); do
        s="$s ${WORDS[RANDOM % ${#WORDS[@]}]}"
    done
    echo "${s# }"
}

# ---- the programs -----------------------------------------------------------------

declare -A first_rss=() turns=() lives=()
start() { # PANE
    local options=(--temp 0.7 -n 60)
    if [ $((RANDOM % 2)) -eq 0 ] || [ "${lives[$1]:-0}" -eq 0 ]; then
        options+=(--new)
    else
        options+=(-c last)
    fi
    type "$1" "clear; $TERN ${options[*]}; echo left \$?"
    enter "$1"
    await "$1" ' ready '
    turns[$1]=0
    lives[$1]=$((${lives[$1]:-0} + 1))
}
stop() { # PANE
    mux send-keys -t "$1" C-u
    type "$1" /quit
    enter "$1"
    await "$1" 'left 0'
}
idle() { await "$1" ' ready '; }
say() { # PANE TEXT
    type "$1" "$2"
    enter "$1"
    sleep 0.3
    idle "$1"
    turns[$1]=$((${turns[$1]} + 1))
}

# ---- what they take ----------------------------------------------------------------

status_kb() { sed -n "s/^$2:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$1/status" 2>/dev/null; }
declare -A rss=() fds=() threads=()
peak_rss=0 early_rss=0 most_fds=0 early_fds=0 most_threads=0
sample() {
    local p pid line=
    for p in a b; do
        pid=$(pid_of $p)
        [ -n "$pid" ] || { trouble "the program in pane $p is gone"; start $p; continue; }
        rss[$p]=$(status_kb "$pid" VmRSS)
        threads[$p]=$(status_kb "$pid" Threads)
        fds[$p]=$(find "/proc/$pid/fd" -mindepth 1 2>/dev/null | wc -l)
        line="$line  $p: ${rss[$p]} kB, ${fds[$p]} descriptors, ${threads[$p]} threads, ${turns[$p]} turns"
        # What a program takes after its first turns is what it may take.
        if [ "${turns[$p]}" -ge 3 ]; then
            if [ "$((SECONDS * 4))" -lt "$((MINUTES * 60))" ] || [ $early_rss -eq 0 ]; then
                [ "${rss[$p]}" -gt $early_rss ] && early_rss=${rss[$p]}
                [ "${fds[$p]}" -gt $early_fds ] && early_fds=${fds[$p]}
            fi
            [ "${rss[$p]}" -gt $peak_rss ] && peak_rss=${rss[$p]}
            [ "${fds[$p]}" -gt $most_fds ] && most_fds=${fds[$p]}
            [ "${threads[$p]}" -gt $most_threads ] && most_threads=${threads[$p]}
        fi
    done
    files=$(find "$HOME" -type f | wc -l)
    kept_kb=$(du -sk "$HOME/.cache/tern/snapshots" 2>/dev/null | cut -f1)
    db_kb=$(du -sk "$HOME/.local/share/tern" | cut -f1)
    left=$(find "$HOME" -name '*.tmp-*' -mmin +10 | wc -l)
    printf '%4d min%s  files: %d, timelines %d kB, store %d kB, log %d kB\n' \
        $((SECONDS / 60)) "$line" "$files" "${kept_kb:-0}" "$db_kb" \
        "$(du -sk "$HOME/.local/state/tern" | cut -f1)"
    [ "${kept_kb:-0}" -le $((KEEP_MB * 1024 + 1024)) ] || trouble "timelines take $kept_kb kB"
    [ "$left" -eq 0 ] || trouble "$left unfinished files stay"
}

# ---- an hour ------------------------------------------------------------------------

act() { # PANE
    case $((RANDOM % 20)) in
    0) say "$1" /retry ;;
    1) say "$1" /undo && mux send-keys -t "$1" C-u ;;
    2) say "$1" /redo && mux send-keys -t "$1" C-u ;;
    3) say "$1" /fork ;;
    4) say "$1" /new && say "$1" "$(sentence)" ;;
    5) say "$1" /continue ;;
    6) # an earlier message, said otherwise
        mux send-keys -t "$1" C-u Escape Up Up
        sleep 0.2
        mux send-keys -t "$1" C-u
        say "$1" "$(sentence)" ;;
    7) # stopped in the middle
        type "$1" "$(sentence)"
        enter "$1"
        sleep 0.$((RANDOM % 9))
        mux send-keys -t "$1" C-c
        sleep 0.3
        idle "$1" ;;
    8) # resized
        mux resize-window -t "$1" -x $((20 + RANDOM % 120)) -y $((8 + RANDOM % 40))
        say "$1" "$(sentence)"
        mux resize-window -t "$1" -x 100 -y 30 ;;
    9) beside ;;
    10) stop "$1" && start "$1" ;;
    *) say "$1" "$(sentence)" ;;
    esac
}
# Another program while those two are there.
beside() {
    local n
    case $((RANDOM % 5)) in
    0) "$TERN" run -q -n 20 "$(sentence)" ;;
    1) "$TERN" search "${WORDS[RANDOM % 18]}" ;;
    2) "$TERN" export last --format json ;;
    3) "$TERN" run -q -n 20 -c last "$(sentence)" ;;
    *) # of many conversations the oldest goes
        n=$("$TERN" ls | wc -l)
        [ "$n" -le 25 ] || "$TERN" rm "$("$TERN" ls | awk 'END { print $1 }')" ;;
    esac >"$scratch/beside" 2>&1 || grep -q 'no message contains' "$scratch/beside" ||
        trouble "beside: $(head -n 1 "$scratch/beside")"
}

mux new-session -d -s a -x 100 -y 30 "PS1='\$ ' bash --norc --noprofile"
mux new-session -d -s b -x 100 -y 30 "PS1='\$ ' bash --norc --noprofile"
sleep 0.5
start a
start b
SECONDS=0 next=0 acts=0
while [ $SECONDS -lt $((MINUTES * 60)) ] && [ $bad -lt 10 ]; do
    for p in a b; do
        act $p
        acts=$((acts + 1))
    done
    if [ $SECONDS -ge $next ]; then
        sample
        next=$((next + 60))
    fi
done
sample
stop a
stop b
[ "$("$TERN" ls | wc -l)" -gt 0 ] || trouble "no conversations"
errors=$(grep -c ' error ' "$HOME/.local/state/tern/log")
echo "$acts acts, ${lives[a]} and ${lives[b]} starts, $errors errors in the log"
grep ' error ' "$HOME/.local/state/tern/log" | head -n 5
echo "memory: $early_rss kB in the first quarter, $peak_rss kB at most"
echo "descriptors: $early_fds in the first quarter, $most_fds at most; threads: $most_threads"
[ $peak_rss -le $((early_rss * 5 / 4 + 50000)) ] || trouble "memory grows"
[ $most_fds -le $((early_fds + 3)) ] || trouble "descriptors grow"
[ "$errors" -eq 0 ] || trouble "errors in the log"
[ $bad -eq 0 ] && echo "nothing grew" || echo "$bad troubles"
[ $bad -eq 0 ]
