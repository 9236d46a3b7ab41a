"""Foreign files that the program reads. Each has its place among good files, a way to split its text, and the commands
that read it. FORMATS is the table; a new reader is a row."""
import ctypes
import json
import struct
from dataclasses import dataclass, field
from typing import Callable

import damage


class Digest(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_128bits.restype = Digest
xxhash.XXH3_64bits.restype = ctypes.c_uint64


def sealed(body):
    """A checkpoint's manifest with this body and its right checksum."""
    found = xxhash.XXH3_128bits(body, ctypes.c_size_t(len(body)))
    return b'{"xxh3_128":"%016x%016x","manifest":%s}\n' % (found.high, found.low, body)


def as_json(data):
    return json.loads(data), lambda text: text.encode("utf-8", "surrogatepass")


def as_first_line(data):
    first, rest = data.split(b"\n", 1)
    return json.loads(first), lambda text: text.encode("utf-8", "surrogatepass") + b"\n" + rest


def as_last_line(data):
    lines = data.rstrip(b"\n").split(b"\n")
    return json.loads(lines[-1]), lambda text: b"\n".join([*lines[:-1], text.encode("utf-8", "surrogatepass"), b""])


def as_sealed(data):
    return json.loads(data)["manifest"], lambda text: sealed(text.encode("utf-8", "surrogatepass"))


def as_sealed_data(data):  # the data module's state, JSON in a string of the manifest
    body = json.loads(data)["manifest"]
    return json.loads(body["data"]), lambda text: sealed(json.dumps(dict(body, data=text), separators=(",", ":")).encode())


def as_sealed_config(data):
    body = json.loads(data)["manifest"]
    return body["config"], lambda text: sealed(json.dumps(dict(body, config=text), separators=(",", ":")).encode())


def as_header(data):  # of safetensors
    (length,) = struct.unpack("<Q", data[:8])

    def again(text):
        text = text.encode("utf-8", "surrogatepass")
        return struct.pack("<Q", len(text)) + text + data[8 + length:]
    return json.loads(data[8:8 + length]), again


def as_yaml(data):
    return data.decode(), lambda text: text.encode("utf-8", "surrogatepass")


def words_at(*places):
    """Numbers of 8 bytes at these places of a binary file, each with each count."""
    return {f"{count} at byte {place}": lambda r, d, p=place, c=count: d[:p] + struct.pack("<Q", c % (1 << 64)) + d[p + 8:]
            for place in places for count in damage.COUNTS if isinstance(count, int)}


@dataclass
class Format:
    name: str
    file: str            # below the good files
    commands: list       # argument lists; IN is the directory with the damaged file, OUT one for results
    parts: Callable = None   # bytes -> (value to damage, function that makes bytes of its text again)
    table: dict = field(default_factory=dict)  # the table of damages for that value
    more: dict = field(default_factory=dict)   # damage of bytes for this format alone
    text: bool = False   # any bytes are legal
    prints: bool = False  # its output is the file's text
    optional: bool = False  # a file that cannot be opened is treated as missing
    without: tuple = ()   # kinds of damage that leave this format intact
    codes: tuple = ()     # exit codes of a refusal; (): any documented code


BAD_CONFIG, BAD_DATA, BAD_CHECKPOINT = 2, 3, 4
REPORTS = [["report", "IN/run", "--text"], ["report", "IN/run", "--json"], ["report", "IN/run", "--output", "OUT/page.html"],
           ["watch", "IN/run", "--once"]]
CHECKPOINTS = [["checkpoint", "inspect", "IN/run"], ["checkpoint", "export", "--to", "hf", "IN/step", "OUT/hf"],
               ["checkpoint", "export", "--to", "gguf", "IN/step", "OUT/gguf"],
               ["generate", "--checkpoint", "IN/step", "--prompt", "a", "--max-tokens", "1"], ["train", "IN/config.yaml"],
               ["checkpoint", "verify", "IN/step"]]
MODELS = [["checkpoint", "import", "--from", "hf", "IN/hf", "OUT/run"],
          ["generate", "--model", "IN/hf", "--tokenizer", "IN/tokenizer.model", "--prompt", "a", "--max-tokens", "1"]]
DATA = [["data", "inspect", "IN/data/train"], ["data", "verify", "IN/data/train"], ["train", "IN/fresh.yaml"]]
TOKENIZE = ["data", "tokenize", "--tokenizer", "IN/tokenizer.model", "--output", "OUT/set", "--input"]
STEP = "run/checkpoints/step-00000002/"


def questions(kind):
    return Format(f"questions of {kind}", f"{kind}.jsonl",
                  [["eval", "--checkpoint", "IN/step", "--threads", "1", "--task", f"{kind}=IN/{kind}.jsonl"]],
                  as_first_line, damage.JSON, codes=(BAD_DATA,))


FORMATS = [
    Format("a data set's manifest", "data/train/manifest.json", DATA, as_json, damage.JSON, codes=(BAD_DATA,)),
    Format("an index", "data/train/part-00000.idx", DATA[1:], more=words_at(9, 18, 26, 34), codes=(BAD_DATA,)),
    Format("checksums of blocks", "data/train/part-00000.sum", DATA[1:], more=words_at(8, 16, 24), codes=(BAD_DATA,)),
    Format("tokens", "data/train/part-00000.bin", DATA[1:], codes=(BAD_DATA,)),
    Format("a tokenizer", "tokenizer.model",
           [["tokenizer", "inspect", "--model", "IN/tokenizer.model", "--pieces"], TOKENIZE + ["IN/text.jsonl"],
            ["generate", "--model", "IN/hf", "--tokenizer", "IN/tokenizer.model", "--prompt", "a", "--max-tokens", "1"]], codes=(BAD_DATA,)),
    Format("text as JSON lines", "text.jsonl", [TOKENIZE + ["IN/text.jsonl"]], as_first_line, damage.JSON,
           codes=(BAD_DATA,)),
    Format("plain text", "text.txt", [TOKENIZE + ["IN/text.txt"]], text=True,
           without=("40 GiB of nothing",)),
    Format("config.json", "hf/config.json", MODELS, as_json, damage.JSON, codes=(BAD_CHECKPOINT,)),
    Format("safetensors", "hf/model.safetensors", MODELS, as_header, damage.JSON, more=words_at(0),
           codes=(BAD_CHECKPOINT,)),
    Format("an index of safetensors", "hf2/model.safetensors.index.json",
           [["checkpoint", "import", "--from", "hf", "IN/hf2", "OUT/run"]], as_json, damage.JSON,
           codes=(BAD_CHECKPOINT,)),
    Format("tokenizer_config.json", "hf/tokenizer_config.json", MODELS[1:], as_json, damage.JSON, optional=True),
    Format("a checkpoint's manifest", STEP + "manifest.json", CHECKPOINTS, as_sealed, damage.JSON,
           codes=(BAD_CHECKPOINT,)),
    Format("a checkpoint's config", STEP + "manifest.json", CHECKPOINTS[1:4], as_sealed_config, damage.YAML,
           codes=(BAD_CHECKPOINT,)),
    Format("a checkpoint's config, resumed", STEP + "manifest.json", CHECKPOINTS[4:5], as_sealed_config, damage.YAML,
           codes=(BAD_CHECKPOINT, BAD_CONFIG)),  # a legal config may differ from the run's
    Format("a checkpoint's data state", STEP + "manifest.json", CHECKPOINTS[4:5], as_sealed_data, damage.JSON,
           codes=(BAD_CHECKPOINT, BAD_DATA)),
    Format("a checkpoint's shard", STEP + "rank-00000-of-00001.safetensors", CHECKPOINTS, as_header, damage.JSON,
           more=words_at(0), codes=(BAD_CHECKPOINT,)),
    Format("a config", "fresh.yaml", [["train", "IN/fresh.yaml", "--print-config"], ["plan", "IN/fresh.yaml"]], as_yaml, damage.YAML,
           codes=(BAD_CONFIG, BAD_DATA)),  # a source may be a path that does not exist
    *[questions(kind) for kind in ("hellaswag", "arc", "mmlu", "piqa", "winogrande")],
    Format("a text to evaluate", "eval.txt", [["eval", "--checkpoint", "IN/step", "--threads", "1", "--task", "text=IN/eval.txt"]], text=True),
    Format("prompts", "prompts.jsonl", [["generate", "--checkpoint", "IN/step", "--max-tokens", "1", "--prompts", "IN/prompts.jsonl"]],
           as_first_line, damage.JSON, prints=True),
    Format("a machine", "machine.json", [["plan", "IN/fresh.yaml", "--gpu", "IN/machine.json", "--as-configured"]], as_json, damage.JSON,
           codes=(BAD_CONFIG,)),
    Format("metrics", "run/metrics.jsonl", [*REPORTS, ["train", "IN/config.yaml"], CHECKPOINTS[1]], as_last_line, damage.JSON, text=True),
    Format("a status", "run/status.json", REPORTS, as_json, damage.JSON, text=True),
    Format("a report of a hang", "run/hang-20260131T123456Z.txt", REPORTS, text=True),
    Format("suspects", "run/suspects.txt", REPORTS, text=True),
    Format("a run's config", "run/config.yaml", REPORTS, as_yaml, damage.YAML, text=True),
]
