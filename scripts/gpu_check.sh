#!/usr/bin/env bash
# Is this GPU computing right, and how fast? Three commands, each complete in itself: --only contact (240 s: every
# operation once, cuDNN against our kernels, speeds beside predictions), correct (540 s: every operation against its
# reference, training against the CPU's, resume, stalls, several ranks) and deep (sanitizers, the race against PyTorch);
# without --only all three. Ends with a narrow table and one archive; exits 1 if a line has FAILED. From the source tree
# (build/) or from the bundle of scripts/package.sh alike; needs python3 and, for ranks in the tree, mpirun on the PATH.
set -euo pipefail
folder=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v python3 >/dev/null || { echo "gpu_check: error: python3 is not on the PATH" >&2 && exit 2; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$folder/gpu_check/main.py" "$@"
