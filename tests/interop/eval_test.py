"""`tokamak eval` against the real lm-evaluation-harness on the same exported model: eval_test.py [case]. The harness's
tasks run unchanged, but read the files that ours reads instead of downloading their data sets."""
import json
import math
import os
import random

os.environ["TQDM_DISABLE"] = "1"

from reference import export  # first of these: enters the right Python
import datasets
import lm_eval
import lm_eval.tasks
from harness import TOKAMAK, call, main, mpirun, tokamak

ITEMS = 500
TASKS = {  # ours: the harness's, the split that it scores, its metrics
    "hellaswag": ("hellaswag", "validation", ("acc", "acc_norm")),
    "arc/easy": ("arc_easy", "test", ("acc", "acc_norm")),
    "piqa": ("piqa", "validation", ("acc", "acc_norm")),
    "winogrande": ("winogrande", "validation", ("acc",)),
    "mmlu": ("mmlu_anatomy", "test", ("acc",)),
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

    def mmlu(self):
        return {"question": self.sentence(3, 12), "subject": "anatomy", "choices": self.choices(4),
                "answer": self.random.randrange(4)}

    def text(self):
        """A text of up to several contexts."""
        return {"text": " ".join(self.sentence(1, 12) for _ in range(self.random.randint(1, 12)))}


def write_tasks(place):
    """{our task: its records}, written as JSON lines, too."""
    texts = Texts(place)
    records = {task: [getattr(texts, task.split("/")[0])() for _ in range(ITEMS)] for task in (*TASKS, "text")}
    for task, items in records.items():
        with open(file_of(place, task), "w") as out:
            out.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    return records


def file_of(place, task):
    return place.file(task.replace("/", "_") + ".jsonl")


def theirs(model, records):
    """The harness's results and samples."""
    names = {"Rowan/hellaswag": "hellaswag", "allenai/ai2_arc": "arc/easy", "baber/piqa": "piqa", "texts": "text",
             "allenai/winogrande": "winogrande", "cais/mmlu": "mmlu"}

    def load_dataset(path, *_, **__):
        rows = datasets.Dataset.from_list(records[names[path]])
        return datasets.DatasetDict({split: rows for split in ("train", "validation", "test", "dev")})

    datasets.load_dataset = load_dataset
    return lm_eval.simple_evaluate(
        model="hf", model_args={"pretrained": model, "dtype": "float32", "attn_implementation": "eager"}, device="cpu",
        tasks=[name for name, _, _ in TASKS.values()] + [TEXT_TASK], num_fewshot=0, batch_size=64, bootstrap_iters=2,
        log_samples=True)


def ours(place, items, *arguments, ranks=1):
    """(results, {task: log-likelihoods of each item}) of the first items."""
    output, samples = place.file("results.json"), place.file("samples.jsonl")
    tasks = [f"--task={task}={file_of(place, task)}" for task in (*TASKS, "text")]
    done = call(mpirun(ranks, "eval", *arguments, *tasks, "--limit", str(items), "--output", output,
                       "--samples", samples), timeout=300)
    assert done.returncode == 0, done.stdout
    with open(output) as file:
        results = json.load(file)["results"]
    found = {}
    with open(samples) as lines:
        for line in lines:
            record = json.loads(line)
            assert record["item"] == len(found.setdefault(record["task"], []))
            found[record["task"]].append(record["log_likelihoods"])
    return results, found


def train(place):
    """The checkpoints of one run for all cases."""
    if not os.path.exists(place.run("judged")):
        place.train("judged", 2, "training.max_steps=60", "model.max_position_embeddings=96",
                    "model.initializer_range=0.1")
    return place.run("judged") + "/checkpoints"


def close(a, b, tolerance=2e-5):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def harness(place):
    """acc, acc_norm and perplexities are lm-evaluation-harness's, item by item, with and without a BOS token"""
    checkpoints = train(place)
    records = write_tasks(place)
    for name, items, begin in (("plain", ITEMS, ()), ("begun", 60, ("--bos",))):
        model = export(place, name, "--dtype", "f32", *begin, source=checkpoints)
        expected = theirs(model, {task: all_items[:items] for task, all_items in records.items()})
        results, samples = ours(place, items, "--checkpoint", checkpoints, *begin)
        from_export, _ = ours(place, items, "--model", model)  # its tokenizer config decides about BOS
        assert all(close(from_export[task]["acc"], results[task]["acc"]) for task in TASKS), (from_export, results)
        assert close(from_export["text"]["token_perplexity"], results["text"]["token_perplexity"]), from_export
        for task, (their_task, _, figures) in TASKS.items():
            their_samples = sorted(expected["samples"][their_task], key=lambda sample: sample["doc_id"])
            assert len(their_samples) == len(samples[task]) == items, (task, len(their_samples), len(samples[task]))
            for item, sample in enumerate(their_samples):
                scores = [score for score, _ in sample["filtered_resps"]]
                assert len(scores) == len(samples[task][item]) and all(map(close, samples[task][item], scores)), (
                    task, item, samples[task][item], scores, sample["arguments"])
            for figure in figures:
                value, error = (expected["results"][their_task][f"{figure}{suffix},none"] for suffix in ("", "_stderr"))
                assert results[task][figure] == value, (task, figure, results[task][figure], value)
                assert close(results[task][figure + "_stderr"], error), (task, results[task], error)
            assert ("acc_norm" in results[task]) == ("acc_norm" in figures), task
            print(f"  {name} {task}: " + ", ".join(f"{figure} {results[task][figure]:.3f}" for figure in figures))
        for figure in ("word_perplexity", "byte_perplexity", "bits_per_byte"):
            value = expected["results"]["texts"][figure + ",none"]
            assert close(results["text"][figure], value), (figure, results["text"][figure], value)
            print(f"  {name} text: {figure} {value:.6g}")
    assert results["hellaswag"]["acc"] != results["hellaswag"]["acc_norm"], "the two metrics are equal"


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
                assert all(map(close, mine, other)), (what, task, mine, other)


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
        with open(output) as file:
            results = json.load(file)["results"]
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
                           (json.dumps({**good, "label": 2}), ":2: 'label' is 2; expected one of the 2 choices"),
                           (json.dumps({**good, "sol1": 1}), ":2: 'sol1' is 1; expected a string"),
                           (json.dumps({"goal": "a"}), "' is missing; expected a string"),
                           (json.dumps({**good, "sol1": "x" * 200}), "tokens, but the model sees 96 at most")):
        with open(place.file("bad.jsonl"), "w") as out:
            out.write(json.dumps(good) + "\n" + text + "\n")
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, "--task", "piqa=" + place.file("bad.jsonl")])
        assert done.returncode == 3 and expected in done.stdout and done.stdout.count(" error /") == 1, (expected, done)
    done = call(mpirun(2, "eval", "--checkpoint", checkpoints, "--task", "piqa=" + place.file("bad.jsonl")))
    assert done.returncode == 3 and done.stdout.count("error [") == 1, ("one rank tells of it", done)
    for arguments, code, expected in ((("--task", "quiz=x"), 2, "there is no kind 'quiz'"),
                                      (("--task", "piqa"), 2, "must be KIND=FILE"),
                                      (("--task", "piqa=/nowhere"), 3, "/nowhere")):
        done = call([TOKAMAK, "eval", "--checkpoint", checkpoints, *arguments])
        assert done.returncode == code and expected in done.stdout, (expected, done)
    done = call(mpirun(2, "train", place.config("bad"), "training.evals=[{task: piqa, path: /nowhere}]"))
    assert done.returncode == 3 and "/nowhere" in done.stdout and not os.path.exists(place.run("bad")), done


if __name__ == "__main__":
    main([harness, ways, in_training, refused])
