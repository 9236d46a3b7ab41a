"""A run of three stages with the real program: killed, resumed on other ranks, planned, reported, exported."""
import json
import os
import signal
import subprocess
import time

from harness import CONFIG, ENV, TOKAMAK, call, gathered, main, mpirun, tokamak

STAGES = CONFIG.replace("max_steps: 50, ", "") + """\
stages:
  - {{name: short, steps: 30}}
  - name: long
    tokens: 14592
    sequence_length: 64
    rope_theta: 40000
  - name: anneal
    steps: 12
    sequence_length: 64
    rope_theta: 40000
    sources: [{{path: {data}/validation}}]
    schedule: stage
    lr_scheduler: {{warmup: 0, decay_type: linear, min_lr_factor: 0}}
"""
TEXT = STAGES.replace("interval: none", "interval: 7 steps")
STEPS = 30 + 19 + 12


def config(place, name):
    return place.config(name, TEXT)


def killed_and_resumed(place):
    """killed in the second stage, stopped at its border, done on three ranks: the losses are those of a run on two
    ranks without interruption, within rounding"""
    done = call(mpirun(2, "train", config(place, "whole")))
    assert done.returncode == 0 and "stage 'anneal': steps 50 to 61" in done.stdout, done.stdout
    with open(place.file("killed.txt"), "w") as log:
        killed = subprocess.Popen([TOKAMAK, "train", config(place, "again")], env=ENV, stdout=log, stderr=log)
    metrics = place.run("again") + "/metrics.jsonl"
    while not os.path.exists(metrics) or '"step":38' not in open(metrics).read().replace(" ", ""):
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    stopped = call([TOKAMAK, "train", config(place, "again"), "--stop-at-step", "49"])
    assert stopped.returncode == 75, stopped.stdout
    done = call(mpirun(3, "train", config(place, "again")))
    assert done.returncode == 0 and "stage 'short'" not in done.stdout, done.stdout
    losses, expected = place.records("again"), place.records("whole")
    assert sorted(losses) == sorted(expected) == list(range(1, STEPS + 1)), (sorted(losses), sorted(expected))
    assert all(abs(losses[step] / expected[step] - 1) < 1e-4 for step in losses), (losses, expected)


def reported(place):
    """the report has each stage, as text, as JSON and on the page; the page has where each begins"""
    report = json.loads(tokamak("report", place.run("whole"), "--json"))
    assert report["step"] == STEPS == report["total_steps"]
    assert [(one["name"], one["first_step"], one["last_step"], one["sequence_length"]) for one in report["stages"]] == [
        ("short", 1, 30, 32), ("long", 31, 49, 64), ("anneal", 50, 61, 64)], report["stages"]
    assert len(report["starts"]) == 1 and report["tokens"] == STEPS * 768, report
    text = tokamak("report", place.run("whole"))
    assert any(line.split() == ["31", "49", "64", "768", "long"] for line in text.splitlines()), text
    tokamak("report", place.run("whole"), "--output", place.file("page.html"))
    assert '"name":"anneal","first_step":50' in open(place.file("page.html")).read()


def planned(place):
    """a plan has each stage, its length and its steps; the doctor and a start read the data of all"""
    plans = json.loads(tokamak("plan", config(place, "planned"), "--json", "--ranks", "2"))
    assert [(one["sequence_length"], one["total_steps"]) for one in plans] == [(32, 30), (64, 19), (64, 12)], plans
    text = tokamak("plan", config(place, "planned"))
    assert "stage 'long', steps 31 to 49 of 61" in text, text
    missing = call([TOKAMAK, "train", config(place, "planned"), "stages[2].sources=[{path: nowhere}]"])
    assert missing.returncode == 3 and "stage 'anneal'" in missing.stdout and "nowhere" in missing.stdout, missing.stdout
    assert not os.path.exists(place.run("planned"))
    doctor = call([TOKAMAK, "doctor", config(place, "planned"), "stages[2].sources=[{path: nowhere}]"])
    assert doctor.returncode == 3 and "nowhere" in doctor.stdout, doctor.stdout


def stages_with_all_keys(place):
    """the run itself needs no data and no vocabulary, if its stages have data"""
    with open(config(place, "bare"), encoding="utf-8") as file:
        text = file.read()
    begin = text.index("  sources:")
    own = text[begin:].split("\n")[0]
    bare = text.replace(own + "\n", "", 1).replace("sequence_length: 64", "sequence_length: 64\n    " + own.strip(), 1)
    bare = bare.replace("{name: short, steps: 30}", "{name: short, steps: 30, " + own.strip() + "}")
    path = place.file("bare.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(bare)
    done = call([TOKAMAK, "train", path, "--stop-at-step", "2"])
    assert done.returncode == 75, (bare, done.stdout)


def exported(place):
    """an export has the RoPE of the stage that the checkpoint belongs to"""
    for step, theta in ((28, 10000), (49, 40000), (61, 40000)):
        if not os.path.exists(place.checkpoint("kept", step)):
            call([TOKAMAK, "train", config(place, "kept"), "checkpoint.keep_latest=0"])
        tokamak("checkpoint", "export", "--to", "hf", place.checkpoint("kept", step), place.file(f"hf-{step}"))
        with open(place.file(f"hf-{step}") + "/config.json") as file:
            assert json.load(file)["rope_theta"] == theta, step


def refused(place):
    """a decay of a run of stages; a stage that the ranks cannot share; prompts longer than a warm-up's sequences"""
    decay = call([TOKAMAK, "train", config(place, "kept"), "--decay-from", place.checkpoint("kept", 28)])
    assert decay.returncode == 2 and "without stages" in decay.stdout, decay.stdout
    uneven = call(mpirun(5, "train", config(place, "uneven")))
    assert uneven.returncode == 2 and "5 ranks cannot share" in uneven.stdout, uneven.stdout
    length = call([TOKAMAK, "train", config(place, "prompts"), "training.length_warmup={from: 4, over: 1000}",
                   "training.samples={prompts: ['a prompt of more than four tokens'], interval: 100}"])
    assert length.returncode == 2 and "leaves no room" in length.stdout, length.stdout
    batch = call([TOKAMAK, "train", config(place, "batch"), "training.batch_warmup={from: 24, over: 1000}"])
    assert batch.returncode == 2 and "24, which is no multiple of" in batch.stdout, batch.stdout


if __name__ == "__main__":
    main([killed_and_resumed, reported, planned, stages_with_all_keys, exported, refused])
