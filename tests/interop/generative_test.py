"""Generated answers of `tokamak eval` against the real lm-evaluation-harness on the same exported model, and programs
that are run in the sandbox: generative_test.py [case]."""
import json
import os
import random
import subprocess
import sys
from math import comb
from pathlib import Path

os.environ.update(TQDM_DISABLE="1", HF_ALLOW_CODE_EVAL="1")

from reference import export  # first of these: enters the right Python
import datasets
import evaluate
import lm_eval
from eval_test import close, file_of, with_longer_context, write_records
from harness import TOKAMAK, Workplace, call, main, mpirun
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

TASKS = {  # ours: the harness's, its data set, its figures by our names
    "gsm8k": ("gsm8k", "openai/gsm8k", {"strict_match": "exact_match,strict-match",
                                        "flexible_extract": "exact_match,flexible-extract"}),
    "triviaqa": ("triviaqa", "mandarjoshi/trivia_qa", {"exact_match": "exact_match,remove_whitespace"}),
    "humaneval": ("humaneval", "openai/openai_humaneval", {"pass@1": "pass@1,create_test"}),
    "mbpp": ("mbpp", "google-research-datasets/mbpp", {"pass@1": "pass_at_1,none"}),
}
NAMES = ["Tom", "Ann", "Bob", "Eve"]
THINGS = ["apples", "books", "cars", "dogs", "eggs", "forks", "grapes", "houses", "islands", "jackets", "kites", "lamps",
          "maps", "nests", "oranges", "pencils", "queens", "rivers", "stones", "tables"]


def number(source):
    return source.choice(["{}", "{}", "{},000", "-{}", "${}", "{}.5"]).format(source.randint(1, 9))


def documents():
    """Word problems whose numbers, hashes and names a small model imitates after a few steps."""
    source = random.Random(3)
    for _ in range(400):
        parts = []
        for _ in range(8):
            question, answer = problem(source)
            parts.append(f"Question: {question}\nAnswer: {answer}\n\n")
        yield "".join(parts)


def problem(source):
    name, count = source.choice(NAMES), number(source)
    end = source.choice(["\n#### {}", "\n#### {}", "#### {}.", " is {}", ""]).format(count)
    return f"What has {name}", f"{name} has {number(source)} {source.choice(THINGS)}{end}"


def records(source, task, count):
    if task == "gsm8k":
        pairs = [problem(source) for _ in range(count)]
        return [{"question": question, "answer": f"{answer}\n#### {source.choice('268')}"} for question, answer in pairs]
    if task == "triviaqa":
        return [{"question": problem(source)[0], "answer": {"aliases": [
            f"{name.upper()}, has {digit} jackets {last}!" for name in NAMES for digit in range(10)
            for last in source.sample(range(10), 4)]}} for _ in range(count)]
    if task == "humaneval":  # the text is in a string, so two of three programs are right
        return [{"task_id": str(i), "prompt": f'def f(x):\n    return x + {i % 3}\nn = """Question: {problem(source)[0]}',
                 "entry_point": "f", "canonical_solution": "", "test": '"""\ndef check(f):\n    assert f(1) < 3\n'}
                for i in range(count)]
    return [{"task_id": i, "text": problem(source)[0], "code": "x = 1", "test_list": ["assert True"] * 3,
             "test_setup_code": "", "challenge_test_list": []} for i in range(count)]


class CodeEval:
    """The metric code_eval, which the harness loads from the network: pass@1 by programs in a process of their own."""

    @staticmethod
    def compute(references, predictions, k):
        passed = [subprocess.run([sys.executable, "-c", f"{texts[0]}\n{reference}"], capture_output=True).returncode == 0
                  for reference, texts in zip(references, predictions, strict=True)]
        return {"pass@1": sum(passed) / len(passed)}, None


def theirs(model, found, pools, shots):
    def load_dataset(path, name=None, **_):
        task = next(task for task, (_, data, _) in TASKS.items() if data == path)
        splits = {split: datasets.Dataset.from_list(found[task]) for split in ("test", "validation")}
        return datasets.DatasetDict(splits | {split: datasets.Dataset.from_list(pools.get(task, found[task]))
                                              for split in ("train", "prompt")})

    datasets.load_dataset = load_dataset
    evaluate.load = lambda name: CodeEval
    output = {}
    for task in found:
        output[task] = lm_eval.simple_evaluate(
            model="hf", model_args={"pretrained": model, "dtype": "float32", "attn_implementation": "eager"}, device="cpu",
            tasks=[TASKS[task][0]], num_fewshot=shots.get(task, 0), batch_size=16, bootstrap_iters=2, log_samples=True,
            confirm_run_unsafe_code=True)
    return output


def ours(place, model, tasks, *arguments, ranks=1):
    output, samples = place.file("results.json"), place.file("samples.jsonl")
    done = call(mpirun(ranks, "eval", "--model", model, "--threads", "1", *(f"--task={task}={file_of(place, task)}" for task in tasks),
                       "--allow-code-execution", "--output", output, "--samples", samples, *arguments), timeout=300)
    assert done.returncode == 0, done.stdout
    found = {}
    for line in Path(samples).read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["task"], []).append(record)
    return json.loads(Path(output).read_text())["results"], found


def trained(place):
    """A Hugging Face directory with the context that HumanEval's 1,024 new tokens need."""
    if not os.path.exists(place.file("writer-hf")):
        place.train("writer", 2, "training.max_steps=150", "data.sequence_length=64", "training.micro_batch_size=4",
                    "training.global_batch_tokens=2048", "optimizer.lr=0.02")
        model = export(place, "writer", "--dtype", "f32")
        with_longer_context(model, 1400)
        tokenizer = AutoTokenizer.from_pretrained(model)
        exchange_rows(model + "/model.safetensors", tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("5"))
    return place.file("writer-hf")


def exchange_rows(path, a, b):
    """The model ends its text by token a where it would write b."""
    tensors = load_file(path)
    head = tensors["lm_head.weight"]
    head[[a, b]] = head[[b, a]]
    save_file(tensors, path, metadata={"format": "pt"})


def answers(place):
    """prompts, texts, extracted answers, scores and errors are the harness's, on 1 and 3 ranks; programs as well"""
    model = trained(place)
    source = random.Random(4)
    sizes = {"gsm8k": 24, "triviaqa": 24, "humaneval": 9, "mbpp": 3}
    for shots, ranks in (({"gsm8k": 5, "triviaqa": 2, "mbpp": 3}, 3), ({}, 1)):
        pools = {task: records(source, task, 40) for task in ("gsm8k", "triviaqa")}
        found = {task: records(source, task, size) for task, size in sizes.items() if task in pools or shots}
        for task in found:
            write_records(file_of(place, task), found[task])
        for task in pools:
            write_records(file_of(place, task, "_pool"), pools[task])
        expected = theirs(model, found, pools, shots)
        results, samples = ours(place, model, found, *(f"--num-fewshot={task}={n}" for task, n in shots.items()),
                                *(f"--fewshot={task}={file_of(place, task, '_pool')}" for task in pools if shots), ranks=ranks)
        for task in found:
            name, _, figures = TASKS[task]
            by_filter = {}
            for sample in expected[task]["samples"][name]:
                by_filter.setdefault(sample["filter"], {})[sample["doc_id"]] = sample
            for figure, their_figure in figures.items():
                value = expected[task]["results"][name][their_figure]
                assert close(results[task][figure], value, 1e-12), (task, figure, results[task], value)
                error = expected[task]["results"][name][their_figure.replace(",", "_stderr,")]
                assert close(results[task][figure + "_stderr"], error, 1e-12), (task, figure, results[task], error)
                chosen = by_filter[their_figure.split(",")[1]]
                for mine in samples[task]:
                    sample = chosen[mine["item"]]
                    assert mine["prompts"][0][0] == sample["arguments"][0][0], (task, mine, sample)
                    assert mine["texts"] == [sample["resps"][0][0]], (task, mine, sample)
                    if task in pools:
                        assert mine[figure] == [sample["exact_match"]], (task, figure, mine, sample)
                print(f"  {len(shots)} few-shot, {task}: {figure} {value:.3f}")
        for task, figure in (("gsm8k", "flexible_extract"), ("triviaqa", "exact_match"), ("humaneval", "pass@1")):
            assert (shots and task in pools) or task not in results or 0 < results[task][figure] < 1, (task, "all texts are right, or none")


FORM = """context: "{text}"
continuation: "{text}"
metrics: [pass_at_k]
until: ["Question", "Answer", "What", "has", " ", "\\n", "#", "$", %s]
max_gen_toks: 4
program_before: "{program}\\n"
program_after: "\\n"
"""
PROGRAMS = {
    "right": ("x = sum(range(10))\nassert x == 45", True),
    "uses modules": ("import math, re, collections\nassert math.gcd(4, 6) == 2", True),
    "wrong": ("assert 1 + 1 == 3", False),
    "leaves": ("raise SystemExit(0)", False),
    "pretends": ("import os\nprint('passed')\nos._exit(0)", False),
    "loops": ("while True: pass", False),
    "forks": ("import os\nwhile True: os.fork()", False),
    "writes": ("open('{canary}', 'w').write('changed')", False),
    "reads": ("open('{canary}').read()", False),
    "connects": ("import socket\nsocket.create_connection(('127.0.0.1', 80))", False),
    "takes 10 GB": ("x = bytearray(10 << 30)", False),
    "kills its parent": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", False),
    "calls the kernel": ("import ctypes\nassert ctypes.CDLL(None).kill(-1, 9) == 0", False),
}


def programs(place):
    """planted programs pass, planted attacks do not, and pass@k is the formula's; nothing is run unless allowed"""
    model = trained(place)
    canary = place.file("canary")
    Path(canary).write_text("unchanged")
    form = place.file("programs.yaml")
    Path(form).write_text(FORM % ", ".join(f'"{letter}"' for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-,."))
    write_records(place.file("programs.jsonl"), [{"text": f"Question: {name}", "program": program.replace("{canary}", canary)}
                                                 for name, (program, _) in PROGRAMS.items()])
    output, samples = place.file("results.json"), place.file("samples.jsonl")
    task = f"--task={form}={place.file('programs.jsonl')}"
    refused = call([TOKAMAK, "eval", "--model", model, task])
    assert refused.returncode == 2 and "--allow-code-execution" in refused.stdout, refused.stdout
    without = call(["env", "PATH=/nowhere", TOKAMAK, "eval", "--model", model, task, "--allow-code-execution"])
    assert without.returncode == 2 and "bubblewrap" in without.stdout, without.stdout
    done = call([TOKAMAK, "eval", "--model", model, task, "--allow-code-execution", "--num-samples", "3", "--output", output,
                 "--samples", samples], timeout=300)
    assert done.returncode == 0, done.stdout
    assert Path(canary).read_text() == "unchanged"
    lines = [json.loads(line) for line in Path(samples).read_text().splitlines()]
    counts = []
    for line, (name, (_, right)) in zip(lines, PROGRAMS.items(), strict=True):
        assert len(line["texts"]) == 3 and not any(line["passed"]) if not right else any(line["passed"]), (name, line)
        assert right is False or line["passed"] == [float(text == "") for text in line["texts"]], (name, line)
        counts.append(int(sum(line["passed"])))
    results = json.loads(Path(output).read_text())["results"]["programs"]
    for k in (1, 2, 3):
        expected = sum(1 - comb(3 - c, k) / comb(3, k) for c in counts) / len(counts)
        assert close(results[f"pass@{k}"], expected, 1e-12), (k, results, counts)
    print(f"  {len(PROGRAMS)} programs, 3 texts each: {sum(counts)} pass")


Workplace.documents = staticmethod(documents)

if __name__ == "__main__":
    main([answers, programs])
