#!/usr/bin/env bash
# Gets axe-core from PyPI into ~/.cache/tokamak and prints the path of axe.min.js. tests/system/report_page_test.py
# checks a page's accessibility with it, and is skipped by name if this exits with 1.
set -euo pipefail
# usage: scripts/dev/install_axe.sh [--check]      --check: only says where it is; exit 1 if it is not there

requirements=$(dirname "${BASH_SOURCE[0]}")/requirements-axe.txt
home=${XDG_CACHE_HOME:-$HOME/.cache}/tokamak/axe-$(sha256sum "$requirements" | cut -c 1-12)
if [[ ! -e $home ]]; then
  [[ ${1-} != --check ]] || exit 1
  python3 -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
    --target "$home.$$" -r "$requirements" >&2
  mv -T "$home.$$" "$home"
fi
find "$home" -name axe.min.js
