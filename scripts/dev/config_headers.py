#!/usr/bin/env python3
"""Writes the header comment of every configs/*.yaml: parameters, tokens, FLOPs, memory, machine, time. All numbers come
from `tokamak plan`, for a GPU with its predicted step (--gpu). With --check a stale header is an error (a test runs
this).

usage: scripts/dev/config_headers.py PROGRAM [--check]     (PROGRAM: build/tokamak)
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
GIB = 2**30
CPU_FLOPS = 300e9  # sustained FLOP/s that we assume for 8 cores with AVX-512 or AMX

RUNS = {  # config: (its title, ranks, the row of `tokamak plan --gpu`; None: a CPU)
    "quickstart": ("A first run: a small Llama on a laptop's CPU, on the data that scripts/quickstart.sh prepares.", 1, None),
    "stages": ("Three stages: short sequences, longer ones with another RoPE base, an anneal. The data is the quickstart's.", 1, None),
    "llama-125m": ("Llama of GPT-2 small's size, on one GPU.", 1, "a100-80"),
    "olmo3-190m": ("OLMo 3's switches at a small size, on one GPU: norms after each part, QK-norm, windows in three of four layers.",
                   1, "a100-80"),
    "llama-350m": ("Llama of GPT-2 medium's size, on one node.", 8, "a100-80"),
    "llama-0.5b": ("0.5B parameters on one GPU; scripts/gpu_check.sh measures it, too.", 1, "h100"),
    "llama-1b": ("Llama of TinyLlama's size, on one node.", 8, "h100"),
    "llama-1.5b": ("1.5B parameters on one node; scripts/gpu_check.sh measures it, too, on one GPU.", 8, "h100"),
    "llama-8b": ("The shape of Llama 3 8B.", 64, "h100"),
    "llama-29b": ("29B parameters, the size of GigaChat Pro: a 42k vocabulary, 4k context.", 128, "a100-80"),
    "llama-70b": ("The shape of Llama 3 70B.", 256, "h100"),
}


def planned(program, path, ranks, *options):
    command = [program, "plan", path, "--ranks", str(ranks), "--json", *options]
    if "vocab_size" not in path.read_text():
        command.insert(3, "model.vocab_size=4096")  # the vocabulary of its data set, which does not exist yet
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def human(value, digits=3):
    for suffix, unit in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= unit:
            return f"{value / unit:.{digits}g}{suffix}"
    return f"{value:.{digits}g}"


def flops(word, plan, total, key):
    unit, name = (1e9, "GFLOP") if plan[key] < 1e12 else (1e12, "TFLOP")
    in_all = f"{total[key]:.3g}".replace("e+", "e")
    return f"{word}: {plan[key] / unit:.3g} {name} a token, {in_all} in all"


def duration(seconds):
    for name, unit in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} seconds"


def header(program, path):
    title, ranks, gpu = RUNS[path.stem]
    plan = planned(program, path, ranks, f"runtime.backend={'cuda' if gpu else 'cpu'}")
    stages = plan if isinstance(plan, list) else [plan]
    total = {key: sum(one["total_steps"] * one["tokens_per_step"] * one.get(key, 1) for one in stages)
             for key in ("tokens", "flops_per_token_full", "flops_per_token_causal")}
    plan, largest = stages[0], max(stages, key=lambda one: one["memory_bytes"])
    steps = " + ".join(f"{one['total_steps']} steps of {one['tokens_per_step']}" for one in stages)
    tokens, parameters = total["tokens"], plan["parameters"]
    memory, peak = largest["memory"], largest["memory_bytes"]
    machine = "8-core CPU with AVX-512 or AMX"
    seconds = total["flops_per_token_full"] / CPU_FLOPS
    source, on_host = f"at an assumed {CPU_FLOPS / 1e9:.4g} GFLOP/s sustained", ""
    if gpu:
        predicted = planned(program, path, ranks, "--gpu", gpu, "--as-configured")
        choice, its = predicted["choices"][0], predicted["machine"]
        memory, peak, seconds = choice["memory"], choice["peak_bytes_per_rank"], predicted["run"]["seconds"]
        machine = f"{ranks} x {gpu}; peak {its['bf16_flops'] / 1e12:.4g} TFLOP/s each (bf16, dense; {its['source']})"
        source = f"as tokamak plan predicts it: mfu_full {choice['mfu_full']:.0%}"
        on_host = f"; on the host: snapshot {memory.pop('snapshot') / GIB:.3g}"
    groups = [f"{name} {size / GIB:.3g}" for name, size in memory.items() if size > 0.01 * peak]
    lines = [
        title, "",
        f"parameters   {human(parameters)} ({human(plan['lookup_parameters'])} of them in the embedding, looked up)",
        f"tokens       {human(tokens)} ({steps}): {tokens / parameters:.3g} a parameter",
        f"FLOPs        {flops('mfu_full, 6 (N - N_embedding) + 12 L H S', plan, total, 'flops_per_token_full')}",
        f"             {flops('mfu_causal, half the attention term', plan, total, 'flops_per_token_causal')}",
        *(["             (sliding layers: their window in place of S)"] if "sliding_window" in path.read_text() else []),
        f"machine      {machine}",
        f"memory       planned per {'GPU' if gpu else 'process'} at world size {ranks}: {peak / GIB:.3g} GiB; in GiB:",
        f"             {', '.join(groups)}{on_host}",
        f"time         estimate: {duration(seconds)} {source}", "",
        "Computed by scripts/dev/config_headers.py, which rewrites this comment.",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true", help="change nothing; fail where a header is stale")
    options = parser.parse_args()
    stale = []
    found = {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"))}
    if set(found) != set(RUNS):
        sys.exit(f"configs/ and RUNS differ: {sorted(set(found) ^ set(RUNS))}")
    for path in found.values():
        text = path.read_text()
        wanted = header(options.program, path) + "\n" + re.sub(r"\A(?:#.*\n)*\n*", "", text)
        if text != wanted:
            stale.append(path.name)
            if not options.check:
                path.write_text(wanted)
    if options.check and stale:
        sys.exit(f"stale header: {', '.join(stale)}; run scripts/dev/config_headers.py build/tokamak")


if __name__ == "__main__":
    main()
