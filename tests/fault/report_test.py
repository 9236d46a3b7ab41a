"""`tokamak report` of a real run that was killed, refused by its config, resumed and stopped. It accounts for every
millisecond from the first process to the last record, with the causes and the lost steps."""
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from harness import ENV, TOKAMAK, call, main, tokamak  # noqa: E402
from processes import wait_for  # noqa: E402

INTERVAL = 10  # steps between checkpoints
TOKENS = 768  # of a step
NAME = "run"


def start(place, log, *overrides):
    return subprocess.Popen([TOKAMAK, "train", place.config(NAME), "training.max_steps=1000000",
                             f"checkpoint.interval={INTERVAL}", "training.validation_interval=7", *overrides],
                            env=ENV, stdout=log, stderr=log)


def milliseconds(text):
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def in_order(records, event):
    return [record for record in records if record.get("event") == event]


def expect_exact_sums(report):
    assert sum(round(1000 * s) for s in report["seconds"].values()) == round(1000 * report["wall_clock"]), report
    before = milliseconds(report["starts"][0]["exec"])
    for one in report["starts"]:
        until = milliseconds(one["last_sign_of_life"])
        assert sum(round(1000 * s) for s in one["seconds"].values()) == until - before, one
        assert all(s >= 0 for s in one["seconds"].values()), one
        before = until


def killed_and_resumed(place):
    """kill -9 between two checkpoints, a start with another batch, a resume, a stop: the report has all, to the ms"""
    began = time.time()
    log = open(place.file("log"), "w+")
    first = start(place, log)
    wait_for(first, log.name, rf"step {3 * INTERVAL + 4}/")  # some steps beyond a checkpoint
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert start(place, log, f"training.global_batch_tokens={2 * TOKENS}").wait() == 2, log.read()
    time.sleep(0.1)  # down far longer than 10 ms, the precision of a process's age
    second = start(place, log)
    wait_for(second, log.name, r"validation loss", times=open(log.name).read().count("validation loss") + 1)
    second.send_signal(signal.SIGUSR1)
    assert second.wait(timeout=60) == 75, open(log.name).read()
    ended = time.time()

    with open(place.run(NAME) + "/metrics.jsonl") as lines:
        records = [json.loads(line) for line in lines]
    report = json.loads(tokamak("report", place.run(NAME), "--json"))
    expect_exact_sums(report)
    killed, refused, stopped = report["starts"]
    assert [one["end"] for one in report["starts"]] == ["killed", "failed", "stopped"], report
    assert refused["cause"].startswith("exit 2: training.global_batch_tokens is 1536"), refused
    assert stopped["cause"] == "signal 10", stopped

    # The records themselves say when the first process began, which steps were trained twice, and how far the run came.
    starts = in_order(records, "start")
    wall = milliseconds(records[-1]["time"]) - milliseconds(starts[0]["exec"])
    assert round(1000 * report["wall_clock"]) == wall <= 1000 * (ended - began) + 1000, (wall, ended - began)
    resumed = int(re.findall(r"resumed from \S+ \(step (\d+)", open(log.name).read())[-1])
    second_start = max(i for i, record in enumerate(records) if record.get("event") == "start")
    last_of_first = max(record["step"] for record in records[:second_start] if "loss/last" in record)
    assert killed["lost_steps"] == report["lost_steps"] == last_of_first - resumed > 0, (killed, resumed, last_of_first)
    assert (killed["first_step"], stopped["first_step"]) == (0, resumed), report
    final = in_order(records, "stop")[-1]["step"]
    assert report["step"] == stopped["last_step"] == final and report["tokens"] == TOKENS * final, (report, final)

    seconds = report["seconds"]
    assert all(seconds[kind] > 0 for kind in ("productive", "lost", "startup", "down", "saves", "validation")), seconds
    validated = sum(record.get("time/validation", 0) for record in records)
    assert abs(seconds["validation"] - validated) < 0.002 * len(records), (seconds, validated)
    stalls = sum(record.get("checkpoint/stall", 0) for record in records)
    assert abs(seconds["saves"] - stalls) < 0.002 * len(records), (seconds, stalls)
    for one in (killed, stopped):
        assert list(one["startup"])[:3] == ["world", "config", "device"], one
        assert abs(sum(one["startup"].values()) - one["seconds"]["startup"]) < 0.5, one
    down = milliseconds(stopped["first_step_began"]) - milliseconds(killed["last_sign_of_life"])
    assert round(1000 * stopped["restart"]) == down and refused["restart"] is None, (stopped, down)
    assert abs(report["ettr"] - seconds["productive"] / report["wall_clock"]) < 1e-9
    text = tokamak("report", place.run(NAME), "--text")
    for part in ("killed: no end was recorded", "failed: exit 2", "stopped: signal 10", f"step {final} of 1000000"):
        assert part in text, text
    print(text)


def refusals(place):
    """no such directory, one that is not a run: exit 2; a run that has no records yet: 3; with the path"""
    os.mkdir(place.file("empty"))
    os.makedirs(place.file("begun/checkpoints"))
    for arguments, code, said in (([place.file("empty")], 2, place.file("empty") + " is not a run: it has no"),
                                  ([place.file("nowhere"), "--text"], 2, place.file("nowhere")),
                                  ([place.file("empty"), "--json"], 2, place.file("empty") + " is not a run: it has no"),
                                  ([place.file("begun"), "--json"], 3, place.file("begun") + "/metrics.jsonl")):
        done = call([TOKAMAK, "report", *arguments])
        assert done.returncode == code and said in done.stdout, (arguments, done.returncode, done.stdout)


main([killed_and_resumed, refusals])
