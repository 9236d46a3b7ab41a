#!/usr/bin/env python3
"""Writes the header comment of every configs/*.yaml: parameters, tokens, FLOPs, memory, machine, time.

All numbers come from `tokamak plan --json`. The assumptions (machine, MFU) are in RUNS below and named in the header.
Headers are rewritten; with --check stale ones are an error (a test runs this).

usage: scripts/dev/config_headers.py PROGRAM [--check]     (PROGRAM: build/tokamak; memory is a GPU's, so one with CUDA)
"""
import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
GIB = 2**30
PLANNED_SHARE = 0.92  # of a GPU's memory: what CUDA, NCCL and a reserve leave; activations that are kept fill it


@dataclasses.dataclass
class Machine:
    name: str  # of one rank's device
    memory_gib: float
    flops: float  # per second: dense bf16 peak of a GPU, or an assumed sustained rate of a CPU
    source: str  # where the peak comes from; "" where `flops` is itself an assumption


A100 = Machine("A100 SXM 80 GB", 80, 312e12, "NVIDIA A100 datasheet")
H100 = Machine("H100 SXM 80 GB", 80, 989.4e12, "NVIDIA H100 datasheet")
LAPTOP = Machine("8-core CPU with AVX-512 or AMX", 16, 300e9, "")


@dataclasses.dataclass
class Run:
    title: str
    ranks: int
    machine: Machine
    mfu: float  # assumed mfu_full; 1 if `flops` is a sustained rate


RUNS = {
    "quickstart": Run("A first run: a small Llama on a laptop's CPU, on the data that scripts/quickstart.sh prepares.",
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

def planned(program, path, ranks, backend, memory_gib):
    """The plan of the file, by `tokamak plan --json`."""
    command = [program, "plan", path, f"runtime.backend={backend}", "--ranks", str(ranks), "--json",
               "--memory", str(int(PLANNED_SHARE * memory_gib * GIB))]
    if "vocab_size" not in path.read_text():
        command.insert(3, "model.vocab_size=4096")  # of the data set, which does not exist yet
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


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


def header(program, path):
    run = RUNS[path.stem]
    on_gpu = bool(run.machine.source)
    plan = planned(program, path, run.ranks, "cuda" if on_gpu else "cpu", run.machine.memory_gib)
    tokens, parameters = plan["total_steps"] * plan["tokens_per_step"], plan["parameters"]
    full, causal = plan["flops_per_token_full"], plan["flops_per_token_causal"]
    needed = plan["memory_bytes"] + plan["startup_bytes"] + plan["reserve_bytes"]
    if needed > run.machine.memory_gib * GIB:
        sys.exit(f"{path.name}: {needed / GIB:.1f} GiB do not fit into {run.machine.memory_gib} GiB")
    seconds = tokens * full / (run.ranks * run.machine.flops * run.mfu)
    machine = f"{run.ranks} x {run.machine.name}" if on_gpu else run.machine.name
    if on_gpu:
        machine += f"; peak {run.machine.flops / 1e12:.4g} TFLOP/s each (bf16, dense; {run.machine.source})"
        assumed = f"at an assumed mfu_full of {run.mfu:.0%}"
    else:
        assumed = f"at an assumed {run.machine.flops / 1e9:.4g} GFLOP/s sustained"
    per = "GPU" if on_gpu else "process"
    snapshot = plan["memory"].pop("snapshot") if on_gpu else 0
    groups = [f"{name} {size / GIB:.3g}" for name, size in plan["memory"].items() if size > 0.01 * plan["memory_bytes"]]
    on_host = f"; on the host: snapshot {snapshot / GIB:.3g}" if on_gpu else ""
    lines = [
        run.title, "",
        f"parameters   {human(parameters)} ({human(plan['lookup_parameters'])} of them in the embedding, looked up)",
        f"tokens       {human(tokens)} ({plan['total_steps']} steps of {plan['tokens_per_step']}): "
        f"{tokens / parameters:.3g} a parameter",
        f"FLOPs        mfu_full, 6 (N - N_embedding) + 12 L H S: {gflops(full)} a token, {scientific(tokens * full)} in all",
        f"             mfu_causal, half the attention term: {gflops(causal)} a token, {scientific(tokens * causal)} in all",
        f"machine      {machine}",
        f"memory       planned per {per} at world size {run.ranks}: {plan['memory_bytes'] / GIB:.3g} GiB, without the "
        "libraries' own;",
        f"             in GiB: {', '.join(groups)}{on_host}",
        f"time         estimate: {duration(seconds)} {assumed}", "",
        "Computed by scripts/dev/config_headers.py, which rewrites this comment.",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def body_of(text):
    return re.sub(r"\A(?:#.*\n)*\n*", "", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a header is stale")
    options = parser.parse_args()
    stale = []
    found = {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}
    if set(found) != set(RUNS):
        sys.exit(f"configs/ and RUNS differ: {sorted(set(found) ^ set(RUNS))}")
    for name, path in found.items():
        text = path.read_text()
        wanted = header(options.program, path) + "\n" + body_of(text)
        if text != wanted:
            stale.append(path.name)
            if not options.check:
                path.write_text(wanted)
    if options.check and stale:
        sys.exit(f"stale header: {', '.join(stale)}; run scripts/dev/config_headers.py build/tokamak")


if __name__ == "__main__":
    main()
