"""How fast is it? Each kernel against copy bandwidth and the GEMM ceiling of the same run, and whole training steps.

Read from `tokamak bench --json` (src/cli/bench_report.cc). The best that cuBLASLt finds is what the same product reaches
with runtime.autotune. What cuDNN's attention does alone, on tensors of its own, tests/cuda/cudnn_rate.cc measures. What
is not there is reported as not run.
"""
import json
import math
import re
import subprocess

from place import ended
from report import DOES_NOT_FIT, FAILED, MEASURED, NOT_RUN, not_zero

OPS_CONFIG = ["llama-8b.yaml", "model.num_hidden_layers=1", "training.micro_batch_size=1"]
ATTENTION = ("attention", "attention_backward")
SKIPS = 77  # exit code of a test program that has no GPU, or no cuDNN
OF_COPY = {"rmsnorm": 0.8, "swiglu": 0.8, "adamw": 0.8}  # by how the operation's name begins
GEMM_GOAL, CUDNN_GOAL, NATIVE_GOAL = 0.95, 0.90, 0.50
MODELS = {"0.5B": "llama-0.5b.yaml", "1.5B": "llama-1.5b.yaml"}


def names():
    return (["copy bandwidth", "GEMM ceiling"] + [f"{op}, of copy bandwidth" for op in OF_COPY]
            + ["gemm, of the best that cuBLASLt finds", "attention through cuDNN, of cuDNN alone",
               "attention, native, of cuDNN"] + [f"training {model}" for model in [*MODELS, "8B-shaped"]])


# ---- kernels -------------------------------------------------------------------------------------------------------

def number(record, key):
    """The value there if it is a number above 0."""
    value = record.get(key) if isinstance(record, dict) else None
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value > 0 else None


def rate(operation, work):
    """FLOPs or bytes a second of an operation."""
    amount, seconds = number(operation, work), number(operation, "seconds")
    return amount / seconds if amount and seconds else None


def tflops(value):
    return f"{value / 1e12:.0f} TFLOP/s"


def bench_ops(place, attention, limit, *overrides):
    """(the JSON's content or {}, why it is missing, the verdict on that)."""
    path = place.output / f"ops-{attention}.json"
    path.unlink(missing_ok=True)
    code, text = place.run(f"bench-ops-{attention}", [
        place.tokamak, "bench", place.configs / OPS_CONFIG[0], *OPS_CONFIG[1:], "runtime.backend=cuda",
        f"runtime.attention={attention}", *overrides, "--ops", "--json", path], limit)
    if code != 0:
        return {}, ended(code, text), not_zero(code)
    try:
        found = json.loads(path.read_text())
        if isinstance(found.get("operations"), dict):
            return found, "", None
        return {}, f"no operations in {path.name}", NOT_RUN
    except (OSError, ValueError, AttributeError) as error:
        return {}, f"{path.name}: {error}", NOT_RUN


def kernels(place, report):
    native, why, verdict = bench_ops(place, "native", 60)
    if not native:
        for name in names():
            if not name.startswith("training"):
                report.add(name, verdict, detail=why)
        return
    found = native
    copy, product = number(found, "copy_bytes_per_second"), number(found, "product_flops_per_second")
    report.add("copy bandwidth", MEASURED if copy else NOT_RUN, f"{copy / 1e9:.0f} GB/s" if copy else "", rate=copy)
    report.add("GEMM ceiling", MEASURED if product else NOT_RUN, tflops(product) if product else "", rate=product)
    cudnn, why, verdict = bench_ops(place, "cudnn", 90, "runtime.autotune=true")
    for name, operation in cudnn.get("operations", {}).items():
        if name.startswith("gemm") and name in found["operations"] and (tuned := rate(operation, "flops")):
            plain = found["operations"][name]
            plain.setdefault("best_flops_per_second", max(tuned, rate(plain, "flops") or 0))
    seen = set()
    for name, operation in found["operations"].items():
        if not name.startswith("attention"):
            seen.add(kernel(report, name, operation, copy, product))
    for kind in sorted({*OF_COPY, "gemm"} - seen):
        report.add(f"{kind}, all of them", NOT_RUN, detail="no such line in bench --ops")
    attention(place, report, native, cudnn, why, verdict or NOT_RUN)


def kernel(report, name, operation, copy, product):
    """One line, against its goal if it has one; the kind of operation whose goal that was."""
    flops, moved, best = rate(operation, "flops"), rate(operation, "bytes"), number(operation, "best_flops_per_second")
    kind = next((kind for kind in [*OF_COPY, "gemm"] if name.startswith(kind)), None)
    if kind == "gemm" and flops:
        of_ceiling = f"{tflops(flops)}" + (f", {flops / product:.0%} of the ceiling" if product else "")
        if best:
            report.against(name, flops >= GEMM_GOAL * best, f"{of_ceiling}, {flops / best:.0%} of the best found",
                           f"goal {GEMM_GOAL:.0%} of the best", goal=True, rate=flops, share=flops / best)
        else:
            report.add(name, NOT_RUN, of_ceiling, f"goal {GEMM_GOAL:.0%} of the best", "bench does not say the best",
                       rate=flops)
    elif kind and moved and copy:
        report.against(name, moved >= OF_COPY[kind] * copy, f"{moved / 1e9:.0f} GB/s, {moved / copy:.0%} of copy",
                       f"goal {OF_COPY[kind]:.0%}", goal=True, rate=moved, share=moved / copy)
    elif flops:
        report.add(name, MEASURED, tflops(flops) + (f", {flops / product:.0%} of the ceiling" if product else ""),
                   rate=flops)
    elif moved and copy:
        report.add(name, MEASURED, f"{moved / 1e9:.0f} GB/s, {moved / copy:.0%} of copy", rate=moved,
                   share=moved / copy)
    else:
        report.add(name, NOT_RUN, detail="no bytes, no FLOPs or no time")
        return None
    return kind


def cudnn_alone(place, shape, limit):
    """({operation: FLOPs a second of cuDNN alone}, why there are none, the verdict on that)."""
    sizes = [shape.get(key) for key in ("documents", "length", "q_heads", "kv_heads", "head_dim")]
    if None in sizes:
        return {}, "bench does not say the shape", NOT_RUN
    if not place.cudnn_rate.exists():
        return {}, f"no {place.cudnn_rate}", NOT_RUN
    code, text = place.run("cudnn-rate", [place.cudnn_rate, *sizes], limit)
    if code != 0:
        return {}, ended(code, text), NOT_RUN if code == SKIPS else not_zero(code)
    try:
        found = json.loads(text.splitlines()[-1])
        rates = {name: number(found.get(name), "tflops") for name in ATTENTION}
        return {name: 1e12 * found for name, found in rates.items() if found}, "cudnn_rate tells no rate", NOT_RUN
    except (ValueError, IndexError, AttributeError) as error:
        return {}, f"cudnn_rate: {error}", FAILED


def attention(place, report, native, cudnn, why, verdict):
    """Forward and backward: through cuDNN against cuDNN alone, and our own kernels against that."""
    alone_of, no_rate, no_rate_verdict = cudnn_alone(place, native.get("attention_shape", {}), 60)
    if not why:
        why, verdict = no_rate, no_rate_verdict
    for name in ATTENTION:
        ours = rate(native["operations"].get(name), "flops")
        through, alone = rate(cudnn.get("operations", {}).get(name), "flops"), alone_of.get(name)
        share_of(report, f"{name} through cuDNN, of cuDNN alone", through, alone, CUDNN_GOAL, why, verdict)
        share_of(report, f"{name}, native, of cuDNN", ours, alone or through, NATIVE_GOAL, why, NOT_RUN)


def share_of(report, name, reached, best, goal, why, verdict):
    bar = f"goal {goal:.0%}"
    if reached and best:
        report.against(name, reached >= goal * best, f"{tflops(reached)}, {reached / best:.0%}", bar, goal=True,
                       rate=reached, share=reached / best)
    else:
        report.add(name, verdict, tflops(reached) if reached else "", bar, why, rate=reached)


# ---- whole steps ---------------------------------------------------------------------------------------------------

class MemorySampler:
    """The most memory that the first GPU has had in use, as the driver says."""

    def __enter__(self):
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "250"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        self.peak = None
        if self.process:
            self.process.terminate()
            values = re.findall(r"^\d+$", self.process.communicate()[0], re.M)
            self.peak = max(map(int, values)) * 2**20 if values else None


def bench_step(place, label, config, overrides, limit):
    """(exit code, output, the JSON's figures that are told)."""
    path = place.output / f"bench-{label}.json"
    path.unlink(missing_ok=True)
    with MemorySampler() as sampler:
        code, text = place.run(f"bench-{label}", [
            place.tokamak, "bench", place.configs / config, *overrides, "runtime.backend=cuda", "--json", path], limit)
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        found = {}
    values = {key: number(found, key) for key in
              ("tokens_per_second", "mfu_full", "mfu_causal", "memory_planned_bytes", "memory_peak_bytes")}
    values["memory_peak_bytes"] = sampler.peak or values["memory_peak_bytes"]
    return code, text, values


def tell(report, name, code, text, values, note=""):
    if code != 0 or not values["tokens_per_second"]:
        report.add(name, not_zero(code) if code != 0 else NOT_RUN,
                   detail=ended(code, text) if code != 0 else "bench tells no tokens/s")
        return
    parts = [f"{values['tokens_per_second']:.0f} tokens/s"]
    parts += [f"{key} {values[key]:.1%}" if values[key] else f"{key} unknown" for key in ("mfu_full", "mfu_causal")]
    peak = values["memory_peak_bytes"]
    parts.append(f"peak {peak / 2**30:.1f} GiB" if peak else "peak unknown")
    report.add(name, MEASURED, ", ".join(parts) + note, **values)


def models(place, report):
    for model, config in MODELS.items():
        code, text, values = bench_step(place, model, config, [], 60)
        if code == DOES_NOT_FIT:
            code, text, values = bench_step(place, model, config, ["training.micro_batch_size=auto"], 60)
        tell(report, f"training {model}", code, text, values)
    eight_billion(place, report)


def gib(text):
    """"The run needs 139.2 GiB on each rank, but 79.1 GiB are available" -> (139.2, 79.1)."""
    units = {"B": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1, "TiB": 2**10}
    match = re.search(r"needs ([\d.]+) (\w+) on each rank, but ([\d.]+) (\w+) are available", text)
    if not match or match[2] not in units or match[4] not in units:
        return None
    return float(match[1]) * units[match[2]], float(match[3]) * units[match[4]]


def eight_billion(place, report):
    """From all 32 layers downwards. A layer has 218M parameters of 18 bytes of state, and keeps about 0.7 GiB of
    activations for 8192 tokens; so the numbers of the first refusal tell about where to go on."""
    layer_gib, layers = 218.1e6 * 18 / 2**30 + 0.71, 32
    limit = min(120, place.left())
    while True:
        code, text, values = bench_step(place, "8B-shaped", "llama-8b.yaml", [
            f"model.num_hidden_layers={layers}", "training.micro_batch_size=1"], limit)
        if code != DOES_NOT_FIT or layers == 1 or place.left() < 30:
            break
        sizes = gib(text)
        layers = max(1, layers - max(1, math.ceil((sizes[0] - sizes[1]) / layer_gib) if sizes else 2))
    tell(report, "training 8B-shaped", code, text, values, f", {layers} of 32 layers, T 8192")
