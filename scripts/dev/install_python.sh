#!/usr/bin/env bash
# usage: install_python.sh [interop | tokens | shards | text]
#
# Creates the Python environment of requirements-<name>.txt in ~/.cache/tokamak and prints the path of its interpreter.
# Tests compare with it, and are skipped by name if this exits with 1. `interop` (5.6 GB; the default) has torch and
# transformers. `tokens` (0.3 GB) has the tokenizers of others, with files of published vocabularies.
# `shards` (10 MB) has the libraries that write the shards of others. `text` (0.5 GB) has those that prepare text.
# The file's hash is in the environment's name: any change of it, even of a comment, installs another one.
set -euo pipefail

name=${1:-interop}
requirements=$(dirname "${BASH_SOURCE[0]}")/requirements-$name.txt
[[ -e $requirements ]] || { echo "install_python: there is no $requirements" >&2 && exit 2; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tokamak
prefix=python
[[ $name == interop ]] || prefix=$name
home=$cache/$prefix-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(sha256sum "$requirements" | cut -c 1-12)
if [[ ! -e $home/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/python.lock"
  flock 9 # another run may be creating it
fi
if [[ ! -e $home/complete ]]; then
  echo "install_python: installs $requirements in $home" >&2
  rm -rf "$home" # left by an interrupted run; an environment cannot be moved, so it is created in place
  python3 -m venv "$home"
  options=(-q --disable-pip-version-check --no-cache-dir --no-compile)
  [[ $name == interop ]] || options+=(--no-deps) # they are listed, and some packages are here for their data alone
  "$home/bin/python3" -m pip install "${options[@]}" -r "$requirements" >&2
  # Compiles the tests' imports to bytecode once, instead of in each test; the caller may have forbidden it.
  [[ $name != interop ]] || PYTHONDONTWRITEBYTECODE='' "$home/bin/python3" -c 'import gguf, lm_eval.models.huggingface, lm_eval.tasks, sentencepiece, torch
from transformers import AutoTokenizer, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM' >&2
  touch "$home/complete"
fi
echo "$home/bin/python3"
