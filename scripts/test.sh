#!/usr/bin/env bash
# Everything that must hold, in one command: installs what is missing, builds (with CUDA where nvcc is on the PATH), runs
# every test (the style checks are tests too), clang-tidy, and the tests of one process once more under the sanitizers.
# CI runs this and nothing else. Tests wait more than they compute, so the sanitizers are built and run beside them, as
# long as nobody else wants the processors; what they print comes when they are done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOT'
usage: scripts/test.sh [--fast | --faults | --hostile | --fuzz [SECONDS]] [--no-install]

  --fast         what to run before each commit: the build and the tests that take seconds (no label "slow"); without
                 clang-tidy and the sanitizers
  --faults       every fault of a run, also those that CI leaves out (labels "cluster" and "faults-only"): the simulated
                 cluster, the storm of ten minutes; nothing else
  --hostile      every hostile file and stranger on the network, of which CI tries one of each kind; nothing else
  --fuzz         each reader of files of others under libFuzzer, for so many seconds (600); nothing else
  --no-install   do not call apt-get nor pip; $TOKAMAK_PYTHON names the interpreter that has the packages of
                 scripts/dev/requirements-interop.txt, if there is one

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

# OpenMP's threads sleep at their barriers. Where one waits for a processor that others have, the rest would spin instead:
# a test of 26 seconds took 178.
export OMP_WAIT_POLICY=passive

logs=$(mktemp -d)
beside='' # process id of what runs beside the tests
trap '[[ -z $beside ]] || kill -- -"$beside" 2>/dev/null || true; rm -rf "$logs"' EXIT

stage() { # stage NAME COMMAND...: runs it, shows its output, notes how long it took and how it ended
  local name=$1 start=$SECONDS code=0
  last=$logs/output.$BASHPID # of the last stage of this shell; another runs beside it
  shift
  printf '\n== %s\n$ %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$last" || code=$?
  printf '%-28s %8d  %s\n' "$name" $((SECONDS - start)) "$([[ $code -eq 0 ]] && echo passed || echo FAILED)" >>"$logs/stages"
  return $code
}

finish() { # finish CODE: where the time went, ctest's closing line
  local seconds=$SECONDS
  scripts/dev/test_report.py build build-asan build-tsan || true
  printf '\n%-28s %8s  %s\n' stage seconds result
  cat "$logs/stages"
  printf '%-28s %8d\n' total "$seconds"
  echo "processor time, of this shell and of what it ran:" && times
  [[ ! -f $logs/ctest ]] || cat "$logs/ctest"
  exit "$1"
}

required() { stage "$@" || finish 1; } # what follows makes no sense without it
failed=0
checked() { stage "$@" || failed=1; } # the rest still tells something

# Beside the tests. Each line stands on the one before.
sanitizers() {
  stage "configure (address)" cmake --preset cpu-asan -DTOKAMAK_TESTS=ON &&
    stage "build (address)" cmake --build --preset cpu-asan --target unit_tests || return
  local code=0
  stage "tidy" scripts/dev/check_tidy.py build-asan || code=1
  stage "fuzz, 1 s a target" scripts/dev/fuzz.sh 1 || code=1
  stage "configure (thread)" cmake --preset cpu-tsan -DTOKAMAK_TESTS=ON &&
    stage "build (thread)" cmake --build --preset cpu-tsan --target thread_tests || return
  # Beside the others: most of its time is one test's, and one processor's.
  stage "tests (thread)" ctest --preset cpu-tsan -L '^threads$' --no-tests=error -j "$(nproc)" >"$logs/thread" &
  stage "tests (address, undefined)" ctest --preset cpu-asan -L '^unit$' --no-tests=error -j "$(nproc)" || code=1
  wait $! || code=1
  cat "$logs/thread"
  return $code
}

groups=(build quickstart test cluster package)
[[ $install == no ]] || required packages scripts/install_deps.sh "${groups[@]}"
if [[ -n $fuzz ]]; then
  checked fuzz scripts/dev/fuzz.sh "$fuzz"
  finish $failed
fi
# One build, with CUDA where its compiler is. What reads its machine code is not Debian's: without, a test is skipped.
preset=cpu
if command -v nvcc >/dev/null; then
  preset=cuda
  if [[ $install == yes ]]; then
    checked "CUDA tools" scripts/dev/check_cuda_code.py --install
    stage "cudnn-frontend" scripts/dev/install_cudnn_frontend.sh || echo "without it: attention by our own kernels"
  fi
fi
# What the tests of export, import and evaluation compare with: large, so it comes while the build goes on.
[[ $install == no || -n ${TOKAMAK_PYTHON-} ]] || scripts/dev/install_python.sh &>/dev/null &
required configure cmake --preset $preset -DTOKAMAK_TESTS=ON
required build cmake --build --preset $preset
if [[ $install == yes && -z ${TOKAMAK_PYTHON-} ]]; then
  if stage "Python packages" scripts/dev/install_python.sh; then # waits for the one above
    TOKAMAK_PYTHON=$(tail -n 1 "$last") && export TOKAMAK_PYTHON
  else
    echo "without them: the tests that compare with Python are skipped"
  fi
fi

if [[ $hostile == yes ]]; then
  export HOSTILE=all
  checked tests ctest --preset $preset -R '^hostile: '
  grep -E '^[0-9]+% tests passed' "$last" >"$logs/ctest" || true
  finish $failed
fi
if [[ $faults == yes ]]; then # one at a time: a simulated cluster wants all processors
  checked tests ctest --preset $preset -L '^fault$'
  grep -E '^[0-9]+% tests passed' "$last" >"$logs/ctest" || true
  finish $failed
fi
if [[ $fast == yes ]]; then
  checked tests ctest --preset $preset -LE '^slow$' -j "$(nproc)"
  grep -E '^[0-9]+% tests passed' "$last" >"$logs/ctest" || true
  finish $failed
fi
export TOKAMAK_TEST_INSTALLS=$install # for the quickstart's packages
jobs=$(($(nproc) + 1)) # one more than processors: somebody always waits
# Alone: a simulated cluster has more processes than the machine has processors.
kCluster='^system: under Slurm$'
checked "tests (cluster)" nice -n 10 ctest --preset $preset -R "$kCluster"
set -m # a process group of its own, to be ended as one
(renice -n 10 $BASHPID >/dev/null && sanitizers) >"$logs/beside" 2>&1 </dev/null &
beside=$!
set +m
checked tests ctest --preset $preset -LE '^(cluster|faults-only)$' -E "$kCluster" -j $jobs
grep -E '^[0-9]+% tests passed' "$last" >"$logs/ctest" || true
renice -n 0 -g "$beside" >/dev/null 2>&1 || true # only root may: the processors are free now
wait "$beside" || failed=1
beside=''
cat "$logs/beside"
finish $failed
