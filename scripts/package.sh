#!/usr/bin/env bash
# Builds a relocatable bundle for machines where nothing can be installed: program, tests, Open MPI, all libraries
# except glibc and CUDA's, configs, the GPU check and its data. The bundle runs from any folder; its README says how.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# The tree and the bundle together travel to a borrowed machine in 64 MiB.
readonly kMaxBytes=56000000
readonly kMarch=x86-64-v3 # for the bundle's build: any processor with AVX2; oneDNN uses newer instructions at run time

usage() {
  cat <<'END'
usage: scripts/package.sh [--output DIR] [--build DIR] [--data DIR] [--no-install]

  --output DIR   where tokamak-VERSION-x86_64.tar.xz and its .sha256 go (build-package)
  --build DIR    a build to pack; otherwise build-package/ is built, for any processor with AVX2 (x86-64-v3), with CUDA
                 where nvcc is on the PATH
  --data DIR     train/ and validation/ shards to pack; otherwise the quickstart's, made if missing
  --no-install   do not call apt-get
END
}

die() {
  echo "package: error: $1" >&2
  exit "${2:-1}"
}

output=$root/build-package build='' data='' install=yes
while [[ $# -gt 0 ]]; do
  case $1 in
    --output | --build | --data)
      [[ $# -ge 2 ]] || die "$1 needs a path" 2
      printf -v "${1#--}" %s "$(realpath -m -- "$2")"
      shift
      ;;
    --no-install) install=no ;;
    -h | --help) usage && exit 0 ;;
    *) die "unknown argument '$1'; see scripts/package.sh --help" 2 ;;
  esac
  shift
done
# ---- inputs --------------------------------------------------------------------------------------------------------

if [[ $install == yes ]]; then
  scripts/install_deps.sh build test package
  scripts/dev/install_cudnn_frontend.sh || echo "package: without it: attention by our own kernels" >&2
fi
command -v patchelf >/dev/null || die "patchelf is missing; scripts/install_deps.sh package installs it"

if [[ -z $build ]]; then
  build=$root/build-package
  preset=cpu
  if command -v nvcc >/dev/null; then preset=cuda; fi
  cmake --preset $preset -B "$build" -DTOKAMAK_MARCH=$kMarch -DTOKAMAK_TESTS=ON
  cmake --build "$build"
fi
[[ -x $build/tokamak ]] || die "no program in $build"

if [[ -z $data ]]; then
  data=$root/runs/quickstart/data
  if [[ ! -f $data/train/manifest.json ]]; then
    arguments=(--data-only --program "$build/tokamak")
    if [[ $install == no ]]; then arguments+=(--no-install); fi
    scripts/quickstart.sh "${arguments[@]}"
  fi
fi
for part in train validation; do
  [[ -f $data/$part/manifest.json ]] || die "no shards in $data/$part"
done

# ---- the tree ------------------------------------------------------------------------------------------------------

mkdir -p "$output"
work=$(mktemp -d "$output/.package-XXXXXX")
trap 'rm -rf "$work"' EXIT
version=$("$build/tokamak" --version | awk '$1 == "tokamak" { print $2 }')
commit=$("$build/tokamak" --version | awk '$1 == "commit" { print $2 }')
march=$("$build/tokamak" --version | grep -o -- '-march=[^)]*')
name=tokamak-$version-x86_64
tree=$work/$name
mkdir -p "$tree"/{bin,libexec,lib,tests,configs,scripts,licenses} "$tree"/openmpi/{bin,etc,share}

cp scripts/package/{tokamak,mpirun,tokamak-env} "$tree/bin/"
cp "$build/tokamak" "$tree/libexec/"
# Only tests whose results depend on the machine's processor and GPU. Tests of the emulator and of cuDNN without a
# driver run on the build machine.
find "$build/tests" -type f \( -name test_backend -o -name test_model -o -name 'test_cuda*' -o -name test_nccl \
  -o -name libtokamak_call_counter.so \) -perm -u+x ! -name '*emulated*' \
  -exec cp -t "$tree/tests" {} +
cp -r tests/golden "$tree/tests/"
cp configs/*.yaml "$tree/configs/"
cp -r scripts/gpu_check.sh scripts/gpu_check scripts/bench "$tree/scripts/"
mkdir -p "$tree/runs/quickstart/data"
cp -r "$data/train" "$data/validation" "$tree/runs/quickstart/data/"
find "$tree" -name __pycache__ -prune -exec rm -r {} +

# Open MPI finds its parts below OPAL_PREFIX at the paths that Debian has below /usr.
plugins=lib/x86_64-linux-gnu/openmpi/lib/openmpi3
mkdir -p "$tree/openmpi/$plugins" "$tree"/openmpi/pmix/{lib/pmix,share}
cp "$(readlink -f "$(command -v mpirun)")" "$tree/openmpi/bin/mpirun"
cp "$(readlink -f "$(command -v orted)")" "$tree/openmpi/bin/orted"
cp "/usr/$plugins"/mca_*.so "$tree/openmpi/$plugins/"
# Removes networks that Debian disables or that need their own drivers, SHMEM, other launchers, tracing. TCP and shared
# memory are enough to start processes and exchange host values; tensors travel between GPUs without MPI.
for part in '*ofi*' '*ucx*' '*psm*' '*openib*' '*scoll*' '*spml*' '*sshmem*' '*memheap*' '*atomic*' '*flux*' '*jsm*' \
  '*monitoring*'; do
  find "$tree/openmpi/$plugins" -name "$part.so" -delete
done
cp -rL /usr/share/openmpi "$tree/openmpi/share/"
cp /etc/openmpi/openmpi-mca-params.conf "$tree/openmpi/etc/"
cp /usr/lib/x86_64-linux-gnu/pmix2/lib/pmix/*.so "$tree/openmpi/pmix/lib/pmix/"
cp -rL /usr/lib/x86_64-linux-gnu/pmix2/share/pmix "$tree/openmpi/pmix/share/"

# ---- libraries -----------------------------------------------------------------------------------------------------

is_elf() { [[ $(head -c 4 -- "$1" | tr -d '\0') == $'\x7fELF' ]]; }
elf_files() {
  local file
  while IFS= read -r -d '' file; do
    if is_elf "$file"; then echo "$file"; fi
  done < <(find "$tree" -type f -print0)
}

readonly kGlibc='^(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil|libanl|libnsl)\.so'
readonly kCuda='^lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|cupti|nccl|nvrtc[a-z-]*|nvJitLink|nvidia-ml)\.so'

mapfile -t programs < <(elf_files)
: >"$work/libraries"
for file in "${programs[@]}"; do ldd "$file" >>"$work/libraries"; done
awk '$2 == "=>" && $3 != "not" { print $1, $3 }' "$work/libraries" | sort -u | while read -r soname path; do
  if [[ $soname =~ $kGlibc || $soname =~ $kCuda ]]; then continue; fi
  cp -L "$path" "$tree/lib/$soname"
done
missing=$(awk '$2 == "=>" && $3 == "not" { print $1 }' "$work/libraries" | grep -vE "$kCuda" | sort -u || true)
[[ -z $missing ]] || die "libraries that ldd does not find: $missing"

# CUDA libraries of the program: those it links (needed to start), and those it opens by name.
{
  objdump -p "$tree/libexec/tokamak" | awk '$1 == "NEEDED" { print $2 }' | grep -E "$kCuda" | sed 's/$/ needed/' || true
  # The linker may put other text right before a name, so only its end is that of the line.
  strings "$tree/libexec/tokamak" | grep -oE "${kCuda#^}.[0-9]+$" | sed 's/$/ optional/' || true
  find "$tree/tests" -name libtokamak_call_counter.so -exec objdump -p {} + |
    awk '/NEEDED +libcupti/ { print $2, "optional" }'
} | grep -vE '^libcuda\.so' | sort -u -k1,1 >"$tree/libexec/cuda-libraries"
if find "$tree/libexec/tokamak" "$tree/tests" -type f -perm -u+x -exec objdump -p {} + |
  grep -qE 'NEEDED +libcuda\.so'; then
  die "a program links the driver, so it would not start without one"
fi

mapfile -t files < <(elf_files)
strip --strip-unneeded "${files[@]}"
for file in "${files[@]}"; do
  # RPATH, not RUNPATH: libraries opened later inherit it, and it precedes LD_LIBRARY_PATH with another Open MPI.
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to="$(dirname "$file")" "$tree/lib")" "$file"
done

# ---- licenses and README -------------------------------------------------------------------------------------------

cp LICENSE "$tree/licenses/tokamak"
awk '$2 == "=>" && $3 != "not" { print $3 }' "$work/libraries" | sort -u | while read -r path; do
  [[ -e $tree/lib/${path##*/} ]] || continue
  owner=$(dpkg-query -S "$(realpath "$path")" "$path" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  if [[ -r /usr/share/doc/$owner/copyright ]]; then cp -L "/usr/share/doc/$owner/copyright" "$tree/licenses/$owner"; fi
done
cp /usr/share/doc/openmpi-bin/copyright "$tree/licenses/openmpi-bin"
cp /usr/share/doc/libjs-dygraphs/copyright "$tree/licenses/libjs-dygraphs" # in the pages of tokamak report

glibc=$(for file in "${files[@]}"; do objdump -T "$file"; done | grep -o 'GLIBC_2\.[0-9]*' | sort -u -V | tail -n 1)
glibc=${glibc#GLIBC_}
cuda=$(cut -d' ' -f1 "$tree/libexec/cuda-libraries" | paste -sd, | sed 's/,/, /g')
sed -e "s/@VERSION@/$version/" -e "s/@MARCH@/$march/" -e "s/@COMMIT@/$commit/" -e "s/@GLIBC@/$glibc/" \
  -e "s/@CUDA@/${cuda:-none: this one is built without CUDA}/" \
  scripts/package/README >"$tree/README"

# ---- the archive ---------------------------------------------------------------------------------------------------

archive=$output/$name.tar.xz
# The program and each test have the same kernels: with a window wider than the programs they are stored once.
tar -C "$work" --owner=0 --group=0 --sort=name -cf - "$name" | xz --lzma2=preset=0,dict=64MiB >"$work/archive"
bytes=$(stat -c %s "$work/archive")
[[ $bytes -le $kMaxBytes ]] || die "the bundle has $bytes bytes, more than $kMaxBytes"
mv "$work/archive" "$archive"
(cd "$output" && sha256sum "$name.tar.xz" >"$name.tar.xz.sha256")
echo "package: $archive"
packed=$((bytes / 1000000)).$((bytes / 100000 % 10))
echo "  $packed MB packed, of at most $((kMaxBytes / 1000000)), $(du -sm "$tree" | cut -f1) MiB unpacked"
echo "  commit $commit, $march, glibc $glibc or newer; not in it: ${cuda:-no CUDA library is needed}"
