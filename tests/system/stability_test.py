"""A value that is not finite in a run of the real program: the trace that the run makes, and the same on demand from a
checkpoint."""
import json
import os

from harness import digest, main


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
    """a step that does not follow the checkpoint, a directory that is none, and one option without the other"""
    checkpoint = overflow(place)
    output = place.train("refused", 2, *TRUNK, "--trace-step", "10", "--checkpoint", checkpoint, expect=2)
    assert f"--trace-step 10 does not follow {checkpoint}, of step 10" in output, output
    output = place.train("refused", 2, *TRUNK, "--trace-step", "11", "--checkpoint", place.run("trunk"), expect=4)
    assert "is no checkpoint: it has no manifest.json" in output, output
    for alone in (("--trace-step", "11"), ("--checkpoint", checkpoint)):
        output = place.train("refused", 1, *TRUNK, *alone, expect=2)
        assert "requires" in output, output
    assert not os.path.exists(place.run("refused")), os.listdir(place.run("refused"))


main([by_itself, stops, on_demand, refusals])
