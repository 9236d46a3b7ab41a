"""The lines of the check: result and bar of each; their table and JSON."""
import contextlib
import json
import os
import re
import textwrap

PASSED, FAILED = "passed", "FAILED"
MISSED = "below goal"    # a speed goal, which does not fail the check
MEASURED = "measured"    # a number without a bar
NOT_RUN, SKIPPED = "not run", "skipped"
WIDTH = 100  # columns of the table
OFF = 0.15   # share of the prediction; a larger difference needs an explanation

USAGE, DEVICE, DEVICE_FAULT, UNSUPPORTED = 2, 5, 8, 9  # exit codes of the program (src/base/error.h)
LOST = "lost"  # instead of an exit code: not started, because time ran out or the GPU does not respond
CUT = "cut"    # instead of an exit code: ended by the end of its part's time, before its own limit
KINDS = {USAGE: "usage", 3: "data", 4: "checkpoint", DEVICE: "no device, or a library of it is missing",
         6: "communication", 7: "numerics", DEVICE_FAULT: "device fault",
         UNSUPPORTED: "unsupported, or a capture was refused"}
# The program's error before a run whose plan exceeds the memory (src/train/memory_check.cc).
DOES_NOT_FIT = re.compile(r"the run needs .+ on each rank(, including .+)?, but .+ available")
OUT_OF_MEMORY = re.compile(r"cudaErrorMemoryAllocation|out of memory|not enough (GPU|pinned host) memory")


def does_not_fit(code, text):
    """Whether the plan did not fit, so that no run has started."""
    return code == DEVICE and bool(DOES_NOT_FIT.search(text))


def kind_of(code, text=""):
    """Describes the kind of an error in words."""
    if code == DEVICE and (does_not_fit(code, text) or OUT_OF_MEMORY.search(text)):
        return "the plan does not fit" if does_not_fit(code, text) else "out of memory"
    return KINDS.get(code, f"exit {code}")


def not_zero(code, text=""):
    """The verdict on a program's exit code; None: it hung. Running out of memory after the start is a failure, and so
    is a refused capture."""
    return NOT_RUN if code in (USAGE, LOST, CUT) or does_not_fit(code, text) else FAILED


class Ended(Exception):
    """A line that got no result: its verdict and the reason."""

    def __init__(self, verdict, why):
        super().__init__(why)
        self.verdict, self.why = verdict, why


def write_whole(path, text):
    """Writes the file as a whole: a killed check leaves the old file or the new one."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)


def off(value, predicted):
    """Whether a measured value is further from its prediction than OFF."""
    return abs(value / predicted - 1) > OFF


class Report:
    def __init__(self, path, facts):
        self.path, self.facts, self.lines, self.part = path, facts, [], ""

    def add(self, name, verdict, measured="", bar="", detail="", **values):
        """Adds one line; `values` are its numbers, for the JSON. Written at once: a killed check keeps its results.
        In `values`, value, unit and predicted are one quantity and its prediction by `tokamak plan`."""
        value, predicted = values.get("value"), values.get("predicted")
        if value and predicted:
            measured += f", {value / predicted:.2f} x predicted" + (" (!)" if off(value, predicted) else "")
        self.lines.append({"name": name, "part": self.part, "measured": measured, "bar": bar, "result": verdict,
                           "detail": detail, "values": values})
        print(f"  {name}: {verdict}" + "".join(f", {text}" for text in (measured, detail) if text), flush=True)
        self.write()

    def against(self, name, good, measured, bar, detail="", goal=False, **values):
        self.add(name, PASSED if good else MISSED if goal else FAILED, measured, bar, detail, **values)

    @contextlib.contextmanager
    def line(self, name, bar=""):
        """If the work inside is Ended, adds the line with the reason."""
        try:
            yield
        except Ended as ended:
            self.add(name, ended.verdict, bar=bar, detail=ended.why)

    def count(self, verdict):
        return sum(line["result"] == verdict for line in self.lines)

    def write(self, **more):
        self.facts.update(more)
        write_whole(self.path, json.dumps(dict(self.facts, failed=self.count(FAILED), lines=self.lines), indent=1) + "\n")

    def table(self):
        """One row per line; below it the reason, unless it passed or is a number."""
        text = []
        for line in self.lines:
            measured = line["measured"] + (f" ({line['bar']})" if line["bar"] else "")
            row = f"{line['result']:<10}  {line['name']:<28}  {measured}".rstrip()
            text += textwrap.wrap(row, WIDTH, subsequent_indent=" " * 14)
            if line["detail"]:
                text += textwrap.wrap(line["detail"], WIDTH, initial_indent=" " * 14, subsequent_indent=" " * 14,
                                      max_lines=3)
        verdicts = [(self.count(v), v) for v in (PASSED, FAILED, MISSED, MEASURED, NOT_RUN, SKIPPED)]
        text += ["-" * WIDTH, ", ".join(f"{n} {v}" for n, v in verdicts if n or v in (PASSED, FAILED))]
        return "\n".join(text)
