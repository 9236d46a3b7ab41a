#!/usr/bin/env bash
# Checks correctness and speed of the CUDA backend on this GPU. Three sittings of 570 s, each complete in itself: --only
# first (works at all, learns, how fast beside predictions, every operation against its reference: the most valuable facts
# first), matrix (what failed again, changes one at a time, the race against PyTorch) and depth (sanitizers,
# ranks, resume, stalls, minutes of training). Ends with a narrow table; --output gets three files. Exits 1 if a line has
# FAILED, 77 where there is no GPU, or the program has no CUDA. Runs from the source tree (build/) or from the bundle of
# scripts/package.sh; needs python3 and, for ranks in the tree, mpirun on the PATH.
set -euo pipefail
folder=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v python3 >/dev/null || { echo "gpu_check: error: python3 is not on the PATH" >&2 && exit 2; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$folder/gpu_check/main.py" "$@"
