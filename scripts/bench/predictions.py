#!/usr/bin/env python3
"""Compares predictions of `tokamak plan` for this machine with runs on it: two models, one and two ranks, four
settings each. Each round measures the machine (bench calibrate), predicts from that, and trains. The step time is the
median of a run's steps without the first; of --steps 0 it is the first step's.

  scripts/bench/predictions.py [--rounds 3] [--steps 8]
  scripts/bench/predictions.py --models 125M --ranks 2 --settings "stage 3(, Muon)?" --tokens 65536 --rounds 1 --steps 1
  scripts/bench/predictions.py --models 125M --ranks 2 --settings "stage 3, Muon" --tokens 1048576 --rounds 1 --steps 0
"""
import os
import re
import shutil
import statistics

import measure

COMMON = ["data.sequence_length=256", "model.max_position_embeddings=256", "precision.compute=bf16", "data.validation=[]",
          "training.validation_interval=0", "lr_scheduler.warmup=1"]


def model(hidden, intermediate, layers, vocabulary):
    return ["model.head_dim=64", f"model.hidden_size={hidden}", f"model.intermediate_size={intermediate}",
            f"model.num_hidden_layers={layers}", f"model.num_attention_heads={hidden // 64}",
            f"model.num_key_value_heads={hidden // 64}", f"model.vocab_size={vocabulary}"]


MODELS = {"30M": model(384, 1024, 8, 24000), "125M": model(768, 2048, 12, 32000)}
SETTINGS = {
    "stage 3": ["training.micro_batch_size=4"],
    "stage 3, recompute, micro-batch 2": ["activation_checkpoint.mode=full", "training.micro_batch_size=2"],
    "stage 1": ["parallelism.zero_stage=1", "training.micro_batch_size=4"],
    "stage 3, Muon": ["optimizer.name=muon", "training.micro_batch_size=4"],
}


def round_of(place, harness, ranks, overrides, steps):
    """(measured, predicted) seconds of a step."""
    def on_ranks(command, name, *words):
        measure.run(f"tokamak {command}", harness.mpirun(ranks, *command.split(), place.config(name), *overrides, *words), harness.ENV)

    machine = place.file("machine.json")
    on_ranks("bench calibrate", "calibration", "--output", machine)
    shutil.rmtree(place.run("real"), ignore_errors=True)
    on_ranks("train", "real", f"training.max_steps={steps + 1}")
    seconds = place.records("real", "time/interval")
    return (statistics.median(value for step, value in seconds.items() if step > min(1, steps)),
            measure.predicted(harness, place, machine, ranks, *overrides)["step_seconds"])


def main():
    options = measure.arguments(__doc__, ("--rounds", 3, "of each setting"), ("--steps", 8, "of a run, after the first"),
                                ("--models", ",".join(MODELS), "of the table"), ("--ranks", "1,2", "of the table"),
                                ("--settings", ".*", "of the table, as a regular expression"),
                                ("--tokens", 2048, "of a step")).parse_args()
    (harness,) = measure.tests_harness("harness")
    errors = []
    print(f"{'model':6s} {'ranks':>5s} {'setting':36s} {'measured s':>10s} {'spread':>7s} {'predicted':>10s} {'error':>7s}")
    with harness.Workplace() as place:
        for name, ranks, setting in ((name, int(ranks), setting) for name in options.models.split(",")
                                     for ranks in options.ranks.split(",")
                                     for setting in SETTINGS if re.fullmatch(options.settings, setting)):
            overrides = [*COMMON, f"training.global_batch_tokens={options.tokens}", *MODELS[name], *SETTINGS[setting]]
            rounds = [round_of(place, harness, ranks, overrides, options.steps) for _ in range(options.rounds)]
            reals, plans = zip(*rounds)
            real, plan = statistics.median(reals), statistics.median(plans)
            errors.append(abs(plan / real - 1))
            print(f"{name:6s} {ranks:5d} {setting:36s} {real:10.3f} {(max(reals) - min(reals)) / real:7.1%} {plan:10.3f} "
                  f"{plan / real - 1:+7.1%}", flush=True)
    print(f"worst {max(errors):.1%}; load {os.getloadavg()[0]:.1f} (the ranks themselves are 1 or 2)")


if __name__ == "__main__":
    main()
