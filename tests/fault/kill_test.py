"""kill -9 of one rank at a random moment of training or of a save. All ranks end within seconds, mpirun fails, and the
next start resumes from a committed checkpoint.

usage: kill_test.py [TEST ...] KILLS=20: of each test; KILL_SEED; RANKS=1,2,3: numbers of ranks, a run for each (3)"""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import ENV, gathered, main, mpirun, tokamak  # noqa: E402
from processes import alive, children, wait_for  # noqa: E402

TIMES = int(os.environ.get("KILLS", "20"))
WORLDS = [int(ranks) for ranks in os.environ.get("RANKS", "3").split(",")]
RNG = random.Random(int(os.environ.get("KILL_SEED", "11")))
INTERVAL = 10  # steps between checkpoints
STEPS = 100000  # no run gets so far: each is killed
# mpirun's pause between SIGTERM and SIGKILL to the survivors: the default in one death of five, else none, which is
# quicker.
PAUSES = ["0", "0", "0", "0", "1"]


def kill_one_rank(place, name, count, *overrides, in_save=False):
    """Starts a run, and kills one rank some steps after training began, or in a save. Returns (the step that it had
    resumed from, the seconds until all were gone)."""
    log = open(place.file(name + ".log"), "w+")
    process = subprocess.Popen(mpirun(count, "train", place.config(name), f"training.max_steps={STEPS}", *overrides),
                               env=dict(ENV, OMPI_MCA_odls_base_sigkill_timeout=RNG.choice(PAUSES)), stdout=log, stderr=log)
    try:
        # Waits for steps, not seconds, so that even a slow machine saves some steps before the kill.
        wait_for(process, log.name, r"step \d+/", seconds=300,
                 times=RNG.randint(1, 5 if in_save else 2 * INTERVAL))
        ranks = children(process.pid)
        assert len(ranks) == count, ranks
        while in_save and not cut_short(place, name):
            time.sleep(0.0002)  # until a save has begun; then anywhere in it
        time.sleep(RNG.random() * 0.003 if in_save else 0)
        os.kill(RNG.choice(ranks), signal.SIGKILL)
        killed = time.monotonic()
        try:
            code = process.wait(timeout=60)  # takes seconds, or longer on a busy machine
        except subprocess.TimeoutExpired:
            raise AssertionError(f"mpirun has not ended; ranks still there: {alive(ranks)}\n" + open(log.name).read())
        assert code != 0, "mpirun says that all is well"
        while alive(ranks):
            assert time.monotonic() < killed + 60, f"still there: {alive(ranks)}"
            time.sleep(0.02)
        seconds = time.monotonic() - killed
    finally:
        if process.poll() is None:
            process.kill()
    resumed = re.search(r"resumed from \S+ \(step (\d+)", open(log.name).read())
    return int(resumed.group(1)) if resumed else 0, seconds


def cut_short(place, name):
    """Whether a save is in progress, or the last run died in one."""
    return any(".tmp-" in entry for entry in os.listdir(place.run(name) + "/checkpoints"))


def share(index):
    """How many kills each number of ranks gets."""
    return TIMES // len(WORLDS) + (index < TIMES % len(WORLDS))


def run_of_kills(place, name, count, times, *overrides, only_in_saves=False):
    slowest, last_committed, kills, hits = 0, 0, 0, 0
    while hits < times:
        assert kills < 10 * times, f"of {kills} kills only {hits} hit a save"
        resumed, seconds = kill_one_rank(place, name, count, *overrides, in_save=only_in_saves)
        kills += 1
        hits += not only_in_saves or cut_short(place, name)
        assert resumed >= last_committed, f"committed step {last_committed}, but resumed from {resumed}"
        slowest = max(slowest, seconds)
        committed = place.steps(name)
        last_committed = committed[-1] if committed else 0
        if committed:
            tokamak("checkpoint", "verify", place.checkpoint(name, last_committed))
    assert last_committed > 0, "nothing was ever committed"
    print(f"  {count} ranks: {kills} kills, {hits} of them counted; all ranks gone after {slowest:.1f} s at most, last committed step "
          f"{last_committed}", flush=True)
    # The remaining state is that of an undisturbed run.
    place.train(name + "-straight", count, f"training.max_steps={STEPS}", "--stop-at-step", str(last_committed),
                expect=75)
    assert gathered(place.checkpoint(name, last_committed)) == gathered(
        place.checkpoint(name + "-straight", last_committed)), "the resumed run has other weights"


def in_training(place):
    """kill -9 of one rank in training, again and again: the survivors' weights are those of an undisturbed run"""
    for index, count in enumerate(WORLDS):
        run_of_kills(place, f"training-{count}", count, share(index), f"checkpoint.interval={INTERVAL}")


def in_saving(place):
    """kill -9 of one rank during a save, 20 times: a committed checkpoint is always whole"""
    for index, count in enumerate(WORLDS):
        run_of_kills(place, f"saving-{count}", count, share(index), "checkpoint.interval=1", only_in_saves=True)


main([in_training, in_saving])
