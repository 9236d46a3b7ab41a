"""SIGTERM, SIGINT or SIGUSR1 to any one rank: all ranks agree, save one checkpoint and exit with 75."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import ENV, main, mpirun  # noqa: E402
from processes import children, wait_for  # noqa: E402


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


main([one_rank])
