"""Runs our kernels under compute-sanitizer: memcheck, and racecheck for shared memory."""
import glob
import os
import re
import shutil

from families import NATIVE, ON_GPU
from place import ended
from report import FAILED, NOT_RUN, PASSED

# racecheck covers our own kernels only, by the namespace in their mangled names. Six of its eight processes that shared
# an H100 broke down; memcheck's did not.
SANITIZERS = {"memcheck": ["--leak-check", "no", "--report-api-errors", "no"],
              "racecheck": ["--kernel-name", "kns=7tokamak"]}
WORKERS = {"memcheck": 8, "racecheck": 1}
# Families whose kernels share memory among threads, the only races that racecheck finds.
SHARING = {"racecheck": ("attention", "cross_entropy", "rmsnorm", "cached_attention", "column_sums", "statistics", "moments",
                         "optimizer", "qk_norm")}
BROKEN = "Internal Sanitizer Error"
SANITIZER_EXIT = 86


def find_sanitizer():
    places = sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))
    return shutil.which("compute-sanitizer") or (places[-1] if places else None)


def sanitizer(place, report, tool):
    name, program = f"{tool}, all operations", find_sanitizer()
    cases = ",".join(f"[#{family}_test]{ON_GPU}" for family in SHARING.get(tool, ())) or ON_GPU
    _, listing = place.run("test_cuda_names", [place.test_cuda, "-#", cases, "--list-test-names-only"], 30) \
        if place.test_cuda.exists() else (None, "")
    titles = [line.strip() for line in listing.splitlines() if line.strip()]
    if not program or not titles:
        report.add(name, NOT_RUN, bar="0 errors", detail="no test_cuda" if program else "no compute-sanitizer")
        return
    sanitize(place, report, name, [program, "--tool", tool, *SANITIZERS[tool]], titles, place.left() - 5)


def sanitize(place, report, name, command, titles, limit):
    """Distributes the cases over a few processes, because host work takes most of the time."""
    tool, processes = command[2], {}
    workers = max(1, min(WORKERS[tool], len(os.sched_getaffinity(0)) // 2, len(titles)))
    for i in range(workers):
        chosen = place.output / f"{tool}-{i}.txt"
        chosen.write_text("".join(f"{title}\n" for title in titles[i::workers]))
        processes[f"{tool}-{i}"] = place.start(f"{tool}-{i}", [
            *command, "--port", 49152 + 64 * i, "--error-exitcode", SANITIZER_EXIT, place.test_cuda, "-f", chosen],
            NATIVE)
    errors, unfinished, broken = 0, 0, ""
    for i, (log, process) in enumerate(processes.items()):
        code, text = place.finish(log, process, limit)
        found = [] if BROKEN in text else \
            [int(n) for n in re.findall(r"(?:ERROR SUMMARY: (?=\d)|RACECHECK SUMMARY: )(\d+)", text)]
        errors += sum(found)
        if code is None:
            unfinished += len(titles[i::workers])
        elif not found:
            broken = broken or (f"{BROKEN} (see {log}.log)" if BROKEN in text else ended(code, text))
        elif code != 0 and sum(found) == 0:
            broken = broken or f"the tests fail under it (see {log}.log)"
    measured = f"{errors} errors, {len(titles) - unfinished} of {len(titles)} cases"
    if errors > 0:
        report.add(name, FAILED, measured, "0 errors", f"see {tool}-*.log", errors=errors)
    elif unfinished or broken:
        report.add(name, NOT_RUN, measured, "0 errors", broken or "out of time")
    else:
        report.add(name, PASSED, measured, "0 errors", errors=0)
