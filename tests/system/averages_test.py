"""Averages of the weights with the real program: from the config to exports, evaluations and runs that go on from
them; and the mean of several checkpoints."""
import json
import os
import struct

from harness import TOKAMAK, call, digest, gathered, main, read_safetensors, tokamak

AVERAGES = ("averages=[{name: ema, half_life: 20000 tokens, every: 2, start: 10%}, {name: last, every: 1, start: 45 steps}]",
            "checkpoint.interval=10 steps", "checkpoint.keep_latest=0", "training.validation_interval=10")


def run(place):
    """Trains once, on two ranks: 50 steps, with checkpoints of steps 10, 20, ..., 50."""
    if not os.path.exists(place.checkpoint("run", 50)):
        place.train("run", 2, *AVERAGES)
    return place.checkpoint("run", 50)


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def of_kind(checkpoint, kind):
    return {name: data for (of, name), data in gathered(checkpoint).items() if of == kind}


def exported(place, name, *arguments):
    """The tensors of an export in f32."""
    out = place.file(name)
    tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", *arguments, out)
    return read_safetensors(out + "/model.safetensors")


def refused(code, words, *arguments):
    done = call([TOKAMAK, *arguments])
    assert done.returncode == code and all(word in done.stdout for word in words), (done.returncode, done.stdout)


def validated(place):
    """each average has a validation loss from its start on, in the metrics and on the console"""
    run(place)
    losses = {key: place.records("run", "validation/loss" + key) for key in ("", "_ema", "_last")}
    assert list(losses[""]) == list(losses["_ema"]) == [10, 20, 30, 40, 50] and list(losses["_last"]) == [50], losses
    assert losses["_ema"][50] < losses["_ema"][10] and losses["_ema"][50] != losses[""][50], losses
    output = place.train("short", 1, *AVERAGES, "training.max_steps=10", "averages[1].start=1 steps")
    assert "  ema " in output and "  last " in output, output


def used(place):
    """an export of an average has its numbers, and an evaluation takes them: it equals that of the export"""
    checkpoint = run(place)
    live, ema = exported(place, "live", checkpoint), exported(place, "ema", "--weights", "ema", checkpoint)
    assert live == of_kind(checkpoint, "master") and ema == of_kind(checkpoint, "average/ema") and live != ema
    card = open(place.file("ema") + "/README.md").read()
    losses = place.records("run", "validation/loss_ema")
    assert "| weights | F32, the average `ema` |" in card and f"| validation loss | {losses[50]:.4f}" in card, card
    assert "training loss" not in card and "training loss" in open(place.file("live") + "/README.md").read()
    held_out = "shards=" + place.data + "/validation"
    results = []
    for source in (("--checkpoint", checkpoint, "--weights", "ema"), ("--model", place.file("ema")),
                   ("--checkpoint", checkpoint)):
        out = place.file("results.json")
        tokamak("eval", *source, "--threads", "1", "--task", held_out, "--output", out)
        with open(out) as file:
            result = json.load(file)
        assert result["average"] == ("ema" if "--weights" in source else ""), result
        results.append(result["results"]["shards"]["bits_per_byte"])
    assert results[0] == results[1] != results[2], results
    texts = [tokamak("generate", *source, "--threads", "1", "--prompt", "ab", "--temperature", "0")
             for source in (("--checkpoint", checkpoint, "--weights", "ema"), ("--model", place.file("ema")))]
    assert texts[0].splitlines()[0] == texts[1].splitlines()[0], texts


def unknown(place):
    """an average that a checkpoint has not is an error that names those that it has"""
    checkpoint = run(place)
    words = ["step-00000050 has no average 'emma' of the weights", "it has ema, last"]
    refused(4, words, "checkpoint", "export", "--to", "hf", "--weights", "emma", checkpoint, place.file("none"))
    refused(4, words, "generate", "--checkpoint", checkpoint, "--weights", "emma", "--prompt", "a")
    refused(4, ["has no average 'last'", "it has ema"], "checkpoint", "export", "--to", "hf", "--weights", "last",
            place.checkpoint("run", 40), place.file("none"))
    refused(2, ["--weights ema needs --checkpoint"], "generate", "--model", place.file("ema"), "--weights", "ema",
            "--prompt", "a")


def mean(place):
    """the mean of checkpoints of any world sizes is that of their numbers in float64; it is evaluated, exported and
    trained on; and an average of averages likewise"""
    run(place)
    place.train("alone", 1, "training.max_steps=45", *AVERAGES)
    checkpoints = [place.checkpoint("run", 30), place.checkpoint("run", 40), place.checkpoint("alone", 45)]
    before = digest(place.file("runs"))
    for weights, kind in ((), "master"), (("--weights", "ema"), "average/ema"):
        out = place.file("mean-" + kind.replace("/", "-"))
        output = tokamak("checkpoint", "average", *checkpoints, "--out", out, *weights)
        assert "the mean of 3 checkpoints, step 45" in output, output
        parts = [of_kind(checkpoint, kind) for checkpoint in checkpoints]
        expected = {name: struct.pack(f"<{len(data) // 4}f", *(sum(values) / 3 for values in zip(
            *(floats(part[name]) for part in parts)))) for name, data in parts[0].items()}
        assert of_kind(out + "/checkpoints/step-00000045", "master") == expected
        assert exported(place, out + "-hf", out + "/checkpoints") == expected
    assert digest(place.file("runs")) == before
    mean_of = place.file("mean-master/checkpoints/step-00000045")
    place.train("more", 2, *AVERAGES, "checkpoint.load=" + mean_of, expect=4)  # it has no moments
    place.train("more", 2, *AVERAGES, "checkpoint.load=" + mean_of, "checkpoint.allow_changes=[optimizer]")
    losses, expected = place.records("more"), place.records("alone")
    assert list(losses) == [46, 47, 48, 49, 50] and losses[46] < expected[20], (losses, expected)


def means_refused(place):
    """the mean of other models, of one checkpoint, and into a directory that exists is refused"""
    checkpoint = run(place)
    place.train("wide", 1, "model.intermediate_size=96", "training.max_steps=2")
    out = place.file("refused")
    refused(4, ["wide/checkpoints/step-00000002 holds another model", "(100, 48)"], "checkpoint", "average", checkpoint,
            place.checkpoint("wide", 2), "--out", out)
    refused(2, ["DIR"], "checkpoint", "average", checkpoint, "--out", out)
    refused(4, ["has no average 'ema'"], "checkpoint", "average", checkpoint, place.checkpoint("wide", 2), "--out", out,
            "--weights", "ema")
    place.train("turned", 1, "model.rope_theta=20000", "training.max_steps=2")
    refused(4, ["turned/checkpoints/step-00000002 holds another model", "model.rope_theta is 20000"], "checkpoint",
            "average", checkpoint, place.checkpoint("turned", 2), "--out", out)
    assert not os.path.exists(out)
    refused(2, ["runs/run exists"], "checkpoint", "average", checkpoint, checkpoint, "--out", place.run("run"))


main([validated, used, unknown, mean, means_refused])
