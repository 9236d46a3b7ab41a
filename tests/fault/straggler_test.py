"""Ranks that are slow, or pause for less than the watchdog's limit: the slow one is named, nothing ends, the bits stay.

usage: straggler_test.py [TEST ...]    FALSE_ALARM_MINUTES=60: how long `false_alarms` trains (0.3)"""
import glob
import json
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]
import pauses  # noqa: E402
from faulty_disk import Disk, committed  # noqa: E402
from harness import ENV, TOKAMAK, gathered, main, mpirun  # noqa: E402
from processes import alive, children, wait_for  # noqa: E402

RANKS, SLOW = 3, 2
FOREVER = "training.max_steps=1000000"
MINUTES = float(os.environ.get("FALSE_ALARM_MINUTES", "0.3"))
SEED = int(os.environ.get("FALSE_ALARM_SEED", "7"))


def rank_of(pid):
    with open(f"/proc/{pid}/environ") as file:
        return int(re.search(r"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)", file.read())[1])


class Run:
    def __init__(self, place, name, *overrides, env=None):
        self.place, self.name, self.log = place, name, place.file(name + ".log")
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(mpirun(RANKS, "train", place.config(name), FOREVER, *overrides),
                                            env=dict(ENV, **(env or {})), stdout=out, stderr=out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def wait_for(self, pattern, seconds=60, times=1):
        return wait_for(self.process, self.log, pattern, seconds, times)

    def pids(self):
        """Process ids by rank."""
        found = sorted(children(self.process.pid), key=rank_of)
        assert len(found) == RANKS, found
        return found

    def stop(self):
        """Saves and ends it; returns what it has logged, and its last step."""
        os.kill(children(self.process.pid)[0], 15)
        code = self.process.wait(timeout=120)
        with open(self.log) as file:
            text = file.read()
        assert code == 75, (code, text[-5000:])
        assert "hangs" not in text and not glob.glob(self.place.run(self.name) + "/hang-*"), text[-5000:]
        return text, self.place.steps(self.name)[-1]


def expect_bits_of_undisturbed(place, name, step):
    place.train(name + "-straight", RANKS, FOREVER, "--stop-at-step", str(step), expect=75)
    assert gathered(place.checkpoint(name, step)) == gathered(place.checkpoint(name + "-straight", step))


def straggler(place):
    """a rank is stopped for 40 ms of every 60: it is named with its host, and the run continues to the right bits"""
    with Run(place, "slow") as run:
        run.wait_for(r"step \d+/")
        with pauses.Pauses(pauses.duty_cycle(run.pids()[SLOW])):
            run.wait_for(r"rank \d \(on \S+\) is slow", seconds=240)
        text, step = run.stop()
    named = set(re.findall(r"rank (\d) \(on (\S+)\) is slow", text))
    assert named == {(str(SLOW), os.uname().nodename)}, (named, text[-5000:])
    with open(place.run("slow") + "/metrics.jsonl") as file:
        events = [record for record in map(json.loads, file) if record.get("event") == "straggler"]
    assert {event["detail"] for event in events} == {f"rank {SLOW} (on {os.uname().nodename})"}, events
    assert all(event["seconds"] > event["median_seconds"] > 0 for event in events), events
    print("  " + re.search(r"rank \d \(on.*is slow.*", text)[0])
    expect_bits_of_undisturbed(place, "slow", step)


def false_alarms(place):
    """ranks pause at random, for less than the limit, and the disk takes 1 MB/s: no alarm, and the right bits"""
    limit = 20
    with Run(place, "pauses", f"resilience.watchdog_min={limit}s", f"resilience.watchdog_max={limit}s",
             "checkpoint.interval=200", env=Disk(place, "pauses", rate=1000000).env) as run:
        run.wait_for(r"step \d+/")
        # At most half of the limit, since a loaded machine makes pauses longer.
        with pauses.Pauses(pauses.at_random(run.pids(), limit / 2, SEED)) as disturbed:
            end = time.monotonic() + 60 * MINUTES
            while time.monotonic() < end:
                assert run.process.poll() is None, open(run.log).read()[-5000:]
                time.sleep(0.2)
        assert len(alive(children(run.process.pid))) == RANKS
        text, step = run.stop()
    print(f"  {MINUTES} minute(s), {disturbed.count} pauses of up to {disturbed.longest:.1f} s, limit {limit} s, {step} steps, "
          f"{len(committed(text))} saves")
    if step < 5000:  # an hour's worth takes as long again
        expect_bits_of_undisturbed(place, "pauses", step)


main([straggler, false_alarms])
