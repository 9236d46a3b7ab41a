"""`tokamak eval` against the real lm-evaluation-harness on the same exported model: eval_test.py [case]. The harness's
tasks run unchanged, but read the files that ours reads instead of downloading their data sets."""
import json
import math
import os
import random
from pathlib import Path

os.environ["TQDM_DISABLE"] = "1"

from reference import export  # first of these: enters the right Python
import datasets
import lm_eval
import lm_eval.tasks
from harness import TOKAMAK, call, generated, main, mpirun, tokamak

ITEMS = 250
TASKS = {  # ours: the harness's, its data set, its metrics
    "hellaswag": ("hellaswag", "Rowan/hellaswag", ("acc", "acc_norm")),
    "arc/easy": ("arc_easy", "allenai/ai2_arc", ("acc", "acc_norm")),
    "piqa": ("piqa", "baber/piqa", ("acc", "acc_norm")),
    "winogrande": ("winogrande", "allenai/winogrande", ("acc",)),
    "mmlu": ("mmlu_anatomy", "cais/mmlu", ("acc",)),
    "boolq": ("boolq", "aps/super_glue", ("acc",)),
    "openbookqa": ("openbookqa", "allenai/openbookqa", ("acc", "acc_norm")),
    "commonsense_qa": ("commonsense_qa", "tau/commonsense_qa", ("acc",)),
    "lambada": ("lambada_openai", "EleutherAI/lambada_openai", ("acc", "perplexity")),
    "mmlu_ru": ("m_mmlu_ru", "alexandrainst/m_mmlu", ("acc",)),
}
TEXT_TASK = {"task": "texts", "dataset_path": "texts", "output_type": "loglikelihood_rolling", "test_split": "test",
             "doc_to_text": "", "doc_to_target": "{{text}}",
             "metric_list": [{"metric": metric} for metric in ("word_perplexity", "byte_perplexity", "bits_per_byte")]}


class Texts:
    """Sentences of the model's words, with cases in which rules may differ: white space of all kinds, brackets,
    capitals, letters beyond ASCII, control tokens in the text."""

    ODD = ["Élan", "ÜBER", "straße", "naïve", "Привет", "МИР", "日本", "😀", "[title]", "[substeps]", "[", "]", "a  b", "<s>", "3,14",
           "it's", "\u00a0", "«x»", "e\u0301", "_x"]

    def __init__(self, place):
        self.random = random.Random(11)
        self.words = sorted({word for document in place.documents() for word in document.rstrip(".").split()})

    def sentence(self, least, most):
        words = [self.random.choice(self.ODD if self.random.random() < 0.08 else self.words)
                 for _ in range(self.random.randint(least, most))]
        if self.random.random() < 0.2:
            words[0] = words[0].upper()
        ends = ["", ".", " ", "  ", "\n", "\u2003", "?"]
        return " ".join(words) + self.random.choices(ends, [8, 8, 1, 1, 1, 1, 2])[0]

    def choices(self, count):
        return [self.sentence(1, 9) for _ in range(count)]

    def hellaswag(self):
        return {"ind": 1, "activity_label": self.sentence(1, 3), "ctx_a": self.sentence(3, 20),
                "ctx_b": self.random.choice(["", self.sentence(1, 4)]), "endings": self.choices(4),
                "label": str(self.random.randrange(4))}

    def arc(self):
        labels = self.random.choice([["A", "B", "C", "D"], ["1", "2", "3", "4"], ["A", "B", "C"]])
        return {"id": "x", "question": self.sentence(3, 20),
                "choices": {"text": self.choices(len(labels)), "label": labels}, "answerKey": self.random.choice(labels)}

    def piqa(self):
        return {"goal": self.sentence(2, 15), "sol1": self.sentence(2, 15), "sol2": self.sentence(2, 15),
                "label": self.random.randrange(2)}

    def winogrande(self):
        before, after = self.sentence(2, 8), self.sentence(2, 8)
        return {"sentence": before.replace("_", "") + self.random.choice(["", " "]) + "_ " + after,
                "option1": self.sentence(1, 2), "option2": self.sentence(1, 2), "answer": self.random.choice("12")}

    def mmlu(self, subject="anatomy"):
        return {"question": self.sentence(3, 12), "subject": subject, "choices": self.choices(4),
                "answer": self.random.randrange(4)}

    def mmlu_ru(self):
        return {"instruction": self.sentence(3, 12), **dict(zip(("option_a", "option_b", "option_c", "option_d"),
                                                                self.choices(4))), "answer": self.random.choice("ABCD")}

    def boolq(self):
        return {"passage": self.sentence(5, 20), "question": self.sentence(3, 9), "label": self.random.randrange(2)}

    def openbookqa(self):
        return {"question_stem": self.sentence(3, 12), "choices": {"text": self.choices(4), "label": ["A", "B", "C", "D"]},
                "answerKey": self.random.choice(["A", "B", "C", "D", " B"])}

    def commonsense_qa(self):
        return {"question": self.sentence(3, 12), "choices": {"text": self.choices(5), "label": ["A", "B", "C", "D", "E"]},
                "answerKey": self.random.choice("ABCDE")}

    def lambada(self):
        return {"text": " ".join([self.sentence(4, 20).strip(), self.random.choice(self.words)])}

    def text(self):
        """A text of up to several contexts."""
        return {"text": " ".join(self.sentence(1, 12) for _ in range(self.random.randint(1, 12)))}


def write_records(path, records):
    with open(path, "w") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_tasks(place):
    """{our task: its records}, written as JSON lines, too."""
    texts = Texts(place)
    records = {task: [getattr(texts, task.split("/")[0])() for _ in range(ITEMS)] for task in (*TASKS, "text")}
    for task, items in records.items():
        write_records(file_of(place, task), items)
    return records


def file_of(place, task, what=""):
    return place.file(task.replace("/", "_") + what + ".jsonl")


def theirs(model, tasks, records, pools=None, num_fewshot=0, through=None):
    """The harness's results and samples. Examples are from `pools`, by task. `through`: a server's arguments for it."""
    ours = {path: task for task, (_, path, _) in TASKS.items()} | {"texts": "text"}

    def load_dataset(path, name=None, **_):
        def rows(of):
            found = (of or records)[ours[path]]
            of_subject = [row for row in found if row.get("subject", name) == name] if path == "cais/mmlu" else found
            return datasets.Dataset.from_list(of_subject)

        return datasets.DatasetDict({"train": rows(pools), "dev": rows(pools), "validation": rows(None), "test": rows(None)})

    datasets.load_dataset = load_dataset
    return lm_eval.simple_evaluate(
        model="local-completions" if through else "hf", device="cpu",
        model_args=through or {"pretrained": model, "dtype": "float32", "attn_implementation": "eager"},
        tasks=tasks, num_fewshot=num_fewshot, batch_size=5 if through else 64, bootstrap_iters=2, log_samples=True)


def ours(place, items, *arguments, ranks=1, tasks=(*TASKS, "text")):
    """(results, {task: the samples of each item}) of the first items."""
    output, samples = place.file("results.json"), place.file("samples.jsonl")
    tasks = [f"--task={task}={file_of(place, task)}" for task in tasks]
    done = call(mpirun(ranks, "eval", *arguments, *tasks, "--limit", str(items), "--output", output,
                       "--samples", samples), timeout=300)
    assert done.returncode == 0, done.stdout
    results = json.loads(Path(output).read_text())["results"]
    found = {}
    with open(samples) as lines:
        for line in lines:
            record = json.loads(line)
            assert record["item"] == len(found.setdefault(record["task"], []))
            found[record["task"]].append(record)
    return results, found


def train(place):
    """The checkpoints of one run for all cases."""
    if not os.path.exists(place.run("judged")):
        place.train("judged", 2, "training.max_steps=60", "model.max_position_embeddings=96",
                    "model.initializer_range=0.1")
    return place.run("judged") + "/checkpoints"


def with_greedy_words(place, checkpoints, records):
    """Every other text of LAMBADA ends with the token that the model likes best, where that begins with a space."""
    contexts = [record["text"].rsplit(" ", 1)[0].strip() for record in records[::2]]
    words = generated("--checkpoint", checkpoints, *(word for context in contexts for word in ("--prompt", context)),
                      "--max-tokens", "1", "--temperature", "0")
    liked = [{"text": context + word["text"]} for context, word in zip(contexts, words, strict=True)
             if word["text"].startswith(" ") and word["text"].strip()]
    return [record for pair in zip(records[1::2], liked) for record in pair]


def close(a, b, tolerance=2e-5):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def expect_equal(task, results, samples, expected, name=None):
    """Prompts are equal byte for byte, scores and metrics as close as f32 allows."""
    name, _, figures = TASKS[task] if name is None else (name, *TASKS[task][1:])
    their_samples = sorted(expected["samples"][name], key=lambda sample: sample["doc_id"])
    assert len(their_samples) == len(samples) > 0, (task, len(their_samples), len(samples))
    for ours_one, sample in zip(samples, their_samples, strict=True):
        assert ours_one["prompts"] == [list(prompt) for prompt in sample["arguments"]], (ours_one, sample["arguments"])
        # The harness keeps the greedy flag only of what has no choices.
        scores = [score if isinstance(score, tuple) else (score, None) for score in sample["filtered_resps"]]
        assert len(scores) == len(ours_one["log_likelihoods"]), (task, scores)
        for mine, greedy, (score, their_greedy) in zip(ours_one["log_likelihoods"], ours_one["greedy"], scores):
            assert close(mine, score), (task, mine, score, sample["arguments"])
            assert their_greedy is None or greedy == their_greedy, (task, sample["arguments"])
    for figure in figures:
        value, error = (expected["results"][name][f"{figure}{suffix},none"] for suffix in ("", "_stderr"))
        equal = close if figure == "perplexity" else float.__eq__
        assert equal(float(results[figure]), float(value)), (task, figure, results[figure], value)
        if figure != "perplexity":  # the bootstrap of two draws: tests/eval/figures_test.cc has its numbers
            assert close(results[figure + "_stderr"], error), (task, results, error)
    assert ("acc_norm" in results) == ("acc_norm" in figures), task


def harness(place):
    """acc, acc_norm and perplexities are lm-evaluation-harness's, item by item, with and without a BOS token"""
    checkpoints = train(place)
    records = write_tasks(place)
    records["lambada"] = with_greedy_words(place, checkpoints, records["lambada"])
    write_records(file_of(place, "lambada"), records["lambada"])
    for name, items, begin in (("plain", ITEMS, ()), ("begun", 60, ("--bos",))):
        model = export(place, name, "--dtype", "f32", *begin, source=checkpoints)
        expected = theirs(model, [name for name, _, _ in TASKS.values()] + [TEXT_TASK],
                          {task: all_items[:items] for task, all_items in records.items()})
        results, samples = ours(place, items, "--checkpoint", checkpoints, *begin)
        from_export, _ = ours(place, items, "--model", model)  # its tokenizer config decides about BOS
        assert all(close(from_export[task]["acc"], results[task]["acc"]) for task in TASKS), (from_export, results)
        assert close(from_export["text"]["token_perplexity"], results["text"]["token_perplexity"]), from_export
        for task, (_, _, figures) in TASKS.items():
            expect_equal(task, results[task], samples[task], expected)
            print(f"  {name} {task}: " + ", ".join(f"{figure} {results[task][figure]:.3f}" for figure in figures))
        for figure in ("word_perplexity", "byte_perplexity", "bits_per_byte"):
            value = expected["results"]["texts"][figure + ",none"]
            assert close(results["text"][figure], value), (figure, results["text"][figure], value)
            print(f"  {name} text: {figure} {value:.6g}")
        assert 0 < results["lambada"]["acc"] < 1, "no word, or each, is the likeliest"
    assert results["hellaswag"]["acc"] != results["hellaswag"]["acc_norm"], "the two metrics are equal"


def with_longer_context(model, context):
    """The same weights for longer prompts; RoPE needs no more."""
    file = Path(model) / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "max_position_embeddings": context}))
    return model


def few_shots(place):
    """examples, their order and all scores are the harness's for every task, 1 and 5 shots, on 1 and 3 ranks"""
    checkpoints = train(place)
    model = with_longer_context(export(place, "shots", "--dtype", "f32", source=checkpoints), 640)
    texts = Texts(place)
    texts.random.seed(12)
    for count, size, items, ranks in ((1, 7, 20, 1), (5, 300, 15, 3)):
        records, pools = {}, {}
        for task in TASKS:
            make = getattr(texts, task.split("/")[0])
            # Some questions are among the examples, of which a few are there twice.
            pool = [make() for _ in range(size)]
            pool += pool[:size // 10]
            records[task] = [make() for _ in range(items - 5)] + pool[:3] + pool[-2:]
            pools[task] = records[task] if task == "lambada" else pool
            write_records(file_of(place, task), records[task])
            write_records(file_of(place, task, "_pool"), pools[task])
        expected = theirs(model, [name for name, _, _ in TASKS.values()], records, pools, count)
        results, samples = ours(place, 0, "--model", model, "--num-fewshot", str(count),
                                *(f"--fewshot={task}={file_of(place, task, '_pool')}" for task in TASKS), ranks=ranks,
                                tasks=TASKS)
        for task in TASKS:
            expect_equal(task, results[task], samples[task], expected)
            assert results[task]["num_fewshot"] == count and results[task]["fewshot_seed"] == 1234, results[task]
        print(f"  {count} shots, {ranks} ranks: {len(TASKS) * items} items have the harness's prompts and scores")
        limited, first = ours(place, 10, "--model", model, "--num-fewshot", str(count),
                              f"--fewshot=piqa={file_of(place, 'piqa', '_pool')}", tasks=["piqa"])
        assert limited["piqa"]["items"] == 10
        assert [one["prompts"] for one in first["piqa"]] == [one["prompts"] for one in samples["piqa"][:10]]


def mmlu(place):
    """the 57 subjects of MMLU, its four categories and their errors are the harness's, with 5 shots"""
    checkpoints = train(place)
    model = with_longer_context(export(place, "mmlu", "--dtype", "f32", source=checkpoints), 640)
    texts = Texts(place)
    forms = Path(lm_eval.tasks.__file__).parent / "mmlu/default"
    subjects = sorted(path.stem[len("mmlu_"):] for path in forms.glob("mmlu_*.yaml"))
    assert len(subjects) == 57, subjects
    records = [texts.mmlu(subject) for subject in subjects for _ in range(2 + len(subject) % 3)]
    pool = [texts.mmlu(subject) for subject in subjects for _ in range(5)]
    texts.random.shuffle(records)  # the subjects' records need not stand together
    write_records(file_of(place, "mmlu"), records)
    write_records(file_of(place, "mmlu", "_pool"), pool)
    expected = theirs(model, ["mmlu"], {"mmlu": records}, {"mmlu": pool}, 5)["results"]
    ours_all, _ = ours(place, 0, "--model", model, "--num-fewshot", "mmlu=5",
                       f"--fewshot=mmlu={file_of(place, 'mmlu', '_pool')}", tasks=["mmlu"])
    parts = ours_all["mmlu"].pop("parts")
    assert len(parts) == 4 + len(subjects), list(parts)
    for name, figures in (("mmlu", ours_all["mmlu"]), *((f"mmlu_{part}", figures) for part, figures in parts.items())):
        for figure in ("acc", "acc_stderr"):
            assert close(figures[figure], expected[name][figure + ",none"], 1e-12), (name, figure, figures, expected[name])
    print(f"  {len(records)} questions: acc {ours_all['mmlu']['acc']:.4f} +- {ours_all['mmlu']['acc_stderr']:.4f}")


OWN_FORM = """context: "Question: {question}\\nAnswer:"
choices: ["{choices.text}"]
labels: ["{choices.label}"]
answer: "{answerKey}"
shots: random
metrics: [acc, acc_norm]
"""


def own_form(place):
    """a form of one's own with ARC's texts gives ARC's scores, also in training; its errors are named by line"""
    checkpoints = train(place)
    texts = Texts(place)
    records = [texts.arc() for _ in range(40)]
    write_records(file_of(place, "arc/easy"), records[:20])
    write_records(file_of(place, "pool"), records[20:])
    form = place.file("mine.yaml")
    Path(form).write_text(OWN_FORM)
    output, samples = place.file("results.json"), place.file("samples.jsonl")
    tokamak("eval", "--checkpoint", checkpoints, "--task", f"arc/easy={file_of(place, 'arc/easy')}", "--task",
            f"{form}={file_of(place, 'arc/easy')}", "--num-fewshot", "2", "--fewshot", f"mine={file_of(place, 'pool')}",
            "--fewshot", f"arc/easy={file_of(place, 'pool')}", "--output", output, "--samples", samples)
    results = json.loads(Path(output).read_text())["results"]
    lines = [json.loads(line) for line in Path(samples).read_text().splitlines()]
    arc, mine = ([{**line, "task": ""} for line in lines if line["task"] == task] for task in ("arc/easy", "mine"))
    assert arc == mine and len(arc) == 20, (arc[0], mine[0])
    assert {key: results["mine"][key] for key in ("acc", "acc_norm_stderr")} == {
        key: results["arc/easy"][key] for key in ("acc", "acc_norm_stderr")}, results
    place.train("own", 2, "training.max_steps=2", "data.sequence_length=64", "training.micro_batch_size=1",
                "training.evals=[{task: custom, form: %s, name: mine, path: %s, num_fewshot: 1, fewshot_path: %s}]" % (
                    form, file_of(place, "arc/easy"), file_of(place, "pool")))
    assert 0 <= place.records("own", "evals/mine/acc")[2] <= 1
    for line, expected in (('contexts: "x"', ":7: key 'contexts' (value 'x') is unknown"), ('part: "{a|upper}"', "has no filter 'upper'"),
                           ("metrics: [acc, f1]", "metrics")):
        Path(form).write_text(OWN_FORM.replace(line.split(":")[0] + ":", "#") + line + "\n")
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, "--task", f"{form}={file_of(place, 'arc/easy')}"])
        assert done.returncode == 2 and "mine.yaml:" in done.stdout and expected in done.stdout, (expected, done.stdout)


def ways(place):
    """the same metrics from a checkpoint and its export, on 1 and 3 ranks, and from small batches"""
    checkpoints = train(place)
    write_tasks(place)
    expected, expected_samples = ours(place, 50, "--checkpoint", checkpoints)
    model = export(place, "judged", "--dtype", "f32", source=checkpoints)
    for what, arguments, ranks in (("export", ("--model", model), 1), ("3 ranks", ("--checkpoint", checkpoints), 3),
                                   ("small batches", ("--checkpoint", checkpoints, "--batch-tokens", "97"), 1)):
        results, samples = ours(place, 50, *arguments, ranks=ranks)
        for task, figures in results.items():
            for figure in [key for key in figures if key.startswith(("acc", "word", "byte", "bits", "token"))]:
                assert close(figures[figure], expected[task][figure]), (what, task, figure)
            for mine, other in zip(samples[task], expected_samples[task], strict=True):
                assert all(map(close, mine["log_likelihoods"], other["log_likelihoods"])), (what, task, mine, other)


def in_training(place):
    """training.evals equals `tokamak eval` of that step's checkpoint, with shards the validation loss; losses stay"""
    write_tasks(place)
    held_out = place.data + "/validation"
    evals = ("training.evals=[{task: hellaswag, path: %s, limit: 40}, {task: text, name: held_out, path: %s}, "
             "{task: shards, path: %s}]" % (file_of(place, "hellaswag"), file_of(place, "text"), held_out))
    shared = ("training.max_steps=6", "data.sequence_length=64", "training.micro_batch_size=1", "checkpoint.interval=3",
              "checkpoint.keep_latest=9", "model.initializer_range=0.1", "training.validation_interval=3",
              "training.validation_sequences=999")
    place.train("with", 2, *shared, evals, "training.evals_interval=3")
    place.train("without", 2, *shared)
    assert place.records("with") == place.records("without")
    for step in (3, 6):
        output = place.file("of_step.json")
        tokamak("eval", "--checkpoint", place.checkpoint("with", step), "--context", "64", "--limit", "40", "--output",
                output,
                "--task", "hellaswag=" + file_of(place, "hellaswag"), "--task", "shards=" + held_out)
        results = json.loads(Path(output).read_text())["results"]
        for figure in ("acc", "acc_norm"):
            assert place.records("with", f"evals/hellaswag/{figure}")[step] == results["hellaswag"][figure], (step, figure)
        validation = place.records("with", "validation/loss")[step]
        assert close(place.records("with", "evals/shards/loss")[step], validation, 1e-6), (step, validation)
    perplexities = place.records("with", "evals/held_out/token_perplexity")
    assert sorted(perplexities) == [3, 6] and perplexities[6] < perplexities[3], perplexities
    assert all(seconds > 0 for seconds in place.records("with", "time/evals").values())


def refused(place):
    """what is wrong with a task ends the program before weights are loaded, with file, line and member"""
    checkpoints = train(place)
    good = {"goal": "a", "sol1": "b", "sol2": "c", "label": 0}
    for text, expected in (('{"goal": "a"', ":2 is not valid JSON"),
                           (json.dumps({**good, "label": 2}), ":2 has the answer \"2\"; expected one of 0, 1"),
                           (json.dumps({**good, "sol1": True}), ":2: 'sol1' is true; expected a string"),
                           (json.dumps({"goal": "a"}), "' is missing; expected a string"),
                           (json.dumps({**good, "sol1": "x" * 200}), "tokens, but the model sees 96 at most")):
        with open(place.file("bad.jsonl"), "w") as out:
            out.write(json.dumps(good) + "\n" + text + "\n")
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, "--task", "piqa=" + place.file("bad.jsonl")])
        assert done.returncode == 3 and expected in done.stdout and done.stdout.count(" error /") == 1, (expected, done)
    done = call(mpirun(2, "eval", "--checkpoint", checkpoints, "--task", "piqa=" + place.file("bad.jsonl")))
    assert done.returncode == 3 and done.stdout.count("error [") == 1, ("one rank tells of it", done)
    for arguments, code, expected in ((("--task", "quiz=x"), 2, "there is no kind 'quiz'"),
                                      (("--task", "piqa"), 2, "must be KIND=FILE"), (("--task", "piqa=/nowhere"), 3, "/nowhere"),
                                      (("--task", "piqa=x", "--num-fewshot", "few"), 2, "must be a whole number"),
                                      (("--task", "piqa=x", "--num-fewshot", "arc=1"), 2, "there is no --task 'arc'"),
                                      (("--task", "text=x", "--task", "text=y"), 2, "a task 'text' already"),
                                      (("--task", "text=x", "--fewshot", "text=y"), 2, "has no questions"),
                                      (("--task", "piqa=x", "--num-fewshot", "1"), 2, "1 examples need a file"),
                                      (("--task", "nowhere.yaml=x"), 2, "nowhere.yaml")):
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, *arguments])
        assert done.returncode == code and expected in done.stdout, (expected, done)
    done = call(mpirun(2, "train", place.config("bad"), "training.evals=[{task: piqa, path: /nowhere}]"))
    assert done.returncode == 3 and "/nowhere" in done.stdout and not os.path.exists(place.run("bad")), done


if __name__ == "__main__":
    main([harness, few_shots, mmlu, own_form, ways, in_training, refused])
