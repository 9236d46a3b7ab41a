"""Speed against PyTorch: scripts/bench/race.py on whole training steps, alternating with torch.compile on the same
GPU."""
import json
import os
import sys
from pathlib import Path

from place import ROOT, ended
from report import FAILED, NOT_RUN

BAR = 1.15
# (PyTorch's options, or "" where the time is for a search; the config; its overrides). All 32 layers of the 8B shape do
# not fit on one GPU; these fit in 80 GB, for PyTorch too.
MODELS = {"0.5B": ("attention=cudnn,compile=whole", "llama-0.5b.yaml"),
          "8B-shaped": ("", "llama-8b.yaml", "model.num_hidden_layers=8", "training.micro_batch_size=1")}
OURS_FAILED, SKIPPED = 1, 77  # exit codes of race.py
LEAST_SECONDS = 150  # per model


def race(place, report):
    tokamak = ROOT / "bin" / "tokamak" if place.bundle else place.tokamak
    python = place.options.python
    python = os.path.abspath(python) if os.sep in python else python
    for number, (model, (fixed, config, *overrides)) in enumerate(MODELS.items()):
        name, bar, left = f"race {model}", f"{BAR:g} times PyTorch", place.left()
        if left < LEAST_SECONDS:
            report.add(name, NOT_RUN, bar=bar, detail=f"{max(0, left):.0f} s are left; --only race has more")
            continue
        share = left / (len(MODELS) - number)
        stem = place.output / f"race-{model}"
        log = f"race-{model}"
        code, text = place.finish(log, place.start(log, [
            sys.executable, ROOT / "scripts" / "bench" / "race.py", place.configs / config, *overrides, "--device",
            "cuda", "--tokamak", tokamak, "--python", python, "--output", stem, "--bar", BAR, "--tuning-seconds",
            int(0.4 * share), *(["--torch", fixed] if fixed else [])], base=dict(os.environ)), left)
        if code == SKIPPED:
            report.add(name, NOT_RUN, bar=bar, detail="no torch")
        elif code != 0:
            report.add(name, FAILED if code == OURS_FAILED else NOT_RUN, bar=bar, detail=ended(code, text))
        else:
            add_ratio(report, name, bar, json.loads(Path(f"{stem}.json").read_text()))


def add_ratio(report, name, bar, found):
    rates, (low, high) = found["tokens_per_second"], found["ratio_spread"]
    report.against(name, found["ratio"] >= BAR,
                   f"{found['ratio']:.2f} ({low:.2f} to {high:.2f}): {rates['tokamak']:.0f} and {rates['torch']:.0f} "
                   f"tokens/s; {found['gemm_share_causal']:.0%} of the GEMM rate", bar, goal=True,
                   ratio=found["ratio"], spread=[low, high], tokens_per_second=rates, options=found["torch_options"])
