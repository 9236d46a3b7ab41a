#!/usr/bin/env python3
"""Publishes results of scripts/gpu_check.sh: the README's table of GPU results, a page in docs/benchmarks/, and
measured constants for plans. Run it in the tree whose commit was checked.

  scripts/gpu_check/publish.py gpu_check.json
  scripts/gpu_check/publish.py FIRST.json ... LAST.json  (sittings on one card: the last run of each line)
"""
import argparse
import collections
import json
import re
import sys
import textwrap
from pathlib import Path

from main import RUN
from report import FAILED, MISSED, NOT_RUN, OFF, PASSED, off

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- GPU results, by scripts/gpu_check/publish.py -->", "<!-- end of GPU results -->"
HEAD = ("| GPU | 8B shape, T 8192 | the same, masked | 1.5B | 0.5B | checks | page |", "|---|---|---|---|---|---|---|")
SIZES, HARDWARE = "src/backend/gpu_sizes.h", "src/plan/hardware.cc"
ROUND = 2**27  # reserves are rounded up to 128 MiB
MOVES_BYTES = ("rmsnorm", "swiglu", "adamw", "rope")  # operations bound by bytes, by the beginning of their names


def commit_of(facts):
    return next((line.split()[-1] for line in facts["tokamak"] if "commit" in line), "of an unknown commit")


def merged(sittings):
    """The last run of each line (by name, and number among equal names) of the check's parts."""
    lines = {}
    for facts in sittings:
        seen = collections.Counter()
        for line in facts["lines"]:
            key = line["name"], seen[line["name"]]
            seen[line["name"]] += 1
            has_run = line["result"] != NOT_RUN or lines.get(key, line)["result"] in (NOT_RUN, FAILED)
            if line["part"] in RUN and has_run:
                lines[key] = line
    return list(lines.values())


class Results:
    def __init__(self, *paths):
        sittings = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
        self.facts = {**sittings[0], "seconds": sum(facts["seconds"] for facts in sittings),
                      **{"machine": facts["machine"] for facts in sittings if "machine" in facts}}
        self.lines = merged(sittings)
        self.card, self.date = self.facts["gpu"], self.facts["date"][:10]
        if {facts["gpu"] for facts in sittings} != {self.card}:
            sys.exit("publish: error: these are results of several GPUs")
        self.commit = ", ".join(dict.fromkeys(commit_of(facts) for facts in sittings))
        self.stem = f"gpu-{re.sub('[^a-z0-9]+', '-', self.card.lower().removeprefix('nvidia ')).strip('-')}-{self.date}"

    def values(self, name):
        return next((line["values"] for line in self.lines if line["name"] == name), {})

    def count(self, result):
        return sum(line["result"] == result for line in self.lines)

    def predicted(self):
        return [line for line in self.lines if line["values"].get("value") and line["values"].get("predicted")]


def step_words(values, *conventions):
    if not values.get("tokens_per_second"):
        return "not measured"
    return ", ".join([f"{values['tokens_per_second']:.0f} tokens/s",
                      *[f"{name} {values[name]:.1%}" for name in conventions if values.get(name)]])


# ---- the README's table and the page -------------------------------------------------------------------------------

def readme_row(results):
    layers = results.facts.get("layers_8b")
    shape = step_words(results.values("step 8B"), "mfu_full", "mfu_causal") + (f" ({layers} layers)" if layers else "")
    checks = f"{results.count(PASSED)} passed, {results.count(FAILED)} failed, {results.count(NOT_RUN)} not run"
    return (f"| {results.card} | {shape} | {step_words(results.values('step 8B, masked'), 'mfu_done')} | "
            f"{step_words(results.values('step 1.5B'), 'mfu_full')} | {step_words(results.values('step 0.5B'), 'mfu_full')} | "
            f"{checks} | [{results.date}](docs/benchmarks/{results.stem}.md) |")


def with_row(readme, row):
    """The README with this GPU's row, in place of an older one."""
    begin, end = readme.index(BEGIN) + len(BEGIN), readme.index(END)
    card = row.split("|")[1]
    rows = [line for line in readme[begin:end].splitlines()
            if line.startswith("|") and line not in HEAD and line.split("|")[1] not in (card, " none yet ")]
    return readme[:begin] + "\n" + "\n".join([*HEAD, *rows, row]) + "\n" + readme[end:]


def page(results):
    facts = results.facts
    drivers = ", ".join(sorted({gpu["driver"] for gpu in facts["gpus"]})) or "unknown"
    clocks = ", ".join(f"{name} {value}" for name, value in facts.get("clocks", {}).items()) or "nvidia-smi does not say"
    lines = [f"# {results.card}, {results.date}", "",
             *wrapped(f"By `scripts/gpu_check.sh` in {facts['seconds']:.0f} s: commit {results.commit}, driver {drivers}. "
                      f"Limits of the GPU: {clocks}. {results.count(PASSED)} checks passed, {results.count(FAILED)} failed, "
                      f"{results.count(MISSED)} missed a goal, {results.count(NOT_RUN)} did not run."), "",
             *wrapped("`mfu_full` counts 6 (N - N_embedding) + 12 L H S FLOPs a token, `mfu_causal` half of the attention "
                      "term, `mfu_done` the attention inside documents. Predictions are those of `tokamak plan` for the "
                      "same config on this GPU's row of the hardware table."), "",
             "## Steps", "", "| step | tokens/s | mfu_full | mfu_causal | mfu_done | clock, power | predicted tokens/s, "
             "mfu_full, mfu_causal |", "|---|---|---|---|---|---|---|"]
    for line in results.lines:
        if line["name"].startswith("step ") and line["values"].get("tokens_per_second"):
            lines.append(step_row(line))
    lines += ["", "## All that was measured", "", "| result | what | measured | predicted | ratio |", "|---|---|---|---|---|"]
    lines += [line_row(line) for line in results.lines]
    far = [line for line in results.predicted() if off(line["values"]["value"], line["values"]["predicted"])]
    lines += ["", f"## Further than {OFF:.0%} from the prediction", ""]
    for line in far:
        values = line["values"]
        lines += [f"- {line['name']}: {values['value'] / values['predicted']:.2f} of the predicted "
                  f"{values['predicted']:.4g} {values['unit']}. Explanation:"]
    lines += [] if far else ["None." if results.predicted() else "Nothing was predicted."]
    failed = [line for line in results.lines if line["result"] == FAILED]
    lines += ["", "## Failed", "", *[row for line in failed for row in wrapped(f"- {line['name']}: {line['detail']}")],
              *([] if failed else ["Nothing."])]
    return "\n".join(lines) + "\n"


def wrapped(text):
    return textwrap.wrap(text, 120)


def step_row(line):
    values, plan = line["values"], line["values"].get("prediction", {})
    shares = [f"{values[name]:.1%}" if values.get(name) else "" for name in ("mfu_full", "mfu_causal", "mfu_done")]
    clock = f"{values['clock']:.0f} MHz, {values['watts']:.0f} W" if "watts" in values else ""
    text = f"{plan['tokens_per_second']:.0f}, {plan['mfu_full']:.1%}, {plan['mfu_causal']:.1%}" if plan else ""
    return f"| {line['name']} | {values['tokens_per_second']:.0f} | {' | '.join(shares)} | {clock} | {text} |"


def line_row(line):
    values = line["values"]
    predicted = f"{values['predicted']:.4g} {values['unit']}" if values.get("predicted") else ""
    ratio = f"{values['value'] / values['predicted']:.2f}" if predicted and values.get("value") else ""
    text = (line["measured"] or line["detail"][:100]).replace("|", "\\|")
    return f"| {line['result']} | {line['name']} | {text} | {predicted} | {ratio} |"


# ---- constants of plans --------------------------------------------------------------------------------------------

def sizes(results):
    """{constant of gpu_sizes.h: (measured bytes, the bytes to reserve)}."""
    runs = [line["values"] for line in results.lines if line["name"] == "memory" and line["values"].get("after_commit")]
    before = [run["after_commit"] - run["planned"] for run in runs]
    before += [line["values"]["memory_baseline_bytes"] for line in results.lines
               if line["values"].get("memory_baseline_bytes")]
    later = [run["after_step_3"] - run["after_commit"] for run in runs]
    return {name: (max(found), int(-(-max(found) // ROUND) * ROUND)) for name, found in
            (("kGpuStartupBytes", before), ("kGpuReserveBytes", later)) if found and max(found) > 0}


def rate(results, *names):
    """FLOP/s or bytes/s of these lines' operations together; None if one is missing."""
    found = [results.values(name) for name in names]
    if not all(values.get("rate") and values.get("unit") == "ms" for values in found):
        return None
    seconds = [values["value"] / 1e3 for values in found]
    return sum(values["rate"] * time for values, time in zip(found, seconds)) / sum(seconds)


def gemm_rate(results, copied):
    """FLOP/s of a layer's GEMMs without the time of their bytes, which predictions add (src/plan/cost_model.cc)."""
    calls = [call for call in results.facts.get("machine", {}).get("measured", [])
             if call["name"].startswith("gemm ") and not call["name"].startswith("gemm head")]
    seconds = sum(call["seconds"] - call["bytes"] / copied for call in calls)
    return sum(call["flops"] for call in calls) / seconds if seconds > 0 else None


def shares(results, source):
    """{member of Efficiency: its measured share}, for the GPU's row of the hardware table; empty without a row."""
    row = re.search(rf'"{re.escape(results.card)}", \d+, ([\d.]+) \* kGB', source)
    peak = results.values("step 8B").get("peak_flops_per_second")
    if not row or not peak:
        return {}
    moved = [line["name"] for line in results.lines if line["name"].startswith(MOVES_BYTES)]
    copied = rate(results, *moved) if moved else None
    found = {"gemm": gemm_rate(results, copied) if copied else None,
             "attention": rate(results, "attention, cuDNN", "attention_backward, cuDNN"),
             "native_attention": rate(results, "attention, native", "attention_backward, native")}
    found = {name: value / peak for name, value in found.items() if value}
    return {**found, **({"memory": copied / (float(row[1]) * 1e9)} if copied else {})}


def constants(results, root):
    """The measured constants of plans, in lines to paste."""
    lines = [f"{SIZES}:", *[f"  {name} = int64_t{{{reserved >> 20}}} << 20;  // measured: {measured / 2**20:.0f} MiB"
                            for name, (measured, reserved) in sizes(results).items()]]
    if found := shares(results, (root / HARDWARE).read_text()):
        lines += [f"{HARDWARE}, row of {results.card}: " + ", ".join(f"{name} {value:.3f}" for name, value in found.items()),
                  "  then scripts/bench/predict_published.py says what kPublishedError becomes"]
    return lines


def publish(results, root):
    """Writes the page and the README's row; returns lines about these files and the constants."""
    target = root / "docs" / "benchmarks" / f"{results.stem}.md"
    target.write_text(page(results), encoding="utf-8")
    readme = root / "README.md"
    readme.write_text(with_row(readme.read_text(encoding="utf-8"), readme_row(results)), encoding="utf-8")
    return [f"written: {target.relative_to(root)} and the table of README.md", *constants(results, root)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="gpu_check.json, of one or more sittings")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to write to")
    options = parser.parse_args()
    results = Results(*options.results)
    if not results.card or "emulated" in results.card:
        sys.exit("publish: error: not results of a GPU")
    print("\n".join(publish(results, options.root)))


if __name__ == "__main__":
    main()
