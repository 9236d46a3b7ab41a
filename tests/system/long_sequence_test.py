"""Sequences of 32,768 tokens of many documents, trained on the CPU: every recompute mode, inside its plan."""
import json
import random
import re

from harness import gathered, main, mebibytes, tokamak

# A narrow model, so that attention within documents and the head are most of its work.
CONFIG = """\
run: {{name: long, output_dir: {output}}}
model:
  hidden_size: 128
  intermediate_size: 256
  num_hidden_layers: 2
  num_attention_heads: 2
  num_key_value_heads: 1
  head_dim: 64
  max_position_embeddings: 32768
data:
  sequence_length: 32768
  sources: [{{path: {data}-long}}]
training: {{max_steps: 2, global_batch_tokens: 32768, micro_batch_size: 1}}
optimizer: {{lr: 3e-3}}
checkpoint: {{interval: none}}
metrics: {{log_interval: 1}}
runtime: {{threads_per_rank: 1}}
"""
SELECTIVE = "activation_checkpoint={mode: selective, kept_bytes: 35M}"


def write_documents(place):
    """Documents of 10 to 4,000 words, several of them in each sequence."""
    rng = random.Random(7)
    words = ["".join(rng.choice("abdegiklmnoprstu") for _ in range(rng.randint(2, 7))) for _ in range(120)]
    with open(place.file("long.jsonl"), "w") as out:
        for _ in range(90):
            text = " ".join(rng.choice(words) for _ in range(int(10 * 400 ** rng.random())))
            out.write(json.dumps({"text": text}) + "\n")
    tokamak("data", "tokenize", "--input", place.file("long.jsonl"), "--tokenizer", place.file("tokenizer.model"),
            "--output", place.data + "-long")


def trains(place):
    """two steps with recompute none, selective and full: equal losses, norms and weights to the bit; the plan's peak"""
    write_documents(place)
    results, peaks = [], []
    for mode in ("none", "selective", "full"):
        overrides = [SELECTIVE if mode == "selective" else f"activation_checkpoint.mode={mode}"]
        output = place.train(mode, 1, *overrides, text=CONFIG)
        losses, norms = place.records(mode), place.records(mode, "optim/grad_norm")
        assert sorted(losses) == [1, 2] and all(0 < value < 20 for value in losses.values()), losses
        results.append((losses, norms, gathered(place.checkpoint(mode, 2))))
        assert results[-1] == results[0], (mode, losses, results[0][0])
        planned, peak = map(mebibytes, re.search(r"memory: planned (.*), peak (.*) \(", output).groups())
        print(f"  {mode}: planned {planned:.0f} MiB, peak {peak:.0f}")
        assert abs(peak - planned) < 0.05 * planned, (peak, planned)
        peaks.append(peak)
    assert peaks[0] > peaks[1] > peaks[2], peaks


main([trains])
