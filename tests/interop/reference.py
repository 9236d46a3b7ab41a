"""Shared by the tests against the real transformers. Importing this module re-executes the test in TOKAMAK_PYTHON
(other_python.py). Also needs TOKAMAK (the program) and PRINT_LOGITS (logits_main.cc)."""
import os
import sys

from other_python import enter_python

PACKAGES = ["torch", "transformers", "tokenizers", "safetensors", "numpy", "sentencepiece", "google.protobuf", "gguf",
            "lm_eval", "accelerate"]

enter_python(PACKAGES)
os.environ.update(TRANSFORMERS_OFFLINE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import numpy as np  # noqa: E402
import safetensors.numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from harness import call, tokamak  # noqa: E402

torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
PRINT_LOGITS = os.environ["PRINT_LOGITS"]

def our_logits(place, model, ids):
    """(B, T, V) of a Hugging Face directory or a checkpoint."""
    ids_path, out = place.file("ids.safetensors"), place.file("logits.safetensors")
    safetensors.numpy.save_file({"ids": ids.astype(np.int32)}, ids_path)
    done = call([PRINT_LOGITS, model, ids_path, out])
    assert done.returncode == 0, done.stdout
    return safetensors.numpy.load_file(out)["logits"]


def their_logits(directory, ids):
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(ids.astype(np.int64))).logits.numpy(), model


def export(place, name, *options, source=None, to="hf"):
    out = place.file(f"{name}-{to}")
    tokamak("checkpoint", "export", "--to", to, *options, source or place.run(name) + "/checkpoints", out)
    return out


def expect_equal_logits(ours, theirs, what, tolerance=1e-4):
    difference = np.abs(ours - theirs).max()
    spread = theirs.std()
    assert difference < tolerance, f"{what}: logits differ by {difference}"
    assert spread > 0.1, f"{what}: logits that hardly differ ({spread}) prove nothing"
    print(f"  {what}: logits differ by {difference:.1e} at most, their deviation is {spread:.2f}")
