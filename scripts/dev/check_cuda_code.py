#!/usr/bin/env python3
"""Checks the machine code of the built kernels, for each architecture of the build: no register spills (a stack frame
indicates them, and is slow itself), and tensor-core instructions in attention. Exits 1 if a check fails, 77 if
cuobjdump and nvdisasm are missing.

usage: scripts/dev/check_cuda_code.py [BUILD_DIR]     (default build; reads the objects below cuda/ there)
       scripts/dev/check_cuda_code.py --install       (gets the two tools from PyPI, into ~/.cache/tokamak)
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "scripts/dev/requirements-cuda-tools.txt"
TOOLS = ("cuobjdump", "nvdisasm")
SKIPPED = 77

ON_TENSOR_CORES = {"forward.cu.o", "dkv.cu.o", "dq.cu.o"}  # objects whose bf16 kernels must use tensor cores

TENSOR_CORE_CODE = re.compile(r"\b(?:HMMA|HGMMA|UTC\w*MMA)\b")  # Ampere (and mma.sync later), Hopper, Blackwell


# ---- the tools -----------------------------------------------------------------------------------------------------

def own_tools():
    """The target of --install: a folder keyed by the list of requirements."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tokamak" / ("cuda-tools-" + hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12])


def find_tools():
    """Returns a folder that has both tools, or None."""
    on_path = shutil.which("cuobjdump")
    nvcc = shutil.which("nvcc")
    folders = [Path(on_path).parent] if on_path else []
    folders += [Path(nvcc).resolve().parent] if nvcc else []
    folders += sorted(own_tools().glob("lib/python3*/site-packages/nvidia/cu13/bin"))
    return next((f for f in folders if all(os.access(f / tool, os.X_OK) for tool in TOOLS)), None)


def install():
    """Prints a failure, which is no error: the check is then skipped by name."""
    if find_tools():
        print(f"check_cuda_code: cuobjdump and nvdisasm are in {find_tools()}")
        return
    partial = own_tools().with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([sys.executable, "-m", "venv", partial], check=True)
        subprocess.run([partial / "bin" / "python3", "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        "--no-deps", "--require-hashes", "-r", REQUIREMENTS], check=True, timeout=300)
        partial.rename(own_tools())
        print(f"check_cuda_code: installed cuobjdump and nvdisasm in {own_tools()}")
    except (OSError, subprocess.SubprocessError) as error:
        print(f"check_cuda_code: could not install cuobjdump and nvdisasm: {error}")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def output_of(tools, *command):
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")  # cuobjdump calls nvdisasm
    return subprocess.run([tools / command[0], *command[1:]], env=environment, check=True, capture_output=True,
                          text=True).stdout


# ---- their output --------------------------------------------------------------------------------------------------

RESOURCES = re.compile(r"^arch = (?P<arch>\w+)$|^ Function (?P<name>\S+):\n(?P<usage>.*)$", re.M)
FUNCTION = re.compile(r"^\s*Function : (\S+)$", re.M)


def resources(tools, path):
    """(architecture, mangled name, {"REG": ..., "STACK": ...}) of every kernel of an object file."""
    arch = ""
    for match in RESOURCES.finditer(output_of(tools, "cuobjdump", "-res-usage", path)):
        if match["arch"]:
            arch = match["arch"]
        else:
            usage = {key: int(value) for key, value in re.findall(r"(\w+)(?:\[0\])?:(\d+)", match["usage"])}
            yield arch, match["name"], usage


def on_tensor_cores(tools, path, arch):
    """Mangled names of the kernels whose code for `arch` has a tensor-core instruction."""
    parts = FUNCTION.split(output_of(tools, "cuobjdump", "-sass", "-arch", arch, path))
    return {name for name, code in zip(parts[1::2], parts[2::2]) if TENSOR_CORE_CODE.search(code)}


def readable(names):
    """{mangled name: name as in the source}."""
    names = sorted(names)
    text = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    return dict(zip(names, text.splitlines()))


def wanted_architectures(build):
    cache = (build / "CMakeCache.txt").read_text()
    match = re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=(.*)$", cache, re.M)
    return [f"sm_{a.removesuffix('-real')}" for a in match[1].split(";") if not a.endswith("-virtual")]


def check_stack(path, kernels, names):
    for arch, name, usage in kernels:
        stack = usage.get("STACK", 0) + usage.get("LOCAL", 0)
        if stack > 0:
            yield (f"{path.name}: {arch}: a stack frame of {stack} bytes (spilled registers, or an array with a "
                   f"computed index) in {names[name]}")


def check_tensor_cores(tools, path, kernels, names, architectures):
    for arch in architectures:
        must = {name for a, name, _ in kernels if a == arch and "bf16" in names[name]}
        if not must:
            yield f"{path.name}: {arch}: no kernel for bf16"
            continue
        for name in sorted(must - on_tensor_cores(tools, path, arch)):
            yield f"{path.name}: {arch}: no tensor-core instruction in {names[name]}"


def check(build, tools):
    objects = sorted((build / "cuda" / "CMakeFiles" / "tokamak_cuda.dir").rglob("*.cu.o"))
    if not objects:
        print(f"check_cuda_code: no kernels in {build}/cuda; build the target tokamak_cuda")
        return 1
    architectures = wanted_architectures(build)
    violations = [f"{name}: not built, but named here" for name in sorted(ON_TENSOR_CORES - {p.name for p in objects})]
    count = most = 0
    for path in objects:
        kernels = list(resources(tools, path))
        names = readable({name for _, name, _ in kernels})
        count += len(kernels)
        most = max([most] + [usage["REG"] for _, _, usage in kernels])
        violations += check_stack(path, kernels, names)
        if kernels and (missing := set(architectures) - {arch for arch, _, _ in kernels}):
            violations.append(f"{path.name}: no machine code for {', '.join(sorted(missing))}")
        if path.name in ON_TENSOR_CORES:
            violations += check_tensor_cores(tools, path, kernels, names, architectures)
    for violation in violations:
        print(f"check_cuda_code: {violation}")
    print(f"check_cuda_code: {count} kernels in {len(objects)} objects for {', '.join(architectures)}, at most {most} "
          f"registers, {len(violations)} violation(s)")
    return 1 if violations else 0


def main():
    arguments = sys.argv[1:]
    if arguments == ["--install"]:
        install()
        return 0
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    tools = find_tools()
    if not tools:
        print("check_cuda_code: skipped: cuobjdump and nvdisasm are not there; --install gets them")
        return SKIPPED
    return check(Path(arguments[0] if arguments else ROOT / "build"), tools)


sys.exit(main())
