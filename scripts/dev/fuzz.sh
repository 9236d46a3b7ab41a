#!/usr/bin/env bash
# Fuzzes the readers of foreign files: builds libFuzzer's program with clang and the address and undefined behaviour
# sanitizers, and runs each target on its corpus. As many targets run at once as there are processors. Prints executions
# and coverage. An input that breaks a reader is kept in build-fuzz/, and the exit code is 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'EOT'
usage: scripts/dev/fuzz.sh [SECONDS] [TARGET...]

  SECONDS   for each target (600)
  TARGET    of tests/fuzz/targets.cc; all of them if none is named

New inputs go to build-fuzz/corpus/TARGET; the permanent ones are in tests/fuzz/corpus/TARGET, those of
the scanners in tests/fuzz/corpus/scan.
EOT
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { usage && exit 0; }
seconds=${1:-600}
[[ $seconds =~ ^[0-9]+$ ]] || { usage >&2 && exit 2; }
clang=$(command -v clang++-14 || command -v clang++) || { echo "fuzz: there is no clang++ (Debian: clang-14)" >&2 && exit 2; }

cmake -S . -B build-fuzz -G Ninja -DTOKAMAK_FUZZ=ON -DTOKAMAK_CUDA=OFF -DCMAKE_CXX_COMPILER="$clang" \
  -DCMAKE_C_COMPILER="${clang/clang++/clang}" >/dev/null
cmake --build build-fuzz --target fuzz_readers
program=build-fuzz/tests/fuzz/fuzz_readers
if [[ $# -gt 1 ]]; then targets=("${@:2}"); else mapfile -t targets < <("$program"); fi

fuzz_one() { # fuzz_one TARGET
  local target=$1 found=build-fuzz/corpus/$1 log=build-fuzz/$1.log kept=() result=passed runs coverage
  local permanent=tests/fuzz/corpus/${target/#scan_*/scan} # one for all scanners
  mkdir -p "$found"
  [[ ! -d $permanent ]] || kept=("$permanent")
  TOKAMAK_FUZZ=$target "$program" -max_total_time="$seconds" -max_len=1048576 -timeout=20 -rss_limit_mb=3072 \
    -print_final_stats=1 -artifact_prefix="build-fuzz/$target-" "$found" "${kept[@]}" >"$log" 2>&1 || result=FAILED
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1) || true
  printf '%-18s %12s executions  %-24s %s\n' "$target" "${runs:-?}" "${coverage:-}" "$result"
  [[ $result == passed ]] || { tail -n 25 "$log" && return 1; }
}

failed=0 running=0
for target in "${targets[@]}"; do # one for each processor
  if ((running == $(nproc))); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz_one "$target" &
  running=$((running + 1))
done
for (( ; running > 0; --running)); do wait -n || failed=1; done
exit $failed
