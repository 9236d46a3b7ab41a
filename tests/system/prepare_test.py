"""`tokamak data prepare` by the real program: ranks and array jobs share the work, and a WARC of real pages becomes a
trained model by two commands."""
import json
import os
import re
import subprocess
import sys

from harness import CONFIG, TOKAMAK, call, main, mpirun, tokamak

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MANUALS = "/usr/share/doc/installation-guide-amd64"
SKIPPED = 77

PREPARE = """\
inputs: [{place}/text.jsonl]
output: {place}/{name}
part_bytes: 8Ki
threads: 1
stages: [rules: {{sets: [gopher_repetition]}}, exact, minhash: {{bands: 3, rows: 3}}]
tokens: {{tokenizer: {place}/tokenizer.model, validation: 10%}}
"""


def write(place, name, text):
    with open(place.file(name + ".yaml"), "w") as out:
        out.write(text.format(place=place.path, name=name))
    return place.file(name + ".yaml")


def shards(place, name):
    return [open(f"{place.file(name)}/{part}/part-00000.bin", "rb").read() for part in ("train", "validation")]


def ranks(place):
    """3 ranks under mpirun, and 3 tasks of an array that start one after another: the bits of one process"""
    tokamak("data", "prepare", write(place, "one", PREPARE))
    done = call(mpirun(3, "data", "prepare", write(place, "three", PREPARE)), timeout=60)
    assert done.returncode == 0 and done.stdout.count("Dropped documents") == 1, done.stdout
    assert shards(place, "three") == shards(place, "one")

    path = write(place, "array", PREPARE)
    for number in (2, 0, 1):  # each ends before the next starts
        done = call([TOKAMAK, "data", "prepare", path], {"SLURM_ARRAY_TASK_ID": str(4 + number), "SLURM_ARRAY_TASK_MIN": "4",
                                                         "SLURM_ARRAY_TASK_COUNT": "3"})
        assert done.returncode == 0, done.stdout
    assert shards(place, "array") == shards(place, "one")
    bad = call([TOKAMAK, "data", "prepare", path], {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "3"})
    assert bad.returncode == 2 and "SLURM_ARRAY_TASK_ID=9" in bad.stdout, bad.stdout


def bad_configs(place):
    """one error with file, line and key, and exit code 2; a missing input or model is exit code 3"""
    def refused(text, *wanted, code=2):
        done = call([TOKAMAK, "data", "prepare", write(place, "bad", text)])
        assert done.returncode == code, done.stdout
        for part in wanted:
            assert part in done.stdout, (part, done.stdout)

    refused("output: {place}/o\n", "bad.yaml: key 'inputs' is required")
    refused(PREPARE.replace("minhash:", "minhas:"), "bad.yaml:5", "did you mean 'minhash'?")
    refused(PREPARE.replace("bands: 3", "bands: 0"), "bad.yaml:5", "'stages[2].minhash.bands'", "must be from 1 to 1000")
    refused(PREPARE.replace("[gopher_repetition]", "[gopher]"), "bad.yaml:5", "must be one of gopher_quality")
    refused(PREPARE.replace("text.jsonl", "none*.jsonl"), "matches none", code=3)
    refused(PREPARE.replace("exact", "language: {{model: none.bin}}"), "none.bin", code=3)
    refused(PREPARE.replace("tokenizer.model", "none.model"), "none.model", code=3)


def shipped(place):
    """configs/prepare/ loads, and docs/prepare.md is what the program prints"""
    names = sorted(os.listdir(f"{ROOT}/configs/prepare"))
    assert "manuals.yaml" in names and "fineweb.yaml" in names, names
    for name in names:
        tokamak("data", "prepare", f"{ROOT}/configs/prepare/{name}", "--print-config")
    with open(f"{ROOT}/docs/prepare.md") as file:
        assert file.read() == tokamak("data", "prepare", "--config-reference"), "docs/prepare.md is out of date"


def explained(place):
    """--explain names a document's stages, values and the rule that dropped it"""
    path = write(place, "explained", PREPARE.replace("[gopher_repetition]", "[gopher_quality]"))
    with open(place.file("text.jsonl")) as file:
        offset = len(file.readline())
    said = tokamak("data", "prepare", path, "--explain", f"{place.file('text.jsonl')}:{offset}")
    assert re.search(r"^rules: DROPPED by gopher_quality.\w+$", said, re.M), said
    assert "minhash: not known" in said, said
    assert re.search(r"^    words +\d+$", said, re.M) and re.search(r"^    stop_words +0$", said, re.M), said
    missing = call([TOKAMAK, "data", "prepare", path, "--explain", "nothing"])
    assert missing.returncode == 3 and "no input has a document 'nothing'" in missing.stdout, missing.stdout


def classifiers(place):
    """train, evaluate and apply: a confusion matrix, and documents with their scores, the best half of them"""
    with open(place.file("labelled.jsonl"), "w") as out:
        for number in range(60):
            out.write(json.dumps({"text": f"the study number {number} shows the method and its results", "label": "good"}) + "\n")
            out.write(json.dumps({"text": f"buy {number} now cheap click offer prize", "label": "bad"}) + "\n")
    model = place.file("quality.bin")
    said = tokamak("data", "classifier", "train", "--input", place.file("labelled.jsonl"), "--output", model,
                   "--buckets", "2000", "--epochs", "30")
    assert re.search(r"^good +0 +\d+ +100.0% +100.0%$", said, re.M), said
    said = tokamak("data", "classifier", "evaluate", "--classifier", model, "--input", place.file("labelled.jsonl"),
                   "--label", "good")
    assert "120 texts, 100.0% with their true label" in said and re.search(r"^0.5 +60 +100.0% +100.0%$", said, re.M), said
    tokamak("data", "classifier", "apply", "--classifier", model, "--input", place.file("labelled.jsonl"), "--output",
            place.file("scored.jsonl"), "--keep", "50%")
    with open(place.file("scored.jsonl")) as lines:
        scored = [json.loads(line) for line in lines]
    assert len(scored) == 60 and all("study" in one["text"] and one["attributes"]["quality"] > 0.5 for one in scored)
    wrong = call([TOKAMAK, "data", "classifier", "apply", "--classifier", model, "--label", "best", "--input",
                  place.file("labelled.jsonl"), "--output", place.file("x.jsonl")])
    assert wrong.returncode == 2 and "it has bad, good" in wrong.stdout, wrong.stdout


def perplexities(place):
    """documents ranked by a checkpoint of ours: those like its training text have the least perplexity"""
    place.train("scorer", 1, "training.max_steps=60")
    with open(place.file("text.jsonl")) as lines:
        texts = [json.loads(line)["text"] for line in lines][:20]
    with open(place.file("mixed.jsonl"), "w") as out:
        for number, text in enumerate(texts):
            out.write(json.dumps({"id": f"own{number}", "text": text}) + "\n")
            out.write(json.dumps({"id": f"reversed{number}", "text": text[::-1]}) + "\n")
    apply = ["data", "classifier", "apply", "--checkpoint", place.run("scorer") + "/checkpoints", "--input",
             place.file("mixed.jsonl"), "--output"]
    tokamak(*apply, place.file("best.jsonl"), "--keep", "50%")
    with open(place.file("best.jsonl")) as lines:
        best = [json.loads(line) for line in lines]
    assert sum(one["id"].startswith("own") for one in best) >= 19, [one["id"] for one in best]
    done = call(mpirun(2, *apply, place.file("two.jsonl"), "--keep", "50%"), timeout=60)
    assert done.returncode == 0, done.stdout
    with open(place.file("two.jsonl")) as lines:
        two = [json.loads(line) for line in lines]
    assert [one["id"] for one in two] == [one["id"] for one in best]
    for a, b in zip(best, two):
        assert abs(a["attributes"]["perplexity"] / b["attributes"]["perplexity"] - 1) < 1e-4, (a, b)


def web(place):
    """real pages in 20 languages, by html_to_warc.py, prepare and train"""
    subprocess.run([sys.executable, f"{ROOT}/scripts/html_to_warc.py", place.file("manuals.warc.gz"), MANUALS], check=True,
                   stdout=subprocess.DEVNULL)
    text = PREPARE.replace("text.jsonl", "manuals.warc.gz").replace("8Ki", "1Mi")
    report = tokamak("data", "prepare", write(place, "web", text))
    assert re.search(r"^  train +\d+ +\d+ +1 ", report, re.M), report
    with open(place.file("web/report.json")) as file:
        counts = json.load(file)["counts"]
    (documents, _), = counts["read"].values()
    assert documents > 1000, documents
    assert os.path.getsize(place.file("web/report.html")) > 10_000
    with open(place.file("web.train.yaml"), "w") as out:
        out.write(CONFIG.format(output=place.run("web"), data=place.file("web")))
    done = call([TOKAMAK, "train", place.file("web.train.yaml"), "training.max_steps=100", "optimizer.lr=1e-2"])
    assert done.returncode == 0, done.stdout
    losses = place.records("web")
    first, last = (sum(losses[step] for step in steps) for steps in (range(1, 6), range(96, 101)))
    assert last < first - 5 * 0.5, (first, last)


if __name__ == "__main__":
    if sys.argv[1:] == ["web"] and not os.path.isdir(MANUALS):
        print("skipped: the package installation-guide-amd64 is not installed")
        sys.exit(SKIPPED)
    main([ranks, bad_configs, shipped, explained, classifiers, perplexities, web])
