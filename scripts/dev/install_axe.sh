#!/usr/bin/env bash
# Gets axe-core from PyPI into ~/.cache/tokamak and prints the path of axe.min.js. tests/system/report_page_test.py
# checks a page's accessibility with it, and is skipped by name if this exits with 1.
set -euo pipefail
# usage: scripts/dev/install_axe.sh [--check]      --check: only says where it is; exit 1 if it is not there

requirements=$(dirname "${BASH_SOURCE[0]}")/requirements-axe.txt
home=${XDG_CACHE_HOME:-$HOME/.cache}/tokamak/axe-$(sha256sum "$requirements" | cut -c 1-12)
if [[ ! -e $home/axe.min.js ]]; then
  [[ ${1-} != --check ]] || exit 1
  mkdir -p "$(dirname "$home")"
  partial=$(mktemp -d "$home.XXXXXX")
  trap 'rm -rf "$partial"' EXIT
  python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: -d "$partial" \
    -r "$requirements" >&2
  python3 - "$partial" <<'PYTHON'
import sys
import zipfile
from pathlib import Path

folder = Path(sys.argv[1])
wheel = next(folder.glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist() if name.endswith("/axe.min.js"))
    (folder / "axe.min.js").write_bytes(archive.read(name))
wheel.unlink()
PYTHON
  mv "$partial/axe.min.js" "$partial/axe.partial"
  mkdir -p "$home"
  mv "$partial/axe.partial" "$home/axe.min.js"
fi
echo "$home/axe.min.js"
