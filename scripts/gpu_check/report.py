"""The lines of the check: what each found, against which bar; the table and the JSON of them."""
import json

PASSED, FAILED = "passed", "FAILED"
MISSED = "below goal"    # a goal of speed, not a bar: it does not fail the check
MEASURED = "measured"    # a number that no bar belongs to
NOT_RUN, SKIPPED = "not run", "skipped"

USAGE, DOES_NOT_FIT = 2, 5  # exit codes of the program: an option that it lacks, too little memory or no such device


def not_zero(code):
    """The verdict on a program that should have ended well; None: it ran out of time."""
    return NOT_RUN if code in (None, USAGE, DOES_NOT_FIT) else FAILED


class Report:
    def __init__(self, path, facts):
        self.path, self.facts, self.lines = path, facts, []

    def add(self, name, verdict, measured="", bar="", detail="", **values):
        """One line; `values` are its numbers, for the JSON. Written at once: a killed check keeps what it has."""
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
        rows = [("check", "measured", "bar", "result")]
        for line in self.lines:
            result = line["result"] + (f": {line['detail']}" if line["detail"] else "")
            rows.append((line["name"], line["measured"] or "-", line["bar"] or "-", result))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[3] for row in rows]
        text.insert(1, "-" * max(map(len, text)))
        verdicts = [(self.count(v), v) for v in (PASSED, FAILED, MISSED, MEASURED, NOT_RUN, SKIPPED)]
        text += [text[1], ", ".join(f"{n} {v}" for n, v in verdicts if n or v in (PASSED, FAILED))]
        return "\n".join(line.rstrip() for line in text)
