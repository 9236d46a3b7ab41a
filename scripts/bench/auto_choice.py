#!/usr/bin/env python3
"""Measures what the auto keys choose against every choice made by hand, on CPU ranks under mpirun: micro-batches x recompute
modes x gathered layers of a small model. Rounds go through all of them in turn, so that other load on the machine meets
all alike; medians are compared. Prints a table with the share of the cores that other programs had.

  scripts/bench/auto_choice.py --rounds 5
  scripts/bench/auto_choice.py --rounds 5 --calibrate --output docs/benchmarks/DATE-auto-choice-cpu.md

Without --calibrate the choice goes by the hardware table's row of a CPU; with it, by this machine's measured rates. On
busy cores the ranks wait for each other's turn, and the order of the choices is chance: look at the spread of the rounds.
"""
import argparse
import datetime
import json
import os
import platform
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

CONFIG = """\
run: {name: auto-choice, output_dir: unused}
model: {hidden_size: 256, intermediate_size: 704, num_hidden_layers: 4, num_attention_heads: 4, vocab_size: 2048}
data: {sequence_length: 128, sources: [{path: unused}]}
training: {max_steps: 1, global_batch_tokens: 4096}
optimizer: {lr: 3e-4}
runtime: {backend: cpu, threads_per_rank: 1}
"""
AUTO = ["activation_checkpoint.mode=auto", "parallelism.keep_gathered=auto", "training.micro_batch_size=auto"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="each goes through all choices once (5)")
    parser.add_argument("--steps", type=int, default=3, help="steps of a run, of which it reports the median (3)")
    parser.add_argument("--gathered", default="none,1,2,3,4", help="numbers of gathered layers by hand (none,1,2,3,4)")
    parser.add_argument("--calibrate", action="store_true", help="let auto go by rates measured here first")
    parser.add_argument("--bar", type=float, default=1.03, help="auto's step over the best one's, at most (1.03)")
    parser.add_argument("--tokamak", default=str(ROOT / "build/tokamak"))
    parser.add_argument("--seed", type=int, default=1, help="of the order within a round")
    parser.add_argument("--output", type=Path, help="write the page here, too")
    return parser.parse_args()


def run(options, *words):
    command = ["mpirun", "-n", str(options.ranks), "--oversubscribe", "--bind-to", "none", options.tokamak, *words]
    done = subprocess.run(command, env=ENV, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def by_hand(options):
    """Every micro-batch that a config may name, recompute mode and number of gathered layers, as overrides."""
    sequences = 4096 // 128
    sizes = [size for size in range(1, sequences // options.ranks + 1) if sequences % size == 0]
    return [(f"training.micro_batch_size={size}", f"activation_checkpoint.mode={mode}", f"parallelism.keep_gathered={kept}")
            for size in sizes for mode in ("none", "full", "selective") for kept in options.gathered.split(",")]


def jiffies():
    """Busy time of all cores."""
    values = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split("\n")[0].split()[1:9]]
    return sum(values) - values[3] - values[4], sum(values)


def step_seconds(options, config, words, directory):
    """Seconds of the median step, and the share of the cores that others had meanwhile."""
    path = os.path.join(directory, "result.json")
    busy, total = jiffies()
    own = os.times()
    run(options, "bench", config, *words, "--rounds", str(options.steps), "--micro-batches", "0", "--json", path)
    after_busy, after_total = jiffies()
    now = os.times()
    ticks = os.sysconf("SC_CLK_TCK")
    ours = (now.children_user + now.children_system - own.children_user - own.children_system) * ticks
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    return found["step_seconds"], max(0.0, (after_busy - busy - ours) / (after_total - total))


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "config.yaml")
        Path(config).write_text(CONFIG, encoding="utf-8")
        auto = list(AUTO)
        if options.calibrate:
            machine = os.path.join(directory, "machine.json")
            run(options, "bench", config, *auto, "--calibrate", machine, "--rounds", "5")
            auto.append(f"runtime.machine={machine}")
        chosen = re.search(r"^chosen +(.*)", run(options, "bench", config, *auto, "--rounds", "1"), re.M).group(1)
        choices = [("auto", tuple(auto))] + [(" ".join(words), words) for words in by_hand(options)]
        seconds, others = {name: [] for name, _ in choices}, []
        shuffle = random.Random(options.seed)
        for number in range(options.rounds):
            shuffle.shuffle(choices)
            for name, words in choices:
                taken, share = step_seconds(options, config, words, directory)
                seconds[name].append(taken)
                others.append(share)
                print(f"round {number + 1}: {1e3 * taken:7.1f} ms  {name}", file=sys.stderr, flush=True)
    page = report(options, chosen, {name: statistics.median(values) for name, values in seconds.items()}, others)
    print(page)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    return int(": **missed**" in page)


def report(options, chosen, medians, others):
    order = sorted(medians, key=medians.get)
    best = min((name for name in order if name != "auto"), key=medians.get)
    ratio = medians["auto"] / medians[best]
    rows = [f"| {place} | {name} | {1e3 * medians[name]:.1f} | {medians[name] / medians[best]:.3f} |"
            for place, name in enumerate(order, 1) if place <= 15 or name == "auto" or place == len(order)]
    rates = "rates measured here" if options.calibrate else "the hardware table's row of a CPU"
    return "\n".join([
        "# What auto chooses, against every choice by hand", "",
        f"    {shlex.join(['scripts/bench/auto_choice.py', *sys.argv[1:]])}", "",
        f"{datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='minutes')}; {platform.processor() or platform.machine()}, "
        f"{os.cpu_count()} cores; {options.ranks} ranks, {options.rounds} rounds of {len(order)} choices; other programs had "
        f"{100 * statistics.median(others):.0f} % of the cores (median, {100 * min(others):.0f} to {100 * max(others):.0f} %).", "",
        f"Chosen by {rates}: {chosen}.", "",
        f"auto is number {order.index('auto') + 1} of {len(order)}; its step takes **{ratio:.3f}** of the best one's; "
        f"the bar of {options.bar}: **{'reached' if ratio <= options.bar else 'missed'}**.", "",
        "| place | choice | ms / step | over the best by hand |", "|---|---|---:|---:|", *rows, ""])


if __name__ == "__main__":
    sys.exit(main())
