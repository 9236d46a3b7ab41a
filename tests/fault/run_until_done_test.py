"""scripts/run_until_done.sh: restarts a run under mpirun until it is done, whatever ends its ranks, to the bits of an
undisturbed run."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import ENV, MPIRUN, TOKAMAK, gathered, main  # noqa: E402
from processes import alive, children, wait_for  # noqa: E402

SCRIPT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "run_until_done.sh"))
RANKS = 2
STEPS = 400
ENDLESS = 100000
PATIENCE = 60


class Series:
    """The script at work on the run called `name`."""

    def __init__(self, place, name, *overrides, interval=20, **variables):
        self.log = place.file(name + ".log")
        command = [SCRIPT, "-n", str(RANKS), "--oversubscribe", "--bind-to", "none", "--", "train", place.config(name),
                   f"checkpoint.interval={interval}", *overrides]
        self.process = subprocess.Popen(command, stdout=open(self.log, "a"), stderr=subprocess.STDOUT,
                                        env={**ENV, "TOKAMAK": TOKAMAK, "MPIRUN": MPIRUN, **variables})

    def says(self, pattern, times=1):
        return wait_for(self.process, self.log, pattern, PATIENCE, times)

    def mpirun(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return next(int(pid) for pid in file.read().split() if command_of(pid) in ("mpirun", "mpiexec"))

    def ranks(self):
        return children(self.mpirun())

    def ends(self, code):
        found = self.process.wait(timeout=PATIENCE)
        with open(self.log) as file:
            text = file.read()
        assert found == code, f"exit {found}, not {code}\n" + "\n".join(
            line for line in text.splitlines() if "step " not in line)
        return text


def command_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def complete(place, series, name, steps=STEPS):
    text = series.ends(0)
    place.train(name + "-straight", RANKS, f"training.max_steps={steps}")
    assert gathered(place.checkpoint(name, steps)) == gathered(place.checkpoint(name + "-straight", steps)), "other weights"
    return text


def killed(place):
    """kill -9 of a rank, then of mpirun: each time it restarts by itself, says why, and ends with the right bits"""
    series = Series(place, "killed", f"training.max_steps={STEPS}")
    series.says(r"step 60/")
    os.kill(series.ranks()[1], signal.SIGKILL)
    series.says(r"code 137; starting again at step \d+")
    series.says(r"resumed from")
    series.says(r"step 200/")
    os.kill(series.mpirun(), signal.SIGKILL)
    text = complete(place, series, "killed")
    assert len(re.findall("starting again", text)) == 2, text


def stopped(place):
    """SIGTERM, SIGINT, SIGHUP or SIGUSR1 to the script: the ranks save, it ends with 75, and the next call resumes"""
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        series = Series(place, "stopped", f"training.max_steps={ENDLESS}", interval=ENDLESS)
        series.says(r"step \d+/", times=20)
        series.process.send_signal(name)
        text = series.ends(75)
        assert len(re.findall("stopped; start again", text)) == 1, text
        os.remove(series.log)  # the next start writes a log of its own
    last = place.steps("stopped")[-1]
    place.train("stopped-straight", RANKS, f"training.max_steps={ENDLESS}", "--stop-at-step", str(last), expect=75)
    assert gathered(place.checkpoint("stopped", last)) == gathered(place.checkpoint("stopped-straight", last))


def second_signal(place):
    """a second signal ends hanging ranks at once; without it they end after SAVE_SECONDS"""
    for variables, signals, code in (({}, 2, 1), ({"SAVE_SECONDS": "2"}, 1, 1)):
        series = Series(place, "hung", f"training.max_steps={ENDLESS}", **variables)
        series.says(r"step \d+/", times=20)
        ranks = series.ranks()
        os.kill(ranks[0], signal.SIGSTOP)
        for _ in range(signals):
            series.process.send_signal(signal.SIGTERM)
            series.says("the ranks save and end")
        series.ends(code)
        gone_by = time.monotonic() + 10  # mpirun has sent SIGKILL; the processes may take a moment to end
        while alive(ranks) and time.monotonic() < gone_by:
            time.sleep(0.02)
        assert not alive(ranks)
        os.remove(series.log)


def config_error(place):
    """after an error that would recur, the script ends with that exit code; it names a missing launcher"""
    text = Series(place, "config", "optimizer.lrr=1").ends(2)
    assert "starting again" not in text, text
    text = Series(place, "config", "data.seed_is_not_a_key=1").ends(2)
    assert "starting again" not in text, text
    text = Series(place, "config", MPIRUN="mpirun-of-no-package").ends(2)
    assert "there is no mpirun-of-no-package (Debian: openmpi-bin" in text, text


def gives_up(place):
    """a run whose ranks die at every start is given up after three restarts without a checkpoint"""
    series = Series(place, "idle", f"training.max_steps={ENDLESS}", interval=ENDLESS)
    for start in range(1, 5):
        series.says("weights: initialised", times=start)
        os.kill(wait_for_rank(series), signal.SIGKILL)
    text = series.ends(137)
    assert "giving up" in text and len(re.findall("weights: initialised", text)) == 4, text


def wait_for_rank(series):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            return series.ranks()[0]
        except (StopIteration, IndexError):
            time.sleep(0.02)
    raise AssertionError("no rank")


main([killed, stopped, second_signal, config_error, gives_up])
