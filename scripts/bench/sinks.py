#!/usr/bin/env python3
"""Measures the cost of a run's records: training with every sink against training with none. The sinks get ten times
the work of the default schedule (a record every step, tensor statistics every 100), so that the cost shows above the
noise. Both train at once, each on a core of its own, and swap cores and the order of their starts between rounds: so
other programs slow both equally. Both must end with the same bits.

  scripts/bench/sinks.py [--rounds 12] [--steps 60]
"""
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import measure

# A small model, with a step of some 0.3 s: a larger one has more time for the same records.
MODEL = ["model.head_dim=64", "model.hidden_size=256", "model.intermediate_size=704", "model.num_hidden_layers=6",
         "model.num_attention_heads=4", "model.num_key_value_heads=4", "model.vocab_size=8192",
         "model.max_position_embeddings=256", "data.sequence_length=256", "data.validation=[]", "training.validation_interval=0",
         "training.micro_batch_size=4", "training.global_batch_tokens=2048", "precision.compute=bf16", "lr_scheduler.warmup=2",
         "checkpoint.interval=1000000"]
SINKS_THREAD = "metric files"  # the name that src/monitor gives it


def seconds_of(thread, process):
    """CPU time of the process's threads of this name."""
    total = 0
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            if (task / "comm").read_text() == thread + "\n":
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # the process or thread has just ended
    return total


class Run:
    """A training on one core, which no other run uses."""

    def __init__(self, harness, place, name, core, *overrides):
        shutil.rmtree(place.run(name), ignore_errors=True)
        self.log, self.began, self.seconds, self.of_sinks = Path(place.file(name + ".log")), time.monotonic(), None, 0
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["taskset", "-c", str(core), harness.TOKAMAK, "train", place.config(name), *MODEL,
                                             *overrides], env=harness.ENV, stdout=log, stderr=log)

    def trains(self):
        if self.seconds is None:
            self.of_sinks = max(self.of_sinks, seconds_of(SINKS_THREAD, self.process.pid))
            if self.process.poll() is not None:
                self.seconds = time.monotonic() - self.began
                if self.process.returncode != 0:
                    raise SystemExit(self.log.read_text(encoding="utf-8"))
        return self.seconds is None


def main():
    options = measure.arguments(__doc__, ("--rounds", 12, "of both"), ("--steps", 60, "of a run")).parse_args()
    (harness,) = measure.tests_harness("harness")
    cores = sorted(os.sched_getaffinity(0))[:2]
    ratios, shares = [], []
    with harness.Workplace() as place:
        kinds = {"none": ["metrics.tensor_statistics=0", f"metrics.log_interval={options.steps}"],
                 "all": ["metrics.tensorboard=true", "metrics.prometheus=" + place.file("tokamak.prom"),
                         "metrics.tensor_statistics=100", "metrics.log_interval=1"]}
        for number in range(options.rounds):
            runs = {kind: Run(harness, place, kind, cores[(kind == "all") ^ number % 2], f"training.max_steps={options.steps}",
                              *kinds[kind]) for kind in sorted(kinds, reverse=number // 2 % 2 == 0)}
            while any([run.trains() for run in runs.values()]):
                time.sleep(0.01)
            none, sinks = runs["none"], runs["all"]
            assert sinks.of_sinks > 0, f"no thread '{SINKS_THREAD}' was seen to compute"
            ratios.append(sinks.seconds / none.seconds - 1)
            shares.append(sinks.of_sinks / sinks.seconds)
            print(f"round {number + 1}: none {none.seconds:.2f} s, all {sinks.seconds:.2f} s ({ratios[-1]:+.2%}); their thread "
                  f"{sinks.of_sinks * 1e3:.1f} ms, {shares[-1]:.3%}", flush=True)
            ends = [harness.gathered(place.checkpoint(name, options.steps)) for name in kinds]
            assert ends[0] == ends[1], "the sinks change the training"
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"ten times the default schedule: all sinks {statistics.mean(ratios):+.2%}, standard error {error:.2%}; their thread "
          f"{statistics.median(shares):.3%} of a core; same bits; load {os.getloadavg()[0]:.1f}\n"
          f"at the default schedule {statistics.mean(ratios) / 10:+.3%}, standard error {error / 10:.3%}")


if __name__ == "__main__":
    main()
