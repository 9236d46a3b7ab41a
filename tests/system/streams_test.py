"""A run outlives its outputs: a pipe without a reader, a closed terminal, closed descriptors, cron's environment,
mpirun's pipes. It saves and ends with 75, or continues training. The final weights are those of an undisturbed run, and
train.log has every line. Cases with a terminal need tmux; without it they are skipped by name."""
import json
import os
import signal
import subprocess
import time

from harness import ENV, TOKAMAK, call, gathered, main, mpirun
from terminal import Terminal, has_tmux

STEPS = 400  # long enough to be interrupted
LIMIT = [f"training.max_steps={STEPS}", "metrics.log_interval=10", "metrics.tensor_statistics=0"]


def command(place, name):
    return [TOKAMAK, "train", place.config(name), *LIMIT]


def status(place, name):
    try:
        with open(place.run(name) + "/status.json") as file:
            return json.load(file)
    except OSError:
        return {"state": "none"}


def wait_until(holds, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def log_of(place, name):
    with open(place.run(name) + "/train.log") as file:
        return file.read()


def logs_steps(place, name):
    return os.path.exists(place.run(name) + "/train.log") and " step 20/" in log_of(place, name)


def same_as_undisturbed(place, name, ranks=0):
    """Resumes the run if it was stopped, to the end, and compares it with an undisturbed run."""
    if status(place, name)["state"] == "stopped":
        assert 0 < status(place, name)["step"] < STEPS, status(place, name)
        done = call(mpirun(ranks, *command(place, name)[1:]) if ranks else command(place, name))
        assert done.returncode == 0, done.stdout
    assert status(place, name)["state"] == "done", status(place, name)
    whole = "two_ranks" if ranks else "undisturbed"
    assert gathered(place.checkpoint(name, STEPS)) == gathered(place.checkpoint(whole, STEPS)), f"{name}: other weights"
    steps = [line for line in log_of(place, name).splitlines() if f"/{STEPS} " in line and " step " in line]
    assert f" step {STEPS}/{STEPS} " in steps[-1], steps[-1]


def undisturbed(place):
    """the runs to compare with; train.log has the lines of standard error, with the date"""
    done = call(command(place, "undisturbed"))
    assert done.returncode == 0, done.stdout
    printed = [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line[2:3] == ":"]
    logged = [line.split(" ", 2)[2] for line in log_of(place, "undisturbed").splitlines() if line[:2] == "20"]
    assert printed == logged, (printed, logged)
    assert call(mpirun(2, *command(place, "two_ranks")[1:])).returncode == 0


def broken_pipe(place):
    """`2>&1 | head -1` trains on to the end, and its log is whole"""
    script = f"set -o pipefail; {' '.join(command(place, 'head'))} 2>&1 | head -1"
    assert subprocess.run(["bash", "-c", script], env=ENV, capture_output=True).returncode == 0
    same_as_undisturbed(place, "head")


def ctrl_c_behind_tee(place):
    """Ctrl-C with `| tee`, also of mpirun: tee ends first; the run is saved and ends with 75"""
    for name, ranks, start in (("tee", 0, command(place, "tee")), ("ranks_tee", 2, mpirun(2, *command(place, "ranks_tee")[1:]))):
        with Terminal() as terminal:
            terminal.enter(f"env -u OMPI_MCA_odls_base_sigkill_timeout {' '.join(start)} 2>&1 | tee {place.file('copy')}")
            wait_until(lambda: logs_steps(place, name), "no step")
            terminal.type("C-c")
            wait_until(lambda: status(place, name)["state"] != "running", "the run goes on after Ctrl-C")
        assert status(place, name)["code"] == 75, status(place, name)
        same_as_undisturbed(place, name, ranks)


def closed_terminal(place):
    """a closed terminal sends SIGHUP: the run saves and ends with 75; under nohup it trains on"""
    for name, before, state in (("hangup", "", "stopped"), ("nohup", "nohup ", "done")):
        with Terminal() as terminal:
            terminal.enter(f"cd {place.path}; {before}{' '.join(command(place, name))}")  # nohup.out lies there
            wait_until(lambda: logs_steps(place, name), "no step")
        wait_until(lambda: status(place, name)["state"] != "running", name + ": the run neither saved nor ended")
        assert status(place, name)["state"] == state, (name, status(place, name))
        same_as_undisturbed(place, name)


def closed_terminal_of_mpirun(place):
    """a closed terminal over mpirun, which gives its ranks a second: they save"""
    with Terminal() as terminal:
        terminal.enter("env -u OMPI_MCA_odls_base_sigkill_timeout " + " ".join(mpirun(2, *command(place, "ranks")[1:])))
        wait_until(lambda: logs_steps(place, "ranks"), "no step")
    wait_until(lambda: status(place, "ranks")["state"] != "running", "the ranks neither saved nor ended")
    assert status(place, "ranks")["code"] == 75, status(place, "ranks")
    same_as_undisturbed(place, "ranks", ranks=2)


def closed_descriptors(place):
    """without standard input, output or error, or all: no opened file gets their descriptors; train.log has the log"""
    for number, closed in enumerate(("<&-", ">&-", "2>&-", "<&- >&- 2>&-")):
        name = f"closed{number}"
        done = subprocess.run(["bash", "-c", f"exec {' '.join(command(place, name))} {closed}"], env=ENV, capture_output=True)
        assert done.returncode == 0, (closed, done.returncode, done.stderr)
        with open(place.run(name) + "/checkpoints/.lock") as file:
            assert "info" not in file.read(), closed
        same_as_undisturbed(place, name)


def as_cron_starts_it(place):
    """cron's environment: no HOME of a login, no TERM, no locale, /dev/null as input"""
    environment = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "root", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command(place, "cron"), env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr
    same_as_undisturbed(place, "cron")


def ignored_hangup(place):
    """a process started with SIGHUP ignored ignores it; any other process saves at SIGHUP"""
    for name, ignore, state in (("ignored", True, "done"), ("heard", False, "stopped")):
        def prepare(ignore=ignore):
            signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore else signal.SIG_DFL)
        process = subprocess.Popen(command(place, name), env=ENV, stderr=subprocess.DEVNULL, preexec_fn=prepare)
        wait_until(lambda: logs_steps(place, name), "no step")
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=120) == {"done": 0, "stopped": 75}[state], name
        assert status(place, name)["state"] == state, (name, status(place, name))
        same_as_undisturbed(place, name)


def rotation(place):
    """a log that reaches 32 MiB is renamed before the next line; two old logs are kept, and no line is lost"""
    os.makedirs(place.run("rotated"))
    path = place.run("rotated") + "/train.log"
    for suffix, first in (("", "x"), (".1", "y"), (".2", "z")):
        with open(path + suffix, "w") as file:
            file.write(first + "\n" + "-" * ((32 << 20) - 100) + "\n")
    assert call([*command(place, "rotated"), "training.max_steps=20"]).returncode == 0
    lines = []
    for suffix in (".2", ".1", ""):
        with open(path + suffix) as file:
            lines += [line for line in file.read().split("\n") if not line.startswith("-")]
    assert lines[0] == "y" and "x" in lines and "z" not in lines, lines[:3]
    assert os.path.getsize(path) < 1 << 20 and any(" step 20/20 " in line for line in lines), lines[-3:]


TERMINAL = [ctrl_c_behind_tee, closed_terminal, closed_terminal_of_mpirun]
if not has_tmux():
    print("left out, no tmux:", ", ".join(case.__name__ for case in TERMINAL))
    TERMINAL = []
main([undisturbed, broken_pipe, *TERMINAL, closed_descriptors, as_cron_starts_it, ignored_hangup, rotation])
