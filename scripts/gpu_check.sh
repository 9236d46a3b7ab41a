#!/usr/bin/env bash
# Checks correctness and speed of the CUDA backend on this GPU. Three commands, each complete in itself: --only contact
# (240 s: every operation once, cuDNN against our kernels, speeds beside predictions), correct (540 s: every operation
# against its reference, training against the CPU's, resume, stalls, several ranks) and deep (sanitizers, the race against
# PyTorch). Without --only it runs all three. Ends with a narrow table and one archive; exits 1 if a line has FAILED, 77
# where there is no GPU, or the program has no CUDA. Runs from the source tree (build/) or from the bundle of
# scripts/package.sh; needs python3 and, for ranks in the tree, mpirun on the PATH.
set -euo pipefail
folder=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v python3 >/dev/null || { echo "gpu_check: error: python3 is not on the PATH" >&2 && exit 2; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$folder/gpu_check/main.py" "$@"
