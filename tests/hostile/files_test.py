"""Hostile files: each reader of foreign files meets each kind of damage. It gives one clear error or reads on. It never
crashes, exits with a bug's code, hangs, takes gigabytes, prints a terminal's escapes, or writes a file elsewhere. CI
gives each format every second damage, and those of FOUND. HOSTILE=all runs three of each, with each command. The files
are always the same; the arguments pick formats."""
import itertools
import json
import os
import shutil
import struct
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import damage
import judge

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from formats import FORMATS, STEP  # noqa: E402
from harness import Workplace, tokamak  # noqa: E402

ALL = os.environ.get("HOSTILE") == "all"
CONFIG = """\
run:
  name: small
  output_dir: IN/{run}
model:
  hidden_size: 16
  intermediate_size: 32
  num_hidden_layers: 1
  num_attention_heads: 2
  max_position_embeddings: 64
data:
  sequence_length: 32
  sources:
    - path: IN/data/train
training:
  max_steps: {steps}
  global_batch_tokens: 64
precision:
  compute: f32
checkpoint:
  interval: none
metrics:
  tensor_statistics: 1
  trace: "{trace}"
runtime:
  threads_per_rank: 1
"""
QUESTIONS = {
    "hellaswag": {"ctx_a": "A man", "ctx_b": "he sits", "activity_label": "Rest", "endings": ["a", "b", "c", "d"], "label": 1},
    "arc": {"question": "Why?", "choices": {"label": ["A", "B"], "text": ["so", "no"]}, "answerKey": "A"},
    "mmlu": {"question": "Why?", "subject": "high_school", "choices": ["a", "b", "c", "d"], "answer": 2},
    "piqa": {"goal": "To sit", "sol1": "sit", "sol2": "stand", "label": 0},
    "winogrande": {"sentence": "The _ sat.", "option1": "cat", "option2": "hat", "answer": "1"},
}
MACHINE = {"name": "mine", "bf16_flops": 1e14, "f32_flops": 1e13, "memory_bytes": 80 << 30, "memory_rate": 2e12,
           "link_rate": 3e11, "network_rate": 2e11, "gpus_per_node": 8, "watts": 500, "launch_seconds": 4e-6,
           "hop_seconds": 5e-6, "efficiency": {"gemm": 0.6, "attention": 0.5, "native_attention": 0.4, "memory": 0.7,
                                               "bus": 0.6, "contention": 0.1, "beside": 1}, "cpu": False, "source": "test"}


# Cases that failed once with HOSTILE=all: (format, kind of damage, how its commands begin, seed).
FOUND = [
    ("config.json", "another type", "checkpoint import", 1213),
    ("a checkpoint's manifest", "a text of 4 MiB", "checkpoint export", 2242),
    ("a checkpoint's manifest", "a text of 4 MiB", "train IN/config.yaml", 2249),
    ("a checkpoint's manifest", "escapes as a text", "checkpoint export", 2260),
    ("a config", "a count that overflows", "plan IN/fresh.yaml", 3733),
    ("a config", "a value of 4 MiB", "plan IN/fresh.yaml", 3757),
    ("metrics", "200,000 members", "report IN/run", 0),
]


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def lines(record, count=3):
    return (json.dumps(record) + "\n") * count


def make_good(place):
    """Makes the good files that each case begins with, by the program if it can write that format."""
    good = place.file("good")
    shutil.copytree(place.data, good + "/data")
    shutil.copy(place.file("tokenizer.model"), good)
    for name, run, trace in (("config", "run", "1"), ("fresh", "fresh", "")):
        write(f"{good}/{name}.yaml", CONFIG.format(run=run, steps=4, trace=trace).replace("IN/", good + "/"))
    tokamak("train", good + "/config.yaml", "training.max_steps=2")
    for name, record in QUESTIONS.items():
        write(f"{good}/{name}.jsonl", lines(record))
    write(good + "/prompts.jsonl", lines({"prompt": "a b"}))
    write(good + "/text.jsonl", lines({"text": "a b c", "id": 7, "meta": {"a": [1]}}, 20))
    write(good + "/text.txt", "some words\n" * 20)
    write(good + "/eval.txt", "some words\n" * 5)
    write(good + "/machine.json", json.dumps(MACHINE))
    write(good + "/run/hang-20260131T123456Z.txt", "hang, found at 2026-01-31T12:34:56Z\n\nrank 1 on node7: in forward\n")
    write(good + "/run/suspects.txt", "node7\nnode8\n")
    tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", good + "/run/checkpoints", good + "/hf")
    shutil.copytree(good + "/hf", good + "/hf2")
    os.rename(good + "/hf2/model.safetensors", good + "/hf2/model-00001-of-00001.safetensors")
    with open(good + "/hf/model.safetensors", "rb") as file:
        names = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    write(good + "/hf2/model.safetensors.index.json", json.dumps({"metadata": {"total_size": 1}, "weight_map": {
        name: "model-00001-of-00001.safetensors" for name in names if name != "__metadata__"}}))
    return good


class Case:
    """One damage of one format, and one command that reads it."""

    def __init__(self, format_, kind, apply, command, seed):
        self.format, self.kind, self.apply, self.command, self.seed = format_, kind, apply, command, seed
        self.name = f"{format_.name}, {kind}, {' '.join(command[:2])}"

    def run(self, place, good):
        """Returns the faults of the program's answer; empty if there are none."""
        where = tempfile.mkdtemp(prefix="case-", dir=place.path)
        writes = self.command[0] == "train"  # train writes into the run, so it gets copies; others share the files
        shutil.copytree(good, where + "/in", symlinks=True, copy_function=shutil.copy if writes else os.link)
        for name in ("out", "cwd"):
            os.mkdir(f"{where}/{name}")
        for name in ("config.yaml", "fresh.yaml"):
            self.config(where, name)
        path = f"{where}/in/{self.format.file}"
        with open(path, "rb") as file:
            data = file.read()
        os.remove(path)
        self.apply(path, data, damage.seeded(self.name, self.seed))
        before = judge.names_below(where + "/in")
        arguments = [word.replace("IN/", where + "/in/").replace("OUT/", where + "/out/") for word in self.arguments(good)]
        start = time.monotonic()
        code, output, log = judge.start(arguments, where + "/cwd")
        self.seconds = time.monotonic() - start
        faults = judge.faults_of(code, output.replace(where, ""), log.replace(where, ""), self.may_pass(), self.format.prints)
        if self.format.codes and code not in (0, 75, None, *self.format.codes):
            faults.append(f"exit {code}, expected {self.format.codes}")
        left = os.listdir(where + "/cwd") + (os.listdir(where + "/out") if code not in (0, 75, None) else [])
        new = set(judge.names_below(where + "/in")) - set(before) if self.command[0] != "train" else ()
        if left or new:
            faults.append(f"left behind: {sorted(left)[:3]} {sorted(new)[:3]}")
        shutil.rmtree(where)
        return faults, log

    def config(self, where, name):
        text = CONFIG.format(run="run" if name == "config.yaml" else "fresh", steps=4, trace="")
        os.remove(f"{where}/in/{name}")  # a link to the good one
        write(f"{where}/in/{name}", text.replace("IN/", where + "/in/"))

    def arguments(self, good):
        return [word.replace("IN/step", "IN/" + STEP.rstrip("/")) for word in self.command]

    def may_pass(self):
        """Whether the command may succeed: the damaged file may be legal, or another one replaces it."""
        survives = self.format.text or self.format.optional or self.command[0] == "train" or self.command[1] == "inspect"
        return survives or self.kind not in damage.PLACES


def damages_of(format_):
    """kind -> function of a path, of the good data and of a random generator, which puts the damage there."""
    found = {kind: lambda path, data, r, f=make: f(path) for kind, make in damage.PLACES.items()}
    for kind, change in {**damage.BYTES, **format_.more}.items():
        found[kind] = lambda path, data, r, f=change: write(path, f(r, data))
    if format_.parts:
        for kind, change in format_.table.items():
            found[kind] = lambda path, data, r, f=change: write(path, apply_to_parts(format_.parts, f, data, r))
    return found


def cases():
    """Formats by damages: every second damage with the next of the format's commands, each kind at least once, and
    those found before. HOSTILE=all: every damage with all commands."""
    number, seen = itertools.count(), set()
    for row, format_ in enumerate(FORMATS):
        damages = damages_of(format_)
        for at, (kind, apply) in enumerate(damages.items()):
            if kind in format_.without or (not ALL and (row + at) % 2 and kind in seen):
                continue
            seen.add(kind)
            variants = 3 if ALL and kind not in damage.PLACES else 1
            commands = format_.commands if ALL else [format_.commands[at // 2 % len(format_.commands)]]
            for command in commands:
                for _ in range(variants):
                    yield Case(format_, kind, apply, command, next(number))
        for name, kind, words, seed in FOUND if not ALL else []:
            if name == format_.name:
                for command in format_.commands:
                    if " ".join(command).startswith(words):
                        yield Case(format_, kind, damages[kind], command, seed)


def apply_to_parts(parts, change, data, random_):
    value, again = parts(data)
    return again(change(random_, value))


def main():
    chosen = [case for case in cases() if len(sys.argv) == 1 or case.format.name in sys.argv[1:]]
    with Workplace() as place:
        good = make_good(place)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda case: case.run(place, good), chosen))
        assert judge.names_below(good)
    held = 0
    for case, (faults, log) in zip(chosen, answers):
        held += not faults
        if faults:
            print(f"FAILED: {case.name}, seed {case.seed}: {'; '.join(faults)}\n    {ascii(log[:300])} ... {ascii(log[-300:])}")
    slow = sorted(chosen, key=lambda case: -case.seconds)[:5]
    print("slowest:", ", ".join(f"{case.name} ({case.seconds:.1f} s)" for case in slow))
    print(f"{held} of {len(chosen)} hostile files held, of {len({case.format.name for case in chosen})} formats and "
          f"{len({case.kind for case in chosen})} kinds of damage")
    return held < len(chosen)


sys.exit(main())
