#!/usr/bin/env bash
# Is this GPU computing right, and how fast? Every kernel against its reference and under the sanitizers, training
# against the CPU's, several ranks against one, resume to the bit, what stalls a step, speeds against what the hardware
# can do; ends with one table, within 9 minutes. From the source tree (build/) or from the bundle of scripts/package.sh
# alike; needs python3 and, for the ranks in the tree, mpirun on the PATH.
set -euo pipefail
folder=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
command -v python3 >/dev/null || { echo "gpu_check: error: python3 is not on the PATH" >&2 && exit 2; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "$folder/gpu_check/main.py" "$@"
