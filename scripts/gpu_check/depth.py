"""The third sitting: sanitizers, several ranks, resume, stalls, and minutes of training.
scripts/gpu_check.sh --only depth"""
import functools
import math
import time

import ranks
import sanitizers
import stalls
import steps
import training
from place import end_session, ended
from report import NOT_RUN, Ended, not_zero
from sampler import Sampler, clocks

NAME = "minutes of 8B training"
SETTLED = 5  # steps after which memory must stay the same
GROWTH = 64 * 2**20


def endurance(place, report):
    """Trains the 8B shape on masked documents for the rest of the time and reports clocks, memory and losses. Then
    kills it, since its checkpoint would take minutes."""
    with report.line(NAME):
        place.need_data()
        layers = steps.layers_that_fit(place)
        folder, limit = place.scratch("endurance"), place.left() - 5
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
            raise Ended(not_zero(code, text), ended(code, text))
        judge(report, folder, sampler)


def judge(report, folder, sampler):
    records = training.records(folder)
    losses = [record["loss/last"] for record in records.values()]
    used = [record["memory/used"] for step, record in records.items() if step >= SETTLED]
    if len(used) < 2:
        raise Ended(NOT_RUN, f"only {len(records)} steps")
    training.memory(report, folder)
    finite = all(isinstance(loss, (int, float)) and math.isfinite(loss) for loss in losses)
    grown = max(used) - used[0]
    rates = [record["throughput/tokens_per_sec"] for step, record in records.items() if step >= SETTLED]
    report.against(NAME, finite and grown <= GROWTH, f"{len(losses)} steps, loss {losses[0]:.2f} to {losses[-1]:.2f}, "
                   f"{min(rates):.0f} to {max(rates):.0f} tokens/s, memory grew by {grown / 2**20:.0f} MiB"
                   f"{clocks(sampler.found)}", f"finite, at most {GROWTH >> 20} MiB", losses=losses, rates=rates)


PARTS = {"memcheck": (80, functools.partial(sanitizers.sanitizer, tool="memcheck")),
         "racecheck": (170, functools.partial(sanitizers.sanitizer, tool="racecheck")), "ranks": (60, ranks.ranks),
         "resume": (45, training.resume), "stalls": (45, stalls.stalls), "graphs": (40, training.graphs),
         "endurance": (None, endurance)}
