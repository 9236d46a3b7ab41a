"""SIGTERM, SIGINT or SIGUSR1 to any one rank: all ranks agree, save one checkpoint and exit with 75. Ranks that still
wait for a missing rank exit with 75 at once, and nothing has begun."""
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", part) for part in ("system", "support")]
from harness import ENV, TOKAMAK, main, mpirun  # noqa: E402
from processes import children, wait_for  # noqa: E402
from run_ranks import free_port  # noqa: E402


def one_rank(place):
    """each signal, to the first, the middle and the last of three ranks"""
    for number, (which, name) in enumerate([(signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT"),
                                            (signal.SIGUSR1, "SIGUSR1")]):
        run = f"signal{number}"
        log = open(place.file(run + ".log"), "w+")
        process = subprocess.Popen(mpirun(3, "train", place.config(run), "training.max_steps=100000"), env=ENV,
                                   stdout=log, stderr=log)
        wait_for(process, log.name, r"step \d+/")
        os.kill(sorted(children(process.pid))[number], which)
        assert process.wait(timeout=20) == 75, (name, process.returncode, open(log.name).read())
        text = open(log.name).read()
        assert f"signal {int(which)}" in text, text
        steps = place.steps(run)
        assert len(steps) == 1, (name, steps)
        print(f"  {name} to rank {number}: saved at step {steps[0]}, exit 75")


def while_ranks_are_missing(place):
    """ranks over TCP that wait for the last one, or for rank 0; a signal to all that are there"""
    for name, there in (("last", (0, 1)), ("first", (1, 2))):
        where = dict(ENV, WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
        logs = [open(place.file(f"{name}{rank}.log"), "w+") for rank in there]
        ranks = [subprocess.Popen([TOKAMAK, "train", place.config(name)], env=dict(where, RANK=str(rank)), stdout=log, stderr=log)
                 for rank, log in zip(there, logs)]
        time.sleep(2)  # until the ranks wait, which nothing in the log shows
        assert all(rank.poll() is None for rank in ranks)
        sent = time.monotonic()
        for rank in ranks:
            rank.send_signal(signal.SIGTERM)
        codes = [rank.wait(timeout=20) for rank in ranks]
        seconds = time.monotonic() - sent
        texts = [open(log.name).read() for log in logs]
        assert codes == [75, 75] and seconds < 3, (codes, seconds, texts)
        assert all("stopped by a signal while it waited for the other ranks" in text for text in texts), texts
        assert not os.path.exists(place.run(name)), os.listdir(place.run(name))
        print(f"  without the {name} rank: ended after {seconds:.1f} s, exit 75")


main([one_rank, while_ranks_are_missing])
