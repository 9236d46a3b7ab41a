#!/usr/bin/env python3
"""Benchmarks `tokamak bench` against PyTorch (torch_baseline.py), alternating on the same device, threads and batch.

First it tries PyTorch's options one at a time and keeps those that are faster. Then each round runs our step and
PyTorch's, each in a separate process. The result is the median of the rounds' ratios. `tokamak bench` then measures
where our step's time goes, each operation against its floor. Prints a page, and writes it with all data as JSON.

  scripts/bench/race.py configs/llama-125m.yaml training.micro_batch_size=4 --device cpu --bar 1.3 --gemm-bar 0.65
  scripts/bench/race.py configs/llama-0.5b.yaml --device cuda --bar 1.15 --python ~/torch/bin/python3
"""
import datetime
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import measure
import race_page
from measure import ROOT, Failed, run
from printed_config import read_config
from torch_baseline import CHOICES, OUT_OF_MEMORY

BASELINE = Path(__file__).resolve().parent / "torch_baseline.py"
OURS_FAILED, TORCH_FAILED, SKIPPED = 1, 3, 77

START = {**{name: values[0] for name, values in CHOICES.items()}, "allocator": "keep"}
# Options that may be faster, tried in this order, one change at a time, on top of the fastest set so far.
TRIALS = {"cpu": [("compile", "none"), ("head", "chunked"), ("weights", "autocast"), ("allocator", "default")],
          "cuda": [("attention", "cudnn"), ("attention", "flash"), ("head", "chunked"), ("weights", "autocast"),
                   ("compile", "layers"), ("compile", "max-autotune")]}
# "keep": glibc keeps freed memory, so pages are faulted in once, and PyTorch uses huge pages. On a GPU it is PyTorch's
# expandable segments.
ALLOCATOR = {"keep": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40), "MALLOC_TOP_PAD_": str(2**26),
                      "THP_MEM_ALLOC_ENABLE": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
             "default": {}}


def arguments():
    parser = measure.arguments(
        __doc__, ("--rounds", 3, "each runs ours, then PyTorch's"), ("--steps", 0, "of a run; 0: 2 on the CPU, 10 on a GPU"),
        ("--micro-batches", 2, "of a step"), ("--threads", len(os.sched_getaffinity(0)), "CPU threads of both"),
        ("--python", "python3", "an interpreter that has torch"), ("--tokamak", measure.TOKAMAK, "the program"),
        ("--tuning-seconds", 1800.0, "for trying options of PyTorch, besides the first"),
        ("--torch", None, "PyTorch's options NAME=VALUE,...; nothing else is then tried"),
        ("--output", None, "stem of the .json and .md, instead of docs/benchmarks/DATE-NAME-DEVICE"))
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE over the file")
    parser.add_argument("--device", choices=["cpu", "cuda", "auto"], default="auto")
    parser.add_argument("--bar", type=float, help="the ratio to reach")
    parser.add_argument("--gemm-bar", type=float, help="the share of the GEMM rate to reach")
    return parser.parse_intermixed_args()


class Race:
    def __init__(self, options):
        self.options = options
        self.tokamak = options.tokamak
        self.device = options.device if options.device != "auto" else "cuda" if gpus() else "cpu"
        self.steps = options.steps or (10 if self.device == "cuda" else 2)
        self.overrides = [*options.overrides, f"runtime.backend={self.device}",
                          f"runtime.threads_per_rank={options.threads}"]
        self.micro_batch = 0  # that of our program, which its first run reports
        self.torch_micro_batch = 0
        self.tried = []

    def ours(self, command, *arguments, steps=None):
        return measure.bench([self.tokamak], command, self.options.config, *self.overrides, "--rounds", steps or self.steps,
                             *arguments)

    def step_of_ours(self, steps=None):
        found = self.ours("step", "--micro-batches", self.options.micro_batches, steps=steps)
        self.micro_batch = found["tokens_per_step"] // (found["sequence_length"] * self.options.micro_batches)
        return found

    def torch(self, chosen, warmup, steps, limit=None):
        """Runs the baseline once. If it runs out of memory, it takes twice as many micro-batches of half the size."""
        micro_batch = self.torch_micro_batch or self.micro_batch
        while True:
            split = self.micro_batch // micro_batch
            command = [self.options.python, BASELINE, self.options.config, *self.overrides, "--tokamak", self.tokamak,
                       "--device", self.device, "--threads", self.options.threads, "--micro-batch", micro_batch,
                       "--micro-batches", self.options.micro_batches * split, "--warmup", warmup, "--steps", steps]
            for name, value in chosen.items():
                command += [f"--{name}", value] if name != "allocator" else []
            environment = dict(ALLOCATOR[chosen["allocator"]], OMP_NUM_THREADS=str(self.options.threads),
                               PYTHONDONTWRITEBYTECODE="1")
            try:
                output, others = run("torch_baseline.py", command, environment, limit)
                self.torch_micro_batch = micro_batch
                return dict(json.loads(output.splitlines()[-1]), others=others)
            except Failed as error:
                if error.code != OUT_OF_MEMORY or micro_batch % 2 == 1:
                    raise
                micro_batch //= 2

    def trial(self, chosen, change, limit=None):
        try:
            rate = self.torch(chosen, warmup=2, steps=max(1, self.steps // 2), limit=limit)["tokens_per_second"]
            self.tried.append({"change": change, "tokens_per_second": rate})
            measure.say(f"race: PyTorch, {change}: {rate:.0f} tokens/s")
            return rate
        except Failed as error:
            self.tried.append({"change": change, "failed": str(error)})
            measure.say(f"race: PyTorch, {change}: {error}")
            return 0

    def tune(self):
        """The fastest options found, one changed at a time."""
        chosen, begin = dict(START), time.monotonic()
        if self.options.torch is not None:
            chosen.update(pair.split("=", 1) for pair in self.options.torch.split(",") if pair)
            return chosen
        best = self.trial(chosen, ", ".join(f"{name} {value}" for name, value in chosen.items()))
        for name, value in TRIALS[self.device]:
            left = self.options.tuning_seconds - (time.monotonic() - begin)
            if left <= 0:
                self.tried.append({"change": f"{name} {value}", "failed": "not tried: out of time"})
                continue
            rate = self.trial(dict(chosen, **{name: value}), f"{name} {value}", left)
            if rate > best:
                chosen[name], best = value, rate
        if best == 0:
            raise Failed("torch_baseline.py", 1, f"error: no set of options works: {self.tried[0]['failed']}")
        return chosen

    def rounds(self, chosen):
        rounds = []
        for _ in range(self.options.rounds):
            ours = self.step_of_ours()
            theirs = self.torch(chosen, warmup=2, steps=self.steps)
            if ours["tokens_per_step"] != theirs["tokens_per_step"]:
                raise Failed("torch_baseline.py", 0, f"error: it took {theirs['tokens_per_step']} tokens a step")
            rounds.append({"tokamak": ours, "torch": theirs,
                           "ratio": ours["tokens_per_second"] / theirs["tokens_per_second"]})
            measure.say(f"race: round {len(rounds)}: {ours['tokens_per_second']:.0f} and {theirs['tokens_per_second']:.0f} tokens/s, "
                f"ratio {rounds[-1]['ratio']:.2f}")
        return rounds


def gpus():
    """Name and driver of each."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(command, text=True, check=False, capture_output=True) if shutil.which(command[0]) else None
    return done.stdout.splitlines() if done and done.returncode == 0 else []


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown")
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release.split("-")[0],
            "gpus": gpus()}


def main():
    options = arguments()
    race = Race(options)
    probe = subprocess.run([options.python, "-c", "import torch"], check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL) if shutil.which(options.python) else None
    if probe is None or probe.returncode != 0:
        print(f"race: skipped: {options.python} has no torch; name an interpreter that has it with --python")
        return SKIPPED
    try:
        name = read_config(race.tokamak, options.config, race.overrides)["run"]["name"]
        race.step_of_ours(steps=1)
        chosen = race.tune()
        rounds = race.rounds(chosen)
        operations = race.ours("ops", steps=5)
    except (Failed, OSError) as error:
        print(f"race: error: {error}", file=sys.stderr)
        return TORCH_FAILED if getattr(error, "what", "") == "torch_baseline.py" else OURS_FAILED
    version = subprocess.run([race.tokamak, "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout
    result = {"name": name, "device": race.device, "threads": options.threads,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
              "machine": machine(), "tokamak": version.strip().splitlines(),
              "command": "scripts/bench/race.py " + race_page.command_of(sys.argv[1:]),
              "torch_options": chosen, "torch_environment": ALLOCATOR[chosen["allocator"]], "tried": race.tried,
              "rounds": rounds, "isolated": operations}
    result.update(race_page.summary(rounds, operations, options.bar, options.gemm_bar))
    stem = Path(options.output or ROOT / "docs/benchmarks" / f"{result['date'][:10]}-{name}-{race.device}")
    stem.parent.mkdir(parents=True, exist_ok=True)
    page = race_page.page(result)
    Path(f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    Path(f"{stem}.md").write_text(page, encoding="utf-8")
    print(page + f"\nwritten to {shlex.quote(str(stem))}.json and .md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
