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
    [ -z "$problems" ] || return 1 # the first one tells the most
    for i in $(seq 200); do
        screen | grep -qE -- "$1" && return 0
        sleep 0.05
    done
    fail "not on the screen: $1"$'\n'"$(screen | sed 's/^/#   |/')"
    return 1
}
not_see() { [ -z "$problems" ] && screen | grep -qE -- "$1" && fail "on the screen: $1"$'\n'"$(screen | sed 's/^/#   |/')"; return 0; }
gone() { # REGEX: within 10 seconds it is not there any more
    local i
    [ -z "$problems" ] || return 1
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

# A question whose reading was cut off by the end of the program has no answer yet.
t_no_answer_yet() {
    local pid
    shell 80 24 FAKE_PREFILL_US=100000 FAKE_CHUNK=2 "FAKE_ANSWERS='first'"
    start
    say 'one'; see 'reading'; not_see 'no answer'
    pid=$(pgrep -P "$(mux list-panes -t chat -F '#{pane_pid}')" -f fake_tern)
    kill -9 "$pid"; left 137
    keys 'reset' Enter; sleep 0.5
    start -c last; see '^\[no answer yet: /retry asks for one\]'
    keys C-r; gone 'no answer yet'; see '^first'
    keys C-d; left
    # And one that waits for the model; it can be called off.
    keys 'export FAKE_LOAD_MS=3000; clear' Enter; start
    say 'two'; see '^\[answered as soon as there is a model\]'; keys Escape; see '^\[no answer yet'
    say '/retry'; see '^\[answered as'; see '^first'; not_see '\[answered'
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

# ---- branches and settings ------------------------------------------------------

t_undo_redo() {
    shell 80 24 "FAKE_ANSWERS='first|second|third'"
    start
    say 'one'; see '^first'; say 'two'; see '^second'
    say '/undo'; see '^> two'; gone '^second'
    keys C-u; say '/redo'; see '^second'
    say '/undo'; see '^> two'; type ' changed'; keys Enter; see '^third'; see 'version 2 of 2'
    keys M-Left; see '^second'; see 'version 1 of 2'; keys M-Right; see '^third'
    say '/fork'; see 'one \(fork\)'; keys C-d; left
    [ "$(tern ls | wc -l)" = 2 ] || fail "$(tern ls)"
}

t_continue() {
    shell 80 24 FAKE_STEP_MS=40 "FAKE_ANSWERS='an answer that goes on for long enough to be stopped| and its end'"
    start
    say 'one'; see 'an answer'; keys Escape; see '\[stopped\]'
    say '/continue'; see 'and its end'; not_see 'stopped'; not_see 'version'
    keys C-d; left
}

t_edit_answer() {
    shell 80 24 "FAKE_ANSWERS='wrong|next'"
    start
    say 'one'; see '^wrong'
    keys M-Up M-e; see 'edit> wrong'; keys C-u; say 'right'; see '^right'; see 'version 2 of 2'
    see ready; say 'two'; see '^next'
    keys C-d; left
}

# Far back, in a conversation whose state another one has pushed out.
t_edit_cost() {
    shell 80 24 FAKE_PREFILL_US=8000 "FAKE_ANSWERS='first|second'"
    start --incognito # nothing comes back from disk
    say 'a question that is long enough to be worth it, and its answer too, whatever'; see '^first'; see ready
    say 'and a second one that is not much shorter either'; see '^second'; see ready
    keys M-e; see '^edit> and a second'; see '^editing: Enter sends'; keys Escape; gone 'editing'
    keys C-n; say 'elsewhere'; see '^second'; see ready
    keys C-o; see '^   a question'; keys Down Enter; see '^first'
    keys M-e; see '^edit> and a second'; see 'sending this reads 1[0-9]+ tokens again, some 1 s'
    keys C-u; say 'short'; see 'version 2 of 2'
    keys C-d; left
}

# What a change of the system prompt costs is said before it is paid.
t_system() {
    shell 80 24 FAKE_PREFILL_US=20000 "FAKE_ANSWERS='first'"
    start -s 'Be-brief.'
    say 'a question that is long enough to be worth it'; see '^first'
    see 'Be-brief'
    say '/system'; see '^> /system Be-brief'; keys C-u
    say '/system Be-long.'; see 'reads [0-9]+ tokens again, some [0-9]+ s; Enter once more'
    see '^> /system Be-long'; see 'Be-brief'
    keys Enter; see '^Be-long'; see 'version 2 of 2'; see '^first'
    keys M-Up M-Up M-Up M-e; see 'edit> Be-long'; keys C-u; say 'Edited.'; see '^Edited'
    keys C-d; left
}

t_presets() {
    shell 100 24 "FAKE_ANSWERS='first'"
    mkdir -p "$HOME/.config/tern"
    printf '[preset coder]\nsystem = Write-code.\ntemperature = 0.1\n[preset poet]\ntemperature = 1.5\n' > "$HOME/.config/tern/config"
    start
    type '/preset '; keys Tab Tab; see '^> /preset none|^> /preset coder'; keys C-u
    say '/preset'; see 'presets: coder, poet, none'
    say '/preset coder'; see 'coder: temperature 0.1'
    say 'one'; see '^Write-code'; see '^first'
    say '/set top_k 7'; see 'coder: top_k 7'
    say '/temp 9999'; see 'temperature needs a number'; keys C-c
    keys C-n; see 'Type a message'; not_see 'coder'
    keys C-d; left
    start -c last; see 'coder: top_k 7'
    say '/preset none'; gone 'coder'; say '/set'; see 'all as the model recommends'
    keys C-d; left
    start --temp 0 -c last; see 'temperature 0'; keys C-d; left
}

# ---- models -------------------------------------------------------------------------

t_models() {
    shell 100 30 FAKE_BY_FILE=1 FAKE_CHUNK=4 "FAKE_ANSWERS='first|second'"
    mkdir -p "$HOME/models/deeper" "$HOME/more models" "$HOME/.config/tern"
    touch "$HOME/models/one.gguf" "$HOME/models/deeper/two.gguf" "$HOME/more models/odd.gguf" \
        "$HOME/models/bad.gguf" "$HOME/models/part-00002-of-00003.gguf" "$HOME/models/note.txt" \
        "$HOME/models/$(printf 'evil\033[2J').gguf"
    printf 'models = ~/more models\n' > "$HOME/.config/tern/config"
    start -m "$HOME/models/one.gguf"
    say 'question'; see '^first'; keys C-p
    see '^\* one '; see '^  two '; see '^  odd .*does not run: an architecture'; see '^  bad.gguf +cannot be read'
    see '^  evil.x1b.2J'; not_see 'part|note'
    see '^architecture +fake'; see '^runs +yes'
    type 'bad'; see 'not a GGUF file'; keys Enter; see 'does not run it'
    keys C-u; type 'two'; see "^file .*/deeper/two.gguf"
    keys Enter; see 'reads this conversation anew'; keys Enter
    see '^two .* ready'; see '^first'
    say 'again'; see '^second'; keys M-i; see 'read [0-9]+ and reused [0-9]+  two'
    keys C-d; left
    # The other model reads it anew, and says whose it was.
    start -m "$HOME/models/one.gguf"; keys C-o; see '^ +question .* two '; keys Enter; see 'written with two'
    say "/model $HOME/models/deeper/two.gguf"; see '^two .* ready'; keys C-d; left
}

t_titles() {
    shell 100 24 FAKE_STEP_MS=30 "FAKE_ANSWERS='first|The Causes of Rain|second'"
    mkdir -p "$HOME/.config/tern"; printf 'titles = model\n' > "$HOME/.config/tern/config"
    start
    say 'why does it rain'; see '^why does it rain'; see '^first'; see '^The Causes of Rain'
    say 'more'; see '^second'; see ready
    keys C-o; see '^\*  The Causes of Rain'; keys Escape
    keys C-d; left
}

# ---- keys ---------------------------------------------------------------------------

t_other_keys() {
    shell 80 24 "FAKE_ANSWERS='first'"
    mkdir -p "$HOME/.config/tern"
    printf '[keys]\nedit = F4\nlist = none\nfind = Ctrl+O\nfly = F9\n' > "$HOME/.config/tern/config"
    start; see 'no action "fly"'
    say 'one'; see '^first'
    keys M-e; sleep 0.3; not_see 'edit>'
    keys F4; see '^edit> one'; keys Escape
    keys C-o; see '^find>'; type 'FIR'; keys Enter; see 'first'; keys Escape
    keys F1; see 'F4 +edit your last'; not_see 'conversations: open'; keys Escape
    keys C-d; left
}

# ---- figures ----------------------------------------------------------------------

# Exactly 20 tokens a second after 3 seconds of reading: the one is not mixed into
# the other, thinking is counted, and the count is the engine's.
t_rates() {
    shell 110 24 FAKE_STEP_MS=50 FAKE_PREFILL_US=60000 FAKE_CHUNK=5 \
        "FAKE_ANSWERS='<think>a thought of some length, which takes its time to be thought out</think>and then the answer itself'"
    start
    say '12345678901234567890123456789012345678901234567'
    see 'reading [0-9]+/52'; see 'reading [1-4][0-9]/52'
    see 'Thinking for [0-9.]+ s, [0-9]+ tokens'; see 'writing [2-6][0-9]'; see '(19|20)\.[0-9] tok/s'
    see 'Thought for 3\.[0-9] s, 66 tokens'; see 'ready'
    see 'first 3\.[0-4] s'; see '(19\.[5-9]|20\.[0-5]) tok/s'; see '(▁|▂|▃|▄|▅|▆|▇|█){4}'
    keys M-i; see 'Assistant .* 93 tokens at (19\.[5-9]|20\.[0-5])/s, first after 3\.[0-4] s, read 53'
    keys C-d; left
}

# A prompt of 8,000 tokens: how far it is, how fast and how long still; stopping takes
# no longer than a chunk, and what was read is not read again.
t_long_prompt() {
    shell 110 24 FAKE_PREFILL_US=600 FAKE_CHUNK=128 FAKE_CTX=20000 "FAKE_ANSWERS='first'"
    seq -w 1 1600 > "$HOME/long.txt"
    start --incognito
    say "/file $HOME/long.txt"; see 'long.txt: 1,600 lines, 8,000 bytes, 8,000 tokens'
    say 'sum?'; see 'reading [0-9,]+/8,0[0-9]+ .*[0-9] s left.* read 1[0-9]{3} tok/s .*░'
    for _ in 1 2 3 4 5 6; do screen | grep -o 'reading [0-9,]*'; sleep 0.25; done | sort -u > "$scratch/steps"
    [ "$(wc -l < "$scratch/steps")" -ge 4 ] || fail "$(cat "$scratch/steps")"
    keys C-c; gone 'reading'; see 'no answer yet'
    keys C-r; see 'reading [0-9,]+/[0-7],[0-9]+, [1-9],[0-9]+ reused'
    see '^first'; see 'ready'
    keys C-d; left
}

# ---- terminals ---------------------------------------------------------------------

# All of it in 40 columns and 10 rows.
t_small_window() {
    shell 40 10 FAKE_STEP_MS=10 "FAKE_ANSWERS='first line\\n\\n- an item of a list that is longer than the window is wide\\n\\nlast line|second'"
    start
    see '^Type a message and press Enter'; type 'hello'; see '^Enter sends, Ctrl.J breaks the line'; keys Enter
    see '^last line'; see 'ready'; keys PageUp; see '^You|^first line'; see 'below \(End\)'; keys End
    keys C-o; see '^\* +hello'; see 'Enter opens'; keys Escape
    keys C-p; see 'filter>'; keys Escape
    keys F1; see '(Ctrl|Alt|Enter)'; keys Escape
    keys M-e; see '^edit> hello'; keys Escape; gone 'edit>'
    say '/search line'; see 'search>'; see '^hello'; keys Enter; see 'first line'
    say 'more'; see '^second'; keys C-d; left
}

# Two hundred sizes while an answer comes; then it looks as if nothing had been.
t_resize_storm() {
    shell 80 24 FAKE_STEP_MS=6 "FAKE_ANSWERS='$(seq -s ' ' 400)'"
    start; say 'count'; see '10 11'
    for i in $(seq 200); do
        mux resize-window -x $((1 + RANDOM % 200)) -y $((1 + RANDOM % 60))
        [ $((i % 20)) -ne 0 ] || sleep 0.1
    done
    mux resize-window -x 80 -y 24
    see '399 400'; see 'ready'; sleep 0.5
    screen > "$scratch/one"; keys C-l; sleep 0.5; screen > "$scratch/two"
    cmp -s "$scratch/one" "$scratch/two" || fail "$(diff "$scratch/one" "$scratch/two")"
    keys C-d; left
}

t_suspended() {
    shell 80 24 FAKE_STEP_MS=30 "FAKE_ANSWERS='an answer that is still being written when the program is stopped'"
    start; say 'go'; see 'an ans'
    keys C-z; see 'Stopped'; keys 'stty -a | head -4; fg' Enter
    see 'program is stopped'; see 'ready'; type 'typed'; see '^> typed'
    keys C-c; see cleared; keys C-d; see '^shell> *$'
}

# A locale that says nothing about characters, on a terminal that has them all.
t_plain_locale() {
    shell 80 24 LC_ALL=C "FAKE_ANSWERS='Straße 你好'"
    start; say 'go'; see 'Straße 你好'; see '^────'
    keys C-d; left
}

# ---- the input --------------------------------------------------------------------

t_files() {
    shell 100 30 "FAKE_ANSWERS='first'"
    printf 'alpha\nbeta\n' > "$HOME/note.txt"; printf 'a\0b' > "$HOME/binary"
    keys "cd '$HOME'; clear" Enter; start
    say '/file note.txt'; see 'note.txt: 2 lines, 11 bytes, 11 tokens'; see 'Enter sends'
    say 'What is it?'; see '^note.txt:$'; see '^alpha'; see 'What is it'; see '^first'
    type 'see @no'; keys Tab; see '^> see @note.txt'; keys Enter
    see 'note.txt: 2 lines'; keys Enter; see '^see'
    say 'see @binary'; see 'binary is no text'; see '^> see @binary'; keys Enter; see '^see @binary'
    say '/file nowhere'; see 'nowhere'; keys C-c; see cleared
    type '/ex'; keys Tab; see '^> /export'; type 'out.md'; keys Enter; see 'written to out.md'
    grep -q '^## User' "$HOME/out.md" || fail "$(cat "$HOME/out.md")"
    [ "$(stat -c %a "$HOME/out.md")" = 600 ] || fail "mode $(stat -c %a "$HOME/out.md")"
    keys C-d; left
}

t_editor() {
    shell 80 24 "FAKE_ANSWERS='first'" FAKE_STEP_MS=30
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncat "$1" > "%s/seen"; echo "$1" > "%s/where"; stat -c %%a "$1" >> "%s/where"; printf "from the\\neditor\\n" > "$1"\n' "$HOME" "$HOME" "$HOME" > "$HOME/ed.sh"
    chmod +x "$HOME/ed.sh"; keys "export VISUAL=$HOME/ed.sh; clear" Enter; start
    type 'some text'; see '^> some text'; keys C-g; see '^> from the'; see '^  editor'
    [ "$(cat "$HOME/seen")" = 'some text' ] || fail "$(cat "$HOME/seen")"
    [ "$(tail -1 "$HOME/where")" = 600 ] || fail "$(cat "$HOME/where")"
    [ ! -e "$(head -1 "$HOME/where")" ] || fail 'the file is still there'
    keys Enter; see '^first'
    printf '#!/bin/sh\nexit 3\n' > "$HOME/ed.sh"
    type 'kept'; keys C-g; see 'the editor .* failed'; see '^> kept'
    printf '#!/bin/sh\nsleep 1; echo done > "$1"\n' > "$HOME/ed.sh"
    keys C-u; say 'two'; see 'writing|first'; keys C-g; see '^> done'; see ready
    keys C-c C-d; left
}

t_import() {
    shell 80 24 "FAKE_ANSWERS='first'"
    printf '[{"title":"Evil \\u001b]0;owned\\u0007","messages":[{"role":"user","content":"\\u001b[2Jq"},{"role":"assistant","content":"a"}]}]' > "$HOME/in.json"
    start
    say "/import $HOME/in.json"; see 'Evil \\x1b\]0;owned'; see '^\\x1b\[2Jq'; see '1 conversation added'
    say '/import nowhere.json'; see 'nowhere.json'; keys C-c
    say '/title A better one'; see '^A better one'; say '/pin'; see 'pinned to the top'
    keys C-o; see '^\*\^ A better one'; keys M-p; see '^\*  A better one'; keys Escape
    [ "$(mux display -p -t chat '#{pane_title}')" != owned ] || fail 'the title was set'
    keys C-d; left
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
