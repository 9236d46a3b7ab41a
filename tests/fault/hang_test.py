"""A rank is stopped or stuck, in any phase. The run ends within the watchdog's limit plus 5 s, with exit code 6. One
file names the rank, and where the others wait. A stop shorter than the limit changes nothing.

usage: hang_test.py [TEST ...]      HANGS=20: the number of hangs of `sweep`; HANG_SEED"""
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "system"), os.path.join(HERE, "..", "support")]
import faulty_disk  # noqa: E402
import run_ranks  # noqa: E402
from harness import ENV, TOKAMAK, gathered, main, mpirun  # noqa: E402
from processes import alive, children, wait_for  # noqa: E402

RANKS = 3
FOREVER = "training.max_steps=1000000"
RNG = random.Random(int(os.environ.get("HANG_SEED", "3")))
QUESTION = '{"question": "what?", "choices": ["a", "b"], "answer": 0}\n'


class Run:
    """Three ranks under mpirun or as processes that meet over TCP."""

    def __init__(self, place, name, launcher, *overrides, env=None):
        self.directory, self.launcher = place.run(name), launcher
        self.log = place.file(name + ".log")
        config, out = place.config(name), open(self.log, "w")
        env = dict(ENV, **(env or {}))
        if launcher == "mpirun":
            self.processes = [subprocess.Popen(mpirun(RANKS, "train", config, *overrides), env=env, stdout=out, stderr=out)]
        else:
            environment = dict(env, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(run_ranks.free_port()))
            self.processes = [subprocess.Popen([TOKAMAK, "train", config, *overrides],
                                               env=dict(environment, RANK=str(rank)), stdout=out, stderr=out)
                              for rank in range(RANKS)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()

    def pids(self):
        if self.launcher != "mpirun":
            return [process.pid for process in self.processes]
        deadline = time.monotonic() + 60
        while len(found := sorted(children(self.processes[0].pid))) < RANKS:
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.001)
        return found

    def text(self):
        return open(self.log).read()

    def wait_for(self, pattern, times=1):
        return wait_for(self.processes[0], self.log, pattern, times=times)

    def expect_end(self, culprit, pids, since, stopped=True):
        """All ranks end; returns (the report, its limit, the seconds that it took)."""
        others = [pid for rank, pid in enumerate(pids) if not (stopped and rank == culprit)]
        deadline = time.monotonic() + 120
        while alive(others):
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.02)
        seconds = time.monotonic() - since
        if self.launcher != "mpirun" and stopped:
            os.kill(pids[culprit], signal.SIGCONT)
        codes = [process.wait(timeout=20) for process in self.processes]
        assert set(codes) == {6}, (codes, self.text())
        gone_by = time.monotonic() + 10  # mpirun has sent SIGKILL; the process may take a moment to end
        while alive(pids) and time.monotonic() < gone_by:
            time.sleep(0.02)
        assert not alive(pids), "the stopped rank is still there"
        files = glob.glob(self.directory + "/hang-*.txt")
        assert len(files) == 1, (files, self.text())
        report = open(files[0]).read()
        limit = float(re.search(r"^limit: ([0-9.]+) s", report, re.M)[1])
        assert seconds < limit + 5, f"ended after {seconds:.1f} s, the limit was {limit} s\n{report}"
        assert re.search(rf"^did not arrive: rank {culprit} \(on \S+\), pid {pids[culprit]}$", report, re.M), report[:3000]
        assert f"rank {culprit} (on " in re.search(r"the run hangs: (.*)", self.text())[1], self.text()
        assert open(self.directory + "/suspects.txt").read().split() == [os.uname().nodename]
        return report, limit, seconds


def of_a_load(place, name, rank):
    """(overrides, disk) of a run that stops itself in one of the reads of its checkpoint's weights and moments."""
    if not os.path.isdir(place.run("seed")):
        place.train("seed", RANKS, "training.max_steps=2")
    where = [f"checkpoint.load={place.checkpoint('seed', 2)}", "checkpoint.interval=0"]
    under = place.checkpoint("seed", 2)
    counted = faulty_disk.Disk(place, name + "-counted", rank=rank, under=under, reads=True)
    faulty_disk.run(place, name + "-counted", RANKS, "training.max_steps=3", *where, env=counted.env)
    reads = [at for at, (_, path) in enumerate(counted.operations(rank), 1) if path.endswith(".safetensors")]
    return where, faulty_disk.Disk(place, name, at=RNG.choice(reads), fault="stop", rank=rank, under=under, reads=True)


def of_a_save(place, name, rank):
    """(overrides, disk) of a run that stops itself in one of the file operations of its first save."""
    each = ["checkpoint.interval=1", "checkpoint.async=false"]
    counted = faulty_disk.Disk(place, name + "-counted", rank=rank)
    faulty_disk.run(place, name + "-counted", RANKS, "training.max_steps=1", *each, env=counted.env)
    of_the_save = [at for at, (_, path) in enumerate(counted.operations(rank), 1) if ".tmp-" in path]
    return each, faulty_disk.Disk(place, name, at=RNG.choice(of_the_save), fault="stop", rank=rank)


def hang(place, name, launcher, culprit, phase, *overrides):
    """Sends SIGSTOP to one rank in a phase of the run: in a load or a save, in one of its file operations."""
    least = "2s" if phase in ("step", "validation", "save") else "1s"
    aimed = {"load": of_a_load, "save": of_a_save}.get(phase)
    where, disk = aimed(place, name, culprit) if aimed else ([], None)
    with Run(place, name, launcher, f"resilience.watchdog_min={least}", FOREVER, *where, *overrides,
             env=disk.env if disk else None) as run:
        pids = run.pids()
        if disk:
            deadline = time.monotonic() + 60
            while not (os.path.exists(disk.trace) and disk.struck()):
                assert time.monotonic() < deadline, run.text()
                time.sleep(0.005)
        else:
            run.wait_for("model: " if phase == "start" else r"step \d+/", times=1 if phase == "start" else 20)
            time.sleep(RNG.random() * (0.5 if phase == "validation" else 0.02))
            os.kill(pids[culprit], signal.SIGSTOP)
        report, limit, seconds = run.expect_end(culprit, pids, time.monotonic())
    found = re.search(r"waiting: (.*)", report)[1]
    assert re.search(r"rank \d \(on \S+\), pid \d+(?:; rank .*)? (in \S+|outside of any call).*, phase \w+, step \d+", found), report[:3000]
    for rank in set(range(RANKS)) - {culprit}:
        calls = report.split(f"last calls of rank {rank} ")[1].split("last calls of")[0]
        assert "#" in calls and "UNDER WAY" in calls, report[:3000]
    missing = report.split(f"last calls of rank {culprit} ")
    assert len(missing) == 1 or "missing: it did not answer" in missing[1], report[:3000]
    assert disk is None or f"phase {phase}, " in found, report[:3000]
    at = " at " + os.path.relpath(disk.struck()[0], place.path) if disk else ""
    print(f"  {launcher}, rank {culprit} in {phase}{at}: {seconds:.1f} s, limit {limit} s; {found}", flush=True)
    return report


def stopped_mpi(place):
    """SIGSTOP of a rank in training under mpirun: the others end within the limit plus 5 s, the rank is named"""
    report = hang(place, "stopped-mpi", "mpirun", 2, "step")
    assert "phase step" in report, report


def stopped_tcp(place):
    """SIGSTOP of a rank of a run over TCP: the others end within the limit plus 5 s; the rank ends after SIGCONT"""
    hang(place, "stopped-tcp", "tcp", 1, "step")


def rank_zero_stopped(place):
    """SIGSTOP of rank 0: the others notice that its heartbeats have stopped, and write one report"""
    report = hang(place, "stopped-zero", "tcp", 0, "step")
    assert report.count("hang, found at") == 1, report


def stuck(place):
    """a rank's read of a file never returns at the start, yet it sends heartbeats: the report says it did not arrive"""
    with open(place.file("questions.jsonl"), "w") as out:
        out.write(QUESTION)
    evals = f"training.evals=[{{path: {place.file('questions.jsonl')}}}]"
    disk = faulty_disk.Disk(place, "stuck", at=1, fault="hang", rank=1, under=place.file("questions.jsonl"), reads=True)
    with Run(place, "stuck", "tcp", "resilience.watchdog_min=1s", evals, env=disk.env) as run:
        report, limit, seconds = run.expect_end(1, run.pids(), time.monotonic(), stopped=False)
    assert "in gather_all, phase start" in report and "did not arrive (phase start" in report, report
    assert "missing" not in report, report  # its heartbeats still come
    print(f"  {seconds:.1f} s, limit {limit} s")


def never_came(place):
    """one rank never calls MPI_Init: the other ranks end with exit code 6, although their watchdogs do not run yet"""
    command = mpirun(1, "train", place.config("alone"))
    command[1:1] = ["-x", "TOKAMAK_MPI_SECONDS=2"]
    done = subprocess.run([*command, ":", "-n", "1", "sleep", "600"], env=ENV, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    assert done.returncode == 6 and "have not met over MPI within 2 s" in done.stdout, (done.returncode, done.stdout)


def short_stop(place):
    """SIGSTOP of each rank for less than the limit: the run continues and ends with the bits of an undisturbed run"""
    steps = "training.max_steps=600"
    place.train("undisturbed", RANKS, steps)
    with Run(place, "pauses", "mpirun", steps, "resilience.watchdog_min=20s") as run:
        run.wait_for(r"step \d+/", times=2)
        for pid in run.pids():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(1)  # the watchdog waits 20 s
            os.kill(pid, signal.SIGCONT)
        assert run.processes[0].wait(timeout=120) == 0, run.text()
        assert "hangs" not in run.text() and not glob.glob(run.directory + "/hang-*"), run.text()
    assert gathered(place.checkpoint("pauses", 600)) == gathered(place.checkpoint("undisturbed", 600))


def sweep(place):
    """SIGSTOP of each rank in each phase, under both launchers"""
    phases = {"start": [], "load": [], "step": [], "save": [],
              "validation": ["training.validation_interval=1", "training.validation_sequences=1000000"]}
    cases = [(rank, phase) for phase in phases for rank in range(RANKS)]
    RNG.shuffle(cases)
    count = int(os.environ.get("HANGS", "20"))
    for number in range(count):
        rank, phase = cases[number % len(cases)]
        launcher = ("mpirun", "tcp")[(number + number // len(cases)) % 2]
        hang(place, f"sweep-{number}", launcher, rank, phase, *phases[phase])
    print(f"  {count} of {count}")


main([stopped_mpi, stopped_tcp, rank_zero_stopped, stuck, never_came, short_stop, sweep])
