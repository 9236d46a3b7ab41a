"""Faults that neither a rank nor Slurm reports: a stopped rank, a cable cut long before Slurm notices, a node that
fails the checks before training. The program finds them, and the script continues in its allocation, to the same
bits."""
import glob
import os
import re
import signal
import subprocess
import time

from jobs import LENGTH, ONE_RANK_A_NODE, STEPS, WITH_SPARE, Job, all_idle, complete, run_tests, same_bits, trainers, wait_until

SOON = "resilience.watchdog_min=2s"
GRACE = 5  # seconds from the watchdog's limit to the end of all ranks
RATE = "300mbit"  # rate of a cable, so slow that a run does not end before the test acts
LONG = 300  # seconds after which Slurm would notice a lost node by itself; its default


def stopped_rank(place, cluster):
    """SIGSTOP of a rank under srun: exit 6, the report names rank and host, the script starts the ranks again"""
    cluster.slow_down(RATE)
    job = Job(place, "stopped", LENGTH, SOON, options=[ONE_RANK_A_NODE])
    job.reaches(40)
    host = job.nodes(cluster)[1]
    rank = cluster.processes(host, "tokamak")[0]
    others = set(trainers()) - {rank}
    os.kill(rank, signal.SIGSTOP)
    expect_end(place, job, others, host)
    job.says("resumed from")
    assert "Exited with exit code 6" in job.text(), job.story()
    complete(place, job)
    assert job.restarts() == 0, job.story()


def expect_end(place, job, ranks, host):
    """All ranks end within the watchdog's limit and its grace, and a file says who did not arrive."""
    since = time.monotonic()
    wait_until(lambda: not ranks & set(trainers()), "the ranks end", job)
    seconds = time.monotonic() - since
    (path,) = glob.glob(place.run(job.name) + "/hang-*.txt")
    with open(path) as file:
        report = file.read()
    limit = float(re.search(r"^limit: ([0-9.]+) s", report, re.M)[1])
    print(f"  ended after {seconds:.1f} s, limit {limit} s")
    assert seconds < limit + GRACE, report
    assert re.search(rf"^did not arrive: rank 1 \(on {host}\)", report, re.M), report


def cable_cut_unnoticed(place, cluster):
    """A cable is cut, in a step or in a save, and Slurm notices nothing. The ranks of both sides end by themselves, and
    the script continues with the spare. The old node's return harms nothing."""
    cluster.set_slurmd_timeout(LONG)
    cluster.slow_down(RATE)
    for moment, more in (("step", []), ("save", ["checkpoint.interval=1", "model.hidden_size=192"])):
        job = Job(place, f"cut-{moment}", LENGTH, SOON, *more, **WITH_SPARE)
        job.reaches(40)
        lost = job.nodes(cluster)[1]
        ranks, begin = set(trainers()), time.monotonic()
        while moment == "save" and not glob.glob(place.run(job.name) + "/checkpoints/step-*.tmp-*"):
            assert time.monotonic() < begin + 60
        cluster.cut(lost)
        expect_end(place, job, ranks, lost)
        job.says("starting again")
        job.says("resumed from")
        print(f"  back {time.monotonic() - begin:.1f} s after the cut")
        assert lost not in job.nodes(cluster), job.story()
        cluster.heal(lost)
        job.ends("COMPLETED", 0)
        same_bits(place, job.name, STEPS, 2, STEPS, *more[1:])
        assert job.restarts() == 0, job.story()
        all_idle(cluster)


def node_without_the_disk(place, cluster):
    """a node that does not see the others' files fails the checks and is suspected; the spare takes its place"""
    cluster.slow_down(RATE)
    run = place.run("other-disk")
    os.makedirs(run)
    subprocess.run([*cluster.enter("n2"), "mount", "-t", "tmpfs", "tmpfs", run], check=True)
    job = Job(place, "other-disk", LENGTH, **WITH_SPARE)
    job.reaches(20)
    with open(run + "/suspects.txt") as file:
        assert file.read() == "n2\n"
    assert job.nodes(cluster) == ["n1", "n3"], job.story()
    complete(place, job)
    subprocess.run([*cluster.enter("n2"), "umount", run], check=True)
    all_idle(cluster)


if __name__ == "__main__":
    run_tests([stopped_rank, node_without_the_disk, cable_cut_unnoticed], nodes=3)
