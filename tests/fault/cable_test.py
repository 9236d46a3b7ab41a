"""A host's cable is pulled. For less than the watchdog's limit: the run goes on, to the same bits. For ever: the ranks on
both sides are gone within the limit plus 5 s, one file and suspects.txt name the host, the next start goes on without it,
and what is left of the old start commits nothing.

usage: cable_test.py [TEST ...]"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]
import two_hosts  # noqa: E402
from harness import ENV, MPIRUN, TOKAMAK, digest, gathered, main, tokamak  # noqa: E402

STEPS = 120
FOREVER = 1000000
STRICT = ["resilience.watchdog_min=5s", "resilience.watchdog_max=10s"]
HOSTS = []  # made for the first test


def hosts(place):
    if not HOSTS:
        HOSTS.append(two_hosts.Hosts(place.file("hosts"), 3))
    for host in HOSTS[0].all:
        host.heal()
    return HOSTS[0]


def start(place, name, launcher, slots, *overrides, steps=STEPS, env=None, options=(), log=None):
    command = [TOKAMAK, "train", place.config(name), f"training.max_steps={steps}", *overrides]
    return hosts(place).start(launcher, slots, command, place.file(log or name + ".log"),
                              dict(ENV, MPIRUN=MPIRUN, **(env or {})), options)


def slow_disk(place):
    """The environment in which an fsync of a checkpoint's file takes 3 s: a save lasts for 10 s, a cut meets it surely."""
    library = place.file("slow_disk.so")
    if not os.path.exists(library):
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", library, HERE + "/slow_disk.c", "-ldl"],
                       check=True)
    return {"LD_PRELOAD": library, "SLOW_DISK_FSYNC": "3"}


def reference(place, ranks):
    """The run that nobody disturbs."""
    name = f"undisturbed-{ranks}"
    if not os.path.exists(place.checkpoint(name, STEPS)):
        place.train(name, ranks, f"training.max_steps={STEPS}")
    return gathered(place.checkpoint(name, STEPS))


def in_a_save(place, name):
    directory = place.run(name) + "/checkpoints"
    return os.path.isdir(directory) and any(".tmp-" in entry for entry in os.listdir(directory))


def expect_gone(place, name, run, since):
    """All ranks end within the limit + 5 s. Returns the report."""
    def left():
        return {host.name: host.processes("tokamak") for host in run.hosts if host.processes("tokamak")}
    two_hosts.until(lambda: not left(), lambda: f"{left()}\n{run.text()}")
    seconds = time.monotonic() - since
    reports = "".join(open(path).read() for path in glob.glob(place.run(name) + "/hang-*.txt"))
    limits = [float(limit) for limit in re.findall(r"^limit: ([0-9.]+) s", reports, re.M)]
    assert limits and seconds < max(limits) + 5, f"ended after {seconds:.1f} s, limits {limits}\n{reports}\n{run.text()}"
    return reports, f"all ranks gone after {seconds:.1f} s, limit {max(limits):.1f} s"


def expect_named(place, name, reports, host, ranks):
    found = re.findall(r"^did not arrive: (.*)$", reports, re.M)
    for rank in ranks:
        assert any(f"rank {rank} (on {host})" in line for line in found), (found, reports)
    with open(place.run(name) + "/suspects.txt") as file:
        suspects = file.read().split()
    assert suspects == [host], (suspects, reports)


def resume(place, name, launcher, slots, *overrides, env=None, steps=STEPS):
    """The next start, which goes on from the last committed step. Returns that step."""
    committed = place.steps(name)[-1]
    tokamak("checkpoint", "verify", place.checkpoint(name, committed))
    with start(place, name, launcher, slots, *overrides, env=env, steps=steps, log=name + ".again.log") as run:
        assert set(run.codes()) == {0}, run.text()
        assert re.search(rf"resumed from \S+ \(step {committed}\b", run.text()), run.text()
    return committed


def pulled(place, name, launcher, slots, *overrides, cut, survivors, env=None, options=(), save=False):
    """Trains, pulls the cable of host `cut` for ever, and goes on on the survivors."""
    with start(place, name, launcher, slots, *STRICT, *overrides, steps=FOREVER, env=env, options=options) as run:
        if save:
            two_hosts.until(lambda: place.steps(name) if os.path.isdir(place.run(name) + "/checkpoints") else None, run.text)
            two_hosts.until(lambda: in_a_save(place, name), run.text)
        else:
            run.wait_for("checkpoint .*step-", times=2)
        ranks = sorted(hosts(place)[cut].ranks())
        assert len(ranks) == slots[cut], ranks
        hosts(place)[cut].cut()
        since = time.monotonic()
        assert save == in_a_save(place, name) or not save
        reports, said = expect_gone(place, name, run, since)
        if launcher == "tcp":
            assert set(run.codes()) == {6}, run.text()
            said += ", exit 6"
        else:
            try:
                two_hosts.until(run.ended, "", 20)
                said += f"; mpirun ended after {time.monotonic() - since:.1f} s, exit {run.processes[0].returncode}"
            except AssertionError:
                said += "; mpirun is still there 20 s later"
    print(f"  {name}: {said}", flush=True)
    return reports, ranks


def back_in_time(place):
    """a cable that is out for less than the limit: the run goes on, to the bits of an undisturbed one"""
    for launcher in ("tcp", "mpirun"):
        name = "back-" + launcher
        with start(place, name, launcher, {1: 2, 2: 1}, "resilience.watchdog_min=60s", options=two_hosts.KEEPALIVE) as run:
            run.wait_for(r"step \d+/", times=5)
            hosts(place)[2].cut()
            time.sleep(2)
            hosts(place)[2].heal()
            assert set(run.codes()) == {0}, run.text()
            assert not glob.glob(place.run(name) + "/hang-*"), run.text()
        assert gathered(place.checkpoint(name, STEPS)) == reference(place, 3)


def in_training(place):
    """a cable that stays out, in training: the same number of ranks, on the host that is left, ends with the same bits"""
    for launcher, options in (("tcp", ()), ("mpirun", two_hosts.KEEPALIVE)):
        name = "training-" + launcher
        reports, ranks = pulled(place, name, launcher, {1: 2, 2: 1}, "checkpoint.interval=20", cut=2, survivors={1: 3},
                                options=options)
        expect_named(place, name, reports, "h2", ranks)
        resume(place, name, launcher, {1: 3}, "checkpoint.interval=20")


main([back_in_time, in_training] if two_hosts.enter_or_skip() is None else [])
