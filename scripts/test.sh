#!/usr/bin/env bash
# Runs every check; CI runs this and nothing else. It installs missing packages and builds, with CUDA if nvcc is there.
# Then it runs all tests, clang-tidy, and the tests of one process again under the sanitizers. Tests wait more than
# they compute, so the sanitizers run concurrently at low priority; their output comes at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOT'
usage: scripts/test.sh [--fast | --faults | --hostile | --fuzz [SECONDS]] [--no-install]

  --fast         before each commit: the build and the tests that take seconds (no label "slow")
  --faults       only fault tests, with those that CI leaves out (labels "cluster" and "faults-only"): the simulated
                 cluster, the storm of ten minutes
  --hostile      only hostile files and network peers, all of them; CI tries one of each kind
  --fuzz         only libFuzzer on each reader of foreign files, for this many seconds (600)
  --no-install   do not call apt-get or pip; $TOKAMAK_PYTHON may name an interpreter with the packages of
                 scripts/dev/requirements-interop.txt

One test by hand:  cmake --build build && ctest --test-dir build -R 'part of its name' --output-on-failure
EOT
}

fast=no faults=no hostile=no fuzz='' install=yes
for argument in "$@"; do
  case $argument in
    --fuzz) fuzz=600 ;;
    [0-9]*)
      [[ -n $fuzz && $argument =~ ^[0-9]+$ ]] || { usage >&2 && exit 2; }
      fuzz=$argument
      ;;
    --fast) fast=yes ;;
    --faults) faults=yes ;;
    --hostile) hostile=yes ;;
    --no-install) install=no ;;
    -h | --help) usage && exit 0 ;;
    *) echo "test: unknown argument '$argument'; see scripts/test.sh --help" >&2 && exit 2 ;;
  esac
done

# OpenMP's threads sleep at barriers. Spinning threads keep the processor from the one they wait for: a test of 26
# seconds took 178.
export OMP_WAIT_POLICY=passive

logs=$(mktemp -d)
sanitizers_pid='' # process id of the sanitizers, which run concurrently
trap '[[ -z $sanitizers_pid ]] || kill -- -"$sanitizers_pid" 2>/dev/null || true; rm -rf "$logs"' EXIT

stage() { # stage NAME COMMAND...: runs it, shows its output, records its time and result
  local name=$1 start=$SECONDS code=0
  last=$logs/output.$BASHPID # output of the last stage of this shell; another shell runs concurrently
  shift
  printf '\n== %s\n$ %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$last" || code=$?
  printf '%-28s %8d  %s\n' "$name" $((SECONDS - start)) "$([[ $code -eq 0 ]] && echo passed || echo FAILED)" >>"$logs/stages"
  return $code
}

finish() { # finish CODE: prints where the time went and ctest's last line
  local seconds=$SECONDS
  scripts/dev/test_report.py build build-asan build-tsan || true
  printf '\n%-28s %8s  %s\n' stage seconds result
  cat "$logs/stages"
  printf '%-28s %8d\n' total "$seconds"
  echo "processor time of this shell and its children:" && times
  [[ ! -f $logs/ctest ]] || cat "$logs/ctest"
  exit "$1"
}

required() { stage "$@" || finish 1; } # the later stages need this one
failed=0
checked() { stage "$@" || failed=1; } # the later stages still run

# Runs concurrently with the tests.
sanitizers() {
  stage "configure (address)" cmake --preset cpu-asan -DTOKAMAK_TESTS=ON &&
    stage "build (address)" cmake --build --preset cpu-asan --target unit_tests || return
  local code=0
  stage "tidy" scripts/dev/check_tidy.py build-asan || code=1
  stage "fuzz, 1 s a target" scripts/dev/fuzz.sh 1 || code=1
  stage "configure (thread)" cmake --preset cpu-tsan -DTOKAMAK_TESTS=ON &&
    stage "build (thread)" cmake --build --preset cpu-tsan --target thread_tests || return
  # Concurrently: one test takes most of its time, on one processor.
  stage "tests (thread)" ctest --preset cpu-tsan -L '^threads$' --no-tests=error -j "$(nproc)" >"$logs/thread" &
  stage "tests (address, undefined)" ctest --preset cpu-asan -L '^unit$' --no-tests=error -j "$(nproc)" || code=1
  wait $! || code=1
  cat "$logs/thread"
  return $code
}

[[ $install == no ]] || required packages scripts/install_deps.sh
if [[ -n $fuzz ]]; then
  checked fuzz scripts/dev/fuzz.sh "$fuzz"
  finish $failed
fi
# With CUDA if its compiler is there. The tools that read machine code are not in Debian; without them a test is
# skipped.
preset=cpu
if command -v nvcc >/dev/null; then
  preset=cuda
  if [[ $install == yes ]]; then
    checked "CUDA tools" scripts/dev/check_cuda_code.py --install
    stage "cudnn-frontend" scripts/dev/install_cudnn_frontend.sh || echo "without it: attention by our own kernels"
  fi
fi
# Tests of export, import and evaluation compare with large Python packages, which download during the build.
[[ $install == no || -n ${TOKAMAK_PYTHON-} ]] || scripts/dev/install_python.sh &>/dev/null &
unity=ON # a clean build compiles a module at once; one that follows edits, file by file
[[ ! -d build ]] || unity=OFF
required configure cmake --preset $preset -DTOKAMAK_TESTS=ON -DTOKAMAK_UNITY=$unity
required build cmake --build --preset $preset
python_packages() { # python_packages NAME VARIABLE: waits for the download
  [[ $install == yes && -z ${!2-} ]] || return 0
  if stage "Python packages ($1)" scripts/dev/install_python.sh "$1"; then
    declare -gx "$2=$(tail -n 1 "$last")"
  else
    echo "without them: the tests that compare with Python ($1) are skipped"
  fi
}
python_packages interop TOKAMAK_PYTHON
python_packages tokens TOKAMAK_TOKENS_PYTHON
python_packages shards TOKAMAK_SHARDS_PYTHON
python_packages text TOKAMAK_TEXT_PYTHON

tests() { # tests ARGUMENTS of ctest
  checked tests ctest --preset $preset "$@"
  grep -E '^[0-9]+% tests passed' "$last" >"$logs/ctest" || true
}
if [[ $hostile == yes ]]; then HOSTILE=all tests -R '^hostile: '; finish $failed; fi
if [[ $faults == yes ]]; then tests -L '^fault$'; finish $failed; fi # one at a time: a cluster needs all processors
if [[ $fast == yes ]]; then tests -LE '^slow$' -j "$(nproc)"; finish $failed; fi
export TOKAMAK_TEST_INSTALLS=$install # for the quickstart test
jobs=$(($(nproc) + 1)) # one more than processors: some test always waits
# A simulated cluster has more processes than the machine has processors, so it runs alone.
kCluster='^system: (under Slurm|commands of the pages)$'
checked "tests (cluster)" nice -n 10 ctest --preset $preset -R "$kCluster"
set -m # a process group, to be ended as a whole
(renice -n 10 $BASHPID >/dev/null && sanitizers) >"$logs/sanitizers" 2>&1 </dev/null &
sanitizers_pid=$!
set +m
tests -LE '^(cluster|faults-only)$' -E "$kCluster" -j $jobs
renice -n 0 -g "$sanitizers_pid" >/dev/null 2>&1 || true # the processors are free now; only root may
wait "$sanitizers_pid" || failed=1
sanitizers_pid=''
cat "$logs/sanitizers"
finish $failed
