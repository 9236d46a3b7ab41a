#!/usr/bin/env python3
"""Writes the header comment of every configs/*.yaml: parameters, tokens, FLOPs, memory, machine, time.

All figures are computed from the file's own values; what is assumed (machine, MFU) stands in RUNS below and is named in
the header. Without arguments the headers are rewritten; with --check stale ones are an error (a test runs this).
The formulas are those of src/model/flops.h, src/model/activations.cc and src/zero/ (section names in memory()).
"""
import argparse
import dataclasses
import pathlib
import re
import sys

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
GIB = 2**30


@dataclasses.dataclass
class Machine:
    name: str  # of one rank
    memory_gib: float
    flops: float  # a second: dense bf16 peak of a GPU, or what a CPU is assumed to sustain
    source: str  # where the peak comes from; "" where `flops` is itself an assumption


A100 = Machine("A100 SXM 80 GB", 80, 312e12, "NVIDIA A100 datasheet")
H100 = Machine("H100 SXM 80 GB", 80, 989.4e12, "NVIDIA H100 datasheet")
LAPTOP = Machine("8-core CPU with AVX-512 or AMX", 16, 300e9, "")


@dataclasses.dataclass
class Run:
    title: str
    ranks: int
    machine: Machine
    mfu: float  # assumed mfu_full; 1 where the machine's figure is what it sustains


RUNS = {
    "quickstart": Run("A first run: a small Llama on a laptop's CPU, on the data that scripts/quickstart prepares.",
                      1, LAPTOP, 1.0),
    "llama-125m": Run("Llama of GPT-2 small's size, on one GPU.", 1, A100, 0.40),
    "llama-350m": Run("Llama of GPT-2 medium's size, on one node.", 8, A100, 0.42),
    "llama-0.5b": Run("0.5B parameters on one GPU; scripts/gpu_check.sh measures it, too.", 1, H100, 0.40),
    "llama-1b": Run("Llama of TinyLlama's size, on one node.", 8, H100, 0.40),
    "llama-1.5b": Run("1.5B parameters on one node; scripts/gpu_check.sh measures it, too, on one GPU.", 8, H100, 0.40),
    "llama-8b": Run("The shape of Llama 3 8B.", 64, H100, 0.40),
    "llama-29b": Run("29B parameters, the size of GigaChat Pro: a 42k vocabulary, 4k context.", 128, A100, 0.45),
    "llama-70b": Run("The shape of Llama 3 70B.", 256, H100, 0.40),
}

UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def read_flat(text):
    """{'section.key': 'value'} of the two-level keys; lists and deeper levels are skipped."""
    values, section = {}, ""
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if match := re.fullmatch(r"(\w+):", line):
            section = match[1]
        elif match := re.fullmatch(r"  (\w+): *(\S.*)", line):
            values[f"{section}.{match[1]}"] = match[2]
    return values


def count(text):
    match = re.fullmatch(r"([\d_.]+)([A-Za-z]*)", text)
    if match is None or match[2] not in UNITS:
        sys.exit(f"'{text}' is not a count")
    return round(float(match[1]) * UNITS[match[2]])


@dataclasses.dataclass
class Shape:
    C: int  # hidden
    I: int  # intermediate
    L: int  # layers
    Hq: int
    Hkv: int
    D: int
    V: int
    T: int
    tied: bool

    @classmethod
    def of(cls, v):
        heads, hidden = count(v["model.num_attention_heads"]), count(v["model.hidden_size"])
        return cls(C=hidden, I=count(v["model.intermediate_size"]), L=count(v["model.num_hidden_layers"]), Hq=heads,
                   Hkv=count(v.get("model.num_key_value_heads", str(heads))) or heads,
                   D=count(v.get("model.head_dim", "0")) or hidden // heads, V=count(v["model.vocab_size"]),
                   T=count(v["data.sequence_length"]), tied=v.get("model.tie_word_embeddings") == "true")

    def qkv(self):
        return (self.Hq + 2 * self.Hkv) * self.D

    def layer(self):  # matrices of one layer: qkv, o, gate and up, down
        return self.C * self.qkv() + self.Hq * self.D * self.C + 3 * self.C * self.I

    def norms(self):
        return (2 * self.L + 1) * self.C

    def vocab_matrices(self):
        return 1 if self.tied else 2

    def parameters(self):
        return self.L * self.layer() + self.norms() + self.vocab_matrices() * self.V * self.C

    def looked_up(self):
        return 0 if self.tied else self.V * self.C

    def flops_per_token(self, attention_share):
        """src/model/flops.h; attention_share 1: mfu_full, 0.5: mfu_causal."""
        return 6 * (self.parameters() - self.looked_up()) + attention_share * 12 * self.L * self.Hq * self.D * self.T


def memory(shape, ranks, micro_batch, mode, compute_bytes):
    """Bytes on one rank: sharded state, buffers for whole units, activations."""
    # Master weight, two moments, gradient in fp32 and the copy that is gathered.
    state = shape.parameters() * (4 * 4 + compute_bytes) / ranks
    # Two layers, the vocabulary's matrices and the norms, gathered, and as many gradients in fp32, and the largest slice
    # once more; a rank alone computes on its own slices.
    unit_elements = 2 * shape.layer() + shape.vocab_matrices() * shape.V * shape.C + shape.norms()
    staging = 4 * max(shape.layer(), shape.V * shape.C) / ranks
    units = unit_elements * (compute_bytes + 4) + staging if ranks > 1 else 0
    # Per token and layer (src/model/activations.cc): input, mid, qkv, attention, gate_up; lse and two rstd in fp32.
    tokens = micro_batch * shape.T
    inner = compute_bytes * (shape.C + shape.qkv() + shape.Hq * shape.D + 2 * shape.I) + 4 * (shape.Hq + 2)
    kept = shape.L if mode == "none" else 1
    # Output, norm, swiglu (whose gradients take their places); gradients of residual stream, qkv, attention.
    shared = compute_bytes * (2 * shape.C + shape.I + shape.C + shape.qkv() + shape.Hq * shape.D)
    activations = tokens * (shape.L * compute_bytes * shape.C + kept * inner + shared + 8)
    return state, units, activations


def human(value, digits=3):
    for suffix, unit in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= unit:
            return f"{value / unit:.{digits}g}{suffix}"
    return f"{value:.{digits}g}"


def scientific(value):
    return re.sub(r"e\+0*", "e", f"{value:.3g}")


def gflops(value):
    return f"{value / 1e9:.3g} GFLOP" if value < 1e12 else f"{value / 1e12:.3g} TFLOP"


def duration(seconds):
    for name, unit in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} seconds"


def auto_micro_batch(sequences, length):
    """As the trainer chooses where memory is plenty: equal micro-batches of at most 8192 tokens."""
    pieces = next(p for p in range(1, sequences + 1) if -(-sequences // p) * length <= 8192 or p == sequences)
    return -(-sequences // pieces)


def check_run(name, run, shape, batch, micro_batch, needed):
    step = run.ranks * micro_batch * shape.T
    if batch % step != 0:
        sys.exit(f"{name}: global_batch_tokens {batch} is no multiple of {run.ranks} ranks x {micro_batch} x {shape.T}")
    if needed > 0.92 * run.machine.memory_gib * GIB:
        sys.exit(f"{name}: {needed / GIB:.1f} GiB do not fit into {run.machine.memory_gib} GiB")


def header(name, text):
    run, v = RUNS[name], read_flat(text)
    shape = Shape.of(v)
    batch = count(v["training.global_batch_tokens"])
    micro_batch = auto_micro_batch(batch // shape.T // run.ranks, shape.T)
    if v["training.micro_batch_size"] != "auto":
        micro_batch = count(v["training.micro_batch_size"])
    if "training.max_tokens" in v:
        steps = -(-count(v["training.max_tokens"]) // batch)
    else:
        steps = count(v["training.max_steps"])
    tokens = steps * batch
    parameters = shape.parameters()
    mode, compute = v.get("activation_checkpoint.mode", "none"), v.get("precision.compute", "bf16")
    state, units, activations = memory(shape, run.ranks, micro_batch, mode, 2 if compute == "bf16" else 4)
    needed = state + units + activations
    check_run(name, run, shape, batch, micro_batch, needed)

    full, causal = shape.flops_per_token(1), shape.flops_per_token(0.5)
    seconds = tokens * full / (run.ranks * run.machine.flops * run.mfu)
    machine = f"{run.ranks} x {run.machine.name}" if run.machine.source else run.machine.name
    if run.machine.source:
        machine += f"; peak {run.machine.flops / 1e12:.4g} TFLOP/s each (bf16, dense; {run.machine.source})"
        assumed = f"at an assumed mfu_full of {run.mfu:.0%}"
    else:
        assumed = f"at an assumed {run.machine.flops / 1e9:.4g} GFLOP/s sustained"
    per = "GPU" if run.machine.source else "process"
    gib = [f"{x / GIB:.3g} GiB" for x in (needed, state, units, activations)]
    lines = [
        run.title, "",
        f"parameters   {human(parameters)} ({human(shape.looked_up())} of them in the embedding, looked up)",
        f"tokens       {human(tokens)} ({steps} steps of {batch}): {tokens / parameters:.3g} a parameter",
        f"FLOPs        mfu_full, 6 (N - N_embedding) + 12 L H S: {gflops(full)} a token, {scientific(tokens * full)} in all",
        f"             mfu_causal, half the attention term: {gflops(causal)} a token, {scientific(tokens * causal)} in all",
        f"machine      {machine}",
        f"memory       estimate per {per} at world size {run.ranks}: {gib[0]} ({gib[1]} state, {gib[2]} unit buffers,",
        f"             {gib[3]} activations) without the libraries' own",
        f"time         estimate: {duration(seconds)} {assumed}", "",
        "Computed by scripts/config_headers.py, which rewrites this comment.",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def body_of(text):
    return re.sub(r"\A(?:#.*\n)*\n*", "", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a header is stale")
    check = parser.parse_args().check
    stale = []
    found = {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}
    if set(found) != set(RUNS):
        sys.exit(f"configs/ and RUNS differ: {sorted(set(found) ^ set(RUNS))}")
    for name, path in found.items():
        text = path.read_text()
        wanted = header(name, body_of(text)) + "\n" + body_of(text)
        if text != wanted:
            stale.append(path.name)
            if not check:
                path.write_text(wanted)
    if check and stale:
        sys.exit(f"stale header: {', '.join(stale)}; run scripts/config_headers.py")


if __name__ == "__main__":
    main()
