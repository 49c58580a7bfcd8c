# search.sh SECONDS TARGET... - libFuzzer on one target after the other, each on
# its corpus and on what earlier runs found ($B/found, never in the tree). What
# breaks a target is kept in $B and ends with status 1.
set -u
seconds=$1
shift
bad=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=0}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/lsan.supp:print_suppressions=0}
for target; do
    name=$(basename "$target" -search)
    mkdir -p "$B/found/$name"
    log=$B/$name.log
    if "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
        -max_len=8192 -artifact_prefix="$B/$name-" -print_final_stats=1 \
        "$B/found/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        echo "ok fuzz_$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
    else
        tail -n 40 "$log" | sed 's/^/# /'
        echo "not ok fuzz_$name"
        bad=1
    fi
done
exit $bad
