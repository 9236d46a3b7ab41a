"""Twenty random faults in ten minutes on a cluster of eight nodes. The run continues, and ends by itself at its last
step, with the bits of an undisturbed run. No manual help: all jobs are submitted at the beginning, in case one is
cancelled.
  STORM_SECONDS  how long (600); STORM_SEED  of the faults (printed); one fault comes every 30 seconds.
  STORM_SHARE    the run is so long, undisturbed (0.65 of STORM_SECONDS)"""
import os
import random
import signal
import subprocess
import time

from jobs import ENDLESS, FINAL, Job, call_slurm, named, run_tests, same_bits, tokamak, wait_until

SECONDS = int(os.environ.get("STORM_SECONDS", "600"))
SEED = int(os.environ.get("STORM_SEED", str(random.SystemRandom().randrange(10000))))
EVERY = 30  # seconds from one fault to the next
NODES = 8
DISK = 48  # MiB
SHARE = float(os.environ.get("STORM_SHARE", "0.65"))
RATE = "60mbit"  # of a cable: steps slow enough to be hit
JOBS = 2 + SECONDS // EVERY // 6  # more than the test cancels
# The jobs of one run, one after the other. With a fault every 30 s, some starts end before they save a checkpoint.
SHAPE = {"options": ["--nodes=4", "--no-kill", "--job-name=storm", "--dependency=singleton"], "SPARES": "2",
         "TOKAMAK_JOB": "storm", "MAX_WITHOUT_PROGRESS": "10", "CHECK_AGAIN": "5"}
LIMIT = "resilience.watchdog_min=5s"


class Storm:
    def __init__(self, place, cluster, steps):
        self.place, self.cluster = place, cluster
        self.rng = random.Random(SEED)
        self.undo = []  # (time, function) to end each lasting fault
        self.kinds = []  # shuffled, so that each comes
        self.jobs = [Job(place, "storm", f"training.max_steps={steps}", LIMIT, interval=10, **SHAPE) for _ in range(JOBS)]
        self.cancelled = 0

    @property
    def job(self):
        return self.jobs[self.cancelled]

    def strike(self):
        if not self.kinds:
            self.kinds = [self.kill, self.stop, self.cut, self.full_disk, self.cancel, self.power, self.limit]
            self.rng.shuffle(self.kinds)
        return self.kinds.pop()()

    def later(self, action):
        self.undo.append((time.monotonic() + self.rng.uniform(5, 25), action))

    def a_rank(self):
        ranks = sorted(named("tokamak"))
        return self.rng.choice(ranks) if ranks else None

    def a_node(self):
        """A node of the job that has power."""
        job = call_slurm("scontrol", "show", "hostnames", self.job.field("NodeList")).split()
        return self.rng.choice([name for name in job if name in self.cluster.nodes and self.cluster.is_on(name)] or ["n1"])

    def send(self, number):
        if (rank := self.a_rank()) is None:
            return "no rank to hit"
        os.kill(rank, number)
        if number == signal.SIGSTOP:
            self.later(lambda: resume(rank))
        return f"signal {number} to rank process {rank}"

    def kill(self):
        return self.send(signal.SIGKILL)

    def stop(self):
        return self.send(signal.SIGSTOP)

    def cut(self):
        node = self.a_node()
        self.cluster.cut(node)
        self.later(lambda: self.cluster.is_on(node) and self.cluster.heal(node))
        return f"cable of {node}"

    def power(self):
        node = self.a_node()
        if not self.cluster.is_on(node):
            return f"{node} is off already"
        self.cluster.power_off(node)
        self.later(lambda: self.cluster.power_on(node))
        return f"power of {node}"

    def full_disk(self):
        ballast = self.place.run("ballast")
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}", "bs=1M"], stderr=subprocess.DEVNULL, check=False)
        self.later(lambda: os.remove(ballast) if os.path.exists(ballast) else None)
        return "disk full"

    def cancel(self):
        call_slurm("scancel", self.job.id)
        wait_until(lambda: self.job.field("JobState") in FINAL, "cancelled")
        assert self.job.field("JobState") in ("CANCELLED", "COMPLETED"), self.job.story()
        if self.job.field("JobState") == "CANCELLED":
            self.cancelled += 1
        return "scancel"

    def limit(self):
        call_slurm("scancel", "--signal=USR1", "--batch", self.job.id)
        return "time limit"

    def calm_down(self, now=None):
        """Ends the faults whose time is over. Without `now` it ends all faults."""
        over = [entry for entry in self.undo if now is None or entry[0] <= now]
        self.undo = [entry for entry in self.undo if entry not in over]
        for _, action in over:
            action()


def resume(pid):
    if pid in named("tokamak"):
        os.kill(pid, signal.SIGCONT)


def seconds_per_step(place):
    """Measured by an undisturbed job of the same shape."""
    job = Job(place, "calm", f"training.max_steps={ENDLESS}", interval=10, **SHAPE)
    job.reaches(10)
    begin, first = time.monotonic(), job.steps_done()
    job.reaches(first + 30)
    seconds = (time.monotonic() - begin) / (job.steps_done() - first)
    call_slurm("scancel", job.id)
    job.ends("CANCELLED")
    return seconds


def storm(place, cluster):
    """a run survives a storm of faults: it ends at the right step with the right bits, without manual help"""
    os.makedirs(place.file("runs"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", place.file("runs")], check=True)
    for name in cluster.addresses:  # they share the new disk, too
        cluster.power_off(name)
        cluster.power_on(name)
    wait_until(lambda: len(cluster.idle_nodes()) == NODES, "all nodes idle")
    cluster.slow_down(RATE)
    calm = seconds_per_step(place)
    steps = int(SHARE * SECONDS / calm)
    print(f"  seed {SEED}; undisturbed {calm * 1000:.0f} ms a step; {steps} steps", flush=True)
    run, begin, faults = Storm(place, cluster, steps), time.monotonic(), 0
    while (seconds := time.monotonic() - begin) < SECONDS:
        run.calm_down(time.monotonic())
        state = run.job.field("JobState")
        assert state != "COMPLETED", f"done before the storm was over: STORM_SHARE\n{run.job.story()}"
        assert state not in FINAL, f"{state}\n{run.job.story()}"
        if seconds > (faults + 0.5) * EVERY:
            faults += 1
            print(f"  {seconds:5.0f} s, step {run.job.steps_done()}: {run.strike()}", flush=True)
        time.sleep(0.1)
    run.calm_down()
    wait_until(lambda: run.job.field("JobState") in FINAL, "the end of the run", seconds=1200)
    wall = time.monotonic() - begin
    print(tokamak("report", place.run("storm"), "--text"))
    for job in run.jobs[run.cancelled:]:  # jobs that waited in the queue find the run done
        job.ends("COMPLETED", 0)
    assert place.steps("storm")[-1] == steps
    same_bits(place, "storm", steps, 2, steps)
    print(f"  {faults} faults in {SECONDS} s; step {steps} after {wall:.0f} s, undisturbed {steps * calm:.0f} s")


if __name__ == "__main__":
    run_tests([storm], nodes=NODES)
