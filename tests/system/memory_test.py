"""The memory that a run plans is the memory that it takes."""
import os
import re

from harness import main

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "llama-125m.yaml")
SELECTIVE = ("activation_checkpoint.mode=selective", "activation_checkpoint.kept_bytes=150M")
CASES = ((1, ()), (2, ()), (1, SELECTIVE), (1, ("activation_checkpoint.mode=full",)))


def mebibytes(text):
    number, unit = text.split()
    return float(number) * {"MiB": 1, "GiB": 1024}[unit]


def plan_and_peak(place):
    """125M parameters on 1 and 2 ranks, keeping all, some or no activations: planned and measured peak differ by less
    than 10 %, and what is kept is the difference"""
    with open(CONFIG) as file:
        text = file.read().replace("{", "{{").replace("}", "}}")
    found = []
    for number, (ranks, recompute) in enumerate(CASES):
        # The real model, on little data: two steps of one micro-batch on each rank.
        output = place.train(
            f"memory{number}", ranks, f"run.output_dir={place.run(f'memory{number}')}",
            f"data.sources=[{{path: {place.data}/train}}]", "data.validation=[]", "training.validation_interval=0",
            "training.max_tokens=0", "training.max_steps=2", f"training.global_batch_tokens={2048 * ranks}",
            "training.micro_batch_size=2", "checkpoint.interval=none", "lr_scheduler.warmup=none",
            f"runtime.threads_per_rank={2 // ranks}", *recompute, text=text)
        planned, peak, percent = re.search(r"memory: planned (.*), peak (.*) \(([\d.]+)% of the plan\)", output).groups()
        print(f"  {ranks} ranks {' '.join(recompute)}: planned {planned}, peak {peak}: {percent} %")
        assert 90 < float(percent) < 110
        if ranks == 1:
            found.append((mebibytes(planned), mebibytes(peak)))
    for (planned_more, peak_more), (planned_less, peak_less) in zip(found, found[1:]):
        saved, measured = planned_more - planned_less, peak_more - peak_less
        print(f"  less by {saved:.0f} MiB in the plan, by {measured:.0f} MiB at the peak")
        assert saved > 100 and abs(measured - saved) < 40  # the log rounds to 10 MiB


main([plan_and_peak])
