#!/usr/bin/env python3
"""Measures what docs/recipes.md recommends, on the quickstart's text: small models, several seeds, one table each.

  rates       AdamW and Muon, each at its own best learning rate
  optimizers  the same, and the steps of runs by Muon that end at AdamW's final loss
  schedules   WSD and cosine for the same tokens; an exponential average of the weights before and after the decay
  mup         the best learning rate at three widths, with muP and without
  context     a context of 512, and of 512 then 2048 by RoPE scaling: the loss by position

Runs are those of `tokamak sweep`, under OUT/sweeps. The same command again resumes them, and only prints the tables of
those that are over. Seeds change initial values and the order of the data; runs with the same seed share both.

  scripts/quickstart.sh
  scripts/bench/recipes.py --out runs/recipes optimizers schedules
"""
import json
import math
import statistics
import subprocess
from pathlib import Path

import measure

COMMON = """
data:
  sources: [{path: DATA/train}]
  validation: [{path: DATA/validation}]
optimizer: {lr: 2e-3, betas: [0.9, 0.95], weight_decay: 0.1}
lr_scheduler: {warmup: 5%, decay_type: cosine, min_lr_factor: 0.1}
precision: {compute: bf16}
checkpoint: {interval: 10000 steps, keep_latest: 1}
"""
SIZES = {
    "10M": "{hidden_size: 320, intermediate_size: 864, num_hidden_layers: 6, num_attention_heads: 5, ",
    "30M": "{hidden_size: 512, intermediate_size: 1376, num_hidden_layers: 8, num_attention_heads: 8, ",
    "64 wide": "{hidden_size: 64, intermediate_size: 172, num_hidden_layers: 2, num_attention_heads: 2, head_dim: 32, ",
}
TAIL = "vocab_size: 4096, max_position_embeddings: LENGTH, tie_word_embeddings: false}"
SHARES = [13, 20, 30, 45, 60, 80]  # per cent of AdamW's steps, after which runs by Muon end
WSD = "lr_scheduler={warmup: 5%, decay_type: wsd, decay_ratio: 0.2, min_lr_factor: 0.1}"


class Sweeps:
    """Runs sweeps of one program and reads their tables."""

    def __init__(self, options):
        self.options, self.out = options, Path(options.out).resolve()
        self.seeds = [int(seed) for seed in options.seeds.split(",")]
        self.out.mkdir(parents=True, exist_ok=True)

    def config(self, size, steps, length=256):
        path = self.out / f"{size.replace(' ', '-')}-{steps}-{length}.yaml"
        path.write_text(f"run: {{name: recipe, output_dir: {self.out}/recipe}}\nmodel: {SIZES[size]}{TAIL}\n" + COMMON +
                        f"training: {{max_steps: {steps}, global_batch_tokens: 4096, validation_interval: 50, "
                        "validation_sequences: 10000}\n", encoding="utf-8")
        text = path.read_text(encoding="utf-8").replace("DATA", str(Path(self.options.data).resolve()))
        path.write_text(text.replace("LENGTH", str(length)).replace("data:\n", f"data:\n  sequence_length: {length}\n"),
                        encoding="utf-8")
        return path

    def run(self, name, config, *grid, seeds):
        """The rows of the sweep's table: of this grid and of those before it."""
        command = [self.options.tokamak, "sweep", config, *grid, "--name", name, "--parallel", self.options.parallel,
                   "--seeds", ",".join(map(str, seeds))]
        with open(self.out / f"{name}.log", "a", encoding="utf-8") as log:
            subprocess.run([str(word) for word in command], check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        lines = (self.directory(name) / "table.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def directory(self, name):
        return self.out / "sweeps" / name

    def losses(self, name, row, key="validation/loss"):
        """By step."""
        lines = (self.directory(name) / "runs" / row["id"] / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
        return {record["step"]: record[key] for record in records if key in record}

    def best_rate(self, name, config, *grid, rates):
        """The rate with the least loss of the first seed, with both its neighbours run, and all rows."""
        while True:
            rows = self.run(name, config, *grid, "optimizer.lr=" + ",".join(f"{rate:g}" for rate in sorted(rates)),
                            seeds=self.seeds[:1])
            loss = {rate_of(row): row["loss"] for row in rows if row["seed"] == self.seeds[0] and has(row, grid)}
            best = min(loss, key=loss.get)
            if min(loss) < best < max(loss):
                return best, loss
            rates = {*rates, best / 2, best * 2}


def rate_of(row):
    return float(row["overrides"]["optimizer.lr"])


def has(row, grid):
    return all(row["overrides"].get(key) == value for key, value in (one.split("=", 1) for one in grid))


def mean_text(values, digits=4):
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def steps_to(loss, ends):
    """Steps at which the ends of runs of several lengths reach the loss: linear in the logarithm of the steps."""
    steps = sorted(ends)
    for low, high in zip(steps, steps[1:]):
        if ends[low] >= loss >= ends[high]:
            share = (ends[low] - loss) / (ends[low] - ends[high])
            return math.exp(math.log(low) + share * math.log(high / low))
    return None


def bracket(lengths, loss, end_of):
    """Two neighbours of the lengths, the first of which ends above the loss and the second not, if there are such."""
    at, ends = 2, {}
    while True:
        ends[at] = end_of(lengths[at])
        other = at + 1 if ends[at] > loss else at - 1
        if other in ends or not 0 <= other < len(lengths):
            return lengths[max(0, min(at, other)):][:2]
        at = other


def rates_of_optimizers(sweeps, size, steps):
    """Prints the losses of each. Returns the best rates, and the last losses {optimizer: {seed: loss}}."""
    config, best, rows = sweeps.config(size, steps), {}, []
    for name in ("adamw", "muon"):
        grid = "optimizer.name=" + name
        best[name], losses = sweeps.best_rate(f"{name}-{size}-{steps}", config, grid, rates={2e-3, 4e-3})
        rows += [[name, f"{rate:g}", f"{losses[rate]:.4f}"] for rate in sorted(losses)]
    print(f"{size}, {steps} steps, seed {sweeps.seeds[0]}:\n")
    table(["optimizer", "lr", "loss"], rows)
    runs = {name: [row for row in sweeps.run(f"{name}-{size}-{steps}", config, "optimizer.name=" + name,
                                             f"optimizer.lr={rate:g}", seeds=sweeps.seeds) if rate_of(row) == rate]
            for name, rate in best.items()}
    ends = {name: {row["seed"]: row["loss"] for row in of_rate} for name, of_rate in runs.items()}
    print(f"{size}, {steps} steps, {len(sweeps.seeds)} seeds, each at its best rate:\n")
    table(["optimizer", "lr", "loss"],
          [[name, f"{rate:g}", mean_text(list(ends[name].values()))] for name, rate in best.items()])
    passed = {row["seed"]: min((step for step, loss in sweeps.losses(f"muon-{size}-{steps}", row).items()
                                if loss <= ends["adamw"][row["seed"]]), default="none") for row in runs["muon"]}
    print("Runs by Muon, validated every 50 steps, are first below AdamW's last loss of their seed at steps " +
          ", ".join(str(passed[seed]) for seed in sweeps.seeds) + ".\n", flush=True)
    return best, ends


def optimizers(sweeps, size, steps):
    best, ends = rates_of_optimizers(sweeps, size, steps)
    config, first = sweeps.config(size, steps), sweeps.seeds[0]

    def of_lengths(lengths, seeds):
        return sweeps.run(f"muon-{size}-{steps}-shorter", config, "optimizer.name=muon", f"optimizer.lr={best['muon']:g}",
                          "training.max_steps=" + ",".join(map(str, lengths)), seeds=seeds)

    lengths = bracket([steps * share // 100 for share in SHARES], ends["adamw"][first],
                      lambda length: next(row["loss"] for row in of_lengths([length], [first])
                                          if row["steps"] == length and row["seed"] == first))
    shorter = of_lengths(lengths, sweeps.seeds)
    ratios = []
    for seed in sweeps.seeds:
        of_length = {row["steps"]: row["loss"] for row in shorter if row["seed"] == seed} | {steps: ends["muon"][seed]}
        ratios.append(steps / (steps_to(ends["adamw"][seed], of_length) or math.nan))
    by_length = {n: [row["loss"] for row in shorter if row["steps"] == n] for n in lengths}
    table(["Muon's steps", "loss"], [[n, mean_text(losses)] for n, losses in by_length.items()])
    print("AdamW's final loss takes Muon " + mean_text(ratios, 2) + " times fewer tokens, by runs that end there.\n")
    return best


def schedules(sweeps, size, steps, best):
    config, seeds = sweeps.config(size, steps), sweeps.seeds
    average = f"averages=[{{name: ema, half_life: {steps * 4096 // 20} tokens, every: 2, start: 5%}}]"
    muon = ("optimizer.name=muon", f"optimizer.lr={best['muon']:g}")
    cosine = [row["loss"] for row in sweeps.run(f"muon-{size}-{steps}", config, *muon, seeds=seeds)
              if rate_of(row) == best["muon"]]
    name, before = f"wsd-{size}-{steps}", steps * 3 // 4
    rows = sweeps.run(name, config, *muon, WSD, average, seeds=seeds)
    raw, ema = ([sweeps.losses(name, row, key) for row in rows] for key in ("validation/loss", "validation/loss_ema"))
    table(["schedule", "step", "loss", "loss of the average"],
          [["cosine", steps, mean_text(cosine), "-"]] +
          [["WSD, last fifth decays", step, mean_text([one[step] for one in raw]), mean_text([one[step] for one in ema])]
           for step in (before, steps)])
    print("WSD minus cosine, by seed: " + mean_text([row["loss"] - other for row, other in zip(rows, cosine)]))
    for step in (before, steps):
        print(f"average minus weights at step {step}, by seed: " +
              mean_text([one[step] - other[step] for one, other in zip(ema, raw)]))
    print(flush=True)


def mup(sweeps, size, steps, _):
    config, rates, rows = sweeps.config(size, steps), [2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2], []
    base = ("model.mup={base_hidden_size: 64, base_intermediate_size: 172, base_num_attention_heads: 2, "
            "base_head_dim: 32}")
    for width in (64, 128, 256):
        wider = (f"model.hidden_size={width}", f"model.intermediate_size={width * 43 // 16}",
                 f"model.num_attention_heads={width // 32}")
        for kind, keys in (("without", ()), ("with", (base,))):
            if width == 64 and keys:
                continue
            found = sweeps.run(f"mup-{width}-{kind}", config, *wider, *keys,
                               "optimizer.lr=" + ",".join(f"{rate:g}" for rate in rates), seeds=sweeps.seeds)
            of_rate = {rate: [row["loss"] for row in found if rate_of(row) == rate] for rate in rates}
            least = min(statistics.mean(losses) for losses in of_rate.values())
            rows.append([width, "the base" if width == 64 else kind + " muP"] +
                        [f"**{mean_text(losses)}**" if statistics.mean(losses) == least else mean_text(losses)
                         for losses in of_rate.values()])
    table(["hidden_size", ""] + [f"lr {rate:g}" for rate in rates], rows)


def context(sweeps, size, steps, best):
    short, long = steps * 3 // 4, steps - steps * 3 // 4
    config = sweeps.config(size, 0, length=512)  # the stages say how long
    keys = ("optimizer.name=muon", f"optimizer.lr={best['muon']:g}", "model.max_position_embeddings=2048")
    scaling = "rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 512}"
    kinds = {"512": (f"stages=[{{name: short, steps: {steps}}}]",), "512, then 2048": (
        f"stages=[{{name: short, steps: {short}}}, {{name: long, steps: {long}, sequence_length: 2048, {scaling}}}]",)}
    losses = {}
    for kind, stages in kinds.items():
        name = f"context-{kind.replace(', ', '-').replace(' ', '-')}-{size}-{steps}"
        for row in sweeps.run(name, config, *keys, *stages, seeds=sweeps.seeds):
            output = sweeps.out / "by_position.json"
            measure.run("eval", [sweeps.options.tokamak, "eval", "--by-position", "--context", 2048, "--task",
                                 f"shards={Path(sweeps.options.data).resolve()}/validation", "--output", output,
                                 "--checkpoint", sweeps.directory(name) / "runs" / row["id"] / "checkpoints"])
            result = json.loads(output.read_text(encoding="utf-8"))["results"]["shards"]
            for key, value in result.items():
                if key.startswith("loss_from_"):
                    losses.setdefault(int(key.removeprefix("loss_from_")), {}).setdefault(kind, []).append(value)
    table(["positions"] + list(kinds), [[f"from {first}"] + [mean_text(losses[first][kind], 3) for kind in kinds]
                                        for first in sorted(losses)])


def main():
    parser = measure.arguments(__doc__, ("--tokamak", measure.TOKAMAK, "the program"),
                               ("--data", "runs/quickstart/data", "the quickstart's shards"),
                               ("--out", "runs/recipes", "where runs go"), ("--seeds", "1,2,3", "of each arm"),
                               ("--parallel", "2", "runs at once"), ("--size", "10M", "of optimizers and schedules"),
                               ("--steps", "400", "of optimizers and schedules"))
    experiments = {"schedules": schedules, "mup": mup, "context": context}
    parser.add_argument("experiments", nargs="+", choices=["rates", "optimizers", *experiments])
    options = parser.parse_args()
    sweeps, size, steps = Sweeps(options), options.size, int(options.steps)
    best = {}
    if set(options.experiments) - {"rates", "mup"}:
        best = optimizers(sweeps, size, steps)
    elif "rates" in options.experiments:
        rates_of_optimizers(sweeps, size, steps)
    for name in options.experiments:
        if name == "mup":
            mup(sweeps, "64 wide", 300, best)
        elif name in experiments:
            experiments[name](sweeps, size, steps, best)


if __name__ == "__main__":
    main()
