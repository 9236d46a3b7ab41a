#!/usr/bin/env python3
"""Holds what `tokamak plan` predicts for this machine against runs on it: two models, one and two ranks, three settings
each. In every round the machine is measured (bench --calibrate), then a run of each setting, and each is compared with
what the plan says of it from that measurement. A step is the median of a run's, without the first.

  scripts/bench/predictions.py [--rounds 3] [--steps 8] [--json FILE]
"""
import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
os.environ.setdefault("TOKAMAK", str(ROOT / "build" / "tokamak"))
os.environ.setdefault("MPIRUN", shutil.which("mpirun") or "mpiexec")
from harness import Workplace, call, mpirun, tokamak  # noqa: E402

COMMON = ["data.sequence_length=256", "model.max_position_embeddings=256", "precision.compute=bf16", "data.validation=[]",
          "training.validation_interval=0", "training.global_batch_tokens=2048", "lr_scheduler.warmup=2"]


def model(hidden, intermediate, layers, vocabulary):
    return ["model.head_dim=64", f"model.hidden_size={hidden}", f"model.intermediate_size={intermediate}",
            f"model.num_hidden_layers={layers}", f"model.num_attention_heads={hidden // 64}",
            f"model.num_key_value_heads={hidden // 64}", f"model.vocab_size={vocabulary}"]


MODELS = {"30M": model(384, 1024, 8, 24000), "125M": model(768, 2048, 12, 32000)}
SETTINGS = {
    "stage 3": ["training.micro_batch_size=4"],
    "stage 3, recompute, micro-batch 2": ["activation_checkpoint.mode=full", "training.micro_batch_size=2"],
    "stage 1": ["parallelism.zero_stage=1", "training.micro_batch_size=4"],
}


def measured(place, ranks, overrides, steps):
    """Seconds of a step."""
    shutil.rmtree(place.run("real"), ignore_errors=True)
    done = call(mpirun(ranks, "train", place.config("real"), *overrides, f"training.max_steps={steps + 1}"))
    if done.returncode != 0:
        raise SystemExit(done.stdout)
    seconds = place.records("real", "time/interval")
    return statistics.median(value for step, value in seconds.items() if step > 1)


def predicted(place, ranks, overrides, machine):
    plan = json.loads(tokamak("plan", place.config("plan"), *overrides, "--ranks", str(ranks), "--gpu", machine,
                              "--as-configured", "--json"))
    (choice,) = plan["choices"]
    return choice["step_seconds"]


def calibrated(place, ranks, overrides):
    path = place.file("machine.json")
    done = call(mpirun(ranks, "bench", place.config("calibration"), *overrides, "--calibrate", path))
    if done.returncode != 0:
        raise SystemExit(done.stdout)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--json", help="also write every step there")
    options = parser.parse_args()
    found = []
    print(f"{'model':6s} {'ranks':>5s} {'setting':36s} {'measured s':>10s} {'spread':>7s} {'predicted':>10s} {'error':>7s}")
    with Workplace() as place:
        for name in options.models.split(","):
            for ranks in (1, 2):
                for setting, overrides in SETTINGS.items():
                    words = [*COMMON, *MODELS[name], *overrides]
                    rounds = []
                    for _ in range(options.rounds):
                        machine = calibrated(place, ranks, words)
                        rounds.append((measured(place, ranks, words, options.steps), predicted(place, ranks, words, machine)))
                    real, said = (statistics.median(column) for column in zip(*rounds))
                    spread = (max(round[0] for round in rounds) - min(round[0] for round in rounds)) / real
                    found.append({"model": name, "ranks": ranks, "setting": setting, "rounds": rounds, "error": said / real - 1})
                    print(f"{name:6s} {ranks:5d} {setting:36s} {real:10.3f} {spread:7.1%} {said:10.3f} {said / real - 1:+7.1%}", flush=True)
    print(f"worst {max((abs(row['error']) for row in found)):.1%}; load {os.getloadavg()[0]:.1f} (the ranks themselves are 1 or 2)")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
