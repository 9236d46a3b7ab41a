#!/usr/bin/env python3
"""Prints where the time of scripts/test.sh went: cases and assertions, the slowest tests and translation units. It
reads the logs of ctest and ninja in the build folders.

usage: scripts/dev/test_report.py BUILD_DIR...
"""
import re
import sys
from pathlib import Path

SHOWN = 20
# "3/44 Test: NAME" ... "Output:" ... "Test time = 1.2 sec" ... "Test Passed."
TEST = re.compile(r"^\d+/\d+ Test: (.*?)\n(.*?)^Test time = +([\d.]+) sec\n-+\n(.*?)$", re.M | re.S)
CATCH_CASE = re.compile(r"^([\d.]+) s: (.*)$", re.M)      # with --durations yes
PYTHON_CASE = re.compile(r"^ok \(([\d.]+) s\): (.*)$", re.M)  # tests/system/harness.py
CATCH_TOTAL = re.compile(r"^All tests passed \((\d+) assertions? in (\d+) test cases?\)"
                         r"|^test cases: +(\d+) .*\nassertions: +(\d+) ", re.M)


def tests_of(build):
    """[(name, seconds, output, verdict)]."""
    log = build / "Testing" / "Temporary" / "LastTest.log"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return [(name, float(seconds), output, verdict) for name, output, seconds, verdict in TEST.findall(text)]


def units_of(build):
    """[(seconds, output)] of the compiled units."""
    log = build / ".ninja_log"
    latest = {}
    for line in log.read_text(encoding="utf-8").splitlines()[1:] if log.exists() else []:
        begin, end, _, output, _ = line.split("\t")
        if output.endswith(".o"):
            latest[output] = (int(end) - int(begin)) / 1000
    return [(seconds, output) for output, seconds in latest.items()]


def table(title, rows):
    print(f"\n{title}")
    for seconds, name in sorted(rows, reverse=True)[:SHOWN]:
        print(f"{seconds:8.1f}  {name[:140]}")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    slowest, units = [], []
    print(f"\n{'build':<14} {'tests':>6} {'skipped':>8} {'cases':>6} {'assertions':>11}")
    for build in map(Path, sys.argv[1:]):
        tests = tests_of(build)
        cases = assertions = 0
        for name, seconds, output, _ in tests:
            inside = [(float(s), f"{name}: {title}") for s, title in CATCH_CASE.findall(output) + PYTHON_CASE.findall(output)]
            slowest += [(s, f"{build.name}/ {title}") for s, title in inside or [(seconds, name)]]
            totals = CATCH_TOTAL.findall(output)
            cases += sum(int(passed or all_cases) for _, passed, all_cases, _ in totals) if totals else len(inside) or 1
            assertions += sum(int(passed or every) for passed, _, _, every in totals)
        skipped = sum("Skipped" in verdict for *_, verdict in tests)
        print(f"{build.name:<14} {len(tests):>6} {skipped:>8} {cases:>6} {assertions:>11}")
        units += [(seconds, f"{build.name}/{output}") for seconds, output in units_of(build)]
    table(f"the {SHOWN} slowest tests, seconds", slowest)
    table(f"the {SHOWN} slowest translation units, seconds", units)


if __name__ == "__main__":
    main()
