"""Checks that a training step neither synchronises nor allocates. CUPTI counts such calls (tests/cuda/call_counter.cc)
in two runs of different length: the difference comes from the steps."""
import shutil
import sys

from place import expect, last_line, read_json
from report import NOT_RUN, Ended
from training import SAVED, training

NAME, BAR = "a step's synchronisations and allocations", "0"
SHORT, LONG = 10, 30  # steps; 10 cover every shape and create all upload buffers
# A step may wait for past events: its outcome is read when the next step is queued, and an upload buffer is reused
# after its last copy is complete. Neither stalls the GPU.
BY_DESIGN = ("cudaEventSynchronize", "cuEventSynchronize")
SEEN = ("cudaMalloc", "cudaStreamSynchronize")  # calls that every run makes outside its steps


def stalls(place, report):
    with report.line(NAME, BAR):
        check_able(place)
        short, long = (count(place, steps) for steps in (SHORT, LONG))
        more = {name: long.get(name, 0) - short.get(name, 0) for name in sorted({*short, *long})}
        events = sum(more.pop(name, 0) for name in BY_DESIGN)
        stall = [f"{number} {name}" for name, number in more.items() if number != 0]
        report.against(NAME, not stall, f"{', '.join(stall) or '0'} in {LONG - SHORT} steps", BAR, short=short, long=long,
                       event_waits=events)


def check_able(place):
    """Raises Ended if calls cannot be counted."""
    if not place.call_counter.exists():
        raise Ended(NOT_RUN, f"no {place.call_counter}")
    place.need_data()
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    code, text = place.run("call-counter", [sys.executable, "-c", load, place.call_counter], 30)
    if code != 0:
        raise Ended(NOT_RUN, last_line(text))  # the loader reports a missing libcupti


def count(place, steps):
    """{call: count} of a run."""
    path, folder = place.output / f"calls-{steps}.json", place.scratch(f"calls-{steps}")
    code, text = place.run(f"calls-{steps}", training(place, folder, "cuda", "bf16", steps), 60,
                           {"CUDA_INJECTION64_PATH": str(place.call_counter), "TOKAMAK_CALLS": str(path)})
    expect(code, text, SAVED)
    shutil.rmtree(folder / "checkpoints")
    counter = [line for line in text.splitlines() if line.startswith("call counter: ")]
    calls = read_json(path)
    if not path.exists():
        raise Ended(NOT_RUN, counter[-1] if counter else "CUDA did not load the counter")
    if missing := [name for name in SEEN if not calls.get(name, 0) > 0]:
        raise Ended(NOT_RUN, f"CUPTI reported no {' and no '.join(missing)}")
    return calls
