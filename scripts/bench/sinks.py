#!/usr/bin/env python3
"""What a run's records cost: training with every sink beside training with none. So that it shows above the noise, the
sinks get ten times what the default schedule gives them: a record every step, statistics of tensors every 100; a tenth of
the difference is the cost at the default schedule. Both train at once, each on a core of its own, and take turns at cores
and at who starts first: what other programs take from the machine, they take from both. Both must end with the same bits.

  scripts/bench/sinks.py [--rounds 12] [--steps 60]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
os.environ.setdefault("TOKAMAK", str(ROOT / "build" / "tokamak"))
from harness import ENV, TOKAMAK, Workplace, gathered  # noqa: E402

# A small model's step, of some 0.3 s: a larger one's has more time for the same records.
MODEL = ["model.head_dim=64", "model.hidden_size=256", "model.intermediate_size=704", "model.num_hidden_layers=6",
         "model.num_attention_heads=4", "model.num_key_value_heads=4", "model.vocab_size=8192",
         "model.max_position_embeddings=256", "data.sequence_length=256", "data.validation=[]", "training.validation_interval=0",
         "training.micro_batch_size=4", "training.global_batch_tokens=2048", "precision.compute=bf16", "lr_scheduler.warmup=2",
         "checkpoint.interval=1000000"]
SINKS_THREAD = "metric files"  # the name that src/monitor gives it


def seconds_of(thread, process):
    """That threads of this name have computed in the process."""
    total = 0
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            if (task / "comm").read_text() == thread + "\n":
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # it has just ended
    return total


class Run:
    """Trains on a core of its own."""

    def __init__(self, place, name, core, options, *overrides):
        shutil.rmtree(place.run(name), ignore_errors=True)
        command = [TOKAMAK, "train", place.config(name), *MODEL, f"training.max_steps={options.steps}", *overrides]
        self.log = open(place.file(name + ".log"), "w+", encoding="utf-8")
        self.began, self.seconds, self.of_sinks = time.monotonic(), None, 0
        self.process = subprocess.Popen(["taskset", "-c", str(core), *command], env=ENV, stdout=self.log, stderr=self.log)

    def look(self):
        """Whether it still trains."""
        if self.seconds is None:
            self.of_sinks = max(self.of_sinks, seconds_of(SINKS_THREAD, self.process.pid))
            if self.process.poll() is not None:
                self.seconds = time.monotonic() - self.began
                if self.process.returncode != 0:
                    raise SystemExit(Path(self.log.name).read_text(encoding="utf-8"))
        return self.seconds is None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    ratios, shares = [], []
    with Workplace() as place:
        kinds = {"none": ["metrics.tensor_statistics=0", f"metrics.log_interval={options.steps}"],
                 "all": ["metrics.tensorboard=true", "metrics.prometheus=" + place.file("tokamak.prom"),
                         "metrics.tensor_statistics=100", "metrics.log_interval=1"]}
        for number in range(options.rounds):
            started = {}
            for kind in sorted(kinds, reverse=number // 2 % 2 == 0):
                started[kind] = Run(place, kind, cores[(kind == "all") ^ number % 2], options, *kinds[kind])
            none, sinks = started["none"], started["all"]
            while sum([none.look(), sinks.look()]) > 0:
                time.sleep(0.01)
            ratios.append(sinks.seconds / none.seconds - 1)
            assert sinks.of_sinks > 0, f"no thread '{SINKS_THREAD}' was seen to compute"
            shares.append(sinks.of_sinks / sinks.seconds)
            print(f"round {number + 1}: none {none.seconds:.2f} s, all {sinks.seconds:.2f} s ({ratios[-1]:+.2%}); their thread "
                  f"{sinks.of_sinks * 1e3:.1f} ms, {shares[-1]:.3%}", flush=True)
            ends = [gathered(place.checkpoint(name, options.steps)) for name in ("none", "all")]
            assert ends[0] == ends[1], "the sinks change the training"
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"ten times the default schedule: all sinks {statistics.mean(ratios):+.2%}, standard error {error:.2%}; their thread "
          f"{statistics.median(shares):.3%} of a core; same bits; load {os.getloadavg()[0]:.1f}\n"
          f"at the default schedule {statistics.mean(ratios) / 10:+.3%}, standard error {error / 10:.3%}")


if __name__ == "__main__":
    main()
