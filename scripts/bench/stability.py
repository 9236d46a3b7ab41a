#!/usr/bin/env python3
"""Measures what docs/stability.md says of spikes, on the quickstart's text.

  poison   20 steps of random tokens from step 200 on: the step that finds them, and the last losses with a rollback,
           without one, and without these tokens
  rate     a learning rate 30 times as high from step 201 to 220: the step that finds it
  alarms   false ones: events of spikes in undisturbed runs of the quickstart's model and of one of 30M parameters
  nan      a learning rate that overflows, from step 101 on: the trace of the first value that is not finite
  qk       a learning rate that is too high for AdamW, with and without norms of queries and keys: losses, and the
           greatest of attention's log-sum-exps
  cost     the time of a step with all statistics, and without

Runs lie under OUT. The same command again resumes them, and only prints the tables of those that are over.

  scripts/quickstart.sh
  scripts/bench/stability.py --out runs/stability poison rate alarms nan qk cost
"""
import array
import json
import os
import random
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import measure

CONFIG = str(measure.ROOT / "configs" / "quickstart.yaml")
FIRST, STEPS, BATCH = 200, 20, 4096
LARGER = ("model={hidden_size: 512, intermediate_size: 1376, num_hidden_layers: 8, num_attention_heads: 8, vocab_size: 4096, "
          "max_position_embeddings: 256, tie_word_embeddings: false}")


class Runs:
    """Runs of the quickstart's config with other data and keys."""

    def __init__(self, options):
        self.options, self.data, self.out = options, Path(options.data).resolve(), Path(options.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)

    def source(self, name):
        """The training tokens in order: all of them, with random ones in the planted range, or without the range."""
        path = self.out / f"{name}.npy"
        if not path.exists():
            tokens = array.array("H")
            for part in sorted((self.data / "train").glob("part-*.bin")):
                tokens.frombytes(part.read_bytes())
            begin, end = (FIRST - 1) * BATCH, (FIRST - 1 + STEPS) * BATCH
            if name == "poisoned":
                draw = random.Random(1)
                tokens[begin:end] = array.array("H", (draw.randrange(3, 4096) for _ in range(begin, end)))
            if name == "without":
                del tokens[begin:end]
            path.write_bytes(tokens.tobytes())
        return (f"data.sources=[{{path: {path}, format: olmo, token_type: uint16, delimiter_id: 2, "
                f"tokenizer: {self.data}/train/tokenizer.model}}]")

    def train(self, name, *keys, until=None, fails=None):
        """Trains to the end, with `until` to that step, or with `fails` until it exits so. Returns the records of
        metrics.jsonl."""
        directory = self.out / name
        done = directory / f"done-{until or 'all'}"
        expected = fails if until is None else 75
        if not done.exists():
            command = [self.options.tokamak, "train", CONFIG, f"run.output_dir={directory}",
                       f"data.validation=[{{path: {self.data}/validation}}]", "data.order=sequential",
                       "metrics.log_interval=1", "training.samples.interval=10000", "training.validation_interval=0",
                       "checkpoint.interval=25 steps", "runtime.threads_per_rank=1", *keys]
            if until is not None:
                command += ["--stop-at-step", until]
            try:
                measure.run(name, command)
            except measure.Failed as failed:
                if failed.code != expected:
                    raise
            done.touch()
        return [json.loads(line) for line in (directory / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def last(records, key):
    return [record[key] for record in records if key in record][-1]


def events(records, name):
    return [record for record in records if record.get("event") == name]


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def poison(runs):
    arms = {"without the range": ("without", "log"), "logged": ("poisoned", "log"), "skipped": ("poisoned", "skip"),
            "rolled back": ("poisoned", "rollback")}

    def train(arm):
        source, action = arms[arm]
        return runs.train("poison-" + arm.replace(" ", "-"), runs.source(source), f"resilience.spike.action={action}",
                          "resilience.max_bad_steps=100")

    with ThreadPoolExecutor(runs.options.parallel) as pool:
        found = dict(zip(arms, pool.map(train, arms)))
    clean = last(found["without the range"], "validation/loss")
    rows = []
    for arm, records in found.items():
        steps = [record["step"] for record in events(records, "spike")]
        loss = last(records, "validation/loss")
        rows.append([arm, ", ".join(map(str, steps)) or "-", len(events(records, "rollback")), f"{loss:.4f}",
                     f"{100 * (loss / clean - 1):+.2f} %"])
    print(f"{STEPS} steps of random tokens from step {FIRST} on:\n")
    table(["run", "events of spikes at steps", "rollbacks", "last loss", "against the run without"], rows)


def rate(runs):
    source = runs.source("all")
    runs.train("rate", source, until=FIRST)
    runs.train("rate", source, "optimizer.lr=0.24", until=FIRST + STEPS)
    records = runs.train("rate", source)
    steps = [record["step"] for record in events(records, "spike")]
    print(f"30 times the learning rate from step {FIRST + 1} to {FIRST + STEPS}: events of spikes at steps "
          f"{', '.join(map(str, steps)) or '-'}; last loss {last(records, 'validation/loss'):.4f}\n", flush=True)


def alarms(runs):
    shuffled = (f"data.sources=[{{path: {runs.data}/train}}]", "data.order=shuffled")  # as configs/quickstart.yaml
    arms = {"quickstart, 400 steps": ("alarms-quickstart", *shuffled)}
    for seed in (1, 2, 3):
        arms[f"30M, seed {seed}, 2,000 steps of 256 tokens, AdamW"] = (
            f"alarms-30M-{seed}", *shuffled, LARGER, "training.max_steps=2000", "training.global_batch_tokens=256",
            "optimizer={name: adamw, lr: 1e-3}", f"run.seed={seed}")
    with ThreadPoolExecutor(runs.options.parallel) as pool:
        found = dict(zip(arms, pool.map(lambda arm: runs.train(*arms[arm]), arms)))
    table(["run", "events of spikes", "last loss"],
          [[arm, len(events(records, "spike")), f"{last(records, 'validation/loss'):.4f}"] for arm, records in found.items()])


def nan(runs):
    source = runs.source("all")
    runs.train("nan", source, "metrics.tensor_statistics=10", "metrics.activation_statistics.interval=10", until=100)
    records = runs.train("nan", source, "optimizer.lr=1e30", "metrics.tensor_statistics=1",
                         "metrics.activation_statistics.interval=1", fails=7)
    for record in events(records, "non_finite"):
        print(record["detail"] + "\n", flush=True)


def qk(runs):
    source, rows = runs.source("all"), []

    def train(qk_norm):
        return runs.train(f"qk-{qk_norm}", source, f"model.qk_norm={qk_norm}", "training.max_steps=120",
                          "training.global_batch_tokens=2048", "optimizer={name: adamw, lr: 1e-2}",
                          "metrics.activation_statistics={interval: 20, match: [layers.*.attention_logits]}")

    with ThreadPoolExecutor(runs.options.parallel) as pool:
        found = dict(zip(("false", "true"), pool.map(train, ("false", "true"))))
    for qk_norm, records in found.items():
        greatest = {}  # by step
        for line in (runs.out / f"qk-{qk_norm}" / "tensors.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            measured = [value for value in record.get("activations", {}).get("max", []) if value is not None]
            if measured:
                greatest[record["step"]] = max(measured)
        of_steps = ", ".join(f"{value:.0f}" for _, value in sorted(greatest.items()))
        rows.append([qk_norm, f"{last(records, 'validation/loss'):.4f}", of_steps, len(events(records, "spike"))])
    print("AdamW at 1e-2, 120 steps of 2,048 tokens:\n")
    table(["model.qk_norm", "last loss", "greatest log-sum-exp, every 20 steps", "events of spikes"], rows)


def cost(runs):
    keys = ("training.max_steps=14", "checkpoint.interval=1000 steps", "data.validation=[]")
    medians = {0: [], 1: []}
    for round_number in range(3):
        for interval, seconds in medians.items():
            records = runs.train(f"cost-{interval}-{round_number}", runs.source("all"), *keys,
                                 f"metrics.tensor_statistics={interval}", f"metrics.activation_statistics.interval={interval}")
            seconds.append(statistics.median(record["time/interval"] for record in records if record.get("step", 0) > 4
                                             and "time/interval" in record))
    without, with_all = (statistics.median(seconds) for seconds in medians.values())
    spread = (max(medians[0]) - min(medians[0])) / without
    print(f"A step takes {without:.4f} s without statistics (spread of three runs {spread:.1%}) and {with_all:.4f} s with all of "
          f"them. So every 1,000 steps they cost {(with_all / without - 1) / 1000:.4%} of the time.\n", flush=True)


def main():
    parser = measure.arguments(__doc__, ("--tokamak", measure.TOKAMAK, "the program"),
                               ("--data", "runs/quickstart/data", "the quickstart's shards"),
                               ("--out", "runs/stability", "where runs go"), ("--parallel", 2, "runs at once"))
    experiments = {"poison": poison, "rate": rate, "alarms": alarms, "nan": nan, "qk": qk, "cost": cost}
    parser.add_argument("experiments", nargs="+", choices=experiments)
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    for name in options.experiments:
        experiments[name](Runs(options))


if __name__ == "__main__":
    main()
