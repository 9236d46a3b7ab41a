"""Speed, from `tokamak bench --json` (src/cli/bench_report.cc): each kernel beside its prediction, copy bandwidth and
the GEMM rate of the same run, and whole training steps. runtime.autotune gives the rate of cuBLASLt's best algorithm
for a GEMM. Missing results are reported as not run."""
import contextlib
import json
import math
import re
import statistics
import subprocess
from pathlib import Path

from place import ask_driver, ask_gpu, ended
from report import DOES_NOT_FIT, MEASURED, NOT_RUN, not_zero

OPS_CONFIG = ["llama-8b.yaml", "model.num_hidden_layers=1", "training.micro_batch_size=1"]
ATTENTION = ("attention", "attention_backward")
OF_COPY = {"rmsnorm": 0.8, "swiglu": 0.8, "adamw": 0.8}  # by prefix of the operation's name
GEMM_GOAL, NATIVE_GOAL = 0.95, 0.50
MODELS = {"1.5B": "llama-1.5b.yaml", "0.5B": "llama-0.5b.yaml"}
NOT_PLANNED = 5 * 2**30  # context, libraries, and bench's buffers for single GEMMs
PREDICTIONS = json.loads((Path(__file__).parent / "predictions.json").read_text())
AS_PREDICTED = (0.85, 1.2)  # measured / predicted; look first at values outside


# ---- kernels -------------------------------------------------------------------------------------------------------

def number(record, key):
    """The value at this path if it is a positive number."""
    value = record.get(key) if isinstance(record, dict) else None
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value > 0 else None


def rate(operation, work):
    """FLOP/s or bytes/s of an operation."""
    amount, seconds = number(operation, work), number(operation, "seconds")
    return amount / seconds if amount and seconds else None


def tflops(value):
    return f"{value / 1e12:.0f} TFLOP/s"


def beside(measured, predicted):
    share = measured / predicted
    return f"{share:.2f} x predicted" + ("" if AS_PREDICTED[0] <= share <= AS_PREDICTED[1] else " (!)")


def timed(operation, name):
    """"0.92 ms, 1.03 x predicted, " of an operation at the 8B shape."""
    seconds, predicted = number(operation, "seconds"), PREDICTIONS["milliseconds"].get(name)
    if not seconds:
        return ""
    return f"{1e3 * seconds:.3g} ms, " + (f"{beside(1e3 * seconds, predicted)}, " if predicted else "")


def bench_ops(place, attention, limit, *overrides):
    """(the JSON's content or {}, why it is missing, the verdict)."""
    path = place.output / f"ops-{attention}.json"
    path.unlink(missing_ok=True)
    code, text = place.run(f"bench-ops-{attention}", [
        place.tokamak, "bench", place.configs / OPS_CONFIG[0], *OPS_CONFIG[1:], "runtime.backend=cuda",
        f"runtime.attention={attention}", *overrides, *place.tiny, "--ops", "--json", path], limit)
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
    native, why, verdict = bench_ops(place, "native", 60, "runtime.autotune=false")
    if not native:
        report.add("kernels", verdict, detail=why)
        return
    found = native
    copy, ceiling = number(found, "copy_bytes_per_second"), number(found, "gemm_flops_per_second")
    report.add("copy bandwidth", MEASURED if copy else NOT_RUN, f"{copy / 1e9:.0f} GB/s" if copy else "", rate=copy)
    report.add("GEMM ceiling", MEASURED if ceiling else NOT_RUN, tflops(ceiling) if ceiling else "", rate=ceiling)
    cudnn, why, verdict = bench_ops(place, "cudnn", 90, "runtime.autotune=true")
    for name, operation in cudnn.get("operations", {}).items():
        if name.startswith("gemm") and name in found["operations"] and (tuned := rate(operation, "flops")):
            plain = found["operations"][name]
            plain.setdefault("best_flops_per_second", max(tuned, rate(plain, "flops") or 0))
    tuned = [(plain["flops"] / best, plain["seconds"]) for plain in found["operations"].values()
             if (best := number(plain, "best_flops_per_second"))]
    if tuned:
        before, after = sum(seconds for _, seconds in tuned), sum(seconds for seconds, _ in tuned)
        report.add("GEMMs of a layer and the head", MEASURED,
                   f"{1e3 * before:.3g} ms, autotune saves {1 - after / before:.1%}", seconds=before, tuned=after)
    seen = set()
    for name, operation in found["operations"].items():
        if not name.startswith("attention"):
            seen.add(kernel(report, name, operation, copy, ceiling))
    for kind in sorted({*OF_COPY, "gemm"} - seen):
        report.add(f"{kind}, all of them", NOT_RUN, detail="no such line in bench --ops")
    attention(report, native, cudnn, why or "no such line in bench --ops", verdict or NOT_RUN)


def kernel(report, name, operation, copy, ceiling):
    """Adds one line, compared with its goal if it has one; returns the kind of operation of that goal."""
    flops, moved, best = rate(operation, "flops"), rate(operation, "bytes"), number(operation, "best_flops_per_second")
    time = timed(operation, name)
    kind = next((kind for kind in [*OF_COPY, "gemm"] if name.startswith(kind)), None)
    if kind == "gemm" and flops:
        of_ceiling = f"{time}{tflops(flops)}" + (f", {flops / ceiling:.0%} of ceiling" if ceiling else "")
        if best:
            report.against(name, flops >= GEMM_GOAL * best, f"{of_ceiling}, {flops / best:.0%} of best",
                           f"goal {GEMM_GOAL:.0%}", goal=True, rate=flops, share=flops / best)
        else:
            report.add(name, NOT_RUN, of_ceiling, f"goal {GEMM_GOAL:.0%}", "bench does not say the best",
                       rate=flops)
    elif kind and moved and copy:
        report.against(name, moved >= OF_COPY[kind] * copy, f"{time}{moved / 1e9:.0f} GB/s, {moved / copy:.0%} of copy",
                       f"goal {OF_COPY[kind]:.0%}", goal=True, rate=moved, share=moved / copy)
    elif flops:
        report.add(name, MEASURED, time + tflops(flops) + (f", {flops / ceiling:.0%} of ceiling" if ceiling else ""),
                   rate=flops)
    elif moved and copy:
        report.add(name, MEASURED, f"{time}{moved / 1e9:.0f} GB/s, {moved / copy:.0%} of copy", rate=moved,
                   share=moved / copy)
    else:
        report.add(name, NOT_RUN, detail="no bytes, no FLOPs or no time")
        return None
    return kind


def attention(report, native, cudnn, why, verdict):
    """Forward and backward: cuDNN's, and our own kernels against it."""
    for name in ATTENTION:
        theirs, ours = (found.get("operations", {}).get(name) for found in (cudnn, native))
        best, reached = rate(theirs, "flops"), rate(ours, "flops")
        if best:
            report.add(f"{name}, cuDNN", MEASURED, timed(theirs, name) + tflops(best), rate=best)
        else:
            report.add(f"{name}, cuDNN", verdict, detail=why)
        share_of(report, f"{name}, native", reached, best, timed(ours, f"{name}, native"))


def share_of(report, name, reached, best, time=""):
    told, bar = time + tflops(reached) if reached else "", f"goal {NATIVE_GOAL:.0%}"
    if reached and best:
        report.against(name, reached >= NATIVE_GOAL * best, f"{told}, {reached / best:.0%} of cuDNN", bar, goal=True,
                       rate=reached, share=reached / best)
    else:
        report.add(name, MEASURED if reached else NOT_RUN, told, rate=reached)


# ---- whole steps ---------------------------------------------------------------------------------------------------

class Sampler:
    """nvidia-smi's samples of the first GPU meanwhile: maximum memory in use, median clock and power, and every reason
    for throttling, as bits (nvmlClocksEventReasons; 1 is idle, 4 the power limit)."""

    FIELDS = "memory.used,clocks.sm,power.draw,clocks_event_reasons.active"

    def __enter__(self):
        self.found = {}
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", f"--query-gpu={self.FIELDS}", "--format=csv,noheader,nounits", "-lms", "250"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        self.process.kill()
        rows = []
        with contextlib.suppress(subprocess.TimeoutExpired):
            lines = self.process.communicate(timeout=10)[0].splitlines()
            rows = [row for row in (re.findall(r"0x[0-9a-f]+|[\d.]+", line) for line in lines) if len(row) == 4]
        if rows:
            memory, clock, power = ([float(row[i]) for row in rows] for i in range(3))
            busy = [i for i, watts in enumerate(power) if watts >= 0.7 * max(power)]
            reasons = 0
            for row in rows:
                reasons |= int(row[3], 0)
            self.found = {"memory_peak_bytes": max(memory) * 2**20, "clock": statistics.median(clock[i] for i in busy),
                          "watts": statistics.median(power[i] for i in busy), "reasons": reasons}


def bench_step(place, label, config, overrides, limit):
    """(exit code, output, the reported values of the JSON)."""
    path = place.output / f"bench-{label}.json"
    path.unlink(missing_ok=True)
    with Sampler() as sampler:
        code, text = place.run(f"bench-{label}", [
            place.tokamak, "bench", place.configs / config, *overrides, "runtime.backend=cuda", *place.tiny, "--json",
            path], limit)
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        found = {}
    values = {key: number(found, key) for key in ("tokens_per_second", "mfu_full", "mfu_causal", "memory_planned_bytes",
                                                  "memory_peak_bytes", "step_seconds")}
    return code, text, {**values, **sampler.found}


def tell(report, name, code, text, values, note=""):
    if code != 0 or not values["tokens_per_second"]:
        report.add(name, not_zero(code) if code != 0 else NOT_RUN,
                   detail=ended(code, text) if code != 0 else "bench tells no tokens/s")
        return
    parts = [f"{values['tokens_per_second']:.0f} tokens/s"]
    parts += [f"{key} {values[key]:.1%}" if values[key] else f"{key} unknown" for key in ("mfu_full", "mfu_causal")]
    parts += [f"{key} {values[f'memory_{key}_bytes'] / 2**30:.1f} GiB" for key in ("planned", "peak")
              if values[f"memory_{key}_bytes"]]
    if "watts" in values:
        parts.append(f"{values['clock']:.0f} MHz, {values['watts']:.0f} W, slowed by {values['reasons']:#x}")
    predicted = PREDICTIONS["mfu_full"].get(name.replace("training ", ""))
    if predicted and values["mfu_full"]:
        parts.append(beside(values["mfu_full"], predicted))
    report.add(name, MEASURED, ", ".join(parts) + note, **values)


def models(place, report):
    """The 8B shape first, without and with CUDA graphs; then whole models."""
    layers, why = layers_that_fit(place)
    if not layers:
        report.add("training 8B-shaped", NOT_RUN, detail=why)
    for graphs in ("off", "on") if layers else ():
        for layers in (layers, max(1, layers - 2)):
            code, text, values = bench_step(place, f"8B-shaped-{graphs}", "llama-8b.yaml", [
                f"model.num_hidden_layers={layers}", "training.micro_batch_size=1", f"runtime.cuda_graphs={graphs}"], 40)
            if code != DOES_NOT_FIT:
                break
        suffix = "" if graphs == "off" else ", CUDA graphs"
        tell(report, f"training 8B-shaped{suffix}", code, text, values, f"; {layers} of 32 layers, T 8192")
    for model, config in MODELS.items():
        code, text, values = bench_step(place, model, config, [], 30)
        if code == DOES_NOT_FIT:
            code, text, values = bench_step(place, model, config, ["training.micro_batch_size=auto"], 30)
        tell(report, f"training {model}", code, text, values)


def layers_that_fit(place):
    """(how many layers of the 8B shape, why none)."""
    free = [float(gpu["memory.free"]) * 2**20 for gpu in ask_gpu("memory.free") if gpu["memory.free"].isdigit()]
    free = 8 * 2**30 if place.emulated else free[0] if free else ask_driver()[1]
    code, text = place.run("plan", [
        place.tokamak, "plan", place.configs / "llama-8b.yaml", "runtime.backend=cuda", "training.micro_batch_size=1",
        "--layers-in", int(max(1, free - NOT_PLANNED))], 20)
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return (told[0]["value"], "") if code == 0 and told else (None, ended(code, text))
