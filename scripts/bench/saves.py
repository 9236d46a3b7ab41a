#!/usr/bin/env python3
"""Measures saves and starts on this machine. It prints the stall of a save during training, the steps around the first
save, the writer's rate against dd's, and the parts of a restart's time. --only-steps measures only the steps.

dd writes the bytes of a save: one new file per rank at once, with fsync, in turn with the program, keeping as many old
files. Pages of a deleted file make the next one several times faster to write, so both must do the same.

  scripts/bench/saves.py configs/llama-125m.yaml 'data.sources=[{path: data/train}]' --ranks 2
"""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measure
from printed_config import read_config

PLAIN = ["data.validation=[]", "training.validation_interval=0", "lr_scheduler.warmup=2", "training.max_tokens=2M"]


def print_steps(records):
    """Times of steps as shares of their median. The first copy's memory is taken during the steps after the first."""
    took = {record["step"]: record["time/interval"] for record in records if "time/interval" in record}
    step = statistics.median(took.values())
    ready, saves = events(records, "ready")[0], events(records, "checkpoint")
    print(f"start: takes memory for {ready['startup/memory']:.3f} s, {ready['startup/memory'] / step:.2%} of a step")
    print(f"steps from the first to past the first save (step {saves[0]['step']}), in medians of all, {step:.2f} s: " +
          ", ".join(f"{number}: {took[number] / step:.2f}" for number in sorted(took) if number <= saves[0]["step"] + 2))
    for save in saves[:3]:
        stall, copy = save["checkpoint/stall"], save["checkpoint/copy"]
        print(f"save during training, step {save['step']}: stall {stall:.4f} s ({stall / step:.2%} of a step), copy {copy:.4f}, "
              f"beyond it {(stall - copy) / step:.2%} of a step")


def events(records, event):
    return [record for record in records if record.get("event") == event]


class Bench:
    def __init__(self, options, directory):
        self.options, self.directory, self.size = options, directory, 0
        self.keep = read_config(options.tokamak, options.config, options.overrides)["checkpoint"]["keep_latest"]

    def train(self, *overrides, last, fresh=True):
        """The records of a run up to this step."""
        options, run = self.options, Path(self.directory, "run")
        if fresh:
            shutil.rmtree(run, ignore_errors=True)
        try:
            measure.run("tokamak train", measure.mpirun(
                options.ranks, options.tokamak, "train", options.config, *PLAIN, *options.overrides, *overrides,
                f"run.output_dir={run}", "--stop-at-step", last))
        except measure.Failed as ended:
            if not (run / "status.json").exists() or json.loads((run / "status.json").read_text())["state"] != "stopped":
                raise SystemExit(ended.text) from ended
        return [json.loads(line) for line in (run / "metrics.jsonl").open()]

    def steps_of(self, length, sequences):
        """Overrides for short steps: one micro-batch on each rank."""
        return [f"data.sequence_length={length}", f"training.micro_batch_size={sequences}",
                f"training.global_batch_tokens={length * sequences * self.options.ranks}"]

    def saves(self):
        """MB/s of each save of a run that does nothing else."""
        saves = events(self.train("checkpoint.interval=1", "checkpoint.async=false", *self.steps_of(64, 1),
                                  last=self.options.saves), "checkpoint")
        self.size = saves[0]["checkpoint/bytes"]
        return [save["checkpoint/bytes"] / save["checkpoint/seconds"] / 1e6 for save in saves]

    def dd(self):
        """MB/s of dd, for as many rounds of files as saves() writes. It keeps as many old files."""
        rates = []
        mebibytes = self.size // self.options.ranks >> 20
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

    def writer(self):
        def rates(variant, number):
            found = getattr(self, variant)()
            print(f"round {number + 1}, MB/s: {variant} " + " ".join(f"{rate:.0f}" for rate in found), flush=True)
            return found

        self.saves()  # the first save shows the size
        rounds = measure.in_turn(self.options.rounds, ["dd", "saves"], rates)
        dd, saves = (statistics.median(sum(rates, [])) for rates in rounds.values())
        print(f"writer: {self.size / 1e6:.0f} MB on {self.options.ranks} rank(s): median {saves:.0f} MB/s, dd {dd:.0f}: {saves / dd:.2f}")


def main():
    parser = measure.arguments(
        __doc__, ("--ranks", 2, "of mpirun"), ("--rounds", 3, "each: dd, then saves"), ("--saves", 6, "of a round"),
        ("--tokamak", measure.TOKAMAK, "the program"), ("--directory", None, "on the disk to measure"))
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE over the file")
    parser.add_argument("--only-steps", action="store_true", help="no dd and no restart: the steps around the first save")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="saves-") as directory:
        bench = Bench(options, directory)
        steps = bench.steps_of(256, 4)
        if options.only_steps:
            print_steps(bench.train("checkpoint.interval=6", "metrics.log_interval=1", *steps, last=15))
            return
        bench.writer()
        print_steps(bench.train("checkpoint.interval=10", "metrics.log_interval=1", *steps, last=31))
        ready = events(bench.train(*steps, last=32, fresh=False), "ready")[-1]
        parts = sorted(((seconds, name.split("/")[1]) for name, seconds in ready.items() if name.startswith("startup/")), reverse=True)
        print("restart, seconds from exec to the first step: " + ", ".join(f"{name} {seconds:.3f}" for seconds, name in parts))


if __name__ == "__main__":
    main()
