#!/usr/bin/env bash
# Creates the Python environment of requirements-interop.txt in ~/.cache/tokamak (5.6 GB, kept) and prints the path of
# its interpreter. Tests of export, import and evaluation compare with it, and are skipped by name if this exits with 1.
# The file's hash is in the environment's name: any change of it, even of a comment, costs another 5.6 GB.
set -euo pipefail

requirements=$(dirname "${BASH_SOURCE[0]}")/requirements-interop.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tokamak
home=$cache/python-$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-$(sha256sum "$requirements" | cut -c 1-12)
if [[ ! -e $home/complete ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/python.lock"
  flock 9 # another run may be creating it
fi
if [[ ! -e $home/complete ]]; then
  echo "install_python: installs $requirements in $home" >&2
  rm -rf "$home" # left by an interrupted run; an environment cannot be moved, so it is created in place
  python3 -m venv "$home"
  "$home/bin/python3" -m pip install -q --disable-pip-version-check --no-cache-dir --no-compile \
    -r "$requirements" >&2
  # Compiles the tests' imports to bytecode once, instead of in each test.
  "$home/bin/python3" -c 'import gguf, lm_eval.models.huggingface, lm_eval.tasks, sentencepiece, torch
from transformers import AutoTokenizer, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM' >&2
  touch "$home/complete"
fi
echo "$home/bin/python3"
