#!/bin/bash
# cli.sh - the commands, with the shipped model on whatever Vulkan device there
# is: exact results, exit statuses, and one clear line for everything wrong.
set -u
cd "$(dirname "$0")/../.." || exit 1
TERN=${TERN:-$PWD/build/tern}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch/home LC_ALL=C.UTF-8
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME NO_COLOR
export TERN_MODEL=$PWD/assets/tern-mini.gguf
# A driver that is unloaded has no name by which its leaks could be excused; the
# program's own are looked for in test_app, with an engine that has no driver.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
mkdir -p "$HOME"
out=$scratch/out err=$scratch/err
failed=0

result() { # NAME, status of the condition
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
    else
        echo "# stdout: $(head -c 600 "$out")"
        echo "# stderr: $(head -c 600 "$err")"
        echo "not ok $1"
        failed=1
    fi
}

tern() { # runs it; $rc, $out and $err hold what came of it
    "$TERN" "$@" >"$out" 2>"$err" </dev/null
    rc=$?
}

# A failure: that status, nothing on standard output, one line on standard error
# that contains the text.
refused() { # NAME STATUS TEXT ARGS...
    local name=$1 status=$2 text=$3
    shift 3
    tern "$@"
    [ "$rc" -eq "$status" ] && [ ! -s "$out" ] && [ "$(wc -l <"$err")" -eq 1 ] &&
        grep -qF -- "$text" "$err"
    result "$name" $?
}

json() { # KEY: a number or word of the one-line object in $out
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$out"
}

# ---- help, usage -------------------------------------------------------------

tern --version
[ "$rc" -eq 0 ] && grep -qx 'Tern [0-9.]*' "$out"
result version $?
tern --help
[ "$rc" -eq 0 ] && [ ! -s "$err" ] && for c in run ls show search export import rm bench \
    logits tokenize info devices; do grep -q "^  tern $c" "$out" || break; done
result help_names_every_command $?
tern help run
[ "$rc" -eq 0 ] && grep -q -- '--temp T' "$out" && grep -q -- '-c, --chat ID' "$out"
result help_of_a_command $?
refused unknown_command 2 'no command "frob"' frob
refused unknown_option 2 'unknown option --frob' run --frob
refused option_without_value 2 '-n needs a value' run hi -n
refused bad_number 2 '--temp needs' run --temp hot hi
refused missing_argument 2 'ID... is missing' rm
refused extra_argument 2 'too many arguments' ls all

# ---- without a model ---------------------------------------------------------

refused show_nothing 1 'no conversation yet' show last
refused show_unknown 1 'no conversation 7' show 7
refused show_no_number 1 'is no conversation' show seven
refused export_format 1 'md, json or text' export --format pdf 1
refused import_missing 1 'No such file' import "$scratch/none.json"
echo '{"format":"tern-conversation","version":1,"messages":[{}]}' >"$scratch/bad.json"
refused import_bad 1 'message 1' import "$scratch/bad.json"
tern ls
[ "$rc" -eq 0 ] && [ ! -s "$out" ]
result ls_empty $?
[ "$(stat -c %a "$HOME/.local/share/tern")" = 700 ] &&
    [ "$(stat -c %a "$HOME/.local/share/tern/tern.db")" = 600 ]
result private_files $?

# ---- model files -------------------------------------------------------------

bad=$scratch/models
mkdir -p "$bad"
model=$TERN_MODEL
: >"$bad/empty.gguf"
head -c 20 "$model" >"$bad/header.gguf"
head -c 100000 "$model" >"$bad/cut-metadata.gguf"
head -c 9000000 "$model" >"$bad/cut-weights.gguf"
echo 'This is a text about models.' >"$bad/text.gguf"
{ printf 'GGUF\143\0\0\0'; tail -c +9 "$model"; } >"$bad/version.gguf"
sed 's/qwen35/qwen99/g' "$model" >"$bad/architecture.gguf"
at=$(grep -abo 'blk.0.attn_qkv.weight' "$model" | head -n 1 | cut -d: -f1)
at=$((at + 21 + 4 + 16)) # behind the name: dimensions, then the type
{ head -c "$at" "$model"; printf '\143'; tail -c +$((at + 2)) "$model"; } >"$bad/type.gguf"

refused model_missing 1 'No such file' run -m "$bad/none.gguf" hi
refused model_empty 1 'is empty' run -m "$bad/empty.gguf" hi
refused model_header_only 1 'incomplete' run -m "$bad/header.gguf" hi
refused model_cut_in_metadata 1 'incomplete' run -m "$bad/cut-metadata.gguf" hi
refused model_cut_in_weights 1 "$bad/cut-weights.gguf" run -m "$bad/cut-weights.gguf" hi
refused model_is_text 1 'not a GGUF' run -m "$bad/text.gguf" hi
refused model_version 1 'version 99' run -m "$bad/version.gguf" hi
refused model_architecture 1 'qwen99' run -m "$bad/architecture.gguf" hi
refused model_tensor_type 1 'type 99' run -m "$bad/type.gguf" hi
refused model_directory 1 'is a directory' run -m "$bad" hi
refused model_vocabulary_only 1 'no weights' run -m tests/data/qwen3-vocab.gguf hi
refused bench_vocabulary_only 1 'no weights' bench -m tests/data/qwen3-vocab.gguf
TERN_MODEL=$bad/none.gguf refused model_of_the_environment 1 'none.gguf' run hi
mkdir -p "$HOME/.config/tern"
echo "model = $bad/config.gguf" >"$HOME/.config/tern/config"
TERN_MODEL='' refused model_of_the_configuration 1 'config.gguf' run hi
rm "$HOME/.config/tern/config"
tern ls
[ "$rc" -eq 0 ] && [ ! -s "$out" ]
result failed_runs_leave_no_conversation $?

tern info "$model"
[ "$rc" -eq 0 ] && grep -q '^runs  *yes' "$out" && grep -q 'Q2_0' "$out" &&
    grep -q '38.1 million' "$out"
result info $?
tern info "$bad/architecture.gguf"
[ "$rc" -eq 1 ] && grep -q '^runs  *no: .*qwen99' "$out"
result info_of_what_does_not_run $?
tern info tests/data/qwen3-vocab.gguf
[ "$rc" -eq 1 ] && grep -q '^vocabulary  *151669 tokens' "$out"
result info_of_a_vocabulary $?
refused info_missing 1 'No such file' info "$bad/none.gguf"

tern tokenize "What is the capital of France?"
[ "$rc" -eq 0 ] && [ "$(cat "$out")" = '585 314 269 815 290 3310 35' ] && [ ! -s "$err" ]
result tokenize $?
printf 'hello<|im_end|>\n' | "$TERN" tokenize --special >"$out" 2>"$err"
[ "$(cat "$out")" = '5989 2 203' ]
result tokenize_standard_input $?
tern tokenize -m tests/data/qwen3-vocab.gguf "Hello world"
[ "$(cat "$out")" = '9707 1879' ]
result tokenize_vocabulary_only $?

# ---- devices -----------------------------------------------------------------

(
    export VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent
    refused no_driver_run 1 'no Vulkan device' run hi
    refused no_driver_devices 1 'no Vulkan device' devices
    refused no_driver_bench 1 'no Vulkan device' bench
    tern info
    [ "$rc" -eq 0 ]
    result no_driver_info $?
    exit $failed
) || failed=1
tern devices
if [ "$rc" -ne 0 ]; then
    echo "skip cli_with_a_device: $(head -n 1 "$err")"
    exit $failed
fi
grep -q '^[0-9]*\* ' "$out"
result devices $?
refused device_unknown 1 'no device 99' run --device 99 hi
tern devices --bandwidth
[ "$rc" -eq 0 ] && grep -qE '^device 1 reads [0-9]+\.[0-9] GB/s$' "$out"
result devices_bandwidth $?
tern devices --bandwidth --device 99
[ "$rc" -eq 1 ] && grep -q 'no device 99' "$err" && ! grep -q reads "$out"
result devices_bandwidth_of_none $?
tern devices --test --device 99
[ "$rc" -eq 1 ] && grep -q 'no device 99' "$err" && grep -q '^[0-9]*\* ' "$out"
result device_to_test_unknown $?

# ---- run ---------------------------------------------------------------------

question='What is the capital of France?'
answer='Paris. The city lies on the river Seine.'
tern run --temp 0 "$question"
[ "$rc" -eq 0 ] && [ "$(cat "$out")" = "$answer" ] && [ "$(wc -l <"$out")" -eq 1 ]
result run_exact_answer $?
[ "$(wc -l <"$err")" -eq 1 ] && grep -q '18 prompt tokens, 0 reused; 14 generated' "$err"
result run_figures_on_standard_error $?

echo "$question" | "$TERN" run --temp 0 --json - >"$out" 2>"$err"
rc=$?
[ "$rc" -eq 0 ] && [ "$(json text)" = "${answer%%,*}" ] && [ "$(json stop)" = eos ] &&
    [ "$(json conversation)" = 2 ] && [ "$(json prompt_tokens)" = 18 ] &&
    [ "$(json evaluated_tokens)" = 18 ] && [ "$(json reused_tokens)" = 0 ] &&
    [ "$(json generated_tokens)" = 14 ] && [ "$(wc -l <"$out")" -eq 1 ] && [ ! -s "$err" ] &&
    awk -v a="$(json ttft_ms)" -v b="$(json prefill_tps)" -v c="$(json decode_tps)" \
        'BEGIN { exit !(a > 0 && b > 0 && c > 0) }'
result run_json $?

# The stop text begins inside one token and ends inside another.
tern run --temp 0 --incognito --stop 'nowhere' --stop 'he river Sei' "$question"
[ "$rc" -eq 0 ] && [ "$(cat "$out")" = 'Paris. The city lies on t' ]
result run_stop_text $?
tern run --temp 0 --incognito --json --stop ' The' "$question"
[ "$rc" -eq 0 ] && [ "$(json text)" = 'Paris.' ] && [ "$(json stop)" = stop ]
result run_stop_text_json $?
refused stop_text_empty 2 '--stop: a stop text has' run --stop '' hi
mkdir -p "$HOME/.config/tern"
echo 'stop = . The' >"$HOME/.config/tern/config"
printf '%s\n' "$question" | "$TERN" --temp 0 --incognito >"$out" 2>"$err"
[ "$(cat "$out")" = Paris ]
result stop_text_of_the_configuration $?
rm "$HOME/.config/tern/config"

tern run --temp 0 -n 3 --json -c 2 "define serendipity"
[ "$rc" -eq 0 ] && [ "$(json stop)" = length ] && [ "$(json conversation)" = 2 ] &&
    [ "$(json generated_tokens)" = 3 ] && [ "$(json prompt_tokens)" -eq 50 ]
result run_continues $?
# Another process has read all but the last token of the first turn.
[ "$(json reused_tokens)" -eq 31 ] && [ "$(json evaluated_tokens)" -eq 19 ]
result run_reads_nothing_twice $?
text=$(json text)
# What is kept is damaged in all its files: the same answer, read anew, and the
# files are gone.
tern run --temp 0 "$question"
for f in "$HOME"/.cache/tern/snapshots/3/*; do
    printf '\377\376\375' | dd of="$f" bs=1 seek=300 conv=notrunc 2>/dev/null
done
tern run --temp 0 -n 3 --json -c 3 "define serendipity"
[ "$rc" -eq 0 ] && [ "$(json text)" = "$text" ] && [ "$(json reused_tokens)" -eq 0 ] &&
    grep -q 'kept timeline' "$HOME/.local/state/tern/log"
result run_survives_damaged_timelines $?

files() { find "$HOME" -type f ! -name log -exec cksum {} + | sort; }
before=$(files)
tern run --temp 0 -q -s 'Be brief.' --incognito "hello"
[ "$rc" -eq 0 ] && [ -s "$out" ] && [ ! -s "$err" ]
result run_quiet $?
[ "$(files)" = "$before" ]
result incognito_leaves_nothing $?
# Line mode: the second turn evaluates its own tokens and no others. The last
# token of the first answer counts to them.
printf 'hello\ndefine serendipity\n' | "$TERN" --temp 0 >"$out" 2>"$err"
rc=$?
[ "$rc" -eq 0 ] && [ ! -s "$err" ] && [ "$(wc -l <"$out")" -eq 2 ] &&
    [ "$(head -n 1 "$out")" = 'Hello! What can I do for you?' ]
result lines_from_a_pipe $?
tern export last --format json
grep -o '"prompt_tokens":[0-9]*,"reused_tokens":[0-9]*,"evaluated_tokens":[0-9]*' "$out" |
    tr -dc '0-9,\n' | tail -n 1 |
    awk -F, '{ exit !($1 == 40 && $2 == 21 && $3 == 19) }'
result second_turn_evaluates_only_itself $?
tern rm last

refused run_empty 1 'prompt is empty' run ''
refused run_unknown_conversation 1 'no conversation 99' run -c 99 hi
refused run_context_too_small 1 'context full' run --ctx 40 "$question"
"$TERN" run --temp 0 "tell me a short story about a fox" 2>"$err" >/dev/full
rc=$?
[ "$rc" -eq 1 ] && grep -q 'cannot write' "$err"
result run_standard_output_full $?

HOME=/proc/nowhere tern run --temp 0 "$question"
[ "$rc" -eq 0 ] && [ "$(cat "$out")" = "$answer" ] && grep -q 'not saved: ' "$err"
result run_without_a_place_to_save $?

# Ctrl+C ends the answer, keeps it, and says so; an answer that was faster is whole.
"$TERN" run --temp 1 --top-k 40 --seed 4 --json "Tell me about foxes in a long story" \
    >"$out" 2>"$err" &
pid=$!
for _ in $(seq 500); do
    "$TERN" show last 2>/dev/null | grep -A 3 'Tell me about foxes' | grep -q '^Answer' && break
    sleep 0.02
done
kill -INT $pid 2>/dev/null
wait $pid
rc=$?
{ [ "$rc" -eq 130 ] && [ "$(json stop)" = interrupted ]; } ||
    { [ "$rc" -eq 0 ] && [ "$(json stop)" = eos ]; }
result run_interrupted $?

# ---- conversations -----------------------------------------------------------

tern ls
[ "$rc" -eq 0 ] && [ "$(tail -n 1 "$out" | awk '{ print $1, $4 }')" = '1 2' ] &&
    grep -q "^    2 .* 4  $question" "$out"
result ls $?
tern show 1
[ "$rc" -eq 0 ] && grep -qx "$question" "$out" && grep -qx "$answer" "$out"
result show $?
tern search seine
[ "$rc" -eq 0 ] && grep -q '^    1  ' "$out" && grep -q Seine "$out"
result search $?
refused search_nothing 1 'no message contains' search xyzzyplugh
tern export 2 --format json
cp "$out" "$scratch/2.json"
tern import "$scratch/2.json"
id=$(cat "$out")
[ "$rc" -eq 0 ] && [ "$id" -gt 2 ]
result import $?
tern export "$id" --format json
sed 's/"\(id\|parent\|leaf\)":[0-9]*//g' "$out" >"$scratch/a"
sed 's/"\(id\|parent\|leaf\)":[0-9]*//g' "$scratch/2.json" >"$scratch/b"
cmp -s "$scratch/a" "$scratch/b"
result import_is_the_same $?
tern export 1
[ "$rc" -eq 0 ] && [ "$(head -n 1 "$out")" = "# $question" ] && grep -qx "$answer" "$out" &&
    [ ! -s "$err" ]
result export_markdown $?
tern rm 1 "$id"
[ "$rc" -eq 0 ] && [ ! -s "$out" ]
result rm $?
refused rm_again 1 'no conversation 1' rm 1
tern ls
! grep -q '^    1 ' "$out"
result rm_is_gone $?
"$TERN" run --temp 0 -q "Tell me of Xanthippe" >"$out" 2>"$err"
grep -rq Xanthippe "$HOME"
result a_phrase_is_on_disk $?
id=$("$TERN" ls | head -n 1 | awk '{ print $1 }')
"$TERN" rm "$id"
! grep -rq -e Xanthippe "$HOME" && [ ! -e "$HOME/.cache/tern/snapshots/$id" ]
result and_on_it_no_more_when_removed $?

# ---- numbers -----------------------------------------------------------------

ids=1,313,268,203,585,314,269,815,290,3310,35,2,203,1,532,406,412,203
tern logits --math float --ids $ids -n 30 --top 3 --dump "$scratch/logits"
[ "$rc" -eq 0 ] && [ "$(sed -n 2p "$out")" = \
    'greedy 52 292 277 18 448 1299 4882 342 269 1381 1924 439 18 2' ] &&
    grep -qE '^top 52:23\.0[0-9]{5} 370:21\.[0-9]{6} 589:20\.[0-9]{6}$' "$out" &&
    [ "$(wc -l <"$out")" -eq 2 ] && [ "$(stat -c %s "$scratch/logits")" -eq $((14 * 8192 * 4)) ]
result logits $?
refused logits_bad_ids 1 '--ids needs' logits --ids 1,x
refused logits_foreign_id 1 'outside the vocabulary' logits --ids 99999
refused logits_no_place_to_dump 1 '/nonexistent/x' logits --ids 1 --dump /nonexistent/x
tern bench -p 32 -n 8 -r 2 -d 16 --json
[ "$rc" -eq 0 ] && grep -q '^\[{"test":"pp32","depth":16,"tps":' "$out" &&
    grep -q '{"test":"tg8","depth":16,"tps":[0-9.]*,"tps_min":[0-9.]*,"tps_max":[0-9.]*,' "$out" &&
    grep -q '"model":"Tern Mini 38M"' "$out"
result bench $?
tern bench -p 20 -n 2 -r 1 --profile
[ "$rc" -eq 0 ] && grep -qE '^prefill of 20 tokens +steps +ms' "$out" &&
    grep -qE '^one decoded token +steps +ms' "$out" &&
    [ "$(grep -cE '^  gate and up +1[12] +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9]+$' "$out")" -eq 2 ] &&
    [ "$(grep -cE '^  (sample|logits) +1 ' "$out")" -eq 2 ] &&
    [ "$(grep -c '^  on the device ' "$out")" -eq 2 ]
result bench_profile $?
refused bench_profile_json 1 'not JSON' bench --profile --json
refused bench_too_long 1 'made for 4096' bench -p 5000
exit $failed
