"""Checks that a training step neither synchronises nor allocates. CUPTI counts such calls (tests/cuda/call_counter.cc)
in two runs of different length: the difference comes from the steps."""
import json
import shutil
import sys

from place import ended, last_line
from report import NOT_RUN, not_zero
from training import SAVED, no_data, training

NAME, BAR = "a step's synchronisations and allocations", "0"
SHORT, LONG = 10, 30  # steps; 10 cover every shape and create all upload buffers
# A step may wait for past events: its outcome is read when the next step is queued, and an upload buffer is reused
# after its last copy is complete. Neither stalls the GPU.
BY_DESIGN = ("cudaEventSynchronize", "cuEventSynchronize")
SEEN = ("cudaMalloc", "cudaStreamSynchronize")  # in every run, outside its steps


def stalls(place, report):
    why, counted = unable(place), []
    if why:
        report.add(NAME, NOT_RUN, bar=BAR, detail=why)
        return
    for steps in (SHORT, LONG):
        verdict, why = count(place, steps, counted)
        if verdict:
            report.add(NAME, verdict, bar=BAR, detail=why)
            return
    short, long = counted
    more = {name: long.get(name, 0) - short.get(name, 0) for name in sorted({*short, *long})}
    events = sum(more.pop(name, 0) for name in BY_DESIGN)
    stall = [f"{number} {name}" for name, number in more.items() if number != 0]
    report.against(NAME, not stall, f"{', '.join(stall) or '0'} in {LONG - SHORT} steps", BAR, short=short, long=long,
                   event_waits=events)


def unable(place):
    """Why counting is impossible; empty if it is possible."""
    counter = place.call_counter
    if not counter.exists():
        return f"no {counter}"
    if no_data(place):
        return no_data(place)
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    code, text = place.run("call-counter", [sys.executable, "-c", load, counter], 30)
    return "" if code == 0 else last_line(text)  # the loader reports a missing libcupti


def count(place, steps, counted):
    """Appends {call: count} of a run; else returns (verdict, why)."""
    path, folder = place.output / f"calls-{steps}.json", place.scratch(f"calls-{steps}")
    path.unlink(missing_ok=True)
    code, text = place.run(f"calls-{steps}", training(place, folder, "cuda", "bf16", steps), 60,
                           {"CUDA_INJECTION64_PATH": str(place.call_counter), "TOKAMAK_CALLS": str(path)})
    if code != SAVED:
        return not_zero(code, text), ended(code, text)
    shutil.rmtree(folder / "checkpoints")
    told = [line for line in text.splitlines() if line.startswith("call counter: ")]
    if not path.exists():
        return NOT_RUN, told[-1] if told else "CUDA did not load the counter"
    calls = json.loads(path.read_text())
    if not all(calls.get(name, 0) > 0 for name in SEEN):
        return NOT_RUN, f"CUPTI told of no {' and no '.join(name for name in SEEN if not calls.get(name))}"
    counted.append(calls)
    return None, ""
