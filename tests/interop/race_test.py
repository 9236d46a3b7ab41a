"""scripts/bench/race.py for real, shortened: a tiny model, one round, one set of PyTorch's options."""
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from harness import TOKAMAK, main  # noqa: E402

PYTHON = os.environ.get("TOKAMAK_PYTHON")  # that has torch
SMALL = ["model.hidden_size=64", "model.intermediate_size=96", "model.num_hidden_layers=2", "model.num_attention_heads=4",
         "model.num_key_value_heads=2", "model.vocab_size=200", "data.sequence_length=64", "training.micro_batch_size=2"]


def one_round(place):
    """ours and PyTorch's step on the same tokens a step, a ratio of their rates, each operation's time, a page"""
    stem = place.file("race")
    done = subprocess.run([
        sys.executable, ROOT / "scripts/bench/race.py", ROOT / "configs/llama-125m.yaml", *SMALL, "--device", "cpu",
        "--threads", "1", "--rounds", "1", "--steps", "1", "--micro-batches", "2", "--python", PYTHON, "--tokamak", TOKAMAK,
        "--torch", "weights=bf16,compile=none,head=whole,attention=auto,allocator=default", "--output", stem],
        text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    with open(stem + ".json") as file:
        result = json.load(file)
    race, = result["rounds"]
    assert race["tokamak"]["tokens_per_step"] == race["torch"]["tokens_per_step"] == 2 * 2 * 64, race
    assert race["ratio"] == race["tokamak"]["tokens_per_second"] / race["torch"]["tokens_per_second"] > 0, race
    assert {"gemm qkv forward", "attention", "attention_backward", "adamw"} <= {row["name"] for row in result["where"]}, result
    with open(stem + ".md") as file:
        page = file.read()
    assert f"Ratio **{result['ratio']:.2f}**" in page and str(place.path) not in page, page
    assert os.path.basename(TOKAMAK) in page


if __name__ == "__main__":
    if not PYTHON:
        print("SKIPPED: TOKAMAK_PYTHON is not set; it names a Python with torch (scripts/dev/requirements-interop.txt)")
        sys.exit(77)
    main([one_round])
