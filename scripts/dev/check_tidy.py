#!/usr/bin/env python3
"""Runs clang-tidy 14 (.clang-tidy has the list of checks) on the sources and headers of the modules, in parallel, with
a build's flags. A unity build (the preset cpu-asan) makes it several times faster, because most of the time goes into
the standard library's headers. A unit that passed is checked again only if a file in it, its flags or the list change;
the cache is ~/.cache/tokamak/tidy, shared by all checkouts.

usage: scripts/dev/check_tidy.py [BUILD_DIR]  (default build-asan; needs compile_commands.json; leaves out tests)
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("src/", "data/", "tokenizer/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)

# The build uses GCC. Clang parses the same flags, but has other warnings, lacks __builtin_shuffle, and needs two
# adjustments for GCC's omp.h: its folder, and its attribute __malloc__(omp_free), which Clang lacks.
EXTRA = ["-Wno-everything", "-ferror-limit=0", "-D__malloc__(x)=__malloc__", "-D__builtin_shuffle(v,...)=(v)"]

# Code that Clang 14 refuses, although C++20 and GCC 12 accept it. Any other parse error is a finding.
CLANG_14_CANNOT = [
    "reference to local binding",          # structured bindings in a lambda (P1381)
    "invalid cpu feature string",          # __builtin_cpu_supports of newer processors
    "for call to 'emplace",                # aggregates made from parentheses (P0960)
]
DIAGNOSTIC = re.compile(r"^\S[^\n]*:\d+:\d+: (?:warning|error): [^\n]*\[[\w.,-]+\]$", re.M)


def find_tidy():
    for name in ("clang-tidy-14", "clang-tidy"):
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
            if "version 14." in version:
                return name
    sys.exit("check_tidy: clang-tidy 14 is missing; scripts/install_deps.sh test installs it")


def gcc_omp_folder(build):
    """A folder that contains only a link to GCC's omp.h."""
    path = subprocess.run(["g++", "-print-file-name=include/omp.h"], capture_output=True, text=True, check=True)
    folder = build / "tidy" / "include"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "omp.h"
    if not link.is_symlink():
        link.symlink_to(path.stdout.strip())
    return folder


def with_includes(source):
    """The file and every one of ours that it includes, in a fixed order."""
    seen, queue = {}, [source]
    while queue:
        path = queue.pop()
        if path in seen:
            continue
        seen[path] = text = path.read_text(encoding="utf-8")
        for name in INCLUDE.findall(text):
            queue += [base / name for base in (ROOT / "src", ROOT) if (base / name).is_file()]
    return sorted(seen.items())


def fingerprint(entry, files, common):
    """Hash of everything that the result depends on; the same in every checkout."""
    digest = hashlib.sha256(common)
    for text in (entry["command"], *(f"{path}\0{text}" for path, text in files)):
        digest.update(text.replace(str(ROOT), ".").encode() + b"\0")
    return digest.hexdigest()


def findings(output):
    """The relevant diagnostics, each with its context lines."""
    starts = [match.start() for match in DIAGNOSTIC.finditer(output)]
    blocks = [output[a:b] for a, b in zip(starts, starts[1:] + [len(output)])]
    return [block for block in blocks if not any(words in block.split("\n", 1)[0] for words in CLANG_14_CANNOT)]


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build-asan").resolve()
    commands = build / "compile_commands.json"
    if not commands.is_file():
        sys.exit(f"check_tidy: no {commands}; configure first: cmake --preset cpu-asan")
    tidy = find_tidy()
    ours = f"{ROOT}/({'|'.join(MODULES)})"
    extra = EXTRA + [f"-isystem{gcc_omp_folder(build)}"]
    common = (tidy + repr(EXTRA) + (ROOT / ".clang-tidy").read_text(encoding="utf-8")).encode()
    passed = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokamak" / "tidy"
    passed.mkdir(parents=True, exist_ok=True)

    units = {}  # compiled file: (marker of a pass, the modules' files in it)
    for entry in json.loads(commands.read_text(encoding="utf-8")):
        files = with_includes(Path(entry["file"]))
        checked = {path for path, _ in files if re.match(ours, str(path))}
        if entry["file"].startswith(str(ROOT / "tests")) or not any(path.suffix == ".cc" for path in checked):
            continue
        units[entry["file"]] = passed / fingerprint(entry, files, common), checked
    due = sorted((file for file, (mark, _) in units.items() if not mark.exists()), key=lambda file: -len(units[file][1]))

    def check(file):
        command = [tidy, "-p", str(build), "--quiet", f"--header-filter=^{ours}",
                   *(f"--extra-arg={flag}" for flag in extra), file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = findings(done.stdout)
        if not found and (done.returncode == 0 or DIAGNOSTIC.search(done.stdout)):
            units[file][0].touch()
            return True
        print("".join(found).rstrip() or f"{file}: {tidy} ended with {done.returncode}\n{done.stderr}", flush=True)
        return False

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = list(pool.map(check, due)).count(False)
    for mark in passed.iterdir():
        if mark.stat().st_mtime < time.time() - 30 * 86400:
            mark.unlink()
    checked = set().union(*(files for _, files in units.values()))
    sources = sum(path.suffix == ".cc" for path in checked)
    print(f"check_tidy: {sources} sources and {len(checked) - sources} headers in {len(units)} units, {len(due)} of them "
          f"changed, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
