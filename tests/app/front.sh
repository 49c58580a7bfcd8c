#!/bin/bash
# front.sh - the full-screen program with a scripted engine in a real terminal
# emulator: what happens at which moment is exact. $FAKE is the program of
# fake_tern.c.
#   front.sh [PATTERN]    runs the tests whose names contain PATTERN
set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
FAKE=${FAKE:-$BUILD/tests/app/fake_tern}
if ! command -v tmux >/dev/null; then
    echo "skip front: tmux is not installed"
    exit 0
fi
export LC_ALL=C.UTF-8 TERN_MODEL=fake.gguf TZ=UTC ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME XDG_RUNTIME_DIR NO_COLOR TMUX
scratch=$(mktemp -d) || exit 1
server=0
mux() { tmux -S "$scratch/socket$server" -f /dev/null "$@" 2>/dev/null; }
trap 'mux kill-server; sleep 0.2; rm -rf "$scratch"' EXIT
failed=0 problems=

fail() { problems="$problems# $*"$'\n'; }
screen() { mux capture-pane -p -t chat "$@"; }
keys() { mux send-keys -t chat "$@"; }
type() { mux send-keys -t chat -l -- "$1"; }
say() { type "$1" && keys Enter; }
tern() { HOME=$HOME "$FAKE" "$@"; } # beside the one on the screen
see() { # REGEX: within 10 seconds
    local i
    for i in $(seq 200); do
        screen | grep -qE -- "$1" && return 0
        sleep 0.05
    done
    fail "not on the screen: $1"$'\n'"$(screen | sed 's/^/#   |/')"
    return 1
}
not_see() { screen | grep -qE -- "$1" && fail "on the screen: $1"$'\n'"$(screen | sed 's/^/#   |/')"; return 0; }
gone() { # REGEX: within 10 seconds it is not there any more
    local i
    for i in $(seq 200); do
        screen | grep -qE -- "$1" || return 0
        sleep 0.05
    done
    fail "still on the screen: $1"$'\n'"$(screen | sed 's/^/#   |/')"
}
home() { # a new one
    export HOME=$scratch/home$server
    mkdir -p "$HOME"
}
shell() { # COLS ROWS [VARIABLE=VALUE...]: a shell in a server and a home of its own
    local cols=$1 rows=$2
    shift 2
    mux kill-server
    server=$((server + 1))
    home
    mux new-session -d -s chat -x "$cols" -y "$rows" "env PS1='shell> ' $* bash --norc --noprofile"
    see 'shell>'
}
start() { # ARGUMENTS of the program
    keys "clear; $FAKE $*; echo left \$?" Enter
    see '(ready|loading|reading|writing)'
}
left() { see "left ${1:-0}"; }

# ---- type-ahead --------------------------------------------------------------

t_queue() {
    shell 80 24 FAKE_STEP_MS=20 "FAKE_ANSWERS='first answer of some length|second|third'"
    start
    say 'one'; see 'first a'
    say 'two'; see 'queued: sent after the answer'
    say 'three'; see '^three'
    [ "$(screen | grep -c queued:)" = 2 ] || fail "$(screen)"
    # The last one comes back, and goes again with a change.
    keys Up; see '^> three'; type ' and more'; keys Enter
    see '^third'; see 'ready'; not_see 'queued'
    tern show last > "$scratch/out"
    grep -A1 '^You' "$scratch/out" | grep -vE '^(You|--)' | tr '\n' '|' > "$scratch/said"
    [ "$(cat "$scratch/said")" = 'one|two|three and more|' ] || fail "$(cat "$scratch/said")"
    keys C-d; left
}

t_queue_stopped() {
    shell 80 24 FAKE_STEP_MS=50 "FAKE_ANSWERS='an answer that goes on and on and on and on and on'"
    start
    say 'one'; see 'an a'
    say 'two'; see 'queued'; say 'three'; see '^three'; type 'typed'
    keys Escape; see 'stopped'
    # Nothing is sent, nothing is lost.
    see '^> two$'; see '^  three'; see '^  typed'
    not_see 'queued'
    keys C-c C-c C-c; left
    [ "$(tern show last | grep -c '^You')" = 1 ] || fail "$(tern show last)"
}

# What waits survives the program, however it ends.
t_queue_kept() {
    local pid
    shell 80 24 FAKE_STEP_MS=100 "FAKE_ANSWERS='an answer that goes on and on and on and on and on'"
    start
    say 'one'; see 'an a'
    say 'two'; see 'queued'
    pid=$(pgrep -P "$(mux list-panes -t chat -F '#{pane_pid}')" -f fake_tern)
    kill -9 "$pid"; left 137
    keys 'reset' Enter; sleep 0.5
    start -c last; see 'interrupted'; see '^> two'
    keys C-u; type 'a draft'; see '^> a draft'
    kill -TERM "$(pgrep -P "$(mux list-panes -t chat -F '#{pane_pid}')" -f fake_tern)"; left 143
    start -c last; see '^> a draft'
    # Elsewhere it is not in the way, and it goes with its conversation.
    keys C-c; see cleared; keys C-d; left
    start -c last; see 'ready'; not_see 'draft'
    keys C-d; left
}

t_queue_elsewhere() {
    shell 80 24 FAKE_STEP_MS=30 "FAKE_ANSWERS='a first answer of some length to wait for|other'"
    start
    say 'one'; see 'a f'
    keys C-n; see 'Type a message'; say 'in a new one'; see 'queued'
    see '^other'; see '^in a new one'; not_see 'queued'
    keys C-d; left
    [ "$(tern ls | wc -l)" = 2 ] || fail "$(tern ls)"
}

for t in $(declare -F | sed -n 's/^declare -f \(t_.*\)/\1/p'); do
    case $t in *"${1:-}"*) ;; *) continue ;; esac
    problems=
    $t
    if [ -z "$problems" ]; then
        echo "ok front_${t#t_}"
    else
        printf '%s' "$problems"
        echo "not ok front_${t#t_}"
        failed=1
    fi
done
exit $failed
