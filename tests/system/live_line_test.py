"""The live last line of `tokamak train` in a real terminal (tmux). It is redrawn beneath the log's lines, which stay
whole. It is gone at the end, however the run ends. In the background, or if standard error is not a terminal, there is
no such line. Without tmux exits 77, which ctest shows as skipped."""
import re
import subprocess
import sys
from pathlib import Path

from harness import ENV, TOKAMAK, main, mpirun
from terminal import Terminal, has_tmux

LIVE = r"^\[=*>? *\] +[\d.]+%  step \d+/\d+"
LOG_LINE = r"(\d\d:\d\d:\d\d (info|warning|error) |ready: |exit code |\S+ +\S+ +[\d.]+ \w+$|  )"
SLOW = ("training.max_steps=1000000", "metrics.log_interval=20")


def lines_of(screen):
    return [line for line in screen.rstrip("\n").split("\n") if line]


def begin(terminal, *command):
    terminal.enter(" ".join(command) + "; echo 'exit code' $?")


def expect_clean(screen, last):
    """No part of the live line is left, and the log's last line is the one that is expected."""
    assert not re.search(r"\[=*> *\]|\d+/\d+  [\d.]+ steps/s", screen), screen
    lines = lines_of(screen)
    at = max(i for i, line in enumerate(lines) if line.startswith("exit code"))
    assert re.search(last, lines[at - 1]), lines[max(0, at - 5):at + 1]


def redrawn(place):
    """the line is the last one, once, with pace and ETA, under whole log lines that scroll; SIGINT removes it"""
    config = place.config("redrawn")
    with Terminal(200, 30) as terminal:
        begin(terminal, TOKAMAK, "train", config, *SLOW)
        terminal.wait_for(LIVE + r"  [\d.]+ steps/s  eta \d+:\d\d\S*$")
        terminal.wait_for(r"info step 200/")
        for _ in range(20):
            lines = lines_of(terminal.screen())
            found = [i for i, line in enumerate(lines) if re.search(LIVE, line)]
            assert found == [len(lines) - 1] or found == [], lines  # the line is absent for a moment when it is redrawn
        terminal.type("C-c")
        screen = terminal.wait_for("^exit code 75$", history=True)
        expect_clean(screen, "stopped; start again to resume")
        steps = [int(step) for step in re.findall(r"^\d\d:\d\d:\d\d info step (\d+)/1000000 ", screen, re.M)]
        assert steps[:10] == list(range(20, 220, 20)), steps


def narrow(place):
    """in a terminal that is narrower than the line, it is cut and never wraps"""
    with Terminal(30, 30) as terminal:
        begin(terminal, TOKAMAK, "train", place.config("narrow"), *SLOW)
        terminal.wait_for(r"info step 200/")
        terminal.wait_for(r"^\[> +\]$")
        terminal.type("C-c")
        screen = terminal.wait_for("^exit code 75$", history=True)
        assert not re.search(r"^\[>", screen, re.M), screen


def whole_log(place):
    """a terminal has the log lines that the same run prints to a pipe; the pipe gets no live line or escape sequence"""
    wanted = ("training.max_steps=40", "training.validation_interval=10", "metrics.log_interval=5")
    def times_removed(text):  # and measured values, which differ between runs
        return [re.sub(r"[\d.]+( [KMG]iB|[KM]? tokens/s|%| s\b)|\b\d+:\d\d(:\d\d)?\b|runs/\w+|[\d.]+ [KMGT]?FLOP/s", "#", line).strip()
                for line in text.replace("\r", "").split("\n")
                if re.match(r"\d\d:\d\d:\d\d ", line) and "MFU is above" not in line]
    done = subprocess.run([TOKAMAK, "train", place.config("piped"), *wanted], env=ENV, text=True, capture_output=True)
    assert done.returncode == 0 and done.stdout == "", done
    assert "\r" not in done.stderr and "\x1b" not in done.stderr and "[=" not in done.stderr, done.stderr
    with Terminal(400, 60) as terminal:
        begin(terminal, TOKAMAK, "train", place.config("shown"), *wanted)
        screen = terminal.wait_for("^exit code 0$", history=True)
    expect_clean(screen, "info done$")
    assert times_removed(screen) == times_removed(done.stderr), (times_removed(screen), times_removed(done.stderr))


def ends(place):
    """an error in the middle of training leaves nothing of the line"""
    with Terminal(200, 60) as terminal:
        begin(terminal, TOKAMAK, "train", place.config("diverges"), "training.max_steps=400", "optimizer.lr=1e30",
              "resilience.max_bad_steps=30")
        screen = terminal.wait_for("^exit code 7$", history=True)
        expect_clean(screen, "hint:|error")


def planning(place):
    """plan --gpu tells how far it is; its table is all that stays"""
    config = Path(__file__).resolve().parents[2] / "configs/llama-8b.yaml"
    with Terminal(200, 60) as terminal:
        begin(terminal, TOKAMAK, "plan", str(config), "--ranks", "64", "--gpu", "h100")
        terminal.wait_for(r"^predicting steps of 64 rank\(s\) on h100: [1-9]\d* of \d+ ways to shard and recompute tried$")
        screen = terminal.wait_for("^exit code 0$", history=True)
    assert "predicting steps" not in screen and "<- recommended" in screen, screen


def elsewhere(place):
    """in the background, under mpirun, with standard error in a file, and on a dumb terminal: no live line"""
    limits = ("training.max_steps=60", "metrics.log_interval=20")
    with Terminal(200, 60) as terminal:
        for name, before, after in (("background", "", "& wait $!"), ("dumb", "TERM=dumb", ""), ("file", "", f"2>{place.file('log')}")):
            begin(terminal, before, TOKAMAK, "train", place.config(name), *limits, after)
            screen = terminal.wait_for(r"^exit code 0$", history=True)
            assert "[=" not in screen and "[>" not in screen, screen
            terminal.enter("clear; tput E3 2>/dev/null")
            terminal.tmux("clear-history")
            terminal.wait_for(r"\Aready:")
        begin(terminal, *mpirun(2, "train", place.config("ranks"), *limits))
        screen = terminal.wait_for(r"^exit code 0$", history=True)
        assert "info [0] done" in screen and "[=" not in screen and "[>" not in screen, screen
    with open(place.file("log")) as log:
        text = log.read()
    assert "step 60/60" in text and "\r" not in text and "\x1b" not in text, text


if not has_tmux():
    print("SKIPPED: no tmux (scripts/install_deps.sh test)")
    sys.exit(77)
main([redrawn, narrow, whole_log, ends, planning, elsewhere])
