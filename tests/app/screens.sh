#!/bin/bash
# screens.sh - the full-screen program in a real terminal emulator with the
# shipped model: a conversation, again after a restart, small, and after signals.
set -u
cd "$(dirname "$0")/../.." || exit 1
TERN=${TERN:-$PWD/build/tern}
if ! command -v tmux >/dev/null; then
    echo "skip screens: tmux is not installed"
    exit 0
fi
scratch=$(mktemp -d) || exit 1
export HOME=$scratch/home LC_ALL=C.UTF-8 TERN_MODEL=$PWD/assets/tern-mini.gguf
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR TMUX
# A driver that is unloaded has no name by which its leaks could be excused; the
# program's own are looked for in test_app, with an engine that has no driver.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
mkdir -p "$HOME"
server=0
mux() { tmux -S "$scratch/socket$server" -f /dev/null "$@" 2>/dev/null; }
# The program may still be putting its timeline away.
trap 'mux kill-server; rm -rf "$scratch" 2>/dev/null || { sleep 2; rm -rf "$scratch"; }' EXIT
failed=0

screen() { mux capture-pane -p -t chat; }
result() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        screen | sed 's/^/# |/'
        echo "not ok $1"
        failed=1
    fi
}
await() { # TEXT: up to 30 seconds for it to stand on the screen
    for _ in $(seq 300); do
        screen | grep -qF -- "$1" && return 0
        sleep 0.1
    done
    return 1
}
idle() { await ' ready '; }
say() { mux send-keys -t chat -l -- "$1" && mux send-keys -t chat Enter; }
start() { # COLS ROWS: a shell, in a server of its own
    [ $server -eq 0 ] || mux kill-server
    server=$((server + 1))
    mux new-session -d -s chat -x "$1" -y "$2" "PS1='shell> ' bash --norc --noprofile"
    if ! await 'shell>'; then
        echo "not ok tmux_starts"
        exit 1
    fi
}

if ! "$TERN" devices >/dev/null 2>&1; then
    echo "skip screens: no Vulkan device"
    exit 0
fi

# ---- two turns, then again after a restart -----------------------------------

start 80 24
say "$TERN --temp 0; echo status \$?"
await 'Type a message'
result starts $?
say 'What is the capital of France?'
await 'Paris. The city lies on the river Seine.' && idle
result first_answer $?
say 'define serendipity'
await 'define serendipity' && sleep 0.5 && idle
result second_answer $?
screen | head -n 21 >"$scratch/before"
mux send-keys -t chat C-d
await 'status 0'
result leaves $?
say "clear; $TERN --temp 0 -c last; echo status \$?"
await 'Paris. The city' && idle
screen | head -n 21 >"$scratch/after"
diff "$scratch/before" "$scratch/after" | sed 's/^/# /'
cmp -s "$scratch/before" "$scratch/after"
result same_screen_after_restart $?
[ "$(grep -c '^Assistant' "$scratch/after")" -eq 2 ]
result both_answers_are_there $?
mux send-keys -t chat C-d
await 'status 0'

# ---- small terminal ----------------------------------------------------------

start 20 5
say "$TERN --temp 0"
await '>' && sleep 1
say 'hello'
await 'Hello!'
result five_rows_of_twenty $?
mux resize-window -t chat -x 80 -y 24
await 'Hello! What can I do for you?'
result grows $?
mux send-keys -t chat C-d
await 'shell>'

# ---- signals -----------------------------------------------------------------

for signal in TERM HUP; do
    start 80 24
    say 'stty -a >"$HOME/stty.before"; clear; echo marker above'
    await 'marker above'
    say "$TERN -c last; echo status \$?"
    await 'What can I do for you'
    pid=$(pgrep -P "$(mux list-panes -t chat -F '#{pane_pid}')" -x tern)
    [ -n "$pid" ] && kill -$signal "$pid"
    await "status $((128 + $(kill -l $signal)))"
    result "status_after_$signal" $?
    screen | grep -q 'marker above'
    result "screen_is_back_after_$signal" $?
    say 'stty -a >"$HOME/stty.after"; echo written'
    await written
    cmp -s "$HOME/stty.before" "$HOME/stty.after"
    result "terminal_is_as_before_after_$signal" $?
done

# ---- without a full screen ---------------------------------------------------

start 80 24
say "TERM=dumb $TERN --temp 0"
await '> '
say 'What is the capital of France?'
await 'Paris. The city lies on the river Seine.' && await 'tokens/s]'
result line_mode_on_a_dumb_terminal $?
mux send-keys -t chat C-d
await 'shell>'
exit $failed
