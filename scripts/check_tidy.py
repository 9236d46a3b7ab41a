#!/usr/bin/env python3
"""Runs clang-tidy 14 (.clang-tidy has the list of checks) on the sources of the rooms, in parallel, with the flags of
the build. A file that passed is not looked at again until it, a header that it includes, its flags or the list change.

usage: scripts/check_tidy.py [BUILD_DIR]      (default build; needs its compile_commands.json; tests are not checked)
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("src/", "data/", "tokenizer/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)

# The build is GCC's. Clang parses the same flags, but knows other warnings, has no __builtin_shuffle, and GCC's omp.h
# needs two adjustments: it lies in GCC's own folder, and its attribute __malloc__(omp_free) is not Clang's.
EXTRA = ["-Wno-everything", "-ferror-limit=0", "-D__malloc__(x)=__malloc__", "-D__builtin_shuffle(v,...)=(v)"]

# Where Clang 14 refuses what C++20 and GCC 12 accept. Any other error of parsing is a finding.
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
    """A folder with nothing but a link to GCC's omp.h."""
    path = subprocess.run(["g++", "-print-file-name=include/omp.h"], capture_output=True, text=True, check=True)
    folder = build / "tidy" / "include"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "omp.h"
    if not link.is_symlink():
        link.symlink_to(path.stdout.strip())
    return folder


def with_headers(source):
    """The file and every header of ours that it reaches, in a fixed order."""
    seen, queue = {}, [source]
    while queue:
        path = queue.pop()
        if path in seen:
            continue
        seen[path] = text = path.read_text(encoding="utf-8")
        for name in INCLUDE.findall(text):
            queue += [base / name for base in (ROOT / "src", ROOT) if (base / name).is_file()]
    return sorted(seen.items())


def fingerprint(entry, common):
    digest = hashlib.sha256(common + entry["command"].encode())
    for path, text in with_headers(Path(entry["file"])):
        digest.update(f"\0{path.relative_to(ROOT)}\0{text}".encode())
    return digest.hexdigest()


def findings(output):
    """The diagnostics that count, each with the lines that belong to it."""
    starts = [match.start() for match in DIAGNOSTIC.finditer(output)]
    blocks = [output[a:b] for a, b in zip(starts, starts[1:] + [len(output)])]
    return [block for block in blocks if not any(words in block.split("\n", 1)[0] for words in CLANG_14_CANNOT)]


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    commands = build / "compile_commands.json"
    if not commands.is_file():
        sys.exit(f"check_tidy: no {commands}; configure first: cmake --preset cpu")
    tidy = find_tidy()
    extra = EXTRA + [f"-isystem{gcc_omp_folder(build)}"]
    common = (tidy + repr(extra) + (ROOT / ".clang-tidy").read_text(encoding="utf-8")).encode()
    passed = build / "tidy" / "passed"
    passed.mkdir(exist_ok=True)

    entries = [entry for entry in json.loads(commands.read_text(encoding="utf-8"))
               if entry["file"].startswith(tuple(f"{ROOT}/{room}" for room in ROOMS))]
    marks = {entry["file"]: passed / fingerprint(entry, common) for entry in entries}
    due = sorted((file for file, mark in marks.items() if not mark.exists()), key=os.path.getsize, reverse=True)

    def check(file):
        command = [tidy, "-p", str(build), "--quiet", *(f"--extra-arg={flag}" for flag in extra), file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = findings(done.stdout)
        if not found and (done.returncode == 0 or DIAGNOSTIC.search(done.stdout)):
            marks[file].touch()
            return True
        print("".join(found).rstrip() or f"{file}: {tidy} ended with {done.returncode}\n{done.stderr}", flush=True)
        return False

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = list(pool.map(check, due)).count(False)
    for old in set(passed.iterdir()) - set(marks.values()):
        old.unlink()
    print(f"check_tidy: {len(entries)} files, {len(due)} of them changed, {failures} with findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
