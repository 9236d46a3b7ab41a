"""CORE by `tokamak eval` against an independent implementation of nanochat's rules on the exported model, by
transformers: core_test.py [case]."""
import csv
import json
import os
import random
from pathlib import Path

from reference import export  # first of these: enters the right Python
import torch
import transformers
import yaml
from harness import TOKAMAK, call, main, tokamak

# kind, shots and baseline in percent; (N): the delimiter "\nAnswer: "
TASKS = {
    "hellaswag_zeroshot": ("multiple_choice", 0, 25), "jeopardy": ("language_modeling", 4, 0),
    "bigbench_qa_wikidata": ("language_modeling", 3, 0), "arc_easy": ("multiple_choice", 2, 25),
    "arc_challenge": ("multiple_choice", 2, 25), "copa": ("multiple_choice", 0, 50),
    "commonsense_qa": ("multiple_choice", 3, 40.3), "piqa": ("multiple_choice", 2, 50),
    "openbook_qa": ("multiple_choice", 0, 25), "lambada_openai": ("language_modeling", 0, 0),
    "hellaswag": ("multiple_choice", 2, 25), "winograd": ("schema", 0, 50), "winogrande": ("schema", 2, 50),
    "bigbench_dyck_languages": ("language_modeling", 2, 0), "agi_eval_lsat_ar": ("multiple_choice", 3, 25),
    "bigbench_cs_algorithms": ("language_modeling", 2, 0), "bigbench_operators": ("language_modeling", 2, 0),
    "bigbench_repeat_copy_logic": ("language_modeling", 2, 0), "squad": ("language_modeling", 1, 0),
    "coqa": ("language_modeling", 0, 0), "boolq": ("multiple_choice", 2, 62),
    "bigbench_language_identification": ("multiple_choice", 2, 25),
}
NEWLINE = ("jeopardy", "arc_easy", "arc_challenge", "piqa", "boolq")
ITEMS = 12
CONTEXT = 96  # fewer than some prompts have


class Rows:
    def __init__(self, place):
        self.random = random.Random(5)
        self.words = sorted({word for document in place.documents() for word in document.rstrip(".").split()})

    def text(self, least, most):
        return " ".join(self.random.choice(self.words) for _ in range(self.random.randint(least, most)))

    def row(self, kind):
        if kind == "multiple_choice":
            choices = [self.text(1, 3) for _ in range(4)]
            if self.random.random() < 0.4:  # a common beginning is not scored; one choice begins others
                choices = [choices[0], choices[0] + " " + choices[1], choices[0] + " " + choices[2]]
            self.random.shuffle(choices)
            return {"query": self.text(2, 7), "choices": choices, "gold": self.random.randrange(len(choices))}
        if kind == "schema":
            return {"context_options": [self.text(2, 5) for _ in range(2)], "continuation": self.text(1, 4),
                    "gold": self.random.randrange(2)}
        return {"context": self.random.choice(["", " ", "\n"]) + self.text(2, 7) + self.random.choice(["", " ", "\n"]),
                "continuation": self.text(1, 1)}


def write_bundle(place, name, tasks, rows):
    bundle = Path(place.file(name))
    (bundle / "eval_data/some").mkdir(parents=True)
    (bundle / "core.yaml").write_text(yaml.safe_dump({"icl_tasks": [
        {"label": label, "dataset_uri": f"some/{label}.jsonl", "num_fewshot": [shots], "icl_task_type": kind,
         "has_categories": False, **({"continuation_delimiter": "\nAnswer: "} if label in NEWLINE else {})}
        for label, (kind, shots, _) in tasks.items()]}))
    with open(bundle / "eval_meta_data.csv", "w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["Eval Task", "Task Category", "Random baseline", "Description"])
        table.writerows([label, "a, b", baseline, 'of "many"\nlines'] for label, (_, _, baseline) in tasks.items())
    for label, of_task in rows.items():
        (bundle / f"eval_data/some/{label}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of_task))
    return str(bundle)


class Nanochat:
    """Its rules, written from their description."""

    def __init__(self, model):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32,
                                                                       attn_implementation="eager").eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(model)

    def encode(self, text):
        return [self.tokenizer.bos_token_id] + self.tokenizer(text, add_special_tokens=False)["input_ids"]

    @staticmethod
    def halves(kind, row):
        """[(context, continuation)] of each option, and the right one."""
        if kind == "multiple_choice":
            return [(row["query"], choice) for choice in row["choices"]], row["gold"]
        if kind == "schema":
            return [(context, row["continuation"]) for context in row["context_options"]], row["gold"]
        return [(row["context"].strip(), row["continuation"])], 0

    def item(self, kind, delimiter, shots, rows, at):
        """(whether it is right, the sums of log p of its options that have scored tokens)"""
        others = random.Random(1234 + at).sample([i for i in range(len(rows)) if i != at], shots)
        before = ""
        for i in others:
            options, gold = self.halves(kind, rows[i])
            before += delimiter.join(options[gold]) + "\n\n"
        options, gold = self.halves(kind, rows[at])
        prompts = [self.encode(before + delimiter.join(option)) for option in options]
        shortest = min(map(len, prompts))
        if kind == "multiple_choice":
            same = next((i for i in range(shortest) if len({prompt[i] for prompt in prompts}) > 1), shortest)
            starts = [same] * len(prompts)
        elif kind == "schema":
            same = next((i for i in range(shortest) if len({prompt[-1 - i] for prompt in prompts}) > 1), shortest)
            starts = [len(prompt) - same for prompt in prompts]
        else:
            without = self.encode((before + options[0][0] + delimiter).strip())
            assert prompts[0][:len(without)] == without and len(without) < len(prompts[0])
            starts = [len(without)]
        losses, sums, greedy = [], [], True
        for prompt, start in zip(prompts, starts):
            cut = max(0, len(prompt) - CONTEXT)
            ids = torch.tensor([prompt[cut:]])
            with torch.no_grad():
                log_p = self.model(ids).logits[0].log_softmax(-1)
            scored = range(start - cut, ids.shape[1])
            if len(scored) == 0:
                losses.append(float("nan"))
                continue
            sums.append(sum(log_p[i - 1, ids[0, i]].item() for i in scored))
            losses.append(-sums[-1] / len(scored))
            greedy = all(log_p[i - 1].argmax() == ids[0, i] for i in scored)
        right = greedy if kind == "language_modeling" else losses.index(min(losses)) == gold
        return right, sums

    def task(self, label, rows, limit):
        kind, shots, baseline = TASKS[label]
        delimiter = "\nAnswer: " if label in NEWLINE else " "
        rows = list(rows)
        random.Random(1337).shuffle(rows)
        rows = rows[:limit] if limit else rows
        items = [self.item(kind, delimiter, shots, rows, at) for at in range(len(rows))]
        acc = sum(right for right, _ in items) / len(items)
        return acc, (acc - baseline / 100) / (1 - baseline / 100), [sums for _, sums in items]


def train(place):
    """A model whose likeliest words are some continuations."""
    if not os.path.exists(place.run("judged")):
        place.train("judged", 2, "training.max_steps=60", f"model.max_position_embeddings={CONTEXT}",
                    "model.initializer_range=0.1")
    return place.run("judged") + "/checkpoints"


def with_likely_words(checkpoints, rows):
    """Every other continuation becomes the token that the model likes best after the context alone."""
    contexts = [row["context"].strip() for row in rows[::2]]
    done = call([TOKAMAK, "generate", "--jsonl", "--bos", "--checkpoint", checkpoints, "--max-tokens", "1",
                 "--temperature", "0", *(word for context in contexts for word in ("--prompt", context))])
    words = [json.loads(line)["text"] for line in done.stdout.splitlines() if line.startswith("{")]
    for row, word in zip(rows[::2], words, strict=True):
        if word.startswith(" ") and word.strip():
            row["continuation"] = word[1:]
    return rows


def ours(place, bundle, *arguments):
    output, samples = place.file("core.json"), place.file("core_samples.jsonl")
    tokamak("eval", *arguments, "--core", bundle, "--context", str(CONTEXT), "--output", output, "--samples",
            samples)
    lines = [json.loads(line) for line in Path(samples).read_text().splitlines()]
    return json.loads(Path(output).read_text())["results"]["core"], [line["log_likelihoods"] for line in lines]


def core(place):
    """all 22 tasks have nanochat's answers and log-likelihoods, and so CORE; with a limit, and during training"""
    checkpoints = train(place)
    model = export(place, "core", "--dtype", "f32", "--bos", source=checkpoints)
    texts = Rows(place)
    rows = {label: [texts.row(kind) for _ in range(ITEMS)] for label, (kind, _, _) in TASKS.items()}
    for label in ("lambada_openai", "coqa"):
        rows[label] = with_likely_words(checkpoints, rows[label])
    bundle = write_bundle(place, "bundle", TASKS, rows)
    nanochat = Nanochat(model)
    for limit in (0, 6):
        found, sums = ours(place, bundle, "--model", model, "--limit", str(limit))
        parts, centred = found["parts"], []
        assert list(parts) == sorted(TASKS) or list(parts) == list(TASKS), list(parts)
        expected_sums = []
        for label in TASKS:
            acc, of_task, of_items = nanochat.task(label, rows[label], limit)
            assert parts[label]["acc"] == acc and abs(parts[label]["centred"] - of_task) < 1e-12, (label, parts[label], acc)
            centred.append(of_task)
            expected_sums += of_items
        assert abs(found["core"] - sum(centred) / 22) < 1e-12, (found["core"], centred)
        for mine, theirs in zip(sums, expected_sums, strict=True):
            assert len(mine) == len(theirs) and all(abs(a - b) < 1e-4 + 1e-5 * abs(b) for a, b in zip(mine, theirs)), (
                mine, theirs)
        if limit == 0:
            assert 0 < parts["lambada_openai"]["acc"] < 1, parts
        print(f"  limit {limit}: {len(sums)} items, core {found['core']:.6f}")
    place.train("with", 2, "training.max_steps=2", "data.sequence_length=64", "training.micro_batch_size=1",
                "training.evals=[{task: core, path: %s, limit: 6}]" % bundle)
    output = place.file("of_step.json")
    tokamak("eval", "--checkpoint", place.checkpoint("with", 2), "--context", "64", "--limit", "6", "--task",
            f"core={bundle}", "--output", output)
    assert place.records("with", "evals/core/core") == {
        2: json.loads(Path(output).read_text())["results"]["core"]["core"]}, place.records("with", "evals/core/core")


def parts_and_errors(place):
    """a bundle without all tasks has no CORE; what is wrong in it is named"""
    checkpoints = train(place)
    texts = Rows(place)
    tasks = {label: TASKS[label] for label in ("winograd", "copa")}
    rows = {label: [texts.row(kind) for _ in range(ITEMS)] for label, (kind, _, _) in tasks.items()}
    bundle = write_bundle(place, "few", tasks, rows)
    found, _ = ours(place, bundle, "--checkpoint", checkpoints)
    assert "core" not in found and found["missing_tasks"] == 20 and len(found["parts"]) == 2, found
    for name, change, code, expected in (
            ("core.yaml", lambda text: text.replace("schema", "riddle"), 3, "winograd has the icl_task_type 'riddle'"),
            ("core.yaml", lambda text: text.replace("label:", "name:"), 3, "a task has no label"),
            ("core.yaml", lambda text: "a: 1", 3, "has no list icl_tasks"),
            ("eval_meta_data.csv", lambda text: text.replace("copa", "cope"), 3, "copa has no row in eval_meta_data.csv"),
            ("eval_meta_data.csv", lambda text: text.replace("Random", "A"), 3, 'has no column "Random baseline"'),
            ("eval_data/some/copa.jsonl", lambda text: text.replace('"gold"', '"silver"'), 3, "copa.jsonl:1: 'gold' is missing"),
            ("eval_data/some/copa.jsonl", lambda text: "", 3, "copa.jsonl has 0 items")):
        path = Path(bundle) / name
        before = path.read_text()
        path.write_text(change(before))
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, "--task", f"core={bundle}"])
        assert done.returncode == code and expected in done.stdout, (expected, done.stdout)
        path.write_text(before)


main([core, parts_and_errors])
