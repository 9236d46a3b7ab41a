"""The program on two nodes of a real Slurm, started in each way that Slurm knows: srun with PMIx, srun without, and
mpirun in a batch script. CPU backend. Exits with 77 (skipped) without Slurm or the right to make namespaces."""
import json
import os
import re
import signal
import subprocess
import time

from slurm_cluster import Cluster, enter_or_skip

if __name__ == "__main__":
    enter_or_skip()

from harness import ENV, MPIRUN, TOKAMAK, call, gathered, main  # noqa: E402

STEPS = 3
LONG = 200  # steps, enough to be interrupted
SHAPE = ["-N2", "--ntasks-per-node=2"]
OVERRIDES = [f"training.max_steps={STEPS}", "checkpoint.interval=3"]
cluster = None


def up(place):
    """two nodes come up"""
    global cluster
    cluster = Cluster(place.file("slurm"), nodes=2)
    ENV.update(cluster.env)
    ENV["PATH"] = os.environ["PATH"]


def expect_success(done):
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}"
    print("  " + "\n  ".join(line for line in done.stdout.splitlines() if re.search(r"step \d+/|done|error", line)))


def srun(place, name, mpi, **environment):
    expect_success(call(["srun", *SHAPE, "--mpi=" + mpi, TOKAMAK, "train", place.config(name), *OVERRIDES], environment,
                        timeout=120))


def with_pmix(place):
    """srun --mpi=pmix: four ranks on two nodes train, through MPI"""
    srun(place, "pmix", "pmix", MASTER_ADDR="127.0.0.1")  # by which TCP would not find rank 0


def without_pmix(place):
    """srun --mpi=none: four ranks train over TCP, to the bits of with_pmix"""
    srun(place, "none", "none")
    same_as_with_pmix(place, "none")


def batch(place):
    """sbatch: mpirun and srun without PMIx train to the same bits; a command without launcher runs on one rank"""
    arguments = " ".join(OVERRIDES)
    script = place.file("job.sh")
    with open(script, "w") as out:
        out.write(f"""#!/bin/bash
set -e
{TOKAMAK} train {place.config("alone")} training.max_steps=1 checkpoint.interval=1
{TOKAMAK} checkpoint verify {place.run("alone")}/checkpoints
{MPIRUN} {TOKAMAK} train {place.config("mpirun")} {arguments}
srun --mpi=none {TOKAMAK} train {place.config("step")} {arguments}
""")
    log = place.file("job.out")
    done = call(["sbatch", "--wait", *SHAPE, "--output", log, script], timeout=240)
    with open(log) as file:
        done.stdout += file.read()
    expect_success(done)
    same_as_with_pmix(place, "mpirun")
    same_as_with_pmix(place, "step")
    assert len(place.records("alone")) == 1


def same_as_with_pmix(place, name):
    assert place.records(name) == place.records("pmix") and len(place.records(name)) == STEPS
    assert gathered(place.checkpoint(name, STEPS)) == gathered(place.checkpoint("pmix", STEPS)), "the weights differ"


def pipes(place):
    """Pipes behind srun. With `| head -1` a run continues to its end. With `| tee` it survives a Ctrl-C, which srun
    does not forward. `scancel --signal=TERM` saves, and the exit code is 75. The bits are the same."""
    def start(name, reader):
        command = ["srun", *SHAPE, "--mpi=none", TOKAMAK, "train", place.config(name), f"training.max_steps={LONG}",
                   "checkpoint.interval=1000", "metrics.log_interval=10"]
        script = f"set -o pipefail; {' '.join(command)} 2>&1 | {reader}"
        return subprocess.Popen(["bash", "-c", script], env=ENV, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def logged(name, step):
        log = place.run(name) + "/train.log"
        return os.path.exists(log) and f" step {step}/" in read(log)

    with start("head", "head -1") as process:
        assert "info" in process.stdout.read() and process.wait(timeout=120) == 0, process.returncode
    assert status(place, "head") == ("done", 0), status(place, "head")
    with start("tee", f"tee {place.file('tee.log')}") as process:
        cluster.wait_until(lambda: logged("tee", 20), "step 20", 60)
        os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C in a terminal, which goes to bash, tee and srun
        cluster.wait_until(lambda: logged("tee", 50), "step 50, after tee has ended", 60)
        call(["scancel", "--signal=TERM", "--user=root"])
        process.stdout.read()
    cluster.wait_until(lambda: not ranks(), "the end of all ranks", 30)
    assert status(place, "tee") == ("stopped", 75), (status(place, "tee"), read(place.run("tee") + "/train.log"))
    with start("tee", "cat") as process:
        output = process.stdout.read()
    assert process.returncode == 0 and "resumed from" in output, output
    assert gathered(place.checkpoint("tee", LONG)) == gathered(place.checkpoint("head", LONG)), "the weights differ"


def status(place, name):
    with open(place.run(name) + "/status.json") as file:
        found = json.load(file)
    return found["state"], found["code"]


def killed(place):
    """kill -9 of a rank on the second node, without PMIx: every rank is gone within seconds, and the log names it"""
    log = place.file("killed.log")
    with open(log, "w") as out:
        process = subprocess.Popen(["srun", *SHAPE, "--mpi=none", TOKAMAK, "train", place.config("killed"),
                                    "training.max_steps=1000000"], env=ENV, stdout=out, stderr=out)
    cluster.wait_until(lambda: "step 1/" in read(log), "the first step", 60)
    victim = next(pid for pid in ranks() if environment(pid)["SLURM_PROCID"] == "3")
    os.kill(victim, 9)
    begin = time.monotonic()
    cluster.wait_until(lambda: not ranks(), "the end of all ranks", 10)
    seconds = time.monotonic() - begin
    assert process.wait(timeout=30) != 0
    assert "rank 3 (on n2) is gone without disconnecting" in read(log), read(log)
    print(f"  all gone after {seconds:.2f} s")


def ranks():
    """Process ids of the training ranks on all nodes; their processes are visible from here."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                stat = file.read()
            if "(tokamak)" in stat and stat.rsplit(")", 1)[1].split()[0] != "Z":
                found.append(int(entry))
        except OSError:
            pass
    return found


def environment(pid):
    with open(f"/proc/{pid}/environ") as file:
        return dict(entry.split("=", 1) for entry in file.read().split("\0") if "=" in entry)


def read(path):
    with open(path) as file:
        return file.read()


if __name__ == "__main__":
    main([up, with_pmix, without_pmix, batch, pipes, killed])
