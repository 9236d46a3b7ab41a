"""`tokamak watch` in a real terminal (tmux), on real runs that train, end, are killed and start again. Terminals have
any size; metrics.jsonl is cut, replaced or missing. It never crashes, and restores the terminal. Without tmux exits 77,
which ctest shows as skipped."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from harness import ENV, TOKAMAK, call, main, tokamak
from terminal import Terminal, has_tmux

DOTS = re.compile("[\u2801-\u28ff]")
ENDLESS = ("training.max_steps=1000000", "training.validation_interval=20", "checkpoint.interval=100")


def begin_training(place, name, *overrides):
    """Starts a run in the background and waits for its first records. The caller ends it."""
    process = subprocess.Popen([TOKAMAK, "train", place.config(name), *overrides], env=ENV, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    return process


def watch(terminal, directory):
    terminal.enter(f"{TOKAMAK} watch {directory} --interval 0.2; echo 'exit code' $?")


def expect_restored(terminal, code=0):
    terminal.wait_for(rf"^exit code {code}$")
    assert not terminal.is_alternate() and terminal.has_cursor()
    terminal.enter("echo typed keys are shown")
    terminal.wait_for(r"^ready: echo typed keys are shown$")


def live(place):
    """A run that trains: state, progress, ETA and curves; log axes and zoom; terminals from tiny to wide. SIGTERM ends
    the run, and the end stays on the screen. A second start continues it and is killed. Its metrics.jsonl is emptied
    and a third start continues. q restores the terminal."""
    run = place.run("live")
    os.makedirs(run + "/checkpoints")  # like a run that is about to begin
    with Terminal() as terminal:
        watch(terminal, run)
        terminal.wait_for("no records yet  no metrics.jsonl yet")
        training = begin_training(place, "live", *ENDLESS)
        try:
            screen = terminal.wait_for(r"validation [0-9.]+ (?s:.*)step \d+ saved", history=False)
            assert re.search(r"live  running$", screen, re.M), screen
            assert re.search(r"eta \d+:\d\d\S*  step \d+ of 1000000", screen), screen
            assert re.search(r"^start 1, began 20\d\d-\d\d-\d\d [0-9:]* UTC  1 rank\(s\)", screen, re.M), screen
            threads = {Path(task, "comm").read_text().strip() for task in Path(f"/proc/{training.pid}/task").iterdir()}
            assert {"metric files", "watchdog"} <= threads, threads  # as `top -H` shows them
            for part in ("loss ", "learning rate ", "gradient norm ", "tokens/s ", "memory used ", "ETTR ", "training begins"):
                assert part in screen, (part, screen)
            assert len(DOTS.findall(screen)) > 50, screen
            terminal.type("l", "+")
            terminal.wait_for(r"l axes: log   \+ - steps: the last 1/2")
            for columns, rows in ((1, 1), (3, 2), (20, 5), (40, 8), (300, 80), (60, 20)):
                terminal.resize(columns, rows)
                if columns >= 20:
                    terminal.wait_for(r"running")
            screen = terminal.wait_for("steps: the last 1/2")  # of 60 columns, with charts
            assert len(DOTS.findall(screen)) > 20 and max(map(len, screen.split("\n"))) <= 60, screen
            terminal.resize(120, 40)
            training.send_signal(signal.SIGTERM)
            assert training.wait() == 75
        finally:
            training.kill()
        screen = terminal.wait_for(r"live  stopped: signal 15$")
        assert "eta" not in screen and re.search(r"end at step \d+, exit 75: stopped", screen), screen
        training = begin_training(place, "live", *ENDLESS)
        try:
            terminal.wait_for(r"live  running$(?s:.*)^start 2, began")
            terminal.wait_for(r"resumed from step \d+(?s:.*)step \d+ saved")
        finally:
            training.kill()
            training.wait()
        terminal.wait_for(r"live  killed: no process holds its lock, no record for")
        # The report has the same words.
        assert "  killed: no process holds its lock, no record for" in tokamak("report", run, "--text")
        Path(run, "metrics.jsonl").write_text("")
        terminal.wait_for(r"live  killed: no process holds its lock$")  # only status.json is left to show it
        training = begin_training(place, "live", *ENDLESS)
        try:
            screen = terminal.wait_for(r"live  running$(?s:.*)^start 1, began(?s:.*)resumed from step \d+(?s:.*)saved")
            assert "start 2" not in screen and len(DOTS.findall(screen)) > 20, screen
        finally:
            training.kill()
            training.wait()
        terminal.type("q")
        expect_restored(terminal)


def damaged(place):
    """metrics.jsonl is cut, replaced by another run's, torn in its last line, and removed; then its directory is
    removed. Each is named on the screen, and restored files are shown again."""
    place.train("whole", 1, "training.max_steps=30")
    run, file = Path(place.run("torn")), Path(place.run("torn")) / "metrics.jsonl"
    run.mkdir()
    lines = (Path(place.run("whole")) / "metrics.jsonl").read_text().splitlines(keepends=True)
    file.write_text("".join(lines))
    with Terminal() as terminal:
        watch(terminal, run)
        terminal.wait_for(r"done$(?s:.*)100.0 %  step 30 of 30")
        part = [line for line in lines if json.loads(line)["step"] <= 17 and '"end"' not in line]
        file.write_text("".join(part))
        terminal.wait_for("step 17 of 30")
        with open(file, "a") as out:
            out.write('{"step":18,"loss/a')
        with open(file, "a") as out:
            out.write('\n{"step":19,"tokens":1,"loss/avg":123.5}\n')
        terminal.wait_for(r"step 19 of 30(?s:.*)loss 123.5")
        file.unlink()
        terminal.wait_for("metrics.jsonl is gone")
        file.write_bytes(b"\x00\xff\x1b[2J no record\n" * 1000)
        terminal.wait_for("no records yet")
        file.unlink()
        file.write_text("".join(lines))
        terminal.wait_for("step 30 of 30")
        shutil.rmtree(run)
        terminal.wait_for("the directory is gone")
        terminal.type("C-c")
        expect_restored(terminal)


def signals(place):
    """SIGTERM and SIGHUP end watch and restore the terminal; Ctrl-Z stops it, and `fg` resumes it"""
    place.train("signals", 1, "training.max_steps=10")
    with Terminal() as terminal:
        for number in (15, 1):
            terminal.enter(f"sh -c 'echo $$ >{place.file('pid')}; exec {TOKAMAK} watch {place.run('signals')}'; "
                           "echo 'exit code' $?")
            terminal.wait_for(r"signals  done")
            os.kill(int(Path(place.file("pid")).read_text()), number)
            expect_restored(terminal, 128 + number)
            terminal.enter("clear")
        watch(terminal, place.run("signals"))
        terminal.wait_for(r"signals  done")
        terminal.type("C-z")
        terminal.wait_for("Stopped")
        terminal.enter("fg; echo 'exit code' $?")
        terminal.wait_for(r"signals  done")
        terminal.type("q")
        expect_restored(terminal)


def without_terminal(place):
    """--once prints one frame of plain text, in ASCII if the locale has nothing else. Without it a pipe is refused. So
    are a missing directory, and a terminal that cannot be drawn on, which gets no other character."""
    place.train("once", 1, "training.max_steps=30", "training.validation_interval=10")
    text = call([TOKAMAK, "watch", place.run("once"), "--once", "--columns", "100", "--rows", "45"], {"LC_ALL": "C.UTF-8"}).stdout
    assert "once  done\n" in text and "step 30 of 30" in text and len(DOTS.findall(text)) > 50, text
    assert "\x1b" not in text and max(map(len, text.split("\n"))) <= 100 and len(text.split("\n")) <= 46, text
    ascii_text = call([TOKAMAK, "watch", place.run("once"), "--once"], {"LC_ALL": "C"}).stdout
    assert ascii_text.isascii() and "step 30 of 30" in ascii_text and re.search(r"[-'.|]{8}", ascii_text), ascii_text
    losses = place.records("once", "loss/avg")
    place.train("once", 1, "training.max_steps=30", "model.rope_theta=7", expect=2)
    again = tokamak("watch", place.run("once"), "--once", "--columns", "160", "--rows", "45")
    assert re.search(r"once  done$", again, re.M) and "step 30 of 30" in again, again
    assert re.search(r"end before the first step, exit 2: the model of \S+ differs from", again.split("\n")[-2]), again
    assert f"loss {losses[30]:.4g}" in text, (text, losses[30])
    os.makedirs(place.run("empty"))
    for arguments, said in (([place.run("once")], "--once"), ([place.run("none"), "--once"], place.run("none")),
                            ([place.run("empty"), "--once"], place.run("empty") + " is not a run: it has no metrics.jsonl")):
        done = call([TOKAMAK, "watch", *arguments], stdin=subprocess.DEVNULL)
        assert done.returncode == 2 and said in done.stdout, (done.returncode, done.stdout)
    with Terminal() as terminal:
        terminal.enter(f"TERM=no-such-terminal {TOKAMAK} watch {place.run('once')}; echo 'exit code' $?")
        screen = terminal.wait_for("^exit code 2$")
        assert "no-such-terminal" in screen and "--once" in screen, screen
        terminal.enter(f"clear; LANG=C {TOKAMAK} watch {place.run('once')}; clear")
        assert terminal.wait_for("once  done(?s:.*)q quit").isascii()
        terminal.type("q")
        terminal.wait_for(r"\A\s*ready:\s*\Z")  # until watch no longer reads the keys
        terminal.enter(f"clear; TERM=dumb {TOKAMAK} watch {place.run('once')}; echo 'exit code' $?")
        screen = terminal.wait_for("'dumb'(?s:.*)^exit code 2$")
        assert "watch: the terminal 'dumb' ($TERM) has no full-screen mode" in screen and "use --once" in screen, screen
        assert len(screen.strip().split("\n")) <= 5, screen


if not has_tmux():
    print("SKIPPED: no tmux (scripts/install_deps.sh test)")
    sys.exit(77)
main([live, damaged, signals, without_terminal])
