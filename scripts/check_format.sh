#!/usr/bin/env bash
# Checks that every C++ and CUDA source is formatted as .clang-format says, by clang-format 14 (another version
# formats differently). `scripts/check_format.sh --fix` formats them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

formatter=''
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && [[ $("$candidate" --version) == *"version 14."* ]]; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "check_format: clang-format 14 is missing; scripts/install_deps.sh test installs it" >&2
  exit 1
fi

how=(--dry-run -Werror)
[[ ${1-} != --fix ]] || how=(-i)
folders=()
for folder in src data tokenizer cuda tests; do
  [[ ! -d $folder ]] || folders+=("$folder")
done
find "${folders[@]}" \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 -P "$(nproc)" -n 16 "$formatter" "${how[@]}"
