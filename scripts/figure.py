#!/usr/bin/env python3
"""Draws docs/quickstart.svg, the README's figure. Left: the losses of a quickstart run, and its interruption. Right:
the time of one of its steps by operation, beside its roofline: the larger of bytes / copy bandwidth and FLOPs / GEMM
rate, summed over the calls.

usage: scripts/figure.py [--run DIR] [--measured DIR] [--output FILE]

  --run DIR       a finished run of scripts/quickstart.sh (runs/quickstart)
  --measured DIR  step.json and ops.json of `tokamak bench` on this run's machine; made there if they are missing
                  (runs/figure). Nothing else should run meanwhile: a stalled core lengthens every bar.
  --output FILE   (docs/quickstart.svg)

Needs scripts/requirements-figure.txt."""
import argparse
import json
import subprocess
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs/quickstart.yaml"

BLUE, ORANGE, GREY, INK = "#2563a8", "#d9730d", "#8a9099", "#24292f"

# label -> the operations that it sums, by prefix; the first match wins. The rest is "other".
GROUPS = {
    "GEMMs, backward": lambda name: name.startswith("gemm") and not name.endswith("forward"),
    "GEMMs, forward": lambda name: name.startswith("gemm"),
    "linear + cross-entropy": lambda name: name == "linear_cross_entropy",
    "attention": lambda name: name.startswith("attention"),
    "SwiGLU": lambda name: name.startswith("swiglu"),
    "RMSNorm, RoPE": lambda name: name.startswith(("rmsnorm", "rope")),
    "AdamW, gradient norm": lambda name: name in ("adamw", "sum_squares", "control_step"),
}


def read_run(directory):
    """{step: loss} of training and of validation, and the step at which the run was resumed (None: it was not). If a
    step was logged twice, the later value."""
    training, validation, resumed = {}, {}, None
    for line in (directory / "metrics.jsonl").read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue  # cut short by a crash
        if record.get("event") == "resume":
            resumed = record["step"]
        if "loss/avg" in record:
            training[record["step"]] = record["loss/avg"]
        if "validation/loss" in record:
            validation[record["step"]] = record["validation/loss"]
    return training, validation, resumed


def measure(directory):
    """`tokamak bench` of one step of the config, and of the machine."""
    directory.mkdir(parents=True, exist_ok=True)
    results = []
    for name, arguments in (("step", ["--micro-batches", "0"]), ("ops", ["--ops"])):
        file = directory / f"{name}.json"
        if not file.exists():
            subprocess.run([ROOT / "build/tokamak", "bench", CONFIG, *arguments, "--json", file], check=True)
        results.append(json.loads(file.read_text()))
    return results


def by_group(step, copy_rate, gemm_rate):
    """[(label, seconds, floor)], longest first, "other" last."""
    groups = {label: [0.0, 0.0] for label in (*GROUPS, "other")}
    for name, operation in step["operations"].items():
        label = next((label for label, fits in GROUPS.items() if fits(name)), "other")
        groups[label][0] += operation["seconds"]
        groups[label][1] += max(operation["bytes"] / copy_rate, operation["flops"] / gemm_rate)
    rows = [(label, *times) for label, times in groups.items()]
    return sorted(rows, key=lambda row: (row[0] == "other", -row[1]))


def draw_losses(axes, training, validation, resumed):
    axes.plot(list(training), list(training.values()), color=BLUE, lw=1.8, label="training")
    axes.plot(list(validation), list(validation.values()), "o", color=ORANGE, ms=5, label="validation")
    last = max(validation)
    axes.annotate(f"{validation[last]:.2f}", (last, validation[last]), (0, 7), textcoords="offset points", ha="center")
    if resumed is not None:
        axes.axvline(resumed, color=GREY, lw=1.2, ls="--")
        axes.text(resumed + 6, max(training.values()), f"SIGTERM and resume,\nstep {resumed}", color=INK, va="top")
    axes.set_xlabel("step")
    axes.set_title("loss, nats a token")
    axes.legend(frameon=False, loc="lower left")


def draw_operations(axes, rows):
    labels = [row[0] for row in rows]
    seconds, floors = [1e3 * row[1] for row in rows], [1e3 * row[2] for row in rows]
    axes.barh(labels, seconds, height=0.62, color=BLUE, alpha=0.85, label="measured")
    axes.barh(labels, floors, height=0.26, color=ORANGE, label="roofline floor")
    for place, (measured, floor) in enumerate(zip(seconds, floors)):
        axes.text(max(measured, floor) + 0.012 * max(seconds), place, f"{measured:.1f}", va="center", color=INK)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max(seconds))
    axes.set_xlabel("ms")
    axes.set_title(f"one step by operation: {sum(seconds):.0f} ms, floor {sum(floors):.0f} ms")
    axes.legend(frameon=False, loc="lower right")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=ROOT / "runs/quickstart")
    parser.add_argument("--measured", type=Path, default=ROOT / "runs/figure")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/quickstart.svg")
    options = parser.parse_args()
    step, ops = measure(options.measured)
    rows = by_group(step, ops["copy_bytes_per_second"], step["peak_flops_per_second"])

    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "axes.titleweight": "bold", "axes.edgecolor": GREY,
                         "axes.spines.top": False, "axes.spines.right": False, "text.color": INK,
                         "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "svg.hashsalt": "tokamak"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.7), width_ratios=(1, 1), layout="constrained")
    draw_losses(left, *read_run(options.run))
    draw_operations(right, rows)
    figure.supxlabel(f"configs/quickstart.yaml, {step['parameters'] / 1e6:.1f}M parameters. {step['device']}. Right: one "
                     f"rank; floor: max(bytes / {ops['copy_bytes_per_second'] / 1e9:.0f} GB/s, "
                     f"FLOPs / {step['peak_flops_per_second'] / 1e12:.2f} TFLOP/s).", fontsize=8.5, color="#57606a")
    figure.savefig(options.output, metadata={"Date": None}, facecolor="white")
    for label, seconds, floor in rows:
        print(f"{label:24s}{1e3 * seconds:8.1f} ms   floor {1e3 * floor:8.1f} ms")
    print(f"{options.output}: {options.output.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
