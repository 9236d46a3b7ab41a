#!/usr/bin/env python3
"""Compares two builds bit for bit, for refactorings. Each build trains the same small models, generates, evaluates and
exports. Losses, weights, texts, results and files must be equal.

usage: scripts/bench/same_bits.py OLD_TOKAMAK NEW_TOKAMAK
"""
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import measure

STEPS = ("training.max_steps=12", "checkpoint.interval=6", "checkpoint.keep_latest=9", "model.initializer_range=0.1")
BF16 = "precision.compute=bf16"
RUNS = {  # name: ranks, overrides of the tests' config, which is GQA in f32
    "gqa": (1,),
    "gqa, 3 ranks": (3,),
    "gqa, bf16": (1, BF16),
    "gqa, bf16, 3 ranks": (3, BF16),
    "gqa, bf16 gradients, 3 ranks": (3, BF16, "precision.reduce=bf16"),
    "mha, tied": (1, "model.num_key_value_heads=4", "model.tie_word_embeddings=true"),
    "tied, 3 ranks": (3, "model.tie_word_embeddings=true", BF16),
    "Qwen2": (1, "model.qkv_bias=true", BF16),
    "Qwen3": (1, "model.qk_norm=true"),
    "Qwen3, 3 ranks": (3, "model.qk_norm=true", BF16),
    "recomputed": (1, "activation_checkpoint.mode=full", BF16),
    "not masked": (1, "data.document_masking=false", BF16),
}


def digest_of(value):
    return hashlib.sha256(value if isinstance(value, bytes) else repr(value).encode()).hexdigest()[:16]


def digests():
    """{result's name: digest} of everything that the program TOKAMAK computes."""
    (harness,) = measure.tests_harness("harness")
    found = {}
    with harness.Workplace() as place:
        held_out = place.data + "/validation"
        for number, (name, (ranks, *overrides)) in enumerate(RUNS.items()):
            run = f"run{number}"
            place.train(run, ranks, *STEPS, "training.validation_interval=6", *overrides)
            logged = [place.records(run, key) for key in ("loss/last", "optim/grad_norm", "validation/loss")]
            assert [len(values) for values in logged] == [12, 12, 2], logged
            found[f"{name}: losses"] = digest_of(logged)
            found[f"{name}: weights and moments"] = digest_of(sorted(harness.gathered(place.checkpoint(run, 12)).items()))
            newest = place.checkpoint(run, 12)
            for what, arguments in (("greedy", ("--temperature", "0")), ("sampled", ("--seed", "7"))):
                found[f"{name}: text, {what}"] = digest_of(harness.generated(
                    "--checkpoint", newest, "--tokenizer", place.file("tokenizer.model"), "--max-tokens", "24", *arguments,
                    "--prompt", "a", "--prompt", "the words"))
            results = place.file("results.json")
            harness.tokamak("eval", "--checkpoint", newest, "--task", "shards=" + held_out, "--output", results)
            with open(results, encoding="utf-8") as file:
                found[f"{name}: evaluation"] = digest_of(json.load(file)["results"]["shards"]["loss"])
            for to in ("hf", "gguf"):
                out = place.file(f"{run}-{to}")
                harness.tokamak("checkpoint", "export", "--to", to, "--tokenizer", place.file("tokenizer.model"), newest, out)
                paths = sorted(Path(out).rglob("*")) if to == "hf" else [Path(out)]
                for path in paths:
                    if path.is_file() and path.name != "README.md":  # the model card has the program's version and date
                        found[f"{name}: export, {path.name.replace(run, '')}"] = digest_of(path.read_bytes())
    return found


def main():
    if len(sys.argv) == 2 and sys.argv[1] == "--digests":
        print(json.dumps(digests()))
        return 0
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    old, new = (json.loads(subprocess.run([sys.executable, __file__, "--digests"], check=True, text=True,
                                          stdout=subprocess.PIPE, env=dict(os.environ, TOKAMAK=str(Path(path).resolve()))
                                          ).stdout) for path in sys.argv[1:])
    different = [what for what in {**old, **new} if old.get(what) != new.get(what)]
    for what in different:
        print(f"differs: {what}")
    print(f"same_bits: {len(new)} results, {len(different)} of them different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
