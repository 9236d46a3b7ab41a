"""By hand: a run of one's own, the quickstart's for example, exported and held against transformers: logits, tokens and
64 greedy tokens.

    TOKAMAK=build/tokamak PRINT_LOGITS=build/tests/interop/print_logits TOKAMAK_PYTHON=$(scripts/dev/install_python.sh) \\
      python3 tests/interop/run_check.py runs/quickstart"""
import sys

from reference import expect_equal_logits, our_logits, their_logits  # first: enters the right Python
import numpy as np
import torch
import transformers
from harness import Workplace, generated, tokamak
from hf_test import TEXTS, encode


def check(place, run):
    checkpoints, out = run + "/checkpoints", place.file("export")
    tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", checkpoints, out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    prompts = ["It was", "In the beginning", "She said to her sister", "And the LORD spake"]
    for prompt in prompts:
        ids = np.array([tokenizer(prompt * 20)["input_ids"][:200]])
        theirs, model = their_logits(out, ids)
        expect_equal_logits(our_logits(place, checkpoints, ids), theirs, repr(prompt))
        begun = tokenizer(prompt, return_tensors="pt")["input_ids"]
        text = model.generate(begun, do_sample=False, max_new_tokens=64, pad_token_id=0)[0]
        assert torch.equal(text[:begun.shape[1]], begun[0])
        (ours,) = generated("--checkpoint", checkpoints, "--prompt", prompt, "--max-tokens", "64", "--temperature", "0",
                            "--dtype", "f32")
        expected = tokenizer.decode(text, skip_special_tokens=True)
        assert ours["prompt"] + ours["text"] == expected, (ours, expected)
        print(f"  {len(text) - begun.shape[1]} greedy tokens equal: {expected[:70]!r}...")
    for text in TEXTS:
        assert tokenizer(text)["input_ids"] == encode(run + "/tokenizer.model", text), text
    print(f"ok: {run}: logits, greedy text, and the tokens of {len(TEXTS)} texts")


if __name__ == "__main__":
    with Workplace() as workplace:
        check(workplace, sys.argv[1])
