#!/usr/bin/env bash
# Everything that must hold, in one command: installs what is missing, builds (with CUDA where nvcc is on the PATH),
# runs every test (the style checks are tests too), clang-tidy, and the unit tests once more under the sanitizers. CI
# runs this and nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'EOF'
usage: scripts/test.sh [--fast] [--no-install]

  --fast         without clang-tidy and the sanitizers
  --no-install   do not call apt-get nor pip; $TOKAMAK_PYTHON names the interpreter that has the packages of
                 scripts/requirements-interop.txt, if there is one

One test by hand:  cmake --build build && ctest --test-dir build -R 'part of its name' --output-on-failure
EOF
}

fast=no install=yes
for argument in "$@"; do
  case $argument in
    --fast) fast=yes ;;
    --no-install) install=no ;;
    -h | --help) usage && exit 0 ;;
    *) echo "test: unknown argument '$argument'; see scripts/test.sh --help" >&2 && exit 2 ;;
  esac
done

names=() seconds=() verdicts=()
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

stage() { # stage NAME COMMAND...: runs it, shows its output, remembers how long it took and how it ended
  local name=$1 start=$SECONDS code=0
  shift
  printf '\n== %s\n$ %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$logs/last" || code=$?
  names+=("$name")
  seconds+=($((SECONDS - start)))
  verdicts+=("$([[ $code -eq 0 ]] && echo passed || echo FAILED)")
  return $code
}

finish() { # finish CODE: the table, then ctest's closing line
  local i
  printf '\n%-22s %8s  %s\n' stage seconds result
  for i in "${!names[@]}"; do printf '%-22s %8d  %s\n' "${names[i]}" "${seconds[i]}" "${verdicts[i]}"; done
  printf '%-22s %8d\n' total "$SECONDS"
  [[ ! -f $logs/ctest ]] || cat "$logs/ctest"
  exit "$1"
}

required() { stage "$@" || finish 1; } # what follows makes no sense without it
failed=0
checked() { stage "$@" || failed=1; } # the rest still tells something

[[ $install == no ]] || required packages scripts/install_deps.sh build test package
# One build, with CUDA where its compiler is. What reads its machine code is not Debian's: without, a test is skipped.
preset=cpu
if command -v nvcc >/dev/null; then
  preset=cuda
  if [[ $install == yes ]]; then
    checked "CUDA tools" scripts/check_cuda_code.py --install
    stage "cudnn-frontend" scripts/install_cudnn_frontend.sh || echo "without it: attention by our own kernels"
  fi
fi
# What the tests of export, import and evaluation compare with: large, so it comes while the build goes on.
[[ $install == no || -n ${TOKAMAK_PYTHON-} ]] || scripts/install_python.sh &>/dev/null &
required configure cmake --preset $preset -DTOKAMAK_TESTS=ON
required build cmake --build --preset $preset
if [[ $install == yes && -z ${TOKAMAK_PYTHON-} ]]; then
  if stage "Python packages" scripts/install_python.sh; then # waits for the one above
    TOKAMAK_PYTHON=$(tail -n 1 "$logs/last") && export TOKAMAK_PYTHON
  else
    echo "without them: the tests that compare with Python are skipped"
  fi
fi
checked tests ctest --preset $preset -j "$(nproc)"
grep -E '^[0-9]+% tests passed' "$logs/last" >"$logs/ctest" || true
if [[ $fast == no ]]; then
  checked tidy scripts/check_tidy.py build
  required "configure (sanitizers)" cmake --preset cpu-asan -DTOKAMAK_TESTS=ON
  required "build (sanitizers)" cmake --build --preset cpu-asan --target unit_tests
  checked "unit tests (sanitizers)" ctest --preset cpu-asan -L '^unit$' --no-tests=error -j "$(nproc)"
fi
finish $failed
