"""training.samples by the real program. The texts equal those of `tokamak generate` with that step's checkpoint, on any
number of ranks. Signals are obeyed. Mistakes are errors that name the place."""
import json
import os
import shutil
import signal
import subprocess
import time

from harness import CONFIG, ENV, TOKAMAK, call, generated, main, mpirun, tokamak

STEPS, INTERVAL, TOKENS = 6, 3, 20


def prompts_of(place):
    first, second = list(place.documents())[:2]
    return [first[:12], second[:25], first[:12]]  # a prompt that is given twice gets two texts


def sampling(prompts, **options):
    return "training.samples=" + json.dumps(dict(prompts=prompts, interval=INTERVAL, tokens=TOKENS, **options))


def samples_of(place, name):
    """{step: [(prompt, text)]} of metrics.jsonl."""
    with open(place.run(name) + "/metrics.jsonl") as lines:
        records = [json.loads(line) for line in lines]
    return {record["step"]: [(one["prompt"], one["text"]) for one in record["samples"]]
            for record in records if "samples" in record}


def as_generated(place):
    """On 2 ranks, a sample equals the text that `generate` makes of that step's checkpoint. Training has the same bits
    as without samples. The log has each text; the account of time adds up."""
    prompts = prompts_of(place)
    for dtype in ("f32", "bf16"):
        shared = (f"training.max_steps={STEPS}", f"checkpoint.interval={INTERVAL}", "checkpoint.keep_latest=9",
                  "model.initializer_range=0.1", f"precision.compute={dtype}")
        said = place.train("with" + dtype, 2, *shared, sampling(prompts, seed=5, temperature=0.9, top_p=0.9))
        place.train("without" + dtype, 2, *shared)
        assert place.records("with" + dtype) == place.records("without" + dtype)
        samples = samples_of(place, "with" + dtype)
        assert sorted(samples) == [INTERVAL, STEPS] and samples[INTERVAL] != samples[STEPS], samples
        for step, found in samples.items():
            expected = generated("--checkpoint", place.checkpoint("with" + dtype, step), "--max-tokens", str(TOKENS),
                                 "--seed", "5", "--temperature", "0.9", "--top-p", "0.9",
                                 *[word for prompt in prompts for word in ("--prompt", prompt)])
            assert found == [(one["prompt"], one["text"]) for one in expected], (dtype, step, found, expected)
            assert found[0] != found[2], found
        assert f"step {STEPS}/{STEPS}  samples  (" in said and "\n  " + prompts[0] in said, said
        seconds = json.loads(tokamak("report", place.run("with" + dtype), "--json"))["seconds"]
        logged = place.records("with" + dtype, "time/samples")
        assert abs(seconds["samples"] - sum(logged.values())) < 0.01 and seconds["samples"] > 0, (seconds, logged)
    assert "samples of text" in tokamak("report", place.run("withf32"), "--text")


def resumed(place):
    """a run that was stopped and resumed has the texts of an uninterrupted run"""
    prompts = prompts_of(place)
    shared = (f"training.max_steps={STEPS}", sampling(prompts))
    place.train("whole", 1, *shared)
    place.train("parts", 1, *shared, "--stop-at-step", "2", expect=75)
    place.train("parts", 1, *shared)
    assert samples_of(place, "parts") == samples_of(place, "whole") != {}


def stopped(place):
    """a signal while texts are made stops the run within them"""
    prompts = [prompts_of(place)[0]] * 8
    config = place.config("stopped")
    command = mpirun(2, "train", config, "training.max_steps=100000", "data.sequence_length=256", "training.global_batch_tokens=1024",
                     "model.max_position_embeddings=4096", "training.micro_batch_size=1",
                     "training.samples=" + json.dumps(dict(prompts=prompts, interval=1, tokens=4000)))
    with subprocess.Popen(command, env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        while not os.path.exists(place.run("stopped") + "/metrics.jsonl") or not place.records("stopped"):
            assert run.poll() is None, run.communicate()[0]
            time.sleep(0.01)
        (rank,) = [pid for pid in children(run.pid)][:1]
        os.kill(rank, signal.SIGTERM)
        said = run.communicate(timeout=60)[0]
    assert run.returncode == 75 and "signal 15: stopping after step" in said, (run.returncode, said)
    print("  " + "; ".join(line[9:] for line in said.splitlines() if "cut short" in line or "stopping" in line))


def children(pid):
    """The ranks that mpirun has started."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                command, rest = file.read().rsplit(") ", 1)
        except (OSError, ValueError):
            continue
        if name.isdigit() and int(rest.split()[1]) == pid and command.endswith("(tokamak"):
            yield int(name)


def refusals(place):
    """no interval, a prompt that is too long or empty, data without a tokenizer: exit 2, with file, line, key and
    value, before there is a run"""
    text = CONFIG.replace("optimizer:", "  samples:\n    interval: {interval}\n    prompts: {prompts}\noptimizer:").replace(
        "training: {{max_steps: 50, global_batch_tokens: 768, micro_batch_size: 2, validation_sequences: 5}}",
        "training:\n  max_steps: 50\n  global_batch_tokens: 768\n  micro_batch_size: 2")
    bare = place.file("bare")
    shutil.copytree(place.data + "/train", bare)
    with open(bare + "/manifest.json") as file:
        manifest = json.load(file)
    manifest["tokenizer"]["file"] = ""
    with open(bare + "/manifest.json", "w") as file:
        json.dump(manifest, file)
    lines = text.splitlines()
    interval_line = next(i for i, line in enumerate(lines, 1) if "interval: {" in line)
    for interval, prompts, overrides, place_of, words in (
            (0, ["ab"], [], interval_line, ["key 'training.samples.interval' (value 0) must be at least 1"]),
            (5, ["ab", "ab " * 60], [], interval_line + 1,
             ["key 'training.samples.prompts[1]' (value 'ab ab", "tokens", "32 at most (data.sequence_length)"]),
            (5, [""], [], interval_line + 1, ["key 'training.samples.prompts[0]' (value '') has no tokens"]),
            (5, ["ab"], [f"data.sources=[{{path: {bare}}}]", "data.validation=[]"], interval_line + 1,
             ["key 'training.samples.prompts' (value 'ab') needs a tokenizer", bare])):
        path = place.config("refused", text.replace("{interval}", str(interval)).replace(
            "{prompts}", json.dumps(prompts).replace("{", "{{").replace("}", "}}")))
        for ranks in (1, 2):
            done = call(mpirun(ranks, "train", path, *overrides))
            assert done.returncode == 2 and done.stdout.count("error") == 1, (interval, prompts, done)
            for word in (f"refused.yaml:{place_of}: ", *words):
                assert word in done.stdout, (word, done.stdout)
    assert not os.path.exists(place.run("refused"))
    done = call([TOKAMAK, "doctor", place.config("doctor"), sampling(["ab " * 60])])
    assert done.returncode == 2 and "training.samples.prompts[0]" in done.stdout, done


main([as_generated, resumed, stopped, refusals])
