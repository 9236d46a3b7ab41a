"""The user, Slurm or the hardware ends a run of scripts/slurm/train.sbatch, on a real Slurm with simulated nodes. Each
resumed run ends with the bits of an undisturbed run."""
import os
import signal
import subprocess
import time

from jobs import (ENDLESS, ENV, FINAL, LENGTH, ONE_RANK_A_NODE, WITH_SPARE, Job, all_idle, call_slurm, complete, named,
                  run_tests, trainers, wait_until)

def cancelled(place, _cluster):
    """scancel ends the job: the ranks save, and it does not come back"""
    job = Job(place, "cancelled", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE])
    job.reaches(40)
    call_slurm("scancel", job.id)
    job.ends("CANCELLED")
    wait_until(lambda: job.id not in call_slurm("squeue", "-h", "-o", "%i").split(), "it leaves the queue")
    assert job.restarts() == 0 and "stopped" in job.text(), job.story()


def script_stopped(place, _cluster):
    """SIGTERM to the script alone: the ranks save, and the job ends with 75, as after a request of the user"""
    job = Job(place, "told", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE])
    job.reaches(40)
    call_slurm("scancel", "--signal=TERM", "--batch", job.id)
    job.ends("FAILED", 75)
    assert job.restarts() == 0 and place.steps("told")[-1] >= 40, job.story()


def config_error(place, _cluster):
    """a config error ends the job with code 2 at its first start"""
    job = Job(place, "config", "optimizer.lrr=1", options=[ONE_RANK_A_NODE])
    job.ends("FAILED", 2)
    assert job.restarts() == 0 and "key 'optimizer.lrr'" in job.text(), job.text()


def time_limit(place, cluster):
    """SIGUSR1 comes before the time limit: the run saves, is queued again and resumes to the same bits"""
    job = Job(place, "limit", f"training.max_steps={ENDLESS}", interval=100000,
              options=[ONE_RANK_A_NODE, "--time=1", "--signal=B:USR1@45"])
    saved = int(job.says(r"checkpoint of step (\d+) committed")[0])
    resumed = job.says(r"resumed from .* \(step (\d+)")
    assert resumed == [str(saved)] and job.restarts() == 1, job.story()
    job.reaches(saved + 20)
    job.stops_with_the_right_bits(2, ENDLESS)
    all_idle(cluster)


def stop_after(place, cluster):
    """run.stop_after ends a run without a signal: it saves, is queued again and resumes to the same bits"""
    job = Job(place, "after", f"training.max_steps={ENDLESS}", "run.stop_after=15s", interval=100000,
              options=[ONE_RANK_A_NODE])
    saved = job.says(r"checkpoint of step (\d+) committed")[0]
    assert job.says(r"resumed from .* \(step (\d+)")[0] == saved and job.restarts() >= 1, job.story()
    job.stops_with_the_right_bits(2, ENDLESS)
    all_idle(cluster)


def hung_at_the_limit(place, _cluster):
    """a rank that hangs when the limit comes is killed in time for the job to be queued again"""
    job = Job(place, "hung", LENGTH, options=[ONE_RANK_A_NODE], SAVE_SECONDS="3")
    job.reaches(40)
    os.kill(named("tokamak")[0], signal.SIGSTOP)
    call_slurm("scancel", "--signal=USR1", "--batch", job.id)
    job.says("resumed from")
    assert job.restarts() == 1, job.story()
    complete(place, job)


def rank_killed(place, cluster):
    """kill -9 of a rank under srun, one rank a node: the script starts the ranks again in the same allocation"""
    job = Job(place, "killed", LENGTH, options=[ONE_RANK_A_NODE])
    job.reaches(40)
    os.kill(cluster.processes(job.nodes(cluster)[1], "tokamak")[0], signal.SIGKILL)
    killed = time.monotonic()
    job.says("resumed from")
    print(f"  back after {time.monotonic() - killed:.1f} s")
    complete(place, job)
    assert job.restarts() == 0


def planted(place, cluster):
    """words in the run's directory that bash would run if it evaluated them: after a kill -9 the job starts again and
    runs none of them"""
    marker = place.file("marker")
    os.makedirs(place.run("planted"))
    for name, text in ((".restarts", "series 0 attempt[$(touch {})]\n"), ("suspects.txt", "$(touch {})\n*\n"),
                       ("status.json", '{{"state": "failed", "code": a[$(touch {})], "incarnation": "b"}}\n')):
        with open(f"{place.run('planted')}/{name}", "w") as file:
            file.write(text.format(marker))
    job = Job(place, "planted", LENGTH, options=[ONE_RANK_A_NODE], TOKAMAK_JOB="series")
    job.reaches(40)
    os.kill(cluster.processes(job.nodes(cluster)[1], "tokamak")[0], signal.SIGKILL)
    job.says("resumed from")
    complete(place, job)
    assert not os.path.exists(marker), "a planted command was run"


def power_loss(place, cluster):
    """a node loses power: the script continues in its allocation, with the spare node"""
    job = Job(place, "power", LENGTH, **WITH_SPARE)
    job.reaches(40)
    lost = job.nodes(cluster)[1]
    cluster.power_off(lost)
    down = time.monotonic()
    job.says("resumed from")
    print(f"  back after {time.monotonic() - down:.1f} s")
    complete(place, job)
    assert job.restarts() == 0, job.story()
    cluster.power_on(lost)
    all_idle(cluster)


def power_loss_of_the_first(place, cluster):
    """the batch script's node loses power: the job is queued again, with a spare node (--no-kill) or without"""
    for name, shape in (("first", {"options": [ONE_RANK_A_NODE]}), ("first-spare", WITH_SPARE)):
        job = Job(place, name, LENGTH, **shape)
        job.reaches(40)
        lost = job.field("BatchHost")
        cluster.power_off(lost)
        job.says("resumed from")
        complete(place, job)
        assert job.restarts() == 1, job.story()
        cluster.power_on(lost)
        all_idle(cluster)


def power_loss_of_the_guards(place, cluster):
    """both nodes with guards lose power, one after the other, then the script's node: the job is queued again"""
    job = Job(place, "guards", f"training.max_steps={ENDLESS}", options=["--nodes=4", "--no-kill"], SPARES="2")
    job.reaches(40)
    first = job.field("BatchHost")
    lost = []
    for _ in range(2):
        wait_until(lambda: len(guards(cluster)) == 2, "two nodes watch the script's", job)
        lost.append([node for node in guards(cluster) if node not in job.nodes(cluster)][-1])
        cluster.power_off(lost[-1])
        wait_until(lambda: lost[-1] not in job.field("NodeList") and guards(cluster), "another node takes over", job)
    assert guards(cluster) == [node for node in job.nodes(cluster) if node != first], guards(cluster)
    lost.append(first)
    cluster.power_off(first)
    wait_until(lambda: job.restarts() == 1, "the job is queued again", job)
    for node in lost:
        cluster.power_on(node)
    job.says("resumed from")
    job.stops_with_the_right_bits(2, ENDLESS)
    all_idle(cluster)


def guards(cluster):
    """The nodes that watch the node of a batch script."""
    def watches(pid):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                return "queue_orphan_again" in file.read()
        except OSError:
            return False
    return [name for name in cluster.nodes if cluster.is_on(name) and any(map(watches, cluster.processes(name, "bash")))]


def cable_cut(place, cluster):
    """a node behind a cut cable trains on beside its successor: it cannot commit; plugging it in again harms nothing"""
    job = Job(place, "cut", f"training.max_steps={ENDLESS}", options=["--nodes=1", "--ntasks-per-node=2"])
    job.reaches(40)
    old = job.nodes(cluster)[0]
    leftovers = cluster.processes(old, "tokamak")
    cluster.cut(old)
    job.says("taking over")
    resumed = int(job.says(r"resumed from .* \(step (\d+)")[0])
    assert job.restarts() == 1 and leftovers, job.story()
    wait_until(lambda: not set(leftovers) & set(named("tokamak")), "the old ranks give up, at their next save", job)
    job.says(r"taken over")
    cluster.heal(old)
    assert resumed > 0
    job.stops_with_the_right_bits(2, ENDLESS)
    all_idle(cluster)


def preempted(place, cluster):
    """preemption with GraceTime: the ranks save, the script waits, and Slurm queues the job again"""
    job = Job(place, "low", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE, "--partition=low"])
    job.reaches(40)
    other = subprocess.Popen(["srun", "--partition=high", f"--nodes={len(cluster.addresses)}", "--mpi=none", "--exclusive",
                              "true"], env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    job.says("stopped; start again")
    assert other.wait(timeout=120) == 0
    resumed = int(job.says(r"resumed from .* \(step (\d+)")[0])
    assert job.restarts() == 1 and resumed >= 40, job.story()
    job.reaches(resumed + 20)
    job.stops_with_the_right_bits(2, ENDLESS)


def chain(place, _cluster):
    """requeueing is forbidden: the next job of the chain continues the run, and the run's end cancels the other jobs"""
    options = [ONE_RANK_A_NODE, "--no-requeue", "--job-name=chain", "--dependency=singleton"]
    first, second, third = (Job(place, "chain", LENGTH, options=options, CHAIN="1") for _ in range(3))
    first.reaches(60)
    call_slurm("scancel", "--signal=USR1", "--batch", first.id)
    first.says("stopped; start again")
    second.says("resumed from")
    complete(place, second)
    third.ends("CANCELLED")
    assert first.field("ExitCode") == "75:0" and third.text() == "", third.text()


def chain_over_a_cut(place, cluster):
    """the next job of a chain takes over from ranks that the last one has left behind a cut cable"""
    options = ["--nodes=1", "--ntasks-per-node=2", "--no-requeue", "--job-name=cut-chain", "--dependency=singleton"]
    first, second = (Job(place, "cut-chain", f"training.max_steps={ENDLESS}", options=options, CHAIN="1") for _ in range(2))
    first.reaches(40)
    old = first.nodes(cluster)[0]
    cluster.cut(old)
    second.says("taking over")
    second.says("resumed from")
    cluster.heal(old)
    second.reaches(second.steps_done() + 40)
    second.stops_with_the_right_bits(2, ENDLESS)
    all_idle(cluster)


def daemons_restart(place, cluster):
    """slurmctld and a slurmd that restart harm nothing"""
    job = Job(place, "daemons", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE])
    job.reaches(40)
    cluster.restart_slurmctld()
    node = job.nodes(cluster)[1]
    cluster.kill_slurmd(node)
    cluster.start_slurmd(node)
    wait_until(lambda: job.field("JobState") != "", "the controller answers")
    job.reaches(job.steps_done() + 100)
    assert "resumed" not in job.text() and job.restarts() == 0, job.story()
    job.stops_with_the_right_bits(2, ENDLESS)


def no_progress(place, _cluster):
    """a run whose ranks die at every start is given up after three restarts, counted over requeues"""
    job = Job(place, "idle", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE], interval=ENDLESS)
    for start in range(1, 3):
        kill_a_rank(job)
        job.says("code 137; starting again", times=start)
    call_slurm("scontrol", "requeue", job.id)
    wait_until(lambda: job.restarts() == 1, "requeued", job)
    while job.field("JobState") not in FINAL:  # Slurm may fail the first start after a requeue
        if ranks := trainers():
            os.kill(ranks[0], signal.SIGKILL)
        time.sleep(0.1)
    job.ends("FAILED")
    with open(place.run("idle") + "/.restarts") as file:
        kept = file.read().split()
    assert kept == [job.id, "0", "4"] and "giving up" in job.text(), (kept, job.field("ExitCode"), job.story())


def kill_a_rank(job):
    wait_until(lambda: len(trainers()) == 2, "two ranks", job)
    os.kill(trainers()[0], signal.SIGKILL)


def second_step(place, _cluster):
    """a second srun of one job on the directory of the first is refused"""
    job = Job(place, "twice", f"training.max_steps={ENDLESS}", options=[ONE_RANK_A_NODE])
    job.reaches(40)
    second = subprocess.run(["srun", "--jobid", job.id, "--overlap", "--mpi=pmix", "--nodes=2", "--ntasks=2",
                             os.environ["TOKAMAK"], "train", place.config("twice"), f"training.max_steps={ENDLESS}"],
                            env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120)
    try:
        assert second.returncode == 4 and "another run is writing" in second.stdout, second.stdout[-3000:]
        steps = job.steps_done()
        job.reaches(steps + 40)
    finally:
        call_slurm("scancel", job.id)
        job.ends("CANCELLED")


def bad_node(place, cluster):
    """a node that fails the checks before training does not train: the spare takes its place"""
    program = place.file("checked")
    with open(program, "w", opener=lambda path, flags: os.open(path, flags, 0o755)) as out:
        out.write(CHECKED.format(program=os.environ["TOKAMAK"], run=place.run("bad")))
    job = Job(place, "bad", LENGTH, "run.name=bad", TOKAMAK=program, **WITH_SPARE)
    job.reaches(20)
    assert job.nodes(cluster) == ["n2", "n3"], job.story()
    complete(place, job)


# A program whose `doctor` reports n1 as bad. Its only arguments are a config and overrides.
CHECKED = """\
#!/bin/bash
case $1 in
  --help) {program} --help && echo '  doctor    checks' ;;
  doctor)
    [[ $# -eq 6 && $6 == run.name=bad ]] || exit 2
    [[ $(hostname) == n1 ]] || exit 0
    echo n1 >>{run}/suspects.txt && exit 5 ;;
  *) exec {program} "$@" ;;
esac
"""

if __name__ == "__main__":
    run_tests([cancelled, script_stopped, config_error, time_limit, stop_after, hung_at_the_limit, rank_killed, planted, power_loss,
               power_loss_of_the_first, power_loss_of_the_guards, cable_cut, preempted, chain, chain_over_a_cut, daemons_restart, no_progress,
               second_step, bad_node], nodes=4)
