"""Import and export with bad input: one clear error that names file and tensor or key, the exit code, and no output
left behind. Standard library only."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

from harness import ENV, TOKAMAK, call, main, tokamak

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
from formats import as_sealed_config  # noqa: E402


def model(place):
    """A Hugging Face directory to damage, created once."""
    out = place.file("model")
    if not os.path.exists(out):
        place.train("made", 1, "training.max_steps=1")
        tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", place.run("made") + "/checkpoints", out)
    return out


def refused(place, code, words, *arguments):
    """One error with all of `words`, this exit code, and no file added or removed."""
    before = sorted(os.listdir(place.path))
    done = call([TOKAMAK, "checkpoint", *arguments], timeout=60)
    assert done.returncode == code, (arguments, done.returncode, done.stdout)
    for word in words:
        assert word in done.stdout, f"'{word}' is not in\n{done.stdout}"
    assert sorted(os.listdir(place.path)) == before, set(os.listdir(place.path)) ^ set(before)
    print("  " + [line for line in done.stdout.splitlines() if " error " in line or "ERROR" in line or line][0][:150])


class Damaged:
    """A copy of the model, damaged within `with`, and the import of it that must fail."""

    def __init__(self, place):
        self.place = place
        self.path = place.file("damaged")
        self.weights = self.path + "/model.safetensors"

    def __enter__(self):
        shutil.copytree(model(self.place), self.path)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def config(self, **changes):
        with open(self.path + "/config.json") as file:
            config = json.load(file)
        config.update(changes)
        with open(self.path + "/config.json", "w") as file:
            json.dump(config, file)

    def header(self, change):
        """Rewrites the header of the safetensors file; the data stays."""
        with open(self.weights, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header, data = json.loads(file.read(length)), file.read()
        change(header)
        text = json.dumps(header).encode()
        with open(self.weights, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)

    def refused(self, *words):
        refused(self.place, 4, ["damaged", *words], "import", "--from", "hf", self.path, self.place.file("out"))


QUERY = "model.layers.0.self_attn.q_proj.weight"


def bad_models(place):
    """missing, extra and misshapen tensors, malicious safetensors, pickles, other architectures: exit 4, by name"""
    with Damaged(place) as bad:
        bad.header(lambda h: h.update({"renamed": h.pop(QUERY)}))
        bad.refused(f"tensor '{QUERY}'", "is missing", "'renamed'", "is none of LlamaForCausalLM's")
    with Damaged(place) as bad:
        bad.header(lambda h: h[QUERY].update(shape=[24, 96]))
        bad.refused(QUERY, "(24, 96)", "(48, 48)")
    with Damaged(place) as bad:
        bad.header(lambda h: h[QUERY].update(dtype="I32"))
        bad.refused(QUERY, "I32", "BF16")
    with Damaged(place) as bad:  # two tensors at the same offset
        bad.header(lambda h: h[QUERY].update(data_offsets=h["model.norm.weight"]["data_offsets"]))
        bad.refused("model.safetensors", "lies at bytes")
    with Damaged(place) as bad:
        bad.header(lambda h: h[QUERY].update(data_offsets=[0, 1 << 62]))
        bad.refused("model.safetensors", "bytes")
    with Damaged(place) as bad:
        with open(bad.weights, "r+b") as file:
            file.write(struct.pack("<Q", 1 << 60))
        bad.refused("model.safetensors", str(1 << 60))
    with Damaged(place) as bad:
        os.truncate(bad.weights, os.path.getsize(bad.weights) - 1)
        bad.refused("model.safetensors", "end at byte")
    with Damaged(place) as bad:
        bad.config(architectures=["BloomForCausalLM"])
        bad.refused("config.json", "'architectures'", "BloomForCausalLM", "LlamaForCausalLM")
    with Damaged(place) as bad:
        bad.config(rope_scaling={"rope_type": "longrope", "factor": 2.0})
        bad.refused("config.json", "rope_scaling", "longrope")
    with Damaged(place) as bad:
        bad.config(num_local_experts=8)
        bad.refused("config.json", "'num_local_experts'")
    with Damaged(place) as bad:
        os.rename(bad.weights, bad.path + "/pytorch_model.bin")
        bad.refused("pytorch_model.bin", "pickle", "safetensors")
    with Damaged(place) as bad:
        os.remove(bad.path + "/config.json")
        bad.refused("config.json is missing")
    with Damaged(place) as bad:
        with open(bad.path + "/model.safetensors.index.json", "w") as file:
            json.dump({"weight_map": {QUERY: "../model.safetensors"}}, file)
        os.remove(bad.weights)
        bad.refused("index.json", QUERY, "../model.safetensors")


def another_models_config(place):
    """a checkpoint whose config is of another model than its tensors, with a checksum that fits: exit 4, by name"""
    model(place)
    run = place.file("another")
    shutil.copytree(place.run("made"), run)
    manifest = run + "/checkpoints/step-00000001/manifest.json"
    with open(manifest, "rb") as file:
        config, again = as_sealed_config(file.read())
    for key, value, words in (("intermediate_size", 148, ["gate_proj", "(148, 48)"]),
                              ("num_hidden_layers", 4, ["it has no 'model.layers.3."])):
        (line,) = [line for line in config.splitlines() if line.strip().startswith(key + ":")]
        with open(manifest, "wb") as file:
            file.write(again(config.replace(line, f"{line.split(':')[0]}: {value}")))
        for format_ in ("hf", "gguf"):
            refused(place, 4, ["another", *words], "export", "--to", format_, "--tokenizer", "none", run, place.file("out"))


def bad_calls(place):
    """existing outputs, missing checkpoints, wrong tokenizers, overrides of the model: nothing is written"""
    hf, run = model(place), place.run("made")
    refused(place, 2, ["model", "exists"], "import", "--from", "hf", hf, hf)
    refused(place, 2, ["no directory", "nowhere"], "import", "--from", "hf", hf, place.file("nowhere/out"))
    refused(place, 2, ["model.hidden_size=3"], "import", "--from", "hf", hf, place.file("out"), "model.hidden_size=3")
    refused(place, 2, ["exists"], "export", "--to", "hf", run + "/checkpoints", hf)
    refused(place, 4, ["no checkpoint", "runs"], "export", "--to", "hf", place.file("runs"), place.file("out"))
    refused(place, 2, ["f16"], "export", "--to", "hf", "--dtype", "f16", run + "/checkpoints", place.file("out"))
    refused(place, 2, ["--max-shard-size"], "export", "--to", "hf", "--max-shard-size", "5XB", run + "/checkpoints",
            place.file("out"))
    refused(place, 2, ["--to"], "export", "--to", "onnx", run + "/checkpoints", place.file("out"))
    tokamak("tokenizer", "train", "--input", place.file("text.jsonl"), "--vocab-size", "410", "--output",
            place.file("larger.model"))
    refused(place, 3, ["larger.model", "410", "400"], "export", "--to", "hf", "--tokenizer", place.file("larger.model"),
            run + "/checkpoints", place.file("out"))
    shutil.copytree(run, place.file("bare"))
    os.remove(place.file("bare/tokenizer.model"))
    refused(place, 3, ["tokenizer.model", "--tokenizer"], "export", "--to", "hf", place.file("bare/checkpoints"),
            place.file("out"))


def stopped(place):
    """a signal during an import: exit 75, and no output remains"""
    large = place.file("large")
    os.makedirs(large)
    rows, width = 1_000_000, 256
    with open(model(place) + "/config.json") as file:
        config = json.load(file)
    config.update(vocab_size=rows, hidden_size=width, num_attention_heads=4, num_key_value_heads=4, head_dim=64,
                  num_hidden_layers=1, intermediate_size=64, tie_word_embeddings=True)
    with open(large + "/config.json", "w") as file:
        json.dump(config, file)
    shapes = {"model.embed_tokens.weight": [rows, width], "model.norm.weight": [width]}
    layer = {"input_layernorm": [width], "post_attention_layernorm": [width], "mlp.gate_proj": [64, width],
             "mlp.up_proj": [64, width], "mlp.down_proj": [width, 64],
             **{f"self_attn.{p}_proj": [width, width] for p in "qkvo"}}
    shapes.update({f"model.layers.0.{name}.weight": shape for name, shape in layer.items()})
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with open(large + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)  # a sparse file of zeros
    before = sorted(os.listdir(place.path))
    process = subprocess.Popen([TOKAMAK, "checkpoint", "import", "--from", "hf", large, place.file("out")], env=ENV,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while process.poll() is None and sorted(os.listdir(place.path)) == before:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 75 and "stopped by signal 15" in output, (process.returncode, output)
    assert sorted(os.listdir(place.path)) == before, os.listdir(place.path)


main([bad_models, another_models_config, bad_calls, stopped])
