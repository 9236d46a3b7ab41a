#!/usr/bin/env python3
"""What saves and starts cost on this machine: a save beside training (its stall over its copy, in shares of a step), the
steps around the first save (the memory of its copy is taken after the first step, beside the next ones), the writer's
rate beside dd's, and where the time from exec to the first step goes. --only-steps measures the steps alone.

dd writes what a save writes: as many bytes, one new file for each rank at once, with fsync, in rounds beside the
program's, and as many old files are kept. A file that takes over the pages of one just deleted is written several times
faster than one that needs new memory, so both must do the same.

  scripts/bench/saves.py configs/llama-125m.yaml 'data.sources=[{path: data/train}]' --ranks 2
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from printed_config import read_config

ROOT = Path(__file__).resolve().parents[2]
PLAIN = ["data.validation=[]", "training.validation_interval=0", "lr_scheduler.warmup=2", "training.max_tokens=2M"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE over the file")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="each: dd, then saves (3)")
    parser.add_argument("--saves", type=int, default=6, help="of a round (6)")
    parser.add_argument("--tokamak", default=str(ROOT / "build" / "tokamak"))
    parser.add_argument("--mpirun", default=shutil.which("mpirun") or "mpiexec")
    parser.add_argument("--only-steps", action="store_true", help="no dd and no restart: the steps around the first save")
    parser.add_argument("--directory", help="on the disk to measure (a temporary directory)")
    return parser.parse_args()


def print_steps(records):
    """Times of steps as shares of their median, within one run; where taking memory is slow, some step is longer."""
    took = {record["step"]: record["time/interval"] for record in records if "time/interval" in record}
    step = statistics.median(took.values())
    ready = next(record for record in records if record.get("event") == "ready")
    saves = [record for record in records if record.get("event") == "checkpoint"]
    print(f"start: takes memory for {ready['startup/memory']:.3f} s, {ready['startup/memory'] / step:.2%} of a step")
    print(f"steps from the first to past the first save (step {saves[0]['step']}), in medians of all, {step:.2f} s: " +
          ", ".join(f"{number}: {took[number] / step:.2f}" for number in sorted(took) if number <= saves[0]["step"] + 2))
    for save in saves[:3]:
        stall, copy = save["checkpoint/stall"], save["checkpoint/copy"]
        print(f"save beside training, step {save['step']}: stall {stall:.4f} s ({stall / step:.2%} of a step), copy {copy:.4f}, "
              f"beyond it {(stall - copy) / step:.2%} of a step")


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.keep = read_config(options.tokamak, options.config, options.overrides)["checkpoint"]["keep_latest"]

    def train(self, *overrides, last):
        """The events of a run in a new directory, by name."""
        run = f"{self.directory}/run"
        shutil.rmtree(run, ignore_errors=True)
        return self.go_on(*overrides, last=last)

    def go_on(self, *overrides, last):
        run, options = f"{self.directory}/run", self.options
        command = [options.mpirun, "-n", str(options.ranks), "--oversubscribe", "--bind-to", "none", options.tokamak, "train",
                   options.config, *PLAIN, *options.overrides, *overrides, f"run.output_dir={run}",
                   "--stop-at-step", str(last)]
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        status = Path(run) / "status.json"
        if not status.exists() or json.loads(status.read_text())["state"] != "stopped":
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}")
        return [json.loads(line) for line in open(f"{run}/metrics.jsonl")]

    def steps_of(self, length, sequences):
        """Overrides for short steps: one micro-batch on each rank."""
        return [f"data.sequence_length={length}", f"training.micro_batch_size={sequences}",
                f"training.global_batch_tokens={length * sequences * self.options.ranks}"]

    def saves(self):
        """(MB/s of each save, bytes of one); nothing else goes on meanwhile."""
        records = self.train("checkpoint.interval=1", "checkpoint.async=false", *self.steps_of(64, 1), last=self.options.saves)
        saves = [record for record in records if record.get("event") == "checkpoint"]
        return [save["checkpoint/bytes"] / save["checkpoint/seconds"] / 1e6 for save in saves], saves[0]["checkpoint/bytes"]

    def dd(self, size):
        """MB/s of as many rounds of files as saves() writes, as many of them kept."""
        rates = []
        mebibytes = size // self.options.ranks >> 20
        for save in range(self.options.saves):
            paths = [f"{self.directory}/dd-{save}-{rank}" for rank in range(self.options.ranks)]
            began = time.monotonic()
            writers = [subprocess.Popen(["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={mebibytes}", "conv=fsync"],
                                        stderr=subprocess.DEVNULL) for path in paths]
            assert all(writer.wait() == 0 for writer in writers)
            rates.append(len(paths) * mebibytes * 2**20 / (time.monotonic() - began) / 1e6)
            for rank in range(self.options.ranks if save >= self.keep else 0):
                os.remove(f"{self.directory}/dd-{save - self.keep}-{rank}")
        for entry in Path(self.directory).glob("dd-*"):
            entry.unlink()
        return rates


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="saves-") as directory:
        bench = Bench(options, directory)
        steps = bench.steps_of(256, 4)
        if options.only_steps:
            print_steps(bench.train("checkpoint.interval=6", "metrics.log_interval=1", *steps, last=15))
            return
        of_dd, of_saves, (_, size) = [], [], bench.saves()
        for number in range(options.rounds):
            of_dd += bench.dd(size)
            of_saves += bench.saves()[0]
            print(f"round {number + 1}, MB/s: dd " + " ".join(f"{rate:.0f}" for rate in of_dd[-options.saves:]) +
                  "; saves " + " ".join(f"{rate:.0f}" for rate in of_saves[-options.saves:]), flush=True)
        dd, saves = statistics.median(of_dd), statistics.median(of_saves)
        print(f"writer: {size / 1e6:.0f} MB on {options.ranks} rank(s): median {saves:.0f} MB/s, dd {dd:.0f}: {saves / dd:.2f}")

        print_steps(bench.train("checkpoint.interval=10", "metrics.log_interval=1", *steps, last=31))

        ready = [record for record in bench.go_on(*steps, last=32) if record.get("event") == "ready"][-1]
        parts = sorted(((seconds, name.split("/")[1]) for name, seconds in ready.items() if name.startswith("startup/")), reverse=True)
        print("restart, seconds from exec to the first step: " + ", ".join(f"{name} {seconds:.3f}" for seconds, name in parts))


if __name__ == "__main__":
    main()
