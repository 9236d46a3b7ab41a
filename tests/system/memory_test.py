"""The memory that a run plans is the memory that it takes."""
import os
import re

from harness import main

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "llama-125m.yaml")


def plan_and_peak(place):
    """125M parameters on 1 and 2 ranks: planned and measured peak differ by less than 10 %"""
    with open(CONFIG) as file:
        text = file.read().replace("{", "{{").replace("}", "}}")
    for ranks in (1, 2):
        # The real model, on little data: two steps of one micro-batch on each rank.
        output = place.train(
            f"memory{ranks}", ranks, f"run.output_dir={place.run(f'memory{ranks}')}",
            f"data.sources=[{{path: {place.data}/train}}]", "data.validation=[]", "training.validation_interval=0",
            "training.max_tokens=0", "training.max_steps=2", f"training.global_batch_tokens={2048 * ranks}",
            "training.micro_batch_size=2", "checkpoint.interval=none", "lr_scheduler.warmup=none",
            f"runtime.threads_per_rank={2 // ranks}", text=text)
        planned, peak, percent = re.search(r"memory: planned (.*), peak (.*) \(([\d.]+)% of the plan\)", output).groups()
        print(f"  {ranks} ranks: planned {planned}, peak {peak}: {percent} %")
        assert 90 < float(percent) < 110


main([plan_and_peak])
