"""Text as data.sources, by the real program: it is tokenized once, before the run, and every number of ranks then sees
the same samples. Bad text ends all ranks. Text that changed is tokenized again. Runs that share a cache make a data set
once."""
import fcntl
import gzip
import json
import os
import re
import shutil
import subprocess
import time

from harness import CONFIG, ENV, TOKAMAK, call, main, mpirun, relative, tokamak

TEXT = CONFIG.replace("{{path: {data}/train}}", "{{path: {data}/../web.jsonl, tokenizer: {data}/../tokenizer.model}}").replace(
    "{{path: {data}/validation}}", "{{path: {data}/../held.jsonl.gz, tokenizer: {data}/../tokenizer.model}}")
SHORT = ("training.max_steps=6",)


def write_text(place):
    """web.jsonl and held.jsonl.gz: the documents of the workplace, cut in two"""
    with open(place.file("text.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()
    with open(place.file("web.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(lines[:130])
    with gzip.open(place.file("held.jsonl.gz"), "wt", encoding="utf-8") as file:
        file.writelines(lines[130:])


def made(cache):
    """The names of the data sets in a cache. Anything else but their locks must not be there."""
    names = os.listdir(cache) if os.path.isdir(cache) else []
    sets = sorted(name for name in names if os.path.exists(f"{cache}/{name}/manifest.json"))
    assert sorted(names) == sorted(sets + [name for name in names if name.endswith(".lock")]), names
    return sets


def cache_of(place, name):
    return place.run(name) + "/data"


def shared(place, name):
    return (f"data.cache={place.file(name)}",)


def ranks(place):
    """1, 2 and 3 ranks, plain and gzip text: the losses of a run on `data tokenize`'s data sets, and the same tokens"""
    write_text(place)
    for part in ("web.jsonl", "held.jsonl.gz"):
        said = tokamak("data", "tokenize", "--input", place.file(part), "--tokenizer", place.file("tokenizer.model"),
                       "--output", place.file("of_" + part))
        with (gzip.open if part.endswith(".gz") else open)(place.file(part), "rt", encoding="utf-8") as file:
            text = sum(len(json.loads(line)["text"].encode()) for line in file)
        tokens = int(re.search(r"(\d+) tokens, \d+ shard", said)[1])
        assert f"({text / tokens:.2f} bytes of text a token)" in said, (text, tokens, said)
    place.train("tokens", 1, *SHORT, f"data.sources=[{{path: {place.file('of_web.jsonl')}}}]",
                f"data.validation=[{{path: {place.file('of_held.jsonl.gz')}}}]")
    expected = place.records("tokens")
    assert len(expected) == 6
    for count in (1, 2, 3):
        name = f"text{count}"
        output = place.train(name, count, *SHORT, text=TEXT)
        assert output.count("tokenizing the text") == 2 and output.count("tokenized") == 2, output
        losses = place.records(name)
        assert losses == expected if count == 1 else losses.keys() == expected.keys(), losses
        assert all(relative(losses[step], expected[step]) < 1e-5 for step in expected), (count, losses, expected)
        held = [place.records(run, "validation/loss")[6] for run in (name, "tokens")]
        assert relative(*held) < 1e-5, held
        sets = made(cache_of(place, name))
        assert len(sets) == 2 and sets == made(cache_of(place, "text1")), sets
        tokens = set()
        for data_set in sets:
            with open(f"{cache_of(place, name)}/{data_set}/part-00000.bin", "rb") as file:
                tokens.add(file.read())
        for part in ("web.jsonl", "held.jsonl.gz"):
            with open(place.file("of_" + part) + "/part-00000.bin", "rb") as file:
                assert file.read() in tokens, part


def resume(place):
    """3 ranks stop after step 3 of 6, and 2 go on: nothing is tokenized again, and the losses are those of one run"""
    place.train("moved", 3, *SHORT, "--stop-at-step", "3", text=TEXT, expect=75)
    output = place.train("moved", 2, *SHORT, text=TEXT)
    assert "tokenizing" not in output and output.count("was tokenized before, into") == 2 and "step 3" in output, output
    losses, expected = place.records("moved"), place.records("tokens")
    assert sorted(losses) == list(range(1, 7))
    assert all(relative(losses[step], expected[step]) < 1e-5 for step in expected), (losses, expected)


def bad_line(place):
    """a line in the middle that is no JSON: exit code 3 on all ranks, with file and line; nothing is left of it"""
    with open(place.file("web.jsonl"), encoding="utf-8") as file:
        lines = file.readlines()
    with open(place.file("bad.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(lines[:60] + ['{"text": "cut\n'] + lines[60:])
    source = (f"data.sources[0].path={place.file('bad.jsonl')}", *shared(place, "bad_cache"))
    for count in (1, 3):
        output = place.train(f"bad{count}", count, *SHORT, *source, text=TEXT, expect=3)
        assert f"{place.file('bad.jsonl')}:61" in output, output
        assert made(place.file("bad_cache")) == [], os.listdir(place.file("bad_cache"))
        assert not os.path.exists(place.run(f"bad{count}") + "/checkpoints"), "a run began"
    with open(place.file("bad.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    place.train("mended", 2, *SHORT, *source, text=TEXT)
    assert all(relative(value, place.records("tokens")[step]) < 1e-5 for step, value in place.records("mended").items())
    output = place.train("bad3", 1, *SHORT, *source, "data.sources[0].tokenizer=''", text=TEXT, expect=2)
    assert "is text and has no tokenizer" in output, output


def changes(place):
    """a line more, or another tokenizer: another data set is made, and a resume on it is refused"""
    cache = shared(place, "changes")
    place.train("before", 1, *SHORT, *cache, "--stop-at-step", "2", text=TEXT, expect=75)
    first = made(place.file("changes"))
    with open(place.file("web.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps({"text": "one more document"}) + "\n")
    output = place.train("before", 1, *SHORT, *cache, text=TEXT, expect=3)
    assert output.count("tokenizing the text") == 1 and "web.jsonl" in output, output
    assert "data" in output and "checkpoint" in output, output
    place.train("grown", 1, *SHORT, *cache, text=TEXT)
    second = made(place.file("changes"))
    assert len(second) == 3 and set(first) < set(second), (first, second)
    tokamak("tokenizer", "train", "--input", place.file("text.jsonl"), "--vocab-size", "350", "--output",
            place.file("other.model"))
    both = [f"data.{part}[0].tokenizer={place.file('other.model')}" for part in ("sources", "validation")]
    place.train("other", 1, *SHORT, *cache, *both, text=TEXT)
    assert len(made(place.file("changes"))) == 5
    write_text(place)


def start(place, name, ranks, *overrides):
    """Begins a run. Returns (process, a function that reads its log)."""
    path = place.file(name + ".log")
    with open(path, "w") as out:
        arguments = ["train", place.config(name, TEXT), *SHORT, *overrides]
        process = subprocess.Popen([TOKAMAK, *arguments] if ranks == 1 else mpirun(ranks, *arguments), env=ENV,
                                   stdout=out, stderr=out)

    def log():
        with open(path) as file:
            return file.read()

    return process, log


def wait_for(words, process, log):
    end = time.monotonic() + 120
    while words not in log():
        assert process.poll() is None and time.monotonic() < end, log()
        time.sleep(0.05)


def one_cache(place):
    """two runs begin at once on an empty cache; others wait for the data set of another process, or are stopped"""
    cache = place.file("cache")
    both = [start(place, name, 1, *shared(place, "cache")) for name in ("one", "two")]
    for process, log in both:
        assert process.wait(timeout=240) == 0, log()
    assert place.records("one") == place.records("two") == place.records("text1")
    sets = made(cache)
    assert len(sets) == 2
    for data_set in sets:
        shutil.move(f"{cache}/{data_set}", place.file(data_set))
    locks = [open(f"{cache}/{data_set}.lock", "w") for data_set in sets]
    for lock in locks:
        fcntl.flock(lock, fcntl.LOCK_EX)
    waiting, log = start(place, "third", 2, *shared(place, "cache"))
    wait_for("waiting for it", waiting, log)
    stopped, its_log = start(place, "fourth", 1, *shared(place, "cache"))
    wait_for("waiting for it", stopped, its_log)
    stopped.terminate()
    assert stopped.wait(timeout=120) == 75, its_log()
    assert waiting.poll() is None and made(cache) == []
    for data_set in sets:  # what the other process would do; it still holds its locks
        shutil.move(place.file(data_set), f"{cache}/{data_set}")
    assert waiting.wait(timeout=120) == 0, log()
    for lock in locks:
        lock.close()
    assert "info tokenized" not in log(), log()
    losses, expected = place.records("third"), place.records("text1")
    assert losses.keys() == expected.keys() and all(relative(losses[s], expected[s]) < 1e-5 for s in expected)


def plan_and_doctor(place):
    """both tokenize nothing and say what they do not know. A plan has the memory of a run on tokens."""
    config = place.config("plan", TEXT)
    output = call([TOKAMAK, "plan", config, "--ranks", "2"])
    assert output.returncode == 0, output.stdout
    assert "web.jsonl is text of" in output.stdout and "is unknown until tokamak train tokenizes it" in output.stdout
    assert not os.path.exists(place.run("plan")), "a plan wrote something"
    text, tokens = (json.loads(tokamak("plan", of, "--json")) for of in (config, place.config("plan_tokens")))
    for of in (text, tokens):
        of.pop("data_memory", None)  # the reader's, which depends on the number of tokens
    assert text == tokens
    absent = tokamak("plan", config, f"data.sources[0].path={place.file('absent.jsonl')}")
    assert "is text that is not here" in absent, absent
    assert "was tokenized before" in tokamak("plan", config, f"data.cache={place.file('cache')}")
    checks = {}
    for cache in ("nowhere", "cache"):
        done = subprocess.run([TOKAMAK, "doctor", config, f"data.cache={place.file(cache)}", "--json"], env=ENV, text=True,
                              stdout=subprocess.PIPE, check=False)
        checks[cache] = {check["name"]: check for check in json.loads(done.stdout)["checks"]}["data"]
        assert checks[cache]["status"] == "ok", checks
    assert "of text, which train tokenizes before the run" in checks["nowhere"]["value"], checks
    (facts,) = checks["nowhere"]["ranks"]
    (known,) = checks["cache"]["ranks"]
    assert facts["tokens"] == 0 and "estimated_tokens" not in known, checks
    assert 0 < known["tokens"] < facts["estimated_tokens"], checks  # those of validation are estimated, too
    assert not os.path.exists(place.file("nowhere")) and not os.path.exists(place.run("plan"))
    for command in ("inspect", "verify"):
        output = call([TOKAMAK, "data", command, place.file("web.jsonl")])
        assert output.returncode == 3 and "is text, not tokens" in output.stdout, output.stdout


main([ranks, resume, bad_line, changes, one_cache, plan_and_doctor])
