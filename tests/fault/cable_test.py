"""A host's cable is pulled. If it is out for less than the watchdog's limit, the run continues to the same bits. If it
stays out, the ranks on both sides end within the limit plus 5 s. One file and suspects.txt name the host, and the next
start continues without it. The rest of the old start commits nothing.

usage: cable_test.py [TEST ...]"""
import glob
import os
import re
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "system")]
import two_hosts  # noqa: E402
from faulty_disk import Disk  # noqa: E402
from harness import ENV, MPIRUN, TOKAMAK, digest, gathered, main, tokamak  # noqa: E402

STEPS = 1000000  # no run gets so far: a fault ends it, or the limit of MORE steps after a fault
MORE = 15
SAVES = ["checkpoint.interval=10"]
STRICT = ["resilience.watchdog_min=5s", "resilience.watchdog_max=10s"]
HOSTS = []  # hosts of the current test


def fresh_hosts(place):
    """Makes new hosts, since the test before may have damaged its own."""
    while HOSTS:
        HOSTS.pop().down()
    HOSTS.append(two_hosts.Hosts(place.file("hosts"), 3))
    return HOSTS[0]


def start(place, name, launcher, slots, *overrides, env=None, options=(), log=None):
    command = [TOKAMAK, "train", place.config(name), f"training.max_steps={STEPS}", *overrides]
    return HOSTS[0].start(launcher, slots, command, place.file(log or name + ".log"),
                              dict(ENV, MPIRUN=MPIRUN, **(env or {})), options)


def slow_disk(place, name):
    """The environment in which an fsync of a checkpoint's file takes 3 s. A save then lasts 10 s, so a cut hits it."""
    return Disk(place, name, fsync=3).env


def expect_bits_of_undisturbed(place, name, ranks, step):
    undisturbed = f"undisturbed-{ranks}-{step}"
    if not os.path.exists(place.run(undisturbed)):
        place.train(undisturbed, ranks, f"training.max_steps={STEPS}", "--stop-at-step", str(step), expect=75)
    assert gathered(place.checkpoint(name, step)) == gathered(place.checkpoint(undisturbed, step))


def save_under_way(place, name):
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


def committed(place, name):
    return place.steps(name) if os.path.isdir(place.run(name) + "/checkpoints") else []


def resume(place, name, launcher, slots, env=None):
    """The next start resumes at the last committed step and trains MORE steps. Returns its last step."""
    last = committed(place, name)[-1]
    tokamak("checkpoint", "verify", place.checkpoint(name, last))
    with start(place, name, launcher, slots, *SAVES, "--stop-at-step", str(last + MORE), env=env, log=name + ".again.log") as run:
        codes = run.codes()
        assert set(codes) == {75}, (codes, run.text())
        assert re.search(rf"resumed from \S+ \(step {last}\b", run.text()), run.text()
    return last + MORE


def pulled(place, name, launcher, slots, *overrides, cut, how="cut", env=None, options=(), save=False):
    """Trains, and pulls the cable of host `cut`, or what `how` says, for ever. Returns (the report, its ranks)."""
    fresh_hosts(place)
    with start(place, name, launcher, slots, *STRICT, *overrides, env=env, options=options) as run:
        two_hosts.until(lambda: committed(place, name) or run.ended(), run.text)
        if save:
            two_hosts.until(lambda: save_under_way(place, name), run.text)
        ranks = sorted(HOSTS[0][cut].ranks())
        assert len(ranks) == slots[cut], ranks
        getattr(HOSTS[0][cut], how)()
        since = time.monotonic()
        assert not save or save_under_way(place, name)
        reports, said = expect_gone(place, name, run, since)
        if launcher == "tcp":
            codes = run.codes()
            lost = slots[cut] if how == "kill" else 0
            assert codes.count(6) == len(codes) - lost, (codes, run.text())
            said += f", exit {codes}"
        else:
            try:
                two_hosts.until(run.ended, "", 20)
                said += f"; mpirun ended after {time.monotonic() - since:.1f} s, exit {run.processes[0].returncode}"
            except AssertionError:
                said += "; mpirun is still there 20 s later"
    print(f"  {name}: {said}", flush=True)
    return reports, ranks


def back_in_time(place):
    """a cable is out for less than the limit: the run continues and ends with the bits of an undisturbed run"""
    for launcher in ("tcp", "mpirun"):
        name = "back-" + launcher
        fresh_hosts(place)
        with start(place, name, launcher, {1: 2, 2: 1}, "resilience.watchdog_min=60s", "--stop-at-step", "100") as run:
            run.wait_for(r"step \d+/", times=5)
            HOSTS[0][2].cut()
            time.sleep(2)
            HOSTS[0][2].heal()
            codes = run.codes()
            assert set(codes) == {75} and not glob.glob(place.run(name) + "/hang-*"), (codes, run.text())
        expect_bits_of_undisturbed(place, name, 3, 100)


def in_training(place):
    """A cable stays out in training. A resume with as many ranks on the remaining host ends with the same bits."""
    for launcher in ("tcp", "mpirun"):
        name = "training-" + launcher
        reports, ranks = pulled(place, name, launcher, {1: 2, 2: 1}, *SAVES, cut=2, options=two_hosts.KEEPALIVE)
        expect_named(place, name, reports, "h2", ranks)
        expect_bits_of_undisturbed(place, name, 3, resume(place, name, launcher, {1: 3}))


def in_a_save(place):
    """a cable is cut in a save, for which training waits or not: only whole checkpoints are committed"""
    for launcher, kind in (("tcp", "false"), ("mpirun", "true")):
        name = f"save-{launcher}-{kind}"
        overrides = [*SAVES, "checkpoint.async=" + kind]
        reports, ranks = pulled(place, name, launcher, {1: 2, 2: 1}, *overrides, cut=2, env=slow_disk(place, name), save=True)
        expect_named(place, name, reports, "h2", ranks)
        expect_bits_of_undisturbed(place, name, 3, resume(place, name, launcher, {1: 3}))


def fewer_ranks(place):
    """The remaining host has room for fewer ranks: they continue with the bits of a resume without a cut."""
    reports, ranks = pulled(place, "fewer", "tcp", {1: 2, 2: 2}, *SAVES, cut=2)
    expect_named(place, "fewer", reports, "h2", ranks)
    shutil.copytree(place.run("fewer") + "/checkpoints", place.run("fewer-straight") + "/checkpoints")
    step = resume(place, "fewer", "tcp", {1: 2})
    place.train("fewer-straight", 2, f"training.max_steps={STEPS}", "--stop-at-step", str(step), expect=75)
    assert gathered(place.checkpoint("fewer", step)) == gathered(place.checkpoint("fewer-straight", step))


def rank_zero_cut_off(place):
    """rank 0's host of three is cut off: suspects.txt names it, and the run continues on the other two"""
    reports, _ = pulled(place, "zero", "tcp", {1: 1, 2: 1, 3: 1}, *SAVES, cut=1)
    assert "suspected: h1 itself" in reports, reports
    expect_named(place, "zero", reports, "h1", [])
    expect_bits_of_undisturbed(place, "zero", 3, resume(place, "zero", "tcp", {2: 2, 3: 1}))


def one_way(place):
    """all that a host sends is lost, and what others send it arrives: the run reacts as to a pulled cable"""
    reports, ranks = pulled(place, "one-way", "tcp", {1: 1, 2: 1, 3: 1}, *SAVES, cut=3, how="lose_what_comes_from_it")
    expect_named(place, "one-way", reports, "h3", ranks)


def power_loss(place):
    """a host loses its power: the others name it, and the next start continues without it"""
    reports, ranks = pulled(place, "power", "tcp", {1: 1, 2: 1, 3: 1}, *SAVES, cut=3, how="kill")
    expect_named(place, "power", reports, "h3", ranks)
    expect_bits_of_undisturbed(place, "power", 3, resume(place, "power", "tcp", {1: 1, 2: 2}))


def zombie(place, name, env, ready):
    """A start on h1 is stopped at `ready`, and its cable is pulled. A second start of the same job, on h2, takes over
    and saves. The cable is plugged in, and the first start continues. Returns (the first, what it says after that)."""
    job = {"TOKAMAK_JOB": name}
    fresh_hosts(place)
    first = start(place, name, "tcp", {1: 2}, *STRICT, *SAVES,
                  env=dict(job, TOKAMAK_ATTEMPT="0", **env), log=name + ".first.log")
    with first:
        two_hosts.until(lambda: committed(place, name), first.text)
        two_hosts.until(lambda: ready() or first.ended(), first.text)
        old = HOSTS[0][1].ranks().values()
        assert len(old) == 2, first.text()
        for pid in old:
            os.kill(pid, signal.SIGSTOP)
        HOSTS[0][1].cut()
        assert ready(), first.text()
        step = resume(place, name, "tcp", {2: 2}, env=dict(job, TOKAMAK_ATTEMPT="1"))
        before = {step: digest(place.checkpoint(name, step)) for step in place.steps(name)}
        HOSTS[0][1].heal()
        for pid in old:
            os.kill(pid, signal.SIGCONT)
        codes = first.codes()
        assert 0 not in codes, (codes, first.text())
        text = first.text()
    after = {step: digest(place.checkpoint(name, step)) for step in place.steps(name)}
    assert before == after, f"{sorted(before)} has become {sorted(after)}\n{text}"
    expect_bits_of_undisturbed(place, name, 2, step)
    print(f"  {name}: exit {codes}, {text.splitlines()[-1]}")
    return text


def old_start_saves_again(place):
    """all ranks of a start are cut off, and continue when the cable is back: they cannot commit what they save then"""
    zombie(place, "zombie", env={}, ready=lambda: len(place.steps("zombie")) >= 2)


def old_start_in_a_save(place):
    """all ranks of a start are cut off in a save, after its last file: the commit fails"""
    def manifest_written():
        return bool(glob.glob(place.run("zombie-save") + "/checkpoints/*.tmp-*/manifest.json"))
    zombie(place, "zombie-save", env=slow_disk(place, "zombie-save"), ready=manifest_written)


two_hosts.enter_or_skip()
main([back_in_time, in_training, in_a_save, fewer_ranks, rank_zero_cut_off, one_way, power_loss, old_start_saves_again,
      old_start_in_a_save])
