"""A disk that is full for a while costs each file of metrics the records of that time only, and training nothing.
Records cut short by ENOSPC or a crash are removed. A slow disk loses no record before the last checkpoint of a killed
run. Needs the right to mount a tmpfs."""
import glob
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from faulty_disk import Disk, committed, start as launch  # noqa: E402
from harness import ENV, TOKAMAK, main  # noqa: E402
from processes import wait_for  # noqa: E402

NAME = "run"
FILES = (r"\S+/metrics.jsonl", r"\S+/tensors.jsonl", r"\S+/tensorboard", r"\S+/run.prom")


def fill(path):
    """Fills the file system to its last byte."""
    with open(path, "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1 << 16))
        except OSError:
            pass
        try:
            while True:
                ballast.write(bytes(1))
        except OSError:
            pass


def start(place, log):
    return subprocess.Popen([TOKAMAK, "train", place.config(NAME), "training.max_steps=1000000",
                             "metrics.tensorboard=true", "metrics.tensor_statistics=10",
                             f"metrics.prometheus={place.file('runs')}/run.prom"],
                            env=ENV, stdout=log, stderr=log)


def read(path):
    """Returns the records of a file; each line must be one."""
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def full_for_a_while(place):
    """a tmpfs without room, then with room: one warning, one word when it works again, every later record is there"""
    disk = place.file("runs")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True).returncode != 0:
        print("skipped: a tmpfs cannot be mounted here")
        sys.exit(77)
    try:
        log = open(place.file("log"), "w+")
        process = start(place, log)
        wait_for(process, log.name, r"step 5/")
        fill(disk + "/ballast")
        for file in FILES:
            wait_for(process, log.name, rf"cannot write {file}.*: No space left on device; its records are dropped")
        os.remove(disk + "/ballast")
        for file in FILES:
            wait_for(process, log.name, rf"{file} is written again; \d+ record\(s\) were dropped")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 75, open(log.name).read()
        text = open(log.name).read()
        assert text.count("cannot write") == text.count("is written again") == len(FILES), text
        assert len(glob.glob(place.run(NAME) + "/tensorboard/*")) == 2, "a new file, after the one that may be torn"
        metrics = place.run(NAME) + "/metrics.jsonl"
        records, tensors = read(metrics), read(place.run(NAME) + "/tensors.jsonl")
        assert tensors[-1]["tensors"] and tensors[-1]["step"] % 10 == 0, tensors[-1]["step"]
        logged = [record["step"] for record in records if "loss/last" in record]
        final = records[-1]["step"]
        assert records[-1]["event"] == "end" and logged[-1] == final, records[-1]
        gaps = [(a, b) for a, b in zip(logged, logged[1:]) if b != a + 1]
        assert len(gaps) == 1, gaps  # the records of the full disk, and no others
        # A crash cuts the last line short; the next start removes what there is of it.
        with open(metrics, "a") as out:
            out.write('{"step":')
        second = start(place, log)
        wait_for(second, log.name, rf"step {final + 2}/")
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=60) == 75, open(log.name).read()
        more = read(metrics)
        assert more[:len(records)] == records and more[len(records)]["event"] == "start", more[len(records)]
        assert f"{metrics}: removed 8 bytes of a last line that was cut short" in open(log.name).read()
        print(f"  {gaps[0][1] - gaps[0][0] - 1} records dropped between steps {gaps[0][0]} and {gaps[0][1]}")
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def full_at_a_start(place):
    """a run that resumes on a full disk trains, with the same config or another one; there is room for its last save"""
    disk = place.file("runs")
    os.makedirs(disk, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True).returncode != 0:
        print("skipped: a tmpfs cannot be mounted here")
        sys.exit(77)
    try:
        reached = 0
        for more, said in (([], None), ([], "is dropped|are dropped"), (["optimizer.lr=1e-3"], r"cannot write \S+/config.yaml.*; the run goes on")):
            if said:
                fill(disk + "/ballast")
            process, path = launch(place, "full", 1, "training.max_steps=1000000", *more)
            wait_for(process, path, rf"step {reached + 5}/")
            if said:
                wait_for(process, path, said)
                os.remove(disk + "/ballast")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 75, open(path).read()
            assert place.steps("full")[-1] >= reached + 5
            reached = place.steps("full")[-1]
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def slow_then_killed(place):
    """metrics on a disk slower than the steps, the run killed after a save: all earlier steps have records"""
    metrics = place.run(NAME) + "/metrics.jsonl"
    disk = Disk(place, NAME, under=metrics, rate=20_000)  # bytes a second: some 30 records
    process, log = launch(place, NAME, 1, "training.max_steps=1000000", "checkpoint.interval=20", env=disk.env)
    text = wait_for(process, log, r"checkpoint of step \d+ committed", times=2)
    process.kill()
    process.wait()
    saved = committed(text)[-1]
    logged = [record["step"] for record in read(metrics) if "loss/last" in record]
    assert logged[:saved] == list(range(1, saved + 1)), (saved, logged)


main([full_for_a_while, full_at_a_start, slow_then_killed])
