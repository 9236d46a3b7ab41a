#!/usr/bin/env python3
"""The speed of evaluation: 5-shot questions of MMLU's shape by tokamak, with and without shared beginnings, and by
lm-evaluation-harness with transformers.

    $(scripts/dev/install_python.sh interop) scripts/bench/eval_speed.py MODEL --tokamak build/tokamak

MODEL is a Hugging Face directory with a context of 2,048 tokens. Prints seconds of evaluation, without loading, the
median of --rounds in turn, and ratios. Both use f32 and --threads threads. Accuracies must agree first.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.pop(0)  # the folder of this file, which has the name of a package
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TQDM_DISABLE="1")
SUBJECTS = ["anatomy", "astronomy", "virology"]
WORDS = ("the of and to in that was his he it with is for as had you not be her on at by which have or from this him "
         "but all she they were my are me one their so an said them we who would been will no when there if more out "
         "up into do any your what has man could other than our some very time upon about may its only now like little "
         "then can made should did us such great before must two these see know over much down after first mr good men").split()


def question(source, subject):
    """About 105 tokens of English."""
    def words(count):
        return " ".join(source.choice(WORDS) for _ in range(count))
    return {"question": words(source.randint(40, 60)) + "?", "subject": subject,
            "choices": [words(source.randint(3, 9)) for _ in range(4)], "answer": source.randrange(4)}


def write(path, records):
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


def tokamak(args, place, *options):
    output = place / "out.json"
    subprocess.run([args.tokamak, "eval", "--model", args.model, "--dtype", "f32", "--threads", str(args.threads), "--task",
                    f"mmlu={place / 'test.jsonl'}", "--num-fewshot", "5", "--fewshot", f"mmlu={place / 'dev.jsonl'}",
                    "--output", output, *options], check=True, stdout=subprocess.DEVNULL)
    result = json.loads(output.read_text())["results"]["mmlu"]
    return result["seconds"], result["acc"]


class Harness:
    def __init__(self, args, place):
        import datasets
        import lm_eval
        import lm_eval.tasks
        import torch
        from lm_eval.models.huggingface import HFLM
        torch.set_num_threads(args.threads)
        files = {"test": place / "test.jsonl", "dev": place / "dev.jsonl", "validation": place / "dev.jsonl"}

        def load(path, name=None, **_):
            sets = {}
            for split, file in files.items():
                rows = [json.loads(line) for line in file.read_text().splitlines()]
                sets[split] = datasets.Dataset.from_list([row for row in rows if row["subject"] == name])
            return datasets.DatasetDict(sets)
        datasets.load_dataset = load
        self.evaluate = lm_eval.simple_evaluate
        self.model = HFLM(pretrained=args.model, dtype="float32", device="cpu", batch_size=args.batch)
        self.seconds = 0
        scores = self.model._loglikelihood_tokens

        def timed(*arguments, **options):
            start = time.perf_counter()
            answer = scores(*arguments, **options)
            self.seconds += time.perf_counter() - start
            return answer
        self.model._loglikelihood_tokens = timed

    def run(self):
        self.seconds = 0
        results = self.evaluate(model=self.model, tasks=[f"mmlu_{subject}" for subject in SUBJECTS], num_fewshot=5,
                                bootstrap_iters=0)["results"]
        return self.seconds, statistics.fmean(results[f"mmlu_{subject}"]["acc,none"] for subject in SUBJECTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokamak", default="build/tokamak")
    parser.add_argument("--questions", type=int, default=100, help="questions of each of three subjects")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=8, help="the batch size of the harness")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-harness", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source = random.Random(1)
        write(place / "test.jsonl", [question(source, s) for s in SUBJECTS for _ in range(args.questions)])
        write(place / "dev.jsonl", [question(source, s) for s in SUBJECTS for _ in range(5)])
        ways = {"shared": lambda: tokamak(args, place), "alone": lambda: tokamak(args, place, "--no-prefix-reuse")}
        if not args.no_harness:
            ways["harness"] = Harness(args, place).run
        seconds = {way: [] for way in ways}
        for _ in range(args.rounds):
            found = {way: run() for way, run in ways.items()}
            assert len({round(accuracy, 9) for _, accuracy in found.values()}) == 1, found
            for way, (spent, _) in found.items():
                seconds[way].append(spent)
            print({way: round(spent, 2) for way, (spent, _) in found.items()}, flush=True)
    shared = statistics.median(seconds["shared"])
    for way, spent in seconds.items():
        print(f"{way:8} {statistics.median(spent):8.2f} s  {statistics.median(spent) / shared:6.2f} times shared")


if __name__ == "__main__":
    main()
