"""Ranks started by environment variables, without mpirun, compute the same bits and end together."""
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import run_ranks  # noqa: E402
from harness import ENV, TOKAMAK, call, gathered, main  # noqa: E402

RANKS = 4


def start(place, name, *overrides):
    """The processes and the path of their common log."""
    log = open(place.file(name + ".log"), "w+")
    command = [TOKAMAK, "train", place.config(name), *overrides]
    return run_ranks.start(RANKS, command, ENV, stdout=log, stderr=log), log.name


def read(path):
    with open(path) as file:
        return file.read()


def same_bits(place):
    """4 ranks over TCP have the losses and weights of 4 under mpirun, to the bit; in both dtypes, with accumulation"""
    for precision in ("f32", "bf16"):
        overrides = ("training.max_steps=12", f"precision.compute={precision}", "training.micro_batch_size=1",
                     "checkpoint.interval=12")
        place.train("mpi-" + precision, RANKS, *overrides)
        processes, log = start(place, "tcp-" + precision, *overrides)
        codes = run_ranks.wait(processes, timeout=240)
        assert codes == [0] * RANKS, (codes, read(log))
        mpi, tcp = place.records("mpi-" + precision), place.records("tcp-" + precision)
        assert len(mpi) == 12 and mpi == tcp, (mpi, tcp)
        weights = [gathered(place.checkpoint(kind + precision, 12)) for kind in ("mpi-", "tcp-")]
        assert weights[0] == weights[1] and weights[0], "the weights differ"


def killed(place):
    """kill -9 of one rank in training: the others end within seconds with exit code 6; the log, the last event and
    status.json name the rank"""
    for victim in (0, 1, 3):
        name = f"killed{victim}"
        processes, log = start(place, name, "training.max_steps=1000000")
        try:
            deadline = time.monotonic() + 60
            while not re.search(r"step \d+/", read(log)):
                assert time.monotonic() < deadline and all(p.poll() is None for p in processes), read(log)
                time.sleep(0.02)
            processes[victim].send_signal(signal.SIGKILL)
            begin = time.monotonic()
        finally:
            codes = run_ranks.wait(processes)
        seconds = time.monotonic() - begin
        expected = [-signal.SIGKILL if rank == victim else 6 for rank in range(RANKS)]
        assert codes == expected, (codes, read(log))
        assert f"rank {victim} (on " in read(log) and "without disconnecting" in read(log), read(log)
        assert seconds < 5, seconds
        with open(place.run(name) + "/status.json") as file:
            status = json.load(file)
        with open(place.run(name) + "/metrics.jsonl") as file:
            records = [json.loads(line) for line in file]
        assert status["state"] == "failed" and status["code"] == 6 and f"rank {victim} (on " in status["cause"], status
        ends = [record for record in records if record.get("event") == "end"]
        assert len(ends) == 1 and records[-1] == ends[0] and ends[0]["exit_code"] == 6, ends
        assert ends[0]["detail"] == status["cause"] and ends[0]["step"] == status["step"] > 0, (ends, status)
        assert not [entry for entry in os.listdir(place.run(name)) if entry.startswith(".end-")]
        print(f"  rank {victim}: all gone after {seconds:.2f} s")


def signalled(place):
    """SIGTERM to one rank: all save and end with exit code 75"""
    processes, log = start(place, "signalled", "training.max_steps=1000000")
    try:
        deadline = time.monotonic() + 60
        while not re.search(r"step \d+/", read(log)):
            assert time.monotonic() < deadline, read(log)
            time.sleep(0.02)
        processes[2].terminate()
    finally:
        codes = run_ranks.wait(processes)
    assert codes == [75] * RANKS, (codes, read(log))
    assert place.steps("signalled"), "nothing was saved"


def shared_error(place):
    """an error on all ranks is printed once, and all end with its code"""
    processes, log = start(place, "wrong", "model.hidden_size=0")
    codes = run_ranks.wait(processes)
    assert codes == [2] * RANKS, (codes, read(log))
    assert read(log).count(" error ") == 1 and "model.hidden_size" in read(log), read(log)


def wrong_variables(place):
    """only some of the variables are set: exit 2 names them, and nothing is trained"""
    config = place.config("halves")
    for more, words in (({"RANK": "0"}, ["WORLD_SIZE is not set"]),
                        ({"RANK": "4", "WORLD_SIZE": "4"}, ["RANK is 4", "0 to 3"]),
                        ({"RANK": "0", "WORLD_SIZE": "2"}, ["MASTER_ADDR is not set"]),
                        ({"SLURM_STEP_NUM_TASKS": "2"}, ["SLURM_STEP_NUM_TASKS is 2", "SLURM_PROCID is not set"])):
        done = call([TOKAMAK, "train", config], env_more=more)
        assert done.returncode == 2 and all(word in done.stdout for word in words), (more, done.stdout)
    assert not os.path.exists(place.run("halves"))


def alone_in_a_job(place):
    """in a Slurm batch script, outside any step, the program runs on one rank for any number of tasks"""
    job = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0",
           "SLURM_JOB_NODELIST": "n[1-2]"}
    done = call([TOKAMAK, "train", place.config("job"), "training.max_steps=2"], env_more=job, timeout=60)
    assert done.returncode == 0, done.stdout


main([same_bits, killed, signalled, shared_error, wrong_variables, alone_in_a_job])
