#!/bin/bash
# screens.sh - the front end in a real terminal emulator (tmux), with keys typed
# and screens read back. $DEMO is the program of demo.c. Prints one line a test.
#   screens.sh [PATTERN]    runs the tests whose names contain PATTERN
set -u
DEMO=${DEMO:?path of the demo program}
export LANG=C.UTF-8 LC_ALL=C.UTF-8
unset NO_COLOR TMUX
work=$(mktemp -d)
export HOME=$work
pane=s0
tm() {
    local command=$1
    shift
    case $command in
    new-session | kill-* | *-buffer) tmux -L "ternui$$" -f /dev/null "$command" "$@" ;;
    *) tmux -L "ternui$$" -f /dev/null "$command" -t $pane "$@" ;;
    esac 2> /dev/null
}
cleanup() { tm kill-server; sleep 0.2; rm -rf "$work"; }
trap cleanup EXIT

failed=0 problems=
fail() { problems="$problems# $*"$'\n'; }
screen() { tm capture-pane -p "$@"; }
keys() { tm send-keys "$@"; }
paste() { tmux -L "ternui$$" paste-buffer -p -t $pane "$@"; }

# Waits up to 5 s until the screen matches a regular expression.
see() {
    local i
    for i in $(seq 100); do
        screen | grep -qE -- "$1" && return 0
        sleep 0.05
    done
    fail "not on the screen: $1"$'\n'"$(screen | sed 's/^/#   /')"
    return 1
}
not_see() { screen | grep -qE -- "$1" && fail "on the screen: $1"; return 0; }

# A shell in a window of 80x24; `start ARGS` runs the program in it.
shell() {
    local old=$pane
    pane=s$((${pane#s} + 1))
    tm new-session -d -s $pane -x 80 -y 24 "env PS1='shell-\$ ' ${1:-} bash --norc --noprofile"
    tm kill-session -t $old
    see 'shell-\$'
}
start() {
    keys "stty -a > $work/before; clear; $DEMO $* 2> $work/err; echo left \$?; stty -a > $work/after" Enter
    see '(ready|writing|reading)'
}
# The program has ended with a status and left the terminal as it was.
check_left() {
    see "left $1" || return
    sleep 0.1
    sed 's/rows.*columns [0-9]*;//' "$work/before" > "$work/a"
    sed 's/rows.*columns [0-9]*;//' "$work/after" > "$work/b"
    cmp -s "$work/a" "$work/b" || fail "terminal settings changed: $(diff "$work/a" "$work/b")"
    check_modes
    [ -s "$work/err" ] && fail "stderr: $(head -3 "$work/err")"
}
check_modes() {
    local m
    m=$(tm display -p '#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}')
    [ "$m" = "0 0 1 0" ] || fail "modes left on: $m"
    tm set-buffer 'pasted text'
    keys 'clear; cat -v' Enter
    sleep 0.2
    paste
    see 'pasted text'
    not_see '200~'
    keys C-c
}
program() { pgrep -P "$(tm display -p '#{pane_pid}')"; }
cursor() { tm display -p '#{cursor_y},#{cursor_x}'; }

t_send_and_stream() {
    shell; start --rate 200 --words 40
    [ "$(cursor)" = "22,2" ] || fail "cursor at $(cursor)"
    keys 'hello tern'; see '^> hello tern'
    keys Enter; see 'Thought: 45 characters'; see 'w31 w32 w33'
    see 'ready.*1,204/4,096 \(29%\).*200 tok/s'
    screen | grep -A1 '^You' | grep -q 'hello tern' || fail 'no message'
    keys C-t; see 'thought1 thought2'
    keys C-d; check_left 0
}

t_input_keys() {
    shell; start
    keys 'one'; keys C-j; keys 'two'; keys M-Enter; keys 'three'
    tm send-keys -l $'\e[13;2u'; keys 'four'; see 'four'
    [ "$(screen | grep -cE '^(> one|  two|  three|  four)$')" = 4 ] || fail "$(screen)"
    keys C-u C-h; keys C-w; keys 'X'; see '^  X'
    keys C-c; see 'input cleared'
    keys Up; see '^> one'
    keys C-c; keys Up Up Up Up; see 'earlier two'
    keys C-c; keys C-c; see 'Ctrl.C again'
    keys C-c; check_left 0
}

t_read_while_streaming() {
    shell; start --rate 150 --words 3000
    keys 'go' Enter; see 'w151 '
    keys PPage; sleep 0.1; keys PPage; see 'new lines below'
    screen | head -20 > "$work/one"; sleep 0.6; screen | head -20 > "$work/two"
    cmp -s "$work/one" "$work/two" || fail "rows moved: $(diff "$work/one" "$work/two")"
    keys 'typed ahead'; see '^> typed ahead'
    tm resize-window -x 60 -y 16; sleep 0.3
    [ "$(screen | head -1)" = go ] || fail 'no title after resize'
    see 'new lines below'
    keys C-End; sleep 0.3; not_see 'lines below'
    keys Escape; see 'ready'; see 'stopped'
    see '^> typed ahead'; keys Enter; see 'You'
    keys C-c; sleep 0.2; keys C-d; check_left 0
}

t_paste() {
    shell; start
    printf 'first\tline\r\nsecond \033[201~ line\n\033]52;c;eA==\007third\n' > "$work/p"
    tm load-buffer "$work/p"; paste -r; see 'third'
    see '^> first   line'; see '^  second +line'
    not_see 'Assistant'
    keys C-c; see 'cleared'
    for i in $(seq 20000); do echo "line $i with some words"; done > "$work/p"
    tm load-buffer "$work/p"; paste; see 'pasted: 20,000 lines'
    not_see 'Assistant'; keys M-v; see 'line 20000'
    keys Up; sleep 0.1; keys 'edited'; see 'edited'
    keys C-c; see 'cleared'; keys C-d; check_left 0
}

t_list_and_search() {
    shell; start
    keys C-o; see 'alpha notes'; see 'gamma \\x1b\]0;title\\x07 tests'
    keys 'beta'; sleep 0.2; not_see 'alpha'
    keys Enter; see 'beta recipes'; see 'chat 2 message 1'
    keys C-o; see 'filter>'; keys Up; keys F2; see 'title> alpha notes'
    keys C-u 'renamed' Enter; see '^   renamed'
    keys Down Down; keys DC; see 'delete "gamma'; keys y; sleep 0.2; not_see 'gamma'
    keys Escape; see 'beta recipes'
    keys C-s; keys 'renam'; see 'found here in it'; keys Enter; see 'chat 1 message 1'
    keys F1; see 'Ctrl\+J, Alt\+Enter'; keys Escape; sleep 0.2; not_see 'Ctrl\+J'
    [ "$(tm display -p '#{pane_title}')" != title ] || fail 'the title was set'
    keys C-d; check_left 0
}

t_resize_storm() {
    shell; start --rate 300 --words 4000
    keys 'go' Enter; see 'writing'
    for s in 1x1 2x2 300x100 20x5 19x4 80x3 5x40 200x7 33x11 1x50 120x1 61x21 80x24; do
        tm resize-window -x "${s%x*}" -y "${s#*x}"; sleep 0.06
    done
    see 'writing [0-9,]+'; keys Escape; see 'ready'
    tm resize-window -x 70 -y 20; sleep 0.6 # nothing else wakes the program
    [ "$(screen | grep -c .)" -gt 10 ] && see '^─{70}$'
    screen > "$work/one"; keys C-l; sleep 0.3; screen > "$work/two"
    cmp -s "$work/one" "$work/two" || fail "a repaint differs: $(diff "$work/one" "$work/two")"
    keys C-d; check_left 0
}

t_wide_characters() {
    local family=$'\U1F468\u200D\U1F469\u200D\U1F467'
    printf '%s\n\n' "a你好b" "x${family}y" "e$(printf '\u0301')z" "heart "$'\u2764\uFE0F'" end" > "$work/text"
    shell; start --show "$work/text" --rate 60
    keys 'go' Enter
    for i in $(seq 30); do screen | grep -q $'\uFFFD' && fail 'U+FFFD shown'; sleep 0.03; done
    see 'end'; see 'a你好b'; see $'e\u0301z'
    screen | grep -qE "^x$(printf '\U1F468').*y" || fail "family: $(screen | grep '^x')"
    keys "${family}你"; sleep 0.2; keys BSpace; sleep 0.2; keys BSpace; sleep 0.3
    screen | grep -qE '^> *$' || fail "residue: $(screen | grep '^>')"
    keys C-d; check_left 0
}

t_hostile_text() {
    printf '\033]52;c;eA==\007\033]0;owned\007\033[2J\033c\233\302\233mark\n\n\342\200\256rtl' > "$work/text"
    shell; start --show "$work/text" --rate 400
    keys 'go' Enter; see 'mark'; see '\\x1b\]52;c;eA==\\x07'; see '\\u\{202e\}rtl'
    [ "$(tm display -p '#{pane_title}')" != owned ] || fail 'the title was set'
    [ "$(tm show-buffer)" != x ] || fail 'the clipboard was set'
    keys C-d; check_left 0
}

t_copy() {
    printf 'Run this:\n\n```sh\necho "a  b" | tr a b\n```\n' > "$work/text"
    shell; tmux -L "ternui$$" set -s set-clipboard on
    start --show "$work/text" --rate 400
    keys 'go' Enter; see 'ready.*tok/s'; keys M-x; see "sent to the terminal's clipboard"
    [ "$(tm show-buffer)" = 'echo "a  b" | tr a b' ] || fail "clipboard: $(tm show-buffer)"
    # As tmux comes, it ignores what programs say of the clipboard.
    tmux -L "ternui$$" set -s set-clipboard external; tm delete-buffer
    keys 'some words'; keys M-a; keys M-c; see 'selection sent'
    [ "$(tm show-buffer)" = 'some words' ] || fail "through tmux: $(tm show-buffer)"
    keys BSpace; keys '/copy out.txt' Enter; see 'save out.txt: Run this:'
    keys C-d; check_left 0
    # A terminal without a clipboard: a file instead.
    shell 'TERM=linux'; start --show "$work/text" --rate 400
    keys 'go' Enter; see 'ready.*tok/s'; keys M-x; see 'save -: echo "a  b"'
    keys C-d; check_left 0
}

t_suspend() {
    shell; start
    keys 'kept'; see '^> kept'
    keys C-z; see 'Stopped'
    [ "$(tm display -p '#{alternate_on} #{cursor_flag}')" = "0 1" ] || fail 'not left when stopped'
    keys 'clear; fg' Enter; see '^> kept'; keys ' and works'; see 'kept and works'
    keys C-c; sleep 0.1; keys C-d; sleep 0.3
    check_modes
}

t_continued_from_outside() {
    shell; start
    kill -STOP "$(program)"; see 'Stopped'
    keys 'clear; fg' Enter; see '^>'; keys 'alive'; see '^> alive'
    tm set-buffer 'pa'; paste; see 'alivepa'
    keys C-c; sleep 0.1; keys C-d; sleep 0.3; check_modes
}

t_hangup() {
    shell; start --rate 50 --words 500; keys 'go' Enter; see 'writing'
    local pid i
    pid=$(program)
    shell # a new one; the old terminal goes away
    for i in $(seq 40); do kill -0 "$pid" 2> /dev/null || return 0; sleep 0.05; done
    fail 'still running without a terminal'
    kill "$pid"
}

t_crash() {
    shell; start --abort 500 --mouse
    check_left 134
}

t_mouse() {
    shell; start --long 40 --mouse
    [ "$(tm display -p '#{mouse_any_flag}')" = 1 ] || fail 'no mouse'
    keys C-o; see alpha; keys Enter; see 'message 40'
    for i in 1 2 3 4; do tm send-keys -l $'\e[<64;5;5M'; done
    see 'more below'
    keys M-m; sleep 0.2
    [ "$(tm display -p '#{mouse_any_flag}')" = 0 ] || fail 'mouse stays on'
    keys M-m; sleep 0.1; keys C-d; check_left 0
}

t_poor_terminals() {
    shell
    keys "clear; TERM=dumb $DEMO; echo left \$?" Enter; see 'demo: TERM is "dumb"'; see 'left 1'
    keys "clear; TERM=nowhere $DEMO; echo left \$?" Enter; see 'demo: TERM is "nowhere"'
    keys "clear; $DEMO < /dev/null; echo left \$?" Enter; see 'demo: standard input'
    for term in xterm-256color screen linux vt100; do
        shell "TERM=$term"; start --words 20; keys 'go' Enter; see 'w11 w12'; see 'ready'
        keys C-d; check_left 0
    done
}

t_plain_locale_and_no_color() {
    printf 'smile \360\237\230\200 \344\275\240 end' > "$work/text"
    shell 'LC_ALL=C LANG=C'; start --show "$work/text" --rate 400
    keys 'go' Enter; see 'smile \? +\? +end'; see '^----'
    keys C-d; check_left 0
    shell 'NO_COLOR=1'; start --words 20; keys 'go' Enter; see 'w11'
    screen -e | grep -q $'\e\\[[0-9;]*3[0-7]' && fail 'colours in spite of NO_COLOR'
    keys C-d; check_left 0
}

t_themes() {
    printf '```c\nint x = 1; // note\n```\n' > "$work/text"
    shell 'TERM=xterm-256color'; start --show "$work/text" --rate 400 --theme dark
    keys 'go' Enter; see 'int x'
    screen -e | grep -q $'38;5;80mint' || fail "dark: $(screen -e | grep int)"
    keys '/theme light' Enter; sleep 0.3
    screen -e | grep -q $'38;5;30mint' || fail "light: $(screen -e | grep int)"
    keys '/theme none' Enter; sleep 0.3
    screen -e | grep -q $'\e\\[[0-9;]*[34]8;5' && fail "none: $(screen -e | grep int)"
    keys '/theme 16' Enter; sleep 0.3
    screen -e | grep -qE $'\e\\[36m(\e\\[49m)?int' || fail "16: $(screen -e | grep int)"
    keys '/theme blue' Enter; see 'themes: 16, dark, light, none'
    keys C-d; check_left 0
    shell 'TERM=screen'; start --words 20 --theme dark; keys 'go' Enter; see 'w11'
    screen -e | grep -q '38;5' && fail '256 colours on a terminal of 8'
    keys C-d; check_left 0
    shell 'NO_COLOR=1'; start --words 20 --theme dark; keys 'go' Enter; see 'w11'
    screen -e | grep -qE $'\e\\[[0-9;]*(3[0-7]|38)' && fail 'colours in spite of NO_COLOR'
    keys C-d; check_left 0
}

for t in $(declare -F | sed -n 's/^declare -f \(t_.*\)/\1/p'); do
    case $t in *"${1:-}"*) ;; *) continue ;; esac
    problems=
    $t
    if [ -z "$problems" ]; then
        echo "ok ui_screens_${t#t_}"
    else
        printf '%s' "$problems"
        echo "not ok ui_screens_${t#t_}"
        failed=1
    fi
done
exit $failed
