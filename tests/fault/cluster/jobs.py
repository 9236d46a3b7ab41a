"""Jobs of scripts/slurm/train.sbatch on the simulated cluster: tests submit, watch and compare them. A test waits for
an expected event, never for a time. If it does not come within five minutes, the test fails with the job's log."""
import os
import re
import subprocess
import sys
import tempfile
import time

from faulty_cluster import FaultyCluster, named, slurm_cluster

slurm_cluster.enter_or_skip()
from harness import ENV, TOKAMAK, Workplace, gathered, tokamak  # noqa: E402

SCRIPTS = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts"))
SBATCH = os.environ.get("TRAIN_SBATCH", SCRIPTS + "/slurm/train.sbatch")  # another one, to see it fail
PATIENCE = int(os.environ.get("PATIENCE", "300"))  # seconds; a loaded machine needs them
LAST_RANKS = "2"  # seconds from the first rank's end until srun kills the others
ENDLESS = 100000  # steps that no test reaches
STEPS = 400
LENGTH = f"training.max_steps={STEPS}"
ONE_RANK_A_NODE = "--nodes=2"
WITH_SPARE = {"options": ["--nodes=3", "--no-kill"], "SPARES": "1"}
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")


def wait_until(condition, what, job=None, seconds=PATIENCE):
    deadline, look = time.monotonic() + seconds, 0
    while not condition():
        if time.monotonic() > look and job:  # a job that has ended will not do it any more
            assert job.field("JobState") not in FINAL or condition(), f"the job ended before: {what}\n{job.story()}"
            look = time.monotonic() + 2
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{job.story() if job else ''}{call_slurm('squeue')}"
        time.sleep(0.05)


def call_slurm(*command):
    """The output of a client command; it may be asked while the controller restarts."""
    return subprocess.run(command, env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def start_cluster(place, nodes):
    cluster = FaultyCluster(place.file("slurm"), nodes)
    ENV.update(cluster.env)
    ENV["PATH"] = os.environ["PATH"]
    return cluster


def trainers():
    """Process ids of ranks that train. Other processes of the program run the checks or print the config."""
    found = []
    for pid in named("tokamak"):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                arguments = file.read().split("\0")
            if arguments[1:2] == ["train"] and "--print-value" not in arguments:
                found.append(pid)
        except OSError:
            pass
    return found


class Job:
    """Submitted by being made. `options` are for sbatch, `variables` for the environment of the script."""

    def __init__(self, place, name, *overrides, options=(), interval=20, **variables):
        self.place, self.name = place, name
        self.log = tempfile.mkstemp(prefix=name + "-", suffix=".log", dir=place.path)[1]
        arguments = [place.config(name), f"checkpoint.interval={interval}", "checkpoint.keep_latest=3", *overrides]
        environment = dict(ENV, TOKAMAK=TOKAMAK, LAST_RANKS=LAST_RANKS, OMPI_MCA_mpi_yield_when_idle="1",
                           TOKAMAK_MPI_SECONDS="30")
        environment.update(variables)
        done = subprocess.run(["sbatch", "--parsable", "--ntasks-per-node=1", "--output", self.log, *options, SBATCH,
                               *arguments], env=environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        self.id = done.stdout.strip()

    def text(self):
        try:
            with open(self.log) as file:
                return file.read()
        except OSError:
            return ""

    def story(self):
        """The log without the lines of steps."""
        lines = [line for line in self.text().splitlines() if not re.search(r"info .*step \d+/|iB  |committed:|^\W*$", line)]
        return "\n".join(lines[-60:]) + "\n"

    def steps_done(self):
        found = re.findall(r"step (\d+)/", self.text())
        return int(found[-1]) if found else 0

    def says(self, pattern, times=1, seconds=PATIENCE):
        wait_until(lambda: len(re.findall(pattern, self.text())) >= times, f"{times} x '{pattern}'", self, seconds)
        return re.findall(pattern, self.text())

    def reaches(self, step):
        wait_until(lambda: self.steps_done() >= step, f"step {step}", self)

    def field(self, name):
        found = re.search(rf"\b{name}=(\S*)", call_slurm("scontrol", "show", "job", self.id))
        return found.group(1) if found else ""

    def restarts(self):
        return int(self.field("Restarts"))

    def ends(self, state, code=None):
        wait_until(lambda: self.field("JobState") in FINAL and not named("tokamak"), f"the end of job {self.id}")
        found = self.field("JobState"), self.field("ExitCode")
        assert found[0] == state and (code is None or found[1] == f"{code}:0"), (found, self.story())

    def stops_with_the_right_bits(self, ranks, max_steps, *overrides):
        """Cancels the job and checks the bits that it saved."""
        call_slurm("scancel", self.id)
        self.ends("CANCELLED")
        same_bits(self.place, self.name, self.place.steps(self.name)[-1], ranks, max_steps, *overrides)

    def nodes(self, cluster):
        """The nodes on which the job has ranks."""
        return [name for name in cluster.nodes if cluster.is_on(name) and cluster.processes(name, "tokamak")]


def same_bits(place, name, step, ranks, max_steps, *overrides):
    """The checkpoint of `step` equals that of an undisturbed run of as many ranks."""
    straight = f"{name}-straight"
    end = [] if step == max_steps else ["--stop-at-step", str(step)]
    place.train(straight, ranks, f"training.max_steps={max_steps}", *overrides, *end, expect=75 if end else 0)
    assert gathered(place.checkpoint(name, step)) == gathered(place.checkpoint(straight, step)), "other weights"


def complete(place, job, ranks=2, steps=STEPS):
    """The run ends as if nothing had been."""
    job.ends("COMPLETED", 0)
    same_bits(place, job.name, steps, ranks, steps)


def all_idle(cluster):
    wait_until(lambda: cluster.idle_nodes() == set(cluster.addresses), "all nodes idle")


def run_tests(tests, nodes):
    """Runs functions of (place, cluster) in turn, as harness.main does. They leave the cluster as they found it."""
    chosen = [test for test in tests if len(sys.argv) == 1 or test.__name__ in sys.argv[1:]]
    assert chosen, f"no test called {sys.argv[1:]}"
    with Workplace() as place:
        cluster = start_cluster(place, nodes)
        for test in chosen:
            start = time.monotonic()
            test(place, cluster)
            print(f"ok ({time.monotonic() - start:.1f} s):", " ".join(test.__doc__.split()), flush=True)
