"""By hand, where llama-cpp-python is: GGUF exports load in llama.cpp, and its likeliest token is ours at 64 positions.

    TOKAMAK=build/tokamak PRINT_LOGITS=build/tests/interop/print_logits TOKAMAK_PYTHON=... LLAMA_CPP_PYTHON=... \\
      python3 tests/interop/llama_cpp_check.py

LLAMA_CPP_PYTHON is a Python with llama_cpp (pip install llama-cpp-python; tried with 0.3.36). Without it this says so
and exits with 77."""
import os
import subprocess
import sys

LLAMA_CPP_PYTHON = os.environ.get("LLAMA_CPP_PYTHON", "")
if not LLAMA_CPP_PYTHON or subprocess.run([LLAMA_CPP_PYTHON, "-c", "import llama_cpp"], capture_output=True).returncode:
    print("SKIPPED: LLAMA_CPP_PYTHON names no Python with llama_cpp")
    sys.exit(77)

from reference import our_logits  # noqa: E402  enters TOKAMAK_PYTHON
import numpy as np  # noqa: E402
from model_families import FAMILIES  # noqa: E402
from harness import main, tokamak  # noqa: E402

ASK = """
import sys, numpy as np, llama_cpp
model = llama_cpp.Llama(sys.argv[1], n_ctx=128, logits_all=True, verbose=False, n_threads=1, n_batch=128)
if sys.argv[2] != "-":
    ids = np.load(sys.argv[2])
    model.eval(ids.tolist())
    np.save(sys.argv[3], np.array(model.scores[:len(ids)]))
for text in sys.argv[4:]:
    print(*model.tokenize(text.encode(), add_bos=False, special=False))
"""
LLAMA3 = ("{rope_type: llama3, factor: 4.0, low_freq_factor: 1.0, high_freq_factor: 4.0, "
          "original_max_position_embeddings: 32}")
YARN = "{rope_type: yarn, factor: 2.0, original_max_position_embeddings: 32}"
MODELS = {"gqa": (), "mha-tied": ("model.num_key_value_heads=4", "model.tie_word_embeddings=true"),
          "llama3": (f"model.rope_scaling={LLAMA3}", "model.rope_theta=500"), "yarn": (f"model.rope_scaling={YARN}",),
          "linear": ("model.rope_scaling={rope_type: linear, factor: 2.0}",), **FAMILIES}
for narrow in ("qwen2", "olmo2", "olmo3"):  # their heads are hidden_size / num_attention_heads wide
    MODELS[narrow] += ("model.head_dim=12",)
MODELS["gemma2"] += ("model.attn_logit_softcapping=0.3", "model.final_logit_softcapping=0.5")  # which bend
TEXTS = ["Hello, world!", "  two spaces", "new\nline\ttab", "Привет 42", "😀", "a <s> b"]


def top_tokens(place):
    """llama.cpp's likeliest token after each of 64 positions is ours, and it cuts text as we do"""
    for name, overrides in MODELS.items():
        place.train(name, 1, "training.max_steps=10", "model.initializer_range=0.1", "model.head_dim=32", *overrides)
        out = place.file(name + ".gguf")
        tokamak("checkpoint", "export", "--to", "gguf", "--dtype", "f32", place.run(name) + "/checkpoints", out)
        ids = np.random.default_rng(5).integers(3, 400, 64)
        np.save(place.file("ids.npy"), ids)
        done = subprocess.run([LLAMA_CPP_PYTHON, "-c", ASK, out, place.file("ids.npy"), place.file("scores.npy"), *TEXTS],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        theirs = np.load(place.file("scores.npy"))
        ours = our_logits(place, place.run(name) + "/checkpoints", ids[None])[0]
        agree = (theirs.argmax(1) == ours.argmax(1)).sum()
        print(f"  {name}: {agree} of 64 likeliest tokens, logits differ by {np.abs(theirs - ours).max():.1e} at most")
        assert agree == 64
        for text, line in zip(TEXTS, done.stdout.splitlines()):
            expected = tokamak("tokenizer", "encode", "--model", place.file("tokenizer.model"), text).strip()
            assert line == expected, (text, line, expected)


main([top_tokens])
