#!/usr/bin/env bash
# run.sh PROGRAM FOLDER...: fuzzes with libFuzzer for SCALIDE_FUZZ_SECONDS (60), starting from the files in the folders. What it has learnt
# stays in PROGRAM.corpus for the next time, an input that fails becomes PROGRAM.finding-*, and PROGRAM.log ends with the numbers.
set -euo pipefail
program=$1; shift
folders=("$program.corpus")
mkdir -p "$program.corpus"
for folder in "$@"; do if [ -d "$folder" ]; then folders+=("$folder"); fi; done
export ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-19 || true)}
cd "$(dirname "$program")"
"$program" -max_total_time="${SCALIDE_FUZZ_SECONDS:-60}" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$program.finding-" \
    "${folders[@]}" >"$program.log" 2>&1 && exit
tail -n 60 "$program.log"
exit 1
