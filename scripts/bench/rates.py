#!/usr/bin/env python3
"""Loss against learning rate, with and without what keeps logits small: the figures of docs/stability.md.

Trains a model of 0.9M parameters on bytes, 260 steps of 1,536 tokens, for each learning rate, switch and seed, as
Wortsman et al. 2023 (2309.14322) do at larger sizes. Prints the mean loss of the last 20 steps and the greatest
log-sum-exp of attention in the run, and draws both. A run that is there is not trained again.

  scripts/bench/rates.py --text src --out runs/rates --figure docs/stability_rates.svg
"""
import json
import math
import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import measure

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
VARIANTS = {  # name: keys of model, colour
    "plain": ("", "#7f7f7f"),
    "qk_norm: head": ("qk_norm: head", "#1f77b4"),
    "attn_logit_softcapping: 20": ("attn_logit_softcapping: 20", "#d62728"),
    "norm_placement: post, qk_norm: all": ("norm_placement: post, qk_norm: all", "#2ca02c"),
    "norm_placement: both, qk_norm: head": ("norm_placement: both, qk_norm: head", "#9467bd"),
}
MODEL = ("hidden_size: 128, intermediate_size: 352, num_hidden_layers: 4, num_attention_heads: 2, vocab_size: 256, "
         "max_position_embeddings: 128, initializer_range: 0.09")  # 1 / sqrt(128)
LAST = 20  # steps of the mean loss


def bytes_of(text, out):
    """The text's files in the order of their names as one array of bytes, a zero after each."""
    path = out / "text.npy"
    if not path.exists():
        files = sorted(file for file in Path(text).rglob("*") if file.suffix in (".cc", ".h", ".txt", ".md"))
        path.write_bytes(b"".join(file.read_bytes() + b"\0" for file in files))
    return path


def train(options, out, name, model, rate, seed, *keys):
    directory = out / name
    if not (directory / "done").exists():
        measure.run(name, [
            options.tokamak, "train", str(measure.ROOT / "configs" / "quickstart.yaml"), f"run.output_dir={directory}",
            f"run.seed={seed}", f"model={{{MODEL}{', ' + model if model else ''}}}",
            f"data.sources=[{{path: {bytes_of(options.text, out)}, format: olmo, token_type: uint8, delimiter_id: 0}}]",
            "data.validation=[]", "data.sequence_length=128", "training.global_batch_tokens=1536",
            "training.micro_batch_size=12", "training.max_steps=260", "training.validation_interval=0",
            "training.samples={prompts: []}",
            # Independent decay of 1e-4, as the paper's: ours is multiplied by the rate.
            f"optimizer={{name: adamw, lr: {rate}, betas: [0.9, 0.95], eps: 1e-8, weight_decay: {1e-4 / rate}}}",
            "lr_scheduler.warmup=40 steps", "lr_scheduler.min_lr_factor=0", "precision.compute=f32",
            "checkpoint.interval=1000 steps", "metrics.log_interval=1", "runtime.threads_per_rank=1",
            "metrics.activation_statistics={interval: 20, match: [layers.*.attention_logits]}", *keys])
        (directory / "done").touch()
    records = [json.loads(line) for line in (directory / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [record["loss/last"] for record in records if "loss/last" in record]
    greatest = [value for line in (directory / "tensors.jsonl").read_text(encoding="utf-8").splitlines()
                for value in json.loads(line).get("activations", {}).get("max", []) if value is not None]
    return statistics.mean(losses[-LAST:]), max(greatest)


def svg(path, panels):
    """One panel each of (title, {variant: [(rate, [values])]}), whose x axis is logarithmic; a logarithmic y axis if
    `log`. Lines join means, and bars span the seeds."""
    width, height, left, top = 430, 300, 60, 34
    shapes = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * width} {height + 30 + 18 * len(VARIANTS)}" '
              'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for panel, (title, log, series) in enumerate(panels):
        scale = math.log10 if log else float
        values = [scale(v) for points in series.values() for _, found in points for v in found]
        unit = 1 if log else 0.5  # between ticks
        low, high = unit * math.floor(min(values) / unit), unit * math.ceil(max(values) / unit)
        x0 = panel * width + left
        x_of = lambda rate: x0 + (math.log10(rate) - math.log10(RATES[0])) / (
            math.log10(RATES[-1]) - math.log10(RATES[0])) * (width - left - 20)
        y_of = lambda v: top + (high - scale(v)) / (high - low) * (height - top - 30)
        shapes.append(f'<text x="{x0}" y="20" font-size="13">{title}</text>')
        for i in range(round((high - low) / unit) + 1):
            tick = 10 ** (low + i) if log else low + unit * i
            shapes.append(f'<line x1="{x0}" x2="{x0 + width - left - 20}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}" '
                          f'stroke="#ddd"/><text x="{x0 - 6}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:,g}</text>')
        for rate in RATES:
            shapes.append(f'<text x="{x_of(rate):.1f}" y="{height - 12}" text-anchor="middle">{rate:g}</text>')
        for name, points in series.items():
            colour = VARIANTS[name][1]
            line = " ".join(f"{x_of(rate):.1f},{y_of(statistics.mean(found)):.1f}" for rate, found in points)
            shapes.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            for rate, found in points:
                shapes.append(f'<line x1="{x_of(rate):.1f}" x2="{x_of(rate):.1f}" y1="{y_of(min(found)):.1f}" '
                              f'y2="{y_of(max(found)):.1f}" stroke="{colour}" stroke-width="4" stroke-opacity="0.5"/>')
    for i, (name, (_, colour)) in enumerate(VARIANTS.items()):
        y = height + 20 + 18 * i
        shapes.append(f'<rect x="{left}" y="{y - 9}" width="18" height="4" fill="{colour}"/><text x="{left + 26}" y="{y - 3}">'
                      f'{name}</text>')
    shapes.append(f'<text x="{width - 10}" y="{height + 6}" text-anchor="middle">optimizer.lr</text></svg>')
    path.write_text("\n".join(shapes) + "\n")


def main():
    parser = measure.arguments(__doc__, ("--tokamak", measure.TOKAMAK, "the program"),
                               ("--text", "src", "a directory of text"), ("--out", "runs/rates", "where runs go"),
                               ("--figure", "", "an SVG file to write"), ("--seeds", 3, "runs of each kind"),
                               ("--parallel", 2, "runs at once"))
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    out = Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    bytes_of(options.text, out)
    arms = [(seed, rate, variant) for seed in range(1, options.seeds + 1) for rate in RATES for variant in VARIANTS]
    names = {variant: f"arm-{i}" for i, variant in enumerate(VARIANTS)}
    with ThreadPoolExecutor(options.parallel) as pool:
        found = dict(zip(arms, pool.map(
            lambda arm: train(options, out, f"{names[arm[2]]}-{arm[1]:g}-{arm[0]}", VARIANTS[arm[2]][0], arm[1], arm[0]), arms)))

    def of(variant, rate, which):
        return [found[seed, rate, variant][which] for seed in range(1, options.seeds + 1)]

    print("| model | " + " | ".join(f"{rate:g}" for rate in RATES) + " |\n|---|" + "---|" * len(RATES))
    for variant in VARIANTS:
        cells = [f"{statistics.mean(of(variant, rate, 0)):.3f} ({max(of(variant, rate, 1)):,.0f})" for rate in RATES]
        print(f"| `{variant}` | " + " | ".join(cells) + " |")
    if options.figure:
        series = [{variant: [(rate, of(variant, rate, which)) for rate in RATES] for variant in VARIANTS}
                  for which in (0, 1)]
        svg(Path(options.figure), [(f"mean loss of the last {LAST} steps", False, series[0]),
                                   ("greatest log-sum-exp of attention", True, series[1])])


if __name__ == "__main__":
    main()
