#!/bin/bash
# run.sh TEST... - runs test programs and scripts one after the other and adds
# up their "ok NAME", "not ok NAME" and "skip NAME: why" lines.
#
# A test that ends without such a line, dies, or exits nonzero without a
# "not ok" line has failed. The whole output of each is kept in $BUILD/logs.
# The last line is "N passed, N failed", with ", N skipped" where there are
# any; before it stand the figures of "# count inputs|faults|kills|bytes N" lines,
# summed up. The exit status is 0 only if something passed and nothing failed.
set -u

BUILD=${BUILD:-build}
TERN=${TERN:-$BUILD/tern}
LIMIT=${TEST_SECONDS:-600} # a program that runs longer is killed
passed=0 failed=0 skipped=0
declare -A counts=()

# Tests see neither the settings nor the conversations of who runs them.
home=$(mktemp -d) || exit 1
trap 'rm -rf "$home"' EXIT
trap 'exit 130' INT TERM
case $BUILD in /*) ;; *) BUILD=$PWD/$BUILD ;; esac
case $TERN in /*) ;; *) TERN=$PWD/$TERN ;; esac
export BUILD TERN HOME=$home LC_ALL=C.UTF-8
export DEMO=$BUILD/tests/ui/demo # the front end with a scripted engine
export MESA_SHADER_CACHE_DIR=$BUILD/mesa # saves compiling the same shaders each time
unset XDG_DATA_HOME XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME TERN_MODEL TMUX NO_COLOR
mkdir -p "$BUILD/logs"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/lsan.supp:print_suppressions=0}
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$PWD/tests/tsan.supp}

# The name of the log: tests/ui/x.sh and build/tests/ui/test_x alike.
log_of() {
    local name=${1#"$BUILD"/}
    name=${name#*tests/}
    echo "$BUILD/logs/${name//\//-}.log"
}

# Reasons for failures and skips: everything but the lines of what passed.
show() { # LOG
    grep -av '^ok ' "$1" | head -n 200 | sed 's/^/    /'
}

run_one() { # TEST
    local log rc ok bad skip start=$EPOCHREALTIME
    log=$(log_of "$1")
    { timeout -k 10 "$LIMIT" "$1" >"$log" 2>&1 </dev/null; } 2>/dev/null
    rc=$?
    local us=$((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}))
    ok=$(grep -ac '^ok ' "$log")
    bad=$(grep -ac '^not ok ' "$log")
    skip=$(grep -ac '^skip ' "$log")
    if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
        echo "not ok: killed or out of time (exit status $rc)" >>"$log"
        bad=$((bad + 1))
    elif [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then
        echo "not ok: exit status $rc" >>"$log"
        bad=1
    elif [ $((ok + bad + skip)) -eq 0 ]; then
        echo "not ok: no result line" >>"$log"
        bad=1
    fi
    while read -r _ _ what n; do
        counts[$what]=$((${counts[$what]:-0} + n))
    done < <(grep -a '^# count [a-z]* [0-9]*$' "$log")
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-44s %4d ok %8d.%02d s%s%s\n' "${1#"$BUILD"/}" "$ok" $((us / 1000000)) \
        $((us % 1000000 / 10000)) "$([ "$bad" -eq 0 ] || echo "  $bad FAILED")" \
        "$([ "$skip" -eq 0 ] || echo "  $skip skipped")"
    [ $((bad + skip)) -eq 0 ] || show "$log"
}

for t; do
    run_one "$t"
done
[ $((passed + failed)) -gt 0 ] || echo "nothing ran"
for what in "inputs tried" "faults injected" "kills survived" "bytes lost"; do
    n=${counts[${what% *}]:-}
    [ -z "$n" ] || printf '%s %s\n' "$n" "$what"
done
printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" -eq 0 ] || printf ', %d skipped' "$skipped"
echo
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
