"""Speed of each operation at the 8B shape, from `tokamak bench ops --json` (src/cli/bench_report.cc). It is compared
with its prediction, and with copy bandwidth and the GEMM rate of the same run. runtime.autotune finds the rate of
cuBLASLt's best algorithm for a GEMM, and fills its cache for later runs. Missing results are reported as not run."""
import math

from place import ended, read_json
from predictions import predict, seconds_of
from report import MEASURED, NOT_RUN, not_zero
from sampler import Sampler, clocks

CONFIG = "llama-8b.yaml"
OVERRIDES = ["model.num_hidden_layers=1", "training.micro_batch_size=1", "training.global_batch_tokens=16384"]
ATTENTION = ("attention", "attention_backward")
OF_COPY = {"rmsnorm": 0.8, "swiglu": 0.8, "adamw": 0.8}  # goals as shares of copy bandwidth, by name's prefix
GEMM_GOAL, NATIVE_GOAL = 0.95, 0.50
MASKED = 1500  # tokens mean tokens of a document in masked training
EMULATED = "the emulator takes minutes for the large GEMM that all are compared with"
# The error of `runtime.attention: cudnn` without cuDNN: the check continues without it.
NO_CUDNN = "runtime.attention is cudnn:"


def number(record, key):
    """The value at this path if it is a positive number."""
    value = record.get(key) if isinstance(record, dict) else None
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) and value > 0 else None


def rate(operation, work):
    """Returns the FLOP/s or bytes/s of an operation."""
    amount, seconds = number(operation, work), number(operation, "seconds")
    return amount / seconds if amount and seconds else None


def tflops(value):
    return f"{value / 1e12:.0f} TFLOP/s"


def timed(operation, name, prediction):
    """("0.92 ms, " of an operation, its value and prediction for the report)."""
    seconds, predicted = number(operation, "seconds"), seconds_of(prediction, name, operation or {})
    if not seconds:
        return "", {}
    return f"{1e3 * seconds:.3g} ms, ", {"value": 1e3 * seconds, "unit": "ms",
                                         **({"predicted": 1e3 * predicted} if predicted else {})}


def bench(place, kind, label, config, overrides, limit, *arguments, environment=None):
    """Runs `tokamak bench KIND`; returns (exit code, output, its results)."""
    path = place.output / f"{kind}-{label}.json"
    path.unlink(missing_ok=True)
    code, text = place.run(f"bench-{kind}-{label}", [
        place.tokamak, "bench", kind, place.configs / config, *overrides, "runtime.backend=cuda", *place.tiny, *arguments,
        "--output" if kind == "calibrate" else "--json", path], limit, environment)
    return code, text, read_json(path)


def bench_ops(place, label, limit, *arguments):
    """Returns (its results, or {}; why they are missing; the verdict)."""
    code, text, found = bench(place, "ops", label, CONFIG, OVERRIDES, limit, *arguments)
    if code != 0:
        return {}, ended(code, text), NOT_RUN if NO_CUDNN in text else not_zero(code, text)
    return (found, "", None) if found.get("operations") else ({}, f"no operations in ops-{label}.json", NOT_RUN)


def kernels(place, report):
    if place.emulated:
        report.add("kernels", NOT_RUN, detail=EMULATED)
        return
    predicted = predict(place, report, "ops", CONFIG, OVERRIDES)
    slow = predict(place, report, "ops-native", CONFIG, [*OVERRIDES, "runtime.attention=native"])
    with Sampler() as sampler:
        native, why, verdict = bench_ops(place, "native", 40, "runtime.attention=native", "runtime.autotune=false")
    if not native:
        report.add("kernels", verdict, detail=why)
    copy, ceiling = number(native, "copy_bytes_per_second"), number(native, "gemm_flops_per_second")
    report.add("copy bandwidth", MEASURED if copy else NOT_RUN,
               f"{copy / 1e9:.0f} GB/s{clocks(sampler.found)}" if copy else "", rate=copy, **sampler.found)
    report.add("GEMM ceiling", MEASURED if ceiling else NOT_RUN, tflops(ceiling) if ceiling else "", rate=ceiling)
    with Sampler() as sampler:
        cudnn, why, verdict = bench_ops(place, "cudnn", 60, "runtime.attention=cudnn", "runtime.autotune=true")
    operations = native.get("operations", {})
    for name, operation in cudnn.get("operations", {}).items():
        if name.startswith("gemm") and name in operations and (tuned := rate(operation, "flops")):
            plain = operations[name]
            plain.setdefault("best_flops_per_second", max(tuned, rate(plain, "flops") or 0))
    tuned = [(plain["flops"] / best, plain["seconds"]) for plain in operations.values()
             if (best := number(plain, "best_flops_per_second"))]
    if tuned:
        before, after = sum(seconds for _, seconds in tuned), sum(seconds for seconds, _ in tuned)
        report.add("GEMMs of a layer and the head", MEASURED,
                   f"{1e3 * before:.3g} ms, autotune saves {1 - after / before:.1%}{clocks(sampler.found)}",
                   seconds=before, tuned=after, **sampler.found)
    seen = set()
    for name, operation in operations.items():
        if not name.startswith("attention"):
            seen.add(kernel(report, name, operation, copy, ceiling, predicted))
    for kind in sorted({*OF_COPY, "gemm"} - seen) if operations else ():
        report.add(f"{kind}, all of them", NOT_RUN, detail="no such line in bench ops")
    attention(report, native, cudnn, why, verdict, predicted, slow)
    masked(report, *bench_ops(place, "masked", 30, "runtime.attention=cudnn", "--documents", MASKED, "--rounds", 1))


def kernel(report, name, operation, copy, ceiling, prediction):
    """Adds one line, compared with its goal if it has one; returns the kind of operation of that goal."""
    flops, moved, best = rate(operation, "flops"), rate(operation, "bytes"), number(operation, "best_flops_per_second")
    time, values = timed(operation, name, prediction)
    kind = next((kind for kind in [*OF_COPY, "gemm"] if name.startswith(kind)), None)
    if moved and copy and (kind in OF_COPY or not flops):
        of_copy, values = f"{time}{moved / 1e9:.0f} GB/s, {moved / copy:.0%} of copy", dict(values, rate=moved, share=moved / copy)
        if kind in OF_COPY:
            report.against(name, moved >= OF_COPY[kind] * copy, of_copy, f"goal {OF_COPY[kind]:.0%}", goal=True, **values)
        else:
            report.add(name, MEASURED, of_copy, **values)
    elif flops:
        of_ceiling = time + tflops(flops) + (f", {flops / ceiling:.0%} of ceiling" if ceiling else "")
        if kind == "gemm" and best:
            report.against(name, flops >= GEMM_GOAL * best, f"{of_ceiling}, {flops / best:.0%} of best",
                           f"goal {GEMM_GOAL:.0%}", goal=True, rate=flops, share=flops / best, **values)
        elif kind == "gemm":
            report.add(name, NOT_RUN, of_ceiling, f"goal {GEMM_GOAL:.0%}", "bench does not say the best",
                       rate=flops, **values)
        else:
            report.add(name, MEASURED, of_ceiling, rate=flops, **values)
    else:
        report.add(name, NOT_RUN, detail="no bytes, no FLOPs or no time")
        return None
    return kind


def attention(report, native, cudnn, why, verdict, predicted, slow):
    """Measures forward and backward of cuDNN's attention, and compares our own kernels with it."""
    for name in ATTENTION:
        theirs, ours = (found.get("operations", {}).get(name) for found in (cudnn, native))
        best = by_cudnn(report, name, theirs, predicted, why, verdict)
        share_of(report, f"{name}, native", rate(ours, "flops"), best, *timed(ours, name, slow))


def masked(report, found, why, verdict):
    """Measures attention within documents of random length, which cuDNN gets as ragged tensors."""
    documents = found.get("attention_shape", {}).get("documents")
    for name in ATTENTION:
        by_cudnn(report, name, found.get("operations", {}).get(name), {}, why, verdict, ", masked",
                 f" inside {documents} documents of {MASKED} on average")


def by_cudnn(report, name, operation, prediction, why, verdict, kind="", note=""):
    """Adds one line; returns the FLOP/s, or None."""
    reached, (time, values) = rate(operation, "flops"), timed(operation, name, prediction)
    if reached:
        report.add(f"{name}, cuDNN{kind}", MEASURED, time + tflops(reached) + note, rate=reached, **values)
    else:
        report.add(f"{name}, cuDNN{kind}", verdict or NOT_RUN, detail=why or "no such line in bench ops")
    return reached


def share_of(report, name, reached, best, time="", values=()):
    measured, bar = time + tflops(reached) if reached else "", f"goal {NATIVE_GOAL:.0%}"
    if reached and best:
        report.against(name, reached >= NATIVE_GOAL * best, f"{measured}, {reached / best:.0%} of cuDNN", bar, goal=True,
                       rate=reached, share=reached / best, **dict(values))
    else:
        report.add(name, MEASURED if reached else NOT_RUN, measured, rate=reached, **dict(values))
