"""Repeated starts of one run: on other numbers of ranks, and interrupted at random steps. No resume changes a bit of
the state, and each sample is trained on once.

usage: resume_test.py [TEST ...]     REQUEUES=20: the starts of `requeued`; REQUEUE_SEED"""
import json
import os
import random
import re
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "system"))
from harness import gathered, main, relative, tokamak  # noqa: E402
from faulty_disk import check_what_is_left, committed, end, resume, run, start, work_in_memory  # noqa: E402
from processes import children, wait_for  # noqa: E402

REQUEUES = int(os.environ.get("REQUEUES", "20"))
RNG = random.Random(int(os.environ.get("REQUEUE_SEED", "23")))
# Each of these numbers of ranks divides a step's 24 sequences equally.
WORLDS = [4, 2, 3, 8]


def state_of(checkpoint):
    """Returns a checkpoint's (tensors, run state in the manifest)."""
    with open(checkpoint + "/manifest.json") as file:
        manifest = json.load(file)["manifest"]
    return gathered(checkpoint), {key: manifest[key] for key in ("step", "tokens", "next_sample", "seed")}


def worlds(place):
    """4 -> 2 -> 3 -> 8 ranks: each resume without a step saves the state that it was given, and then trains on"""
    steps = ["training.max_steps=20", "checkpoint.interval=4"]
    given = None
    for stop, ranks in zip((4, 8, 12, 20), WORLDS):
        name = f"on-{ranks}"
        if given is not None:
            # The ranks load a checkpoint of another run and save it again at once.
            place.train(name, ranks, *steps, f"checkpoint.load={given}", "--stop-at-step", str(stop - 4 if stop < 20 else 12),
                        expect=75)
            at = place.steps(name)[-1]
            there = place.checkpoint(name, at)
            assert state_of(there) == state_of(given), f"step {at}, loaded by {ranks} ranks"
            with open(there + "/manifest.json") as file:
                assert json.load(file)["manifest"]["world_size"] == ranks
        place.train(name, ranks, *steps, *([f"checkpoint.load={given}"] if given else []), "--stop-at-step", str(stop),
                    expect=75 if stop < 20 else 0)
        given = place.checkpoint(name, stop)
    place.train("straight", 4, *steps)
    straight, chain = place.records("straight"), {}
    for ranks in WORLDS:
        chain.update(place.records(f"on-{ranks}"))
    assert sorted(chain) == sorted(straight) == list(range(1, 21)), sorted(chain)
    worst = max(relative(chain[step], straight[step]) for step in chain)
    print(f"  steps 1 to 20 on {WORLDS} ranks; largest relative difference of a loss from 4 ranks throughout: {worst:.1e}")
    assert worst < 1e-5, worst


def requeued(place):
    """20 starts, each ended at a random step by a signal or kill -9: the losses and bits of a single start"""
    last, ranks = 10 * REQUEUES, 2
    options = [f"training.max_steps={last}", "checkpoint.interval=3"]
    assert run(place, "one-start", ranks, *options)[0] == 0
    at, ends = 0, []
    for number in range(REQUEUES):
        process, log = start(place, "requeued", ranks, *options)
        try:
            # Some steps after its first one, but so few that the run does not reach its end before the last start.
            until = at + RNG.randint(4, 9)
            wait_for(process, log, rf"step {until}/", seconds=300)
            way = RNG.choice(["USR1", "KILL"])
            if way == "KILL":
                os.kill(RNG.choice(children(process.pid)), signal.SIGKILL)
            else:
                process.send_signal(signal.SIGUSR1)
            code = process.wait(timeout=120)
        finally:
            end(process)
        text = open(log).read()
        if code == 0:
            break  # the run ended before our signal
        assert code == (75 if way == "USR1" else 128 + signal.SIGKILL), (way, code, text)
        resumed = re.search(r"resumed from \S+ \(step (\d+)", text)
        assert (int(resumed.group(1)) if resumed else 0) >= at, text
        promised = committed(text)
        at = max([at, *check_what_is_left(place, "requeued", promised)])
        ends.append(f"{way} {at}")
    print("  " + ", ".join(ends), flush=True)
    resume(place, "requeued", ranks, [at], "one-start", last, *options)
    assert place.records("requeued") == place.records("one-start")
    tokamak("checkpoint", "verify", place.checkpoint("requeued", last))
    print(f"  {len(ends)} starts were cut off; {last} losses are those of one start, to the bit")


work_in_memory()
main([worlds, requeued])
