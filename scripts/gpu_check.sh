#!/usr/bin/env bash
# Checks correctness and speed of the CUDA backend on this GPU, in three independent sittings of 570 s:
#   --only first    does it work, does it learn, how fast is it, each operation against its reference.
#   --only matrix   what failed in the first sitting, changes one at a time, the race against PyTorch.
#   --only depth    sanitizers, ranks, resume, stalls, minutes of training.
# It ends with a narrow table, and writes three files to --output. Exit codes: 1 if a line has FAILED, 77 without a GPU
# or without CUDA in the program. It runs from the source tree (build/) or from the bundle of scripts/package.sh. It
# needs python3 on the PATH and, for ranks in the tree, mpirun.
set -euo pipefail
folder=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v python3 >/dev/null || { echo "gpu_check: error: python3 is not on the PATH" >&2 && exit 2; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$folder/gpu_check/main.py" "$@"
