"""A value that is not finite in a run of the real program: the trace that the run makes, and the same on demand from a
checkpoint. A spike that a run goes back from, killed around the decision."""
import array
import json
import os
import random
import shutil
import signal
import subprocess
import time

from harness import ENV, TOKAMAK, digest, gathered, main


def events(place, name, event):
    with open(place.run(name) + "/metrics.jsonl") as lines:
        return [record for record in map(json.loads, lines) if record.get("event") == event]


TRUNK = ("training.max_steps=12", "checkpoint.interval=5 steps", "checkpoint.keep_latest=0")
HOT = ("training.max_steps=12", "optimizer.lr=1e30", "resilience.max_bad_steps=3")  # the step after the next overflows


def overflow(place):
    """Trains ten steps, then with a learning rate that makes the weights of step 11 too large for step 12."""
    if not os.path.exists(place.checkpoint("trunk", 10)):
        place.train("trunk", 2, *TRUNK, "--stop-at-step", "10", expect=75)
    return place.checkpoint("trunk", 10)


def by_itself(place):
    """the first bad step is traced once: rank, layer, operation and tensor, in the log and in metrics.jsonl"""
    checkpoint = overflow(place)
    output = place.train("hot", 2, *HOT, "training.max_steps=20", f"checkpoint.load={checkpoint}", expect=7)
    traced = events(place, "hot", "non_finite")
    assert len(traced) == 1 and traced[0]["step"] == 12, traced
    one = traced[0]
    # The forward pass survives: an rstd of 0 hides the greatest hidden states, and its gradient does not.
    assert (one["rank"], one["pass"], one["layer"]) == ("0", "backward", ""), one
    assert (one["operation"], one["tensor"], one["value"]) == ("rmsnorm_backward", "dx[0, 0]", "nan"), one
    assert " up to " in one["inputs"] and one["time/trace"] > 0, one
    assert one["sample"].split(" of ")[1].startswith(place.file("data/train") + ", token "), one
    assert "traced step 12: rank " in output and one["operation"] in output, output
    assert "3 steps in a row were bad (resilience.max_bad_steps 3)" in output, output


def stops(place):
    """resilience.non_finite: stop ends the run with what was found"""
    output = place.train("stopped", 2, *HOT, "training.max_steps=20", f"checkpoint.load={overflow(place)}",
                         "resilience.non_finite=stop", expect=7)
    error = [line for line in output.splitlines() if " error " in line]
    assert len(error) == 1 and "step 12: rank " in error[0], output


def on_demand(place):
    """--trace-step computes the step again from a checkpoint, names the same, and leaves the run's directory alone"""
    checkpoint = overflow(place)
    place.train("again", 2, *HOT, "training.max_steps=20", f"checkpoint.load={checkpoint}", expect=7)
    before = digest(place.run("again"))
    output = place.train("again", 2, *HOT, "training.max_steps=20", "--trace-step", "12", "--checkpoint", checkpoint)
    assert digest(place.run("again")) == before
    (wanted,), (found,) = events(place, "again", "non_finite"), events(place, "again-trace-12", "non_finite")
    for key in ("rank", "layer", "pass", "operation", "tensor", "value", "inputs", "sample", "detail"):
        assert found[key] == wanted[key], (key, found, wanted)
    assert wanted["detail"] in output, output
    assert not os.path.exists(place.checkpoint("again-trace-12", 12))

    output = place.train("trunk", 1, *TRUNK, "--trace-step", "7", "--checkpoint", place.checkpoint("trunk", 5))
    assert "step 7: every value is finite" in output, output


def refusals(place):
    """a step before the checkpoint or after the end, a directory that is no checkpoint, one option without the other"""
    checkpoint = overflow(place)
    output = place.train("refused", 2, *TRUNK, "--trace-step", "10", "--checkpoint", checkpoint, expect=2)
    assert f"--trace-step 10 does not follow {checkpoint}, of step 10" in output, output
    output = place.train("refused", 2, *TRUNK, "--trace-step", "13", "--checkpoint", checkpoint, expect=2)
    assert "--trace-step 13 is beyond the run's 12 steps" in output, output
    output = place.train("refused", 2, *TRUNK, "--trace-step", "11", "--checkpoint", place.run("trunk"), expect=4)
    assert "is no checkpoint: it has no manifest.json" in output, output
    for alone in (("--trace-step", "11"), ("--checkpoint", checkpoint)):
        output = place.train("refused", 1, *TRUNK, *alone, expect=2)
        assert "requires" in output, output
    assert not os.path.exists(place.run("refused")), os.listdir(place.run("refused"))


BATCH, POISON, LAST_SAVE, END = 768, 40, 32, 60  # tokens of a step; steps
KILLS, PER_RUN = 20, 5


def poisoned(place):
    """Keys of a run on a file of tokens, of which steps 40 to 44 are random."""
    path, draw = place.file("poisoned.npy"), random.Random(1)
    if not os.path.exists(path):
        tokens = array.array("H", [3])
        for i in range(1, 2 * END * BATCH):
            is_poison = POISON - 1 <= i // BATCH < POISON + 4
            tokens.append(3 + draw.randrange(390) if is_poison else 3 + (5 * tokens[-1] + draw.randrange(3)) % 390)
        with open(path, "wb") as file:
            tokens.tofile(file)
    return [f"data.sources=[{{path: {path}, format: olmo, token_type: uint16, delimiter_id: 2, "
            f"tokenizer: {place.file('tokenizer.model')}}}]", "data.order=sequential", f"training.max_steps={END}", "optimizer.lr=1e-2",
            "training.validation_interval=0", "checkpoint.interval=8 steps", "checkpoint.keep_latest=0",
            "resilience.spike={action: rollback, window: 16}"]


def killed(place):
    """a run that goes back from a spike, killed -9 at 20 moments around that, ends with the bits of the one that
    is not"""
    keys, draw = poisoned(place), random.Random(2)
    place.train("whole", 1, *keys)
    assert [one["step"] for one in events(place, "whole", "spike")] == [POISON + 1], events(place, "whole", "spike")
    assert [one["step"] for one in events(place, "whole", "rollback")] == [LAST_SAVE]
    wanted = gathered(place.checkpoint("whole", END))
    place.train("kept", 1, *keys, "--stop-at-step", str(LAST_SAVE), expect=75)
    moments = []
    for run in range(KILLS // PER_RUN):
        name = f"killed-{run}"
        shutil.copytree(place.run("kept"), place.run(name))
        for _ in range(PER_RUN):
            written = os.path.getsize(place.run(name) + "/metrics.jsonl") + draw.uniform(500, 7000)  # some 20 steps
            process = subprocess.Popen([TOKAMAK, "train", place.config(name), *keys], env=ENV, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            while process.poll() is None and os.path.getsize(place.run(name) + "/metrics.jsonl") < written:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
            with open(place.run(name) + "/metrics.jsonl") as lines:
                moments.append([json.loads(line)["step"] for line in lines if line.endswith("\n")][-1])
        place.train(name, 1, *keys)
        assert gathered(place.checkpoint(name, END)) == wanted, f"{name}: other weights"
        assert place.records(name) == place.records("whole"), f"{name}: other losses"
    print("  killed after steps", moments)


def through_a_spike(place):
    """a trace goes on through a spike that the run goes back from, since it must reach its step"""
    keys = poisoned(place)
    place.train("spiked", 1, *keys, "--stop-at-step", str(LAST_SAVE), expect=75)
    output = place.train("spiked", 1, *keys, "--trace-step", str(POISON + 3), "--checkpoint",
                         place.checkpoint("spiked", LAST_SAVE))
    assert f"spike, 2 step(s) from step {POISON} on" in output, output
    assert "go back" not in output and "rolled back" not in output, output
    assert f"step {POISON + 3}: every value is finite" in output, output


main([killed, through_a_spike, by_itself, stops, on_demand, refusals])
