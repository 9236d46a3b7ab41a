"""The third sitting: profiles of the longest kernels, sanitizers, several ranks, resume, stalls, and minutes of training.
scripts/gpu_check.sh --only depth"""
import collections
import csv
import glob
import math
import shutil
import time

import ranks
import sanitizers
import stalls
import steps
import training
from place import end_session, ended
from report import MEASURED, NOT_RUN, not_zero
from sampler import Sampler, clocks
from speed import OVERRIDES

SECONDS = 570
LIMITS = {"ncu": 90, "memcheck": 80, "racecheck": 80, "ranks": 60, "resume": 45, "stalls": 45, "graphs": 40,
          "endurance": None}
LONGEST = 10  # kernels
PROFILED = 400  # launches: more than a step of one layer has
NCU = {"gpu__time_duration.sum": "ns", "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute",
       "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory"}
SETTLED = 5  # steps after which memory must stay the same
GROWTH = 64 * 2**20


def ncu(place, report):
    """How near the ten longest kernels of a step are to what the GPU can do."""
    found = shutil.which("ncu") or next(iter(sorted(glob.glob("/usr/local/cuda*/bin/ncu"))[::-1]), None)
    if not found:
        report.add("ncu", NOT_RUN, detail="no ncu")
        return
    code, text = place.run("ncu", [
        found, "--clock-control", "none", "--metrics", ",".join(NCU), "--launch-count", PROFILED, "--csv",
        "--page", "raw", place.tokamak, "bench", place.configs / "llama-8b.yaml", *OVERRIDES, "runtime.backend=cuda",
        "runtime.cuda_graphs=off", "--rounds", 1, "--micro-batches", 0], 85)
    kernels = profiled(text)
    if not kernels:
        report.add("ncu", not_zero(code, text) if code != 0 else NOT_RUN, detail=ended(code, text))
    for name, (seconds, calls, compute, memory) in kernels[:LONGEST]:
        report.add(f"ncu {name[:40]}", MEASURED, f"{calls} calls of {1e3 * seconds / calls:.3g} ms, compute {compute:.0f} %, "
                   f"memory {memory:.0f} % of peak", seconds=seconds, calls=calls, compute=compute, memory=memory)


def profiled(text):
    """[(kernel, (seconds in all, calls, the mean share of peak compute and memory))], the longest first."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found = collections.defaultdict(list)
    for row in csv.DictReader(lines[start:]):
        try:
            numbers = [float(row[metric].replace(",", "")) for metric in NCU]
            found[row["Kernel Name"]].append(numbers)
        except (KeyError, ValueError, AttributeError, TypeError):
            continue  # the row of units, or what the program printed
    kernels = [(name, (sum(row[0] for row in rows) / 1e9, len(rows), *(math.fsum(column) / len(rows)
                                                                    for column in list(zip(*rows))[1:])))
               for name, rows in found.items()]
    return sorted(kernels, key=lambda kernel: -kernel[1][0])


def endurance(place, report):
    """Masked training of the 8B shape for the rest of the time: clocks, memory, losses. Killed, since a checkpoint of it
    takes minutes."""
    name = "minutes of 8B training"
    if training.no_data(place):
        report.add(name, NOT_RUN, detail=training.no_data(place))
        return
    layers, why = steps.layers_that_fit(place)
    if not layers:
        report.add(name, NOT_RUN, detail=why)
        return
    folder = place.scratch("endurance")
    limit = place.left() - 5
    with Sampler(milliseconds=1000) as sampler:
        begin = time.monotonic()
        process = place.start("endurance", [
            place.tokamak, "train", place.configs / "llama-8b.yaml", f"run.output_dir={folder}", "data.validation=[]",
            f"data.sources=[{{path: {place.data}/train}}]", "training.validation_interval=0", "checkpoint.interval=none",
            "checkpoint.async=false", "metrics.log_interval=1", "training.micro_batch_size=1",
            "training.global_batch_tokens=32768", f"model.num_hidden_layers={max(1, layers - 2)}", "runtime.backend=cuda",
            *place.tiny, *place.tiny_training, *(["model.vocab_size=0"] if place.emulated else [])])
        while process is not None and process.poll() is None and time.monotonic() - begin < limit and not place.stopped:
            time.sleep(0.2)
        ran_on = process is not None and process.poll() is None
        if ran_on:
            end_session(process.pid)
        code, text = place.finish("endurance", process, 1)
    if not ran_on:
        report.add(name, not_zero(code, text), detail=ended(code, text))
        return
    judge(report, name, folder, sampler)


def judge(report, name, folder, sampler):
    records = training.records(folder) if (folder / "metrics.jsonl").exists() else {}
    losses = [record["loss/last"] for record in records.values()]
    used = [record["memory/used"] for step, record in records.items() if step >= SETTLED]
    if len(used) < 2:
        report.add(name, NOT_RUN, detail=f"only {len(records)} steps")
        return
    training.memory(report, folder)
    finite = all(isinstance(loss, (int, float)) and math.isfinite(loss) for loss in losses)
    grown = max(used) - used[0]
    rates = [record["throughput/tokens_per_sec"] for step, record in records.items() if step >= SETTLED]
    report.against(name, finite and grown <= GROWTH, f"{len(losses)} steps, loss {losses[0]:.2f} to {losses[-1]:.2f}, "
                   f"{min(rates):.0f} to {max(rates):.0f} tokens/s, memory grew by {grown / 2**20:.0f} MiB"
                   f"{clocks(sampler.found)}", f"finite, at most {GROWTH >> 20} MiB", losses=losses, rates=rates)


PARTS = {"ncu": ncu, "memcheck": sanitizers.memcheck, "racecheck": sanitizers.racecheck, "ranks": ranks.ranks,
         "resume": training.resume, "stalls": stalls.stalls, "graphs": training.graphs, "endurance": endurance}
