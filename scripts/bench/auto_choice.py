#!/usr/bin/env python3
"""Compares the choice of the auto keys with every choice made by hand, on CPU ranks under mpirun: micro-batches x
recompute modes x gathered layers of a small model. Each round measures all choices in random order; medians are
compared.

  scripts/bench/auto_choice.py --rounds 5
  scripts/bench/auto_choice.py --rounds 5 --calibrate >docs/benchmarks/DATE-auto-choice-cpu.md

The choice uses the hardware table's row of a CPU, or with --calibrate this machine's measured rates. On busy cores the
ranks wait for each other and the order of the choices is chance: look at the share of other programs.
"""
import datetime
import os
import platform
import random
import re
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

import measure

CONFIG = """\
run: {name: auto-choice, output_dir: unused}
model: {hidden_size: 256, intermediate_size: 704, num_hidden_layers: 4, num_attention_heads: 4, vocab_size: 2048}
data: {sequence_length: 128, sources: [{path: unused}]}
training: {max_steps: 1, global_batch_tokens: 4096}
optimizer: {lr: 3e-4}
runtime: {backend: cpu, threads_per_rank: 1}
"""
AUTO = ("activation_checkpoint.mode=auto", "parallelism.keep_gathered=auto", "training.micro_batch_size=auto")


def by_hand(options):
    """Every micro-batch that a config may name, recompute mode and number of gathered layers, as overrides."""
    sequences = 4096 // 128
    sizes = [size for size in range(1, sequences // options.ranks + 1) if sequences % size == 0]
    return [(f"training.micro_batch_size={size}", f"activation_checkpoint.mode={mode}", f"parallelism.keep_gathered={kept}")
            for size in sizes for mode in ("none", "full", "selective") for kept in options.gathered.split(",")]


def main():
    parser = measure.arguments(
        __doc__, ("--ranks", 2, "of mpirun"), ("--rounds", 5, "each measures all choices once"),
        ("--steps", 3, "steps of a run, which reports their median"),
        ("--gathered", "none,1,2,3,4", "numbers of gathered layers by hand"),
        ("--bar", 1.03, "auto's step over the best one's, at most"), ("--tokamak", measure.TOKAMAK, "the program"),
        ("--seed", 1, "of the order within a round"))
    parser.add_argument("--calibrate", action="store_true", help="let auto use rates measured here first")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "config.yaml")
        Path(config).write_text(CONFIG, encoding="utf-8")
        program = measure.mpirun(options.ranks, options.tokamak)
        auto = AUTO

        def step(words, number):
            found = measure.bench(program, config, *words, "--rounds", options.steps, "--micro-batches", 0)
            measure.say(f"round {number + 1}: {1e3 * found['step_seconds']:7.1f} ms  {'auto' if words == auto else ' '.join(words)}")
            return found["step_seconds"], found["others"]

        if options.calibrate:
            machine = os.path.join(directory, "machine.json")
            measure.run("bench calibrate", [*program, "bench", "calibrate", config, *auto, "--output", machine, "--rounds", 5])
            auto = (*auto, f"runtime.machine={machine}")
        text, _ = measure.run("tokamak bench", [*program, "bench", config, *auto, "--rounds", 1])
        chosen = re.search(r"^chosen +(.*)", text, re.M).group(1)
        choices, shuffle = [auto, *by_hand(options)], random.Random(options.seed)
        found = measure.in_turn(options.rounds, choices, step, lambda all: shuffle.sample(all, len(all)))
    medians = {"auto" if words == auto else " ".join(words): statistics.median(seconds for seconds, _ in rounds)
               for words, rounds in found.items()}
    text, reached = page(options, chosen, medians, [others for rounds in found.values() for _, others in rounds])
    print(text)
    return 0 if reached else 1


def page(options, chosen, medians, others):
    order = sorted(medians, key=medians.get)
    best = next(name for name in order if name != "auto")
    ratio = medians["auto"] / medians[best]
    rows = [[str(place), name, f"{1e3 * medians[name]:.1f}", f"{medians[name] / medians[best]:.3f}"]
            for place, name in enumerate(order, 1) if place <= 15 or name == "auto" or place == len(order)]
    rates = "rates measured here" if options.calibrate else "the hardware table's row of a CPU"
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")
    return f"""\
# The choice of auto, against every choice by hand

    {shlex.join(['scripts/bench/auto_choice.py', *sys.argv[1:]])}

{now}; {platform.processor() or platform.machine()}, {os.cpu_count()} cores; {options.ranks} ranks, {options.rounds} rounds of \
{len(order)} choices; other programs had {100 * statistics.median(others):.0f} % of the cores (median, \
{100 * min(others):.0f} to {100 * max(others):.0f} %).

Chosen by {rates}: {chosen}.

auto is number {order.index('auto') + 1} of {len(order)}; its step takes **{ratio:.3f}** of the best one's; the bar of \
{options.bar}: **{'reached' if ratio <= options.bar else 'missed'}**.

{measure.table(["place", "choice", "ms / step", "over the best by hand"], rows)}
""", ratio <= options.bar


if __name__ == "__main__":
    sys.exit(main())
