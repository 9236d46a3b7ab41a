"""The second sitting: failed parts of the first again, one change at a time at the same clocks, the race with PyTorch.
scripts/gpu_check.sh --only matrix --previous gpu_check.json"""
import functools

import first
import peer
from place import ended, read_json
from predictions import predict
from report import FAILED, MEASURED, NOT_RUN, Ended, not_zero
from steps import bench_step

LIMIT = 20  # seconds of one measurement
SHAPE = ["llama-8b.yaml", "model.num_hidden_layers=4", "training.micro_batch_size=1", "training.global_batch_tokens=16384"]
SMALL = ["llama-0.5b.yaml", "training.global_batch_tokens=65536"]
GRAPHS_OFF = ["runtime.cuda_graphs=off"]


def documents(mean):
    return ["--documents", mean]


# (name of the change, config and overrides of both, arguments without it, arguments with it, environment with it)
CHANGES = [
    *[(f"documents of {mean}, for whole sequences", SHAPE, GRAPHS_OFF, [*GRAPHS_OFF, *documents(mean)], {})
      for mean in (500, 1500, 4000)],
    *[(f"our attention for cuDNN's, documents of {mean}", SHAPE, [*GRAPHS_OFF, *documents(mean)],
       [*GRAPHS_OFF, *documents(mean), "runtime.attention=native"], {}) for mean in (500, 4000)],
    ("autotune", SHAPE, [*GRAPHS_OFF, "runtime.autotune=false"], [*GRAPHS_OFF, "runtime.autotune=true"], {}),
    ("autotune with an empty cache", SHAPE, [*GRAPHS_OFF, "runtime.autotune=false"],
     [*GRAPHS_OFF, "runtime.autotune=true"], {"XDG_CACHE_HOME": "cold-cache"}),
    ("CUDA graphs, 0.5B", SMALL, GRAPHS_OFF, ["runtime.cuda_graphs=on"], {}),
    ("CUDA graphs, 8B", SHAPE, GRAPHS_OFF, ["runtime.cuda_graphs=on"], {}),
    ("selective recompute", SHAPE, GRAPHS_OFF, [*GRAPHS_OFF, "activation_checkpoint.mode=selective"], {}),
]


def again(place, report):
    """The parts of the first sitting in which a line has FAILED."""
    previous = place.options.previous
    with report.line("what failed"):
        if not previous:
            raise Ended(NOT_RUN, "--previous FILE names the gpu_check.json of the first sitting")
        lines = read_json(previous).get("lines")
        if lines is None:
            raise Ended(NOT_RUN, f"{previous} is not a gpu_check.json")
        for part in dict.fromkeys(line["part"] for line in lines if line["result"] == FAILED):
            if part in first.PARTS:
                first.PARTS[part][1](place, report)


def changes(place, report):
    """Measures each change against the same step without that change."""
    measured = functools.cache(lambda config, arguments: bench_step(
        place, f"without-{abs(hash((config, arguments))) % 10**6}", config, arguments, LIMIT))
    for number, (name, (config, *overrides), without, with_it, environment) in enumerate(CHANGES):
        base = measured(config, (*overrides, *without))
        its = {key: str(place.output / value) for key, value in environment.items()}
        changed = bench_step(place, f"change-{number}", config, [*overrides, *with_it], LIMIT, its)
        rates = [values["tokens_per_second"] for _, _, values in (base, changed)]
        if not all(rates):
            code, text, _ = base if not rates[0] else changed
            report.add(f"change: {name}", not_zero(code, text) if code != 0 else NOT_RUN, detail=ended(code, text))
            continue
        plans = [predict(place, report, f"change-{number}-{i}", config, [*overrides, *arguments]).get("tokens_per_second")
                 for i, arguments in enumerate((without, with_it)) if "--documents" not in arguments]
        # If both plans are equal, they do not model the change.
        known = len(plans) == 2 and all(plans) and plans[0] != plans[1]
        predicted = {"predicted": plans[1] / plans[0]} if known else {}
        report.add(f"change: {name}", MEASURED, f"{rates[0]:.0f} to {rates[1]:.0f} tokens/s, {rates[1] / rates[0]:.3f} x",
                   value=rates[1] / rates[0], unit="x", **predicted)


PARTS = {"again": (110, again), "changes": (260, changes), "race": (None, peer.race)}
