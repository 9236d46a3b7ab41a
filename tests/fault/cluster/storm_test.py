"""Twenty random faults in ten minutes on a cluster of eight nodes: the run goes on, and what it has saved in the end has the
bits of a run that nothing disturbed. The only hand is the one that submits again what it has cancelled.
  STORM_SECONDS  how long (600); STORM_SEED  of the faults (printed); one fault comes every 30 seconds."""
import os
import random
import signal
import subprocess
import time

from jobs import ENDLESS, FINAL, Job, call_slurm, named, run_tests, wait_until

SECONDS = int(os.environ.get("STORM_SECONDS", "600"))
SEED = int(os.environ.get("STORM_SEED", str(random.SystemRandom().randrange(10000))))
EVERY = 30  # seconds from one fault to the next
NODES = 8
DISK = 48  # MiB
SHAPE = {"options": ["--nodes=4", "--no-kill"], "SPARES": "2"}
BATCH = "training.global_batch_tokens=6144"  # steps slow enough to be hit


class Storm:
    def __init__(self, place, cluster):
        self.place, self.cluster = place, cluster
        self.rng = random.Random(SEED)
        self.undo = []  # (when, what): the end of faults that last
        self.kinds = []  # shuffled, so that each comes
        self.job = self.submit()

    def submit(self):
        return Job(self.place, "storm", f"training.max_steps={ENDLESS}", BATCH, interval=10, **SHAPE)

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
        """One of the job's that is on."""
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
            self.job = self.submit()
        return "scancel, and submitted again"

    def limit(self):
        call_slurm("scancel", "--signal=USR1", "--batch", self.job.id)
        return "time limit"

    def calm_down(self, now=None):
        """Ends the faults whose time is over; all of them without `now`."""
        over = [entry for entry in self.undo if now is None or entry[0] <= now]
        self.undo = [entry for entry in self.undo if entry not in over]
        for _, action in over:
            action()


def newest(place):
    return (place.steps("storm") or [0])[-1]


def resume(pid):
    if pid in named("tokamak"):
        os.kill(pid, signal.SIGCONT)


def seconds_per_step(place):
    """Of an undisturbed job of the same shape."""
    job = Job(place, "calm", f"training.max_steps={ENDLESS}", BATCH, interval=10, **SHAPE)
    job.reaches(10)
    begin, first = time.monotonic(), job.steps_done()
    job.reaches(first + 60)
    seconds = (time.monotonic() - begin) / (job.steps_done() - first)
    call_slurm("scancel", job.id)
    job.ends("CANCELLED")
    return seconds


def storm(place, cluster):
    """a run survives a storm of faults: right step, right bits, no hand"""
    os.makedirs(place.file("runs"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", place.file("runs")], check=True)
    for name in cluster.addresses:  # they share the new disk, too
        cluster.power_off(name)
        cluster.power_on(name)
    wait_until(lambda: len(cluster.idle_nodes()) == NODES, "all nodes idle")
    calm = seconds_per_step(place)
    print(f"  seed {SEED}; undisturbed {calm * 1000:.0f} ms a step", flush=True)
    run, begin, faults = Storm(place, cluster), time.monotonic(), 0
    while (seconds := time.monotonic() - begin) < SECONDS:
        run.calm_down(time.monotonic())
        assert run.job.field("JobState") not in ("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"), run.job.story()
        if seconds > (faults + 0.5) * EVERY:
            faults += 1
            print(f"  {seconds:5.0f} s, step {run.job.steps_done()}: {run.strike()}", flush=True)
        time.sleep(0.1)
    run.calm_down()
    saved = newest(place)
    wait_until(lambda: newest(place) >= saved + 20, "steps after the storm", run.job)
    wall = time.monotonic() - begin
    run.job.stops_with_the_right_bits(2, ENDLESS, BATCH)
    step = place.steps("storm")[-1]
    print(f"  {faults} faults in {SECONDS} s; step {step} after {wall:.0f} s; ETTR "
          f"{step * calm / wall:.2f}")


if __name__ == "__main__":
    run_tests([storm], nodes=NODES)
