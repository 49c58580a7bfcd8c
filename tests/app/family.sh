#!/bin/bash
# family.sh - the commands with models of other architectures than the shipped
# one: what is said of them, answers, figures, refusals.
set -u
cd "$(dirname "$0")/../.." || exit 1
TERN=${TERN:-$PWD/build/tern}
BUILD=${BUILD:-$PWD/build}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home LC_ALL=C.UTF-8
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME TERN_MODEL NO_COLOR
# A driver that is unloaded has no name by which its leaks could be excused.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
mkdir -p "$HOME"
out=$scratch/out err=$scratch/err
failed=0

result() { # NAME, status of the condition
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "# stdout: $(head -c 800 "$out")"
        echo "# stderr: $(head -c 600 "$err")"
        echo "not ok $1"
        failed=1
    fi
}

tern() { # runs it; $rc, $out and $err hold what came of it
    "$TERN" "$@" >"$out" 2>"$err" </dev/null
    rc=$?
}

says() { # TEXT...: the last output has each of these
    for text; do
        grep -qE -- "$text" "$out" || return 1
    done
}

json() { # KEY: a number or word of the one-line object in $out
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$out"
}

for kind in qwen3 qwen35 qwen35moe rotated; do
    "$BUILD/tests/engine/make_model" $kind "$scratch/$kind.gguf" || exit 1
done

# ---- what is said of them ----------------------------------------------------

tern info "$scratch/qwen3.gguf"
[ "$rc" -eq 0 ] && says '^architecture +qwen3$' '^quantisation +PQ2_0 9[0-9]%' \
    '^layers +2: 0 recurrent, 2 attention; width 256' '^context +4096 tokens' \
    '^chat format +qwen3.8' \
    '^thinking +yes, unless switched off; effort low, medium, high \(usual\)$' \
    '^memory +.* on the device: weights .*, 4096 tokens of context .*, working memory ' \
    '^runs +yes$' && ! grep -q 'recurrent state' "$out"
result info_plain $?
tern info "$scratch/qwen35moe.gguf" --ctx 100
[ "$rc" -eq 0 ] && says '^architecture +qwen35moe$' 'NVFP4 [0-9]+%' \
    '^experts +4, of which 2 are used' '^thinking +no$' \
    ' 100 tokens of context .*, recurrent state .*, working memory ' '^runs +yes$'
result info_experts $?
tern info "$scratch/rotated.gguf"
[ "$rc" -eq 1 ] && says '^architecture +qwen35$' \
    '^runs +no: its weights are rotated .*prism.hadamard.version 9'
result info_rotated_another_way $?

tern info "$scratch/qwen35.gguf"
[ "$rc" -eq 0 ] && says '^quantisation +Q4_K' '^layers +4: 3 recurrent, 1 attention' \
    '^chat format +chatml' '^note +the file has no chat template; ChatML is assumed$'
result info_without_template $?

# ---- what they do ------------------------------------------------------------

tern devices
if [ "$rc" -ne 0 ]; then
    echo "skip family_with_a_device: $(head -n 1 "$err")"
    exit $failed
fi
tern run -m "$scratch/rotated.gguf" hi
[ "$rc" -eq 1 ] && [ ! -s "$out" ] && grep -q 'prism.hadamard.version 9' "$err"
result run_rotated_another_way $?
tern run -m "$scratch/qwen35.gguf" --ctx 4000000000 hi
[ "$rc" -ne 0 ] && [ ! -s "$out" ]
result run_absurd_context $?

tern run -m "$scratch/qwen35.gguf" --temp 0 -n 2 hello
[ "$rc" -eq 0 ] && grep -qx 'tern: the file has no chat template; ChatML is assumed' "$err"
result run_says_what_is_assumed $?

# Without recurrent layers: a turn, a second one that reads nothing twice, in
# processes of their own.
tern run -m "$scratch/qwen3.gguf" --temp 0 -n 5 --json hello
[ "$rc" -eq 0 ] && [ "$(json generated_tokens)" -le 5 ] && [ "$(json reused_tokens)" = 0 ]
result run_plain $?
tern run -m "$scratch/qwen3.gguf" --temp 0 -n 3 --json -c last again
[ "$rc" -eq 0 ] && [ "$(json reused_tokens)" -gt 20 ]
result run_plain_reads_nothing_twice $?
tern run -m "$scratch/qwen3.gguf" --temp 0 -n 3 --json --effort low --think on \
    --repeat-penalty 1.1 --presence-penalty 0.5 --frequency-penalty -0.5 hello
[ "$rc" -eq 0 ] && [ "$(json stop)" = length ]
result run_every_option $?
tern bench -m "$scratch/qwen3.gguf" -p 20 -n 4 -r 1 -d 10 --json
[ "$rc" -eq 0 ] && says '"test":"pp20","depth":10' '"test":"tg4","depth":10'
result bench_plain $?
tern logits -m "$scratch/qwen3.gguf" --ids 1,2,3 -n 2
[ "$rc" -eq 0 ] && says '^top [0-9]+:' '^greedy [0-9]+ [0-9]+$'
result logits_plain $?
exit $failed
