"""A run that decays from a checkpoint of another one, with the real program: its learning rates, its bits, its
restarts, what it leaves alone, and what it refuses."""
import math
import os
import shutil

from harness import TOKAMAK, call, digest, gathered, main, mpirun, tokamak

PEAK = 3e-3
TRUNK = ("lr_scheduler={decay_type: constant, warmup: 5 steps}", "checkpoint.interval=20 steps",
         "checkpoint.keep_latest=0")
STEPS = "training.max_steps=60"
SQRT = ("lr_scheduler.decay_shape=sqrt", "lr_scheduler.min_lr_factor=0.05")


def trunk(place):
    """Trains the trunk once: 60 steps, with checkpoints of steps 20, 40 and 60; returns that of step 40."""
    if not os.path.exists(place.checkpoint("trunk", 60)):
        place.train("trunk", 2, STEPS, *TRUNK)
        assert place.steps("trunk") == [20, 40, 60]
        assert set(list(place.records("trunk", "optim/lr").values())[5:]) == {PEAK}
    return place.checkpoint("trunk", 40)


def decays(place):
    """25 % from step 40 are 10 steps with the rates of the formula. The first loss is the trunk's to the last bit, and
    the next one is not. The trunk keeps every byte."""
    checkpoint, before = trunk(place), digest(place.run("trunk"))
    place.train("trunk", 2, STEPS, *TRUNK, *SQRT, "--decay-from", checkpoint + "/", "--decay", "25%")
    assert digest(place.run("trunk")) == before
    rates, floor = place.records("trunk-decay-40", "optim/lr"), 0.05 * PEAK
    assert sorted(rates) == list(range(41, 51)), rates
    for step, rate in rates.items():
        expected = floor + (PEAK - floor) * (1 - math.sqrt((step - 40) / 10))
        assert abs(rate - expected) < 1e-15 * expected, (step, rate, expected)
    assert rates[50] == floor, rates[50]
    losses, expected = place.records("trunk-decay-40"), place.records("trunk")
    assert losses[41] == expected[41] and losses[42] != expected[42], (losses, expected)


def shares(place):
    """a share of the steps is rounded up to whole ones, but 7 % of 100 are 7, which are 7.000000000000001 in binary"""
    place.train("hundred", 1, "training.max_steps=100", *TRUNK, "checkpoint.interval=none")
    given = (place.config("hundred"), STEPS, *TRUNK, "--decay-from", place.checkpoint("hundred", 100))
    for share, end in (("7%", 107), ("7.5%", 108), ("0.1%", 101), ("150%", 250)):
        printed = tokamak("train", *given, "--decay", share, "--print-value", "training.max_steps")
        assert int(printed) == end, (share, printed)


def lengths(place):
    """a warm-up keeps the steps that it had in the trunk, whatever their share of the decay; the end is in steps"""
    given = (place.config("lengths"), *TRUNK, "training.max_steps=0", "training.max_tokens=46080",  # 60 steps of 768
             "lr_scheduler.warmup=50%", "--decay-from", trunk(place), "--decay", "150%", "--print-value")
    for key, value in (("lr_scheduler.warmup", "30 steps"), ("training.max_steps", "100"), ("training.max_tokens", "0"),
                       ("lr_scheduler.decay_start", "40 steps"), ("run.name", "small-decay-40")):
        printed = tokamak("train", *given, key).strip()
        assert printed == value, (key, printed)


def is_the_trunk(place):
    """a decay to the peak itself has the trunk's losses, weights and moments after 20 steps; 49 % of 40 steps are 20"""
    checkpoint = trunk(place)
    place.train("trunk", 2, STEPS, *TRUNK, f"run.output_dir={place.run('same')}", "lr_scheduler.min_lr_factor=1",
                "--decay-from", checkpoint, "--decay", "49%")  # 19.6 steps
    losses, expected = place.records("same-decay-40"), place.records("trunk")
    assert losses == {step: expected[step] for step in range(41, 61)}, (losses, expected)
    assert gathered(place.checkpoint("same-decay-40", 60)) == gathered(place.checkpoint("trunk", 60))


def restarts(place):
    """the same command resumes a stopped decay although the trunk has removed the checkpoint. So does the resolved
    config alone. Both have the bits of a decay that was never stopped."""
    decay = (STEPS, *TRUNK, *SQRT, "--decay", "7680 tokens", "--decay-from")  # 10 steps of 768
    place.train("straight", 2, *decay, trunk(place))
    shutil.copytree(place.run("trunk"), place.run("going"))
    going = place.checkpoint("going", 40)
    for name in ("command", "config"):
        place.train(name, 2, *decay, going, "--stop-at-step", "45", expect=75)
        assert place.steps(name + "-decay-40") == [45]
    shutil.rmtree(place.run("going"))
    assert tokamak("train", place.config("command"), *decay, going, "--print-value", "run.output_dir").strip() == (
        place.run("command-decay-40"))
    place.train("command", 2, *decay, going + "/")
    done = call(mpirun(2, "train", place.run("config-decay-40") + "/config.yaml"))
    assert done.returncode == 0, done.stdout
    assert place.steps("straight-decay-40") == [50]
    for name in ("command", "config"):
        assert place.records(name + "-decay-40") == place.records("straight-decay-40"), name
        assert gathered(place.checkpoint(name + "-decay-40", 50)) == gathered(place.checkpoint("straight-decay-40", 50))


def refusals(place):
    """no decay from a cosine, from within a warm-up or a decay, or to another end than the run has. One error names
    file, key and values, and nothing is made."""
    def refused(words, *arguments, code=2):
        output = place.train("refused", 2, STEPS, *arguments, expect=code)
        assert len([line for line in output.splitlines() if " error " in line]) == 1, output
        missing = [word for word in words if word not in output]
        assert not missing, (missing, output)
        assert not os.path.exists(place.run("refused")) and not os.path.exists(place.run("refused-decay-40")), words

    checkpoint = trunk(place)
    every = ("checkpoint.interval=5 steps", "checkpoint.keep_latest=0", "training.max_steps=20")
    place.train("cosine", 1, *every)
    place.train("wsd", 1, *every, "lr_scheduler={decay_type: wsd, warmup: 6 steps, decay_ratio: 0.5}")
    place.train("grown", 1, *every, "lr_scheduler={decay_type: constant, warmup: 1 steps}",
                "training.batch_warmup={from: 192, over: 2304}")
    refused(["refused.yaml", "'lr_scheduler.decay_type' (value cosine)", "constant or wsd"], "--decay-from", checkpoint)
    for name, step, words in (("cosine", 10, ["has lr_scheduler.decay_type cosine"]),
                              ("wsd", 5, ["is within the 6 steps of lr_scheduler.warmup"]),
                              ("wsd", 15, ["has begun to decay at step 10 (lr_scheduler.decay_ratio 0.5)"]),
                              ("grown", 5, ["is within training.batch_warmup or length_warmup, which end at step 9"])):
        origin = place.checkpoint(name, step)
        refused([origin, f"of step {step}", "constant or wsd", *words], *TRUNK, "--decay-from", origin)
    place.train("wsd", 1, *TRUNK, "--decay-from", place.checkpoint("wsd", 10))  # the last one before the tail
    assert place.steps("wsd-decay-10") == [11]
    refused(["runs/wsd is no checkpoint: it has no manifest.json"], *TRUNK, "--decay-from", place.run("wsd"), code=4)
    refused(["--decay 10min is no length"], *TRUNK, "--decay-from", checkpoint, "--decay", "10min")
    refused(["'lr_scheduler.min_lr_factor' (value 0) must be above 0"], *TRUNK, "lr_scheduler.decay_shape=exponential",
            "lr_scheduler.min_lr_factor=0", "--decay-from", checkpoint)
    done = call([TOKAMAK, "train", place.config("alone"), "--decay", "5%"])
    assert done.returncode == 2 and "--decay-from" in done.stdout, done.stdout

    output = place.train("wsd", 1, *TRUNK, "--decay-from", place.checkpoint("wsd", 10), "--decay", "50%", expect=2)
    assert "wsd-decay-10/config.yaml has training.max_steps 11, but --decay 50% ends at step 15" in output, output
    other = place.run("wsd-other/step-00000010")
    shutil.copytree(place.checkpoint("wsd", 10), other)
    output = place.train("wsd", 1, *TRUNK, "--decay-from", other, expect=2)
    assert "wsd-decay-10/config.yaml decays from " + place.checkpoint("wsd", 10) + ", not from " + other in output, output


main([decays, shares, lengths, is_the_trunk, restarts, refusals])
