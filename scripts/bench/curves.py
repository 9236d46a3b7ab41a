#!/usr/bin/env python3
"""Compares the loss curves of two variants over several seeds, on the quickstart's config and data: does a change in
arithmetic change what a model learns? The variants are two programs, or one program with and without overrides. For
each seed both start from the same weights and see the same tokens. The spread of the loss over seeds is printed as a
scale.

  scripts/bench/curves.py OLD_TOKAMAK NEW_TOKAMAK
  scripts/bench/curves.py TOKAMAK --new precision.compute=f32
  scripts/bench/curves.py OLD NEW --seeds 3 --steps 200 --last 20 training.global_batch_tokens=2048

Without --data it prepares the quickstart's data with the first program (runs/quickstart/data).
"""
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
from measure import ROOT

# Logs every step, and does nothing else.
QUIET = ["checkpoint.interval=0", "training.validation_interval=0", "training.samples.interval=1000000", "metrics.log_interval=1",
         "metrics.tensor_statistics=0", 'metrics.trace=""']
FIRST_SEED = 1234
MARKS = 4  # the curve is also compared at every quarter of the steps


def prepared_data(program):
    data = ROOT / "runs" / "quickstart" / "data"
    if not (data / "train" / "manifest.json").is_file():
        subprocess.run([ROOT / "scripts" / "quickstart.sh", "--data-only", "--program", program], check=True)
    return data


def trained(program, options, seed, overrides):
    """The loss of each step."""
    with tempfile.TemporaryDirectory(prefix="curves-") as folder:
        command = [program, "train", str(ROOT / "configs" / "quickstart.yaml"), *QUIET, f"run.seed={seed}",
                   f"run.output_dir={folder}/run", f"training.max_steps={options.steps}",
                   f"data.sources=[{{path: {options.data}/train}}]", "data.validation=[]", *options.overrides, *overrides]
        measure.run(" ".join(command), command)
        records = map(json.loads, Path(folder, "run", "metrics.jsonl").read_text().splitlines())
        losses = {record["step"]: record["loss/last"] for record in records if "loss/last" in record}
    if sorted(losses) != list(range(1, options.steps + 1)):
        sys.exit(f"{program}: losses of {len(losses)} steps instead of {options.steps}")
    return [losses[step] for step in sorted(losses)]


def relative(new, old):
    return new / old - 1


def means(losses, last):
    """Means of the `last` steps up to each mark."""
    ends = [len(losses) * mark // MARKS for mark in range(1, MARKS + 1)]
    return [statistics.fmean(losses[max(0, end - last):end]) for end in ends]


def main():
    parser = measure.arguments(__doc__, ("--seeds", 3, "pairs of runs"), ("--steps", 200, "of a run"),
                               ("--last", 20, "steps of a mean"))
    parser.add_argument("arguments", nargs="+", metavar="PROGRAM [PROGRAM] [KEY=VALUE ...]",
                        help="one or two programs, and overrides of both variants")
    parser.add_argument("--old", action="append", default=[], metavar="KEY=VALUE", help="an override of the old variant")
    parser.add_argument("--new", action="append", default=[], metavar="KEY=VALUE", help="an override of the new variant")
    parser.add_argument("--data", type=Path, help="folder with tokenized data: train/")
    options = parser.parse_intermixed_args()
    programs = [word for word in options.arguments if "=" not in word]
    options.overrides = [word for word in options.arguments if "=" in word]
    if len(programs) not in (1, 2) or min(options.seeds, options.steps, options.last) < 1:
        parser.error("one or two programs, and counts of 1 and more")
    if len(programs) == 1 and options.old == options.new:
        parser.error("one program needs --old or --new, else both variants are the same")
    options.data = (options.data or prepared_data(programs[0])).resolve()

    marks = [f"step {options.steps * mark // MARKS}" for mark in range(1, MARKS + 1)]
    print(f"relative difference of the loss, new / old - 1, in means of {options.last} steps\n")
    print(measure.table(["seed", *marks, "old loss", "new loss", "largest of a step"], []), flush=True)
    olds, differences = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        old, new = (trained(program, options, seed, overrides)
                    for program, overrides in ((programs[0], options.old), (programs[-1], options.new)))
        row = [relative(b, a) for a, b in zip(means(old, options.last), means(new, options.last))]
        worst = max((relative(b, a) for a, b in zip(old, new)), key=abs)
        olds.append(means(old, options.last)[-1])
        differences.append(row[-1])
        print(f"| {seed} | " + " | ".join(f"{value:+.1e}" for value in row) +
              f" | {olds[-1]:.4f} | {means(new, options.last)[-1]:.4f} | {worst:+.1e} |", flush=True)
    print(f"\nat the end: mean {statistics.fmean(differences):+.1e}, largest {max(differences, key=abs):+.1e}", end="")
    if options.seeds > 1:
        error = statistics.stdev(differences) / math.sqrt(options.seeds)
        print(f", standard error of the mean {error:.1e}; the old variant's seeds deviate by "
              f"{statistics.stdev(olds) / statistics.fmean(olds):.1e} of their mean", end="")
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
