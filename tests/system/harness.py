"""Shared by the tests of the real program: a small data set and config made by the program itself, runs under mpirun,
and readers of a run's files. Standard library only."""
import hashlib
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

TOKAMAK = os.environ["TOKAMAK"]
MPIRUN = os.environ.get("MPIRUN", "mpirun")
# After a rank fails, mpirun sleeps a second or two between the signals that end the others; tests skip that.
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1",
           OMPI_MCA_odls_base_sigkill_timeout="0")

CONFIG = """\
run: {{name: small, output_dir: {output}}}
model:
  hidden_size: 48
  intermediate_size: 100
  num_hidden_layers: 3
  num_attention_heads: 4
  num_key_value_heads: 2
  head_dim: 12
  max_position_embeddings: 64
data:
  sequence_length: 32
  sources: [{{path: {data}/train}}]
  validation: [{{path: {data}/validation}}]
training: {{max_steps: 50, global_batch_tokens: 768, micro_batch_size: 2, validation_sequences: 5}}
optimizer: {{lr: 3e-3}}
precision: {{compute: f32}}
checkpoint: {{interval: none}}
metrics: {{log_interval: 1}}
runtime: {{threads_per_rank: 1}}
"""


def call(command, env_more=None, **options):
    return subprocess.run(command, env=dict(ENV, **(env_more or {})), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def tokamak(*arguments):
    """Runs the program on one rank and expects success."""
    done = call([TOKAMAK, *arguments])
    assert done.returncode == 0, f"tokamak {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def generated(*arguments, **options):
    """The output of `tokamak generate`: one dictionary per prompt, in order."""
    done = subprocess.run([TOKAMAK, "generate", "--jsonl", "--threads", "1", *arguments], env=ENV, text=True,
                          capture_output=True, **options)
    assert done.returncode == 0, f"tokamak generate {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def own_address_space():
    """Bytes of address space of the program and its libraries. A build with CUDA takes ten times as many."""
    for limit in range(64 << 20, 8 << 30, 64 << 20):
        if subprocess.run([TOKAMAK, "--version"], capture_output=True,
                          preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))).returncode == 0:
            return limit
    raise AssertionError("tokamak --version does not run within 8 GiB")


def mpirun(ranks, *arguments):
    return [MPIRUN, "-n", str(ranks), "--oversubscribe", "--bind-to", "none", TOKAMAK, *arguments]


class Workplace:
    """A temporary directory with a tokenizer, a data set and the path of a config; removed at the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="tokamak-system-")
        self.data = self.file("data")
        with open(self.file("text.jsonl"), "w") as out:
            for document in self.documents():
                out.write(json.dumps({"text": document}) + "\n")
        tokamak("tokenizer", "train", "--input", self.file("text.jsonl"), "--vocab-size", "400", "--output",
                self.file("tokenizer.model"))
        tokamak("data", "tokenize", "--input", self.file("text.jsonl"), "--tokenizer", self.file("tokenizer.model"),
                "--output", self.data, "--validation", "10%")

    @staticmethod
    def documents():
        """Sentences in which each word makes some next words likely, so that there is something to learn."""
        rng = random.Random(5)
        words = ["".join(rng.choice("abdegiklmnoprstu") for _ in range(rng.randint(2, 7))) for _ in range(120)]
        for _ in range(150):
            at, said = rng.randrange(120), []
            for _ in range(rng.randint(20, 120)):
                said.append(words[at])
                at = (at * 7 + rng.randrange(4)) % 120
            yield " ".join(said) + "."

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)

    def config(self, name, text=CONFIG):
        """Writes a config whose run is called `name` and returns its path; the run lies in run(name)."""
        path = self.file(name + ".yaml")
        with open(path, "w") as out:
            out.write(text.format(output=self.run(name), data=self.data))
        return path

    def run(self, name):
        return self.file("runs/" + name)

    def train(self, name, ranks, *overrides, expect=0, text=CONFIG):
        """Trains under mpirun and expects an exit code; returns the output."""
        done = call(mpirun(ranks, "train", self.config(name, text), *overrides), timeout=240)
        assert done.returncode == expect, (f"{name} on {ranks} ranks, {overrides}: exit {done.returncode}, expected "
                                           f"{expect}\n{done.stdout}")
        return done.stdout

    def records(self, name, key="loss/last"):
        """{step: value} of metrics.jsonl; if a step was logged twice, the later value."""
        values = {}
        with open(self.run(name) + "/metrics.jsonl") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # cut short by a crash or a full disk
                if key in record:
                    values[record["step"]] = record[key]
        return values

    def checkpoint(self, name, step):
        return f"{self.run(name)}/checkpoints/step-{step:08d}"

    def steps(self, name):
        directory = self.run(name) + "/checkpoints"
        return sorted(int(d[5:]) for d in os.listdir(directory) if d.startswith("step-") and d[5:].isdigit())


def gathered(checkpoint):
    """{(kind, parameter): bytes} of a checkpoint from any number of ranks."""
    with open(checkpoint + "/manifest.json") as file:
        manifest = json.load(file)["manifest"]
    shards = [read_safetensors(f"{checkpoint}/{file['name']}") for file in manifest["files"]]
    result = {}
    for unit in manifest["units"]:
        for kind in manifest["kinds"]:
            flat = b"".join(shard[f"{kind}/{unit['name']}"] for shard in shards)
            size = len(flat) // (unit["slice"] * len(shards))  # bytes of an element, since moments may be BF16
            for param in unit["params"]:
                count = 1
                for extent in param["shape"]:
                    count *= extent
                result[kind, param["name"]] = flat[size * param["begin"]:size * (param["begin"] + count)]
    return result


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items() if name != "__metadata__"}


def digest(directory):
    """Names and bytes of every file below."""
    result = hashlib.sha256()
    for root, _, files in sorted(os.walk(directory)):
        for name in sorted(files):
            path = os.path.join(root, name)
            result.update(os.path.relpath(path, directory).encode())
            with open(path, "rb") as file:
                result.update(file.read())
    return result.hexdigest()


def relative(a, b):
    return abs(a - b) / abs(b)


def mebibytes(text):
    """Parses a size as the program writes it: "1.50 GiB"."""
    number, unit = text.split()
    return float(number) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit]


def main(tests):
    """Runs functions of a Workplace in turn; prints each one's docstring. The arguments pick some by name."""
    chosen = [test for test in tests if len(sys.argv) == 1 or test.__name__ in sys.argv[1:]]
    assert chosen, f"no test called {sys.argv[1:]}"
    with Workplace() as place:
        for test in chosen:
            start = time.monotonic()
            test(place)
            print(f"ok ({time.monotonic() - start:.1f} s):", " ".join(test.__doc__.split()), flush=True)
