# sanitize.sh TOOL CARD_TESTS: the products under compute-sanitizer. 77 (skipped) where that is not installed or there is no card.
command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not on PATH"; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
compute-sanitizer --tool "$1" --error-exitcode 1 "$2" --gtest_filter='products.*' >"$log" 2>&1
status=$?
cat "$log"
grep -q 'PASSED  . 0 tests' "$log" && exit 77
exit $status
