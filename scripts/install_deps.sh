#!/usr/bin/env bash
# Installs missing Debian packages with apt-get. This is the only list of the project's system packages; CMake looks for
# the same things, and scripts/quickstart.sh and scripts/test.sh call this first.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: scripts/install_deps.sh [--check] [GROUP...]

  GROUP     build       compiler, CMake and the libraries that build/tokamak links
            quickstart  for scripts/quickstart.sh: perl, the text of the King James Bible
            test        for scripts/test.sh: Catch2, clang-format and clang-tidy 14, ...
            cluster     for the tests of Slurm and of failing disks: a Slurm, network tools, xfs and ext4
            package     for scripts/package.sh
            default: all
  --check   only say what is missing; exit 1 if anything is

Made for Debian 12. Uses sudo where the user is not root. apt-get update runs only if something is missing.
EOF
}

packages() {
  case $1 in
    build)
      echo g++ cmake ninja-build ccache git
      echo libopenmpi-dev openmpi-bin  # MPI: src/comm
      echo libssl-dev                  # libcrypto: src/base/secret.cc, digest.cc
      echo libdnnl-dev                 # oneDNN: src/backend/cpu
      echo libsentencepiece-dev        # tokenizer
      echo libpcre2-dev                # tokenizer/scan: patterns without a scanner of their own
      echo libzstd-dev zlib1g-dev      # data: compressed text and shards
      echo libyaml-cpp-dev             # src/config
      echo libgumbo-dev libuchardet-dev libre2-dev # data/web: HTML, charsets, names of parts
      echo libfasttext-dev             # data/classify
      echo libsimdjson-dev             # data/pipeline: lines of JSON
      echo libutf8proc-dev             # data/dedup: lower case, accents
      echo libspdlog-dev libfmt-dev    # src/base
      echo libxxhash-dev               # src/base
      echo libcpp-httplib-dev          # src/serve
      echo libcli11-dev                # src/cli
      echo nlohmann-json3-dev          # manifests, metrics, checkpoint headers
      echo libncurses-dev              # src/watch
      echo procps                      # pgrep: scripts/run_until_done.sh, scripts/quickstart.sh
      echo libjs-dygraphs              # src/report embeds it: the charts of a report's page
      ;;
    quickstart) echo perl bible-kjv bible-kjv-text ;;
    test)
      echo catch2 python3 sentencepiece
      echo libboost-context-dev # tests/cuda/emulator
      echo bubblewrap # src/sandbox executes programs that a model wrote, tests/sandbox attacks
      echo python3-venv python3-pip # check_cuda_code.py --install, install_cudnn_frontend.sh, install_python.sh
      echo installation-guide-amd64 # tests/system/prepare_test.py, docs/data.md: pages in 20 languages
      echo chromium # tests/system/report_page_test.py
      echo tmux # tests/system/watch_test.py: a real terminal
      echo e2fsprogs xfsprogs mount # tests/fault/power_loss_test.py: file systems that lose power
      echo clang-format-14 clang-tidy-14 shellcheck
      echo clang-14 libclang-rt-14-dev # scripts/dev/fuzz.sh
      ;;
    cluster)
      echo slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2 # tests/system/slurm_cluster.py
      echo xfsprogs e2fsprogs                                                   # power loss on a file system
      ;;
    package) echo patchelf xz-utils ;;
    *)
      echo "install_deps: no group named '$1'; there are build, quickstart, test, cluster and package" >&2
      return 2
      ;;
  esac
}

is_installed() {
  local status
  status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) && [[ $status == ii* ]]
}

check_only=no
groups=()
for argument in "$@"; do
  case $argument in
    --check) check_only=yes ;;
    -h | --help) usage && exit 0 ;;
    -*) echo "install_deps: unknown option $argument; see --help" >&2 && exit 2 ;;
    *) groups+=("$argument") ;;
  esac
done
[[ ${#groups[@]} -gt 0 ]] || groups=(build quickstart test cluster package)

wanted=()
for group in "${groups[@]}"; do
  list=$(packages "$group")
  read -r -d '' -a words <<<"$list" || true
  wanted+=("${words[@]}")
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_deps: this is not Debian (no dpkg, no apt-get). Install the equivalents by hand:" >&2
  echo "  ${wanted[*]}" >&2
  echo "and pass --no-install to the script that called this one." >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done

if [[ ${#missing[@]} -eq 0 ]]; then
  echo "install_deps: all ${#wanted[@]} packages for ${groups[*]} are installed"
  exit 0
fi
echo "install_deps: ${#missing[@]} of ${#wanted[@]} packages for ${groups[*]} are missing: ${missing[*]}"
[[ $check_only == no ]] || exit 1

as_root=(env)
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_deps: neither root nor sudo. Let an administrator run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi

echo "install_deps: apt-get update && apt-get install --no-install-recommends ..."
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "install_deps: installed ${missing[*]}"
