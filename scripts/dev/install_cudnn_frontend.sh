#!/usr/bin/env bash
# Gets the headers of NVIDIA's cudnn-frontend from PyPI into ~/.cache/tokamak, where CMake looks for them; the build
# itself never touches the network. Without them attention runs by our own kernels.
set -euo pipefail

requirements=$(dirname "${BASH_SOURCE[0]}")/requirements-cudnn-frontend.txt
version=$(sed -n 's/^nvidia-cudnn-frontend==\([0-9.]*\) .*/\1/p' "$requirements")
home=${XDG_CACHE_HOME:-$HOME/.cache}/tokamak/cudnn-frontend-$version
if [[ -e $home/include/cudnn_frontend.h ]]; then
  echo "install_cudnn_frontend: $version is in $home"
  exit 0
fi

python3 -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: \
  --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64 --target "$home.$$" \
  -r "$requirements"
mv -T "$home.$$" "$home"
echo "install_cudnn_frontend: installed $version in $home"
