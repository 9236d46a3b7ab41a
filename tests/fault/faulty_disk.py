"""Runs of the real program on a disk that fails, hangs or is slow (preload/faulty_disk.c), and the checks that must
hold afterwards."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

from harness import ENV, TOKAMAK, call, gathered, mpirun, tokamak
from processes import children

LIBRARY = os.environ["FAULTY_DISK"]


def work_in_memory():
    """Puts the files into memory, so that no test waits for a real fsync. Only processes die here, so memory loses
    nothing. Call it before the first Workplace exists."""
    tempfile.tempdir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def command(ranks, *arguments):
    """The command of a run; one rank needs no launcher."""
    return [TOKAMAK, *arguments] if ranks == 1 else mpirun(ranks, *arguments)


class Disk:
    """The environment of a run `name` whose checkpoint directory, or what is `under` a path, is on a faulty disk."""

    def __init__(self, place, name, at=0, fault="", rank=None, rate=0, fsync=0, under=None, reads=False,
                 begin="", times=1):
        self.trace = place.file(name + ".trace")
        self.env = {"LD_PRELOAD": LIBRARY, "FAULTY_DISK_UNDER": under or place.run(name) + "/checkpoints",
                    "FAULTY_DISK_READS": str(int(reads)),
                    "FAULTY_DISK_TRACE": self.trace, "FAULTY_DISK_AT": str(at), "FAULTY_DISK_FAULT": str(fault), "FAULTY_DISK_TIMES": str(times),
                    "FAULTY_DISK_RATE": str(rate), "FAULTY_DISK_FSYNC": str(fsync), "FAULTY_DISK_FROM": begin}
        if rank is not None:
            self.env["FAULTY_DISK_RANK"] = str(rank)

    def operations(self, rank=0):
        """[(call, path)] of a rank, in order. An operation that a fault struck is listed again as "struck"."""
        return [(call, path) for by, _, call, path in self.lines() if int(by) == rank]

    def struck(self):
        return [path for _, _, call, path in self.lines() if call == "struck"]

    def lines(self):
        """The whole lines: the run may be writing the next one."""
        with open(self.trace) as file:
            return [line.split(" ", 3) for line in file.read().split("\n")[:-1]]


def run(place, name, ranks, *overrides, env=None, **options):
    """(exit code, log) of a start; `options` are subprocess.run's."""
    done = call(command(ranks, "train", place.config(name), *overrides), env, timeout=300, **options)
    return done.returncode, done.stdout


def start(place, name, ranks, *overrides, env=None):
    """Starts the run without waiting for its end. Returns (process, path of its log)."""
    log = place.file(name + ".log")
    with open(log, "w") as out:
        return subprocess.Popen(command(ranks, "train", place.config(name), *overrides), env=dict(ENV, **(env or {})),
                                stdout=out, stderr=out), log


def end(process):
    """Ends a start and its ranks, whatever they do."""
    if process.poll() is None:
        for rank in children(process.pid):  # mpirun gives each a process group of its own
            os.kill(rank, signal.SIGKILL)
        process.kill()
    process.wait()


def committed(log):
    """The steps that a log calls committed."""
    return [int(step) for step in re.findall(r"checkpoint of step (\d+) committed", log)]


def check_what_is_left(place, name, promised):
    """Every checkpoint on disk must verify. The last one that the log called committed must exist, or a later one."""
    steps = place.steps(name) if os.path.isdir(place.run(name) + "/checkpoints") else []
    for step in steps:
        tokamak("checkpoint", "verify", place.checkpoint(name, step))
    assert not promised or promised[-1] in steps, f"step {promised[-1]} was committed; there are {steps}"
    return steps


def resume(place, name, ranks, promised, straight, last, *overrides):
    """The next start resumes from the last promised checkpoint or a later one, and ends with the right bits."""
    code, log = run(place, name, ranks, *overrides)
    assert code == 0, f"the next start: exit {code}\n{log}"
    resumed = re.search(r"resumed from \S+ \(step (\d+)", log)
    assert not promised or resumed, log
    assert not promised or int(resumed.group(1)) >= promised[-1], (promised, log)
    assert gathered(place.checkpoint(name, last)) == gathered(place.checkpoint(straight, last)), "other weights\n" + log
    left = [entry for entry in os.listdir(place.run(name) + "/checkpoints") if not re.fullmatch(r"step-\d+|\.lock", entry)]
    assert not left, f"the next start has left {left}"
    return log


def forget(place, name):
    shutil.rmtree(place.run(name), ignore_errors=True)
