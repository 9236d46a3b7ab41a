"""The lines of the check: result and bar of each; their table and JSON."""
import json
import textwrap

PASSED, FAILED = "passed", "FAILED"
MISSED = "below goal"    # a speed goal, which does not fail the check
MEASURED = "measured"    # a number without a bar
NOT_RUN, SKIPPED = "not run", "skipped"
WIDTH = 100  # columns of the table

USAGE, DOES_NOT_FIT, DEVICE_FAULT = 2, 5, 8  # exit codes of the program (src/base/error.h)
LOST = "lost"  # instead of an exit code: not started, because time ran out or the GPU does not respond
KINDS = {USAGE: "usage", 3: "data", 4: "checkpoint", DOES_NOT_FIT: "does not fit, or no device", 6: "communication",
         7: "numerics", DEVICE_FAULT: "device fault"}


def not_zero(code):
    """The verdict on a program's exit code; None: it timed out."""
    return NOT_RUN if code in (USAGE, DOES_NOT_FIT, LOST) else FAILED


class Report:
    def __init__(self, path, facts):
        self.path, self.facts, self.lines = path, facts, []

    def add(self, name, verdict, measured="", bar="", detail="", **values):
        """Adds one line; `values` are its numbers, for the JSON. Written at once: a killed check keeps its results."""
        self.lines.append({"name": name, "measured": measured, "bar": bar, "result": verdict, "detail": detail,
                           "values": values})
        print(f"  {name}: {verdict}" + "".join(f", {text}" for text in (measured, detail) if text), flush=True)
        self.write()

    def against(self, name, good, measured, bar, detail="", goal=False, **values):
        self.add(name, PASSED if good else MISSED if goal else FAILED, measured, bar, detail, **values)

    def count(self, verdict):
        return sum(line["result"] == verdict for line in self.lines)

    def write(self, **more):
        self.facts.update(more)
        text = json.dumps(dict(self.facts, failed=self.count(FAILED), lines=self.lines), indent=1)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def table(self):
        """One row per line; below it the reason, unless it passed or is a number."""
        text = []
        for line in self.lines:
            told = line["measured"] + (f" ({line['bar']})" if line["bar"] else "")
            row = f"{line['result']:<10}  {line['name']:<28}  {told}".rstrip()
            text += textwrap.wrap(row, WIDTH, subsequent_indent=" " * 14)
            if line["detail"]:
                text += textwrap.wrap(line["detail"], WIDTH, initial_indent=" " * 14, subsequent_indent=" " * 14,
                                      max_lines=3)
        verdicts = [(self.count(v), v) for v in (PASSED, FAILED, MISSED, MEASURED, NOT_RUN, SKIPPED)]
        text += ["-" * WIDTH, ", ".join(f"{n} {v}" for n, v in verdicts if n or v in (PASSED, FAILED))]
        return "\n".join(text)
