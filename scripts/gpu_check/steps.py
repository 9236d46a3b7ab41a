"""Speed of whole training steps, from `tokamak bench --json` (src/cli/bench_report.cc), each beside what `tokamak plan`
predicts for the same config. Missing results are reported as not run."""
import json

from place import ask_driver, ask_gpu, ended
from predictions import predict
from report import FAILED, MEASURED, NOT_RUN, does_not_fit, not_zero
from sampler import Sampler, clocks
from speed import EMULATED, MASKED, number

MICRO_BATCH = 8192  # tokens, of a sequence
SHAPE = ["training.micro_batch_size=1", f"training.global_batch_tokens={2 * MICRO_BATCH}"]
MORE = 8  # micro-batches of a step as users train: the update counts less
FEWER = 4  # layers of the second model, so that the difference is of layers alone
NOT_PLANNED = 5 * 2**30  # context, libraries, and bench's buffers for single GEMMs


def qwen(layers, hidden, intermediate, heads, kv_heads, tied, sequences):
    """Qwen 2.5's shapes at T 1024, on which llmq publishes tokens/s of one H100: with bf16 moments, eight micro-batches."""
    shape = {"hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers,
             "num_attention_heads": heads, "num_key_value_heads": kv_heads, "vocab_size": 151936, "qkv_bias": "true",
             "tie_word_embeddings": tied}
    return "llama-0.5b.yaml", [*(f"model.{key}={value}" for key, value in shape.items()), "data.sequence_length=1024",
                               f"training.micro_batch_size={sequences}", "optimizer.moments=bf16",
                               f"training.global_batch_tokens={8 * 1024 * sequences}"]


# Two micro-batches of the config's own.
MODELS = {"1.5B": ("llama-1.5b.yaml", ["training.global_batch_tokens=32768"]),
          "0.5B": ("llama-0.5b.yaml", ["training.global_batch_tokens=65536"]),
          "Qwen 0.5B, T 1024": qwen(24, 896, 4864, 14, 2, "true", 32),
          "Qwen 1.5B, T 1024": qwen(28, 1536, 8960, 12, 2, "true", 16),
          "Qwen 3B, T 1024": qwen(36, 2048, 11008, 16, 2, "true", 8),
          "12 of 28 layers of Qwen 7B, T 1024": qwen(12, 3584, 18944, 28, 4, "false", 8)}
NUMBERS = ("tokens_per_second", "step_seconds", "tokens_per_step", "mfu_full", "mfu_causal", "mfu_done", "attended",
           "gemm_flops_per_second", "peak_flops_per_second", "memory_baseline_bytes", "memory_planned_bytes", "memory_peak_bytes")
LIMIT = 40


def bench_step(place, label, config, arguments, limit=LIMIT, environment=None):
    """(exit code, output, the reported numbers of the JSON)."""
    path = place.output / f"bench-{label}.json"
    path.unlink(missing_ok=True)
    with Sampler() as sampler:
        code, text = place.run(f"bench-{label}", [
            place.tokamak, "bench", place.configs / config, "runtime.backend=cuda", *arguments, *place.tiny,
            "--micro-batches", 0, *(["--rounds", 1] if place.emulated else []), "--json", path], limit, environment)
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        found = {}
    return code, text, {**{key: number(found, key) for key in NUMBERS}, **sampler.found}


def tell(report, name, code, text, values, prediction, note=""):
    if code != 0 or not values["tokens_per_second"]:
        report.add(name, not_zero(code, text) if code != 0 else FAILED,
                   detail=ended(code, text) if code != 0 else "bench tells no tokens/s")
        return
    parts = [f"{values['tokens_per_second']:.0f} tokens/s"]
    parts += [f"{key} {values[key]:.1%}" if values[key] else f"{key} unknown"
              for key in ("mfu_full", "mfu_causal", "mfu_done")]
    parts += [f"{key} {values[f'memory_{key}_bytes'] / 2**30:.1f} GiB" for key in ("planned", "peak")
              if values[f"memory_{key}_bytes"]]
    predicted = prediction.get("tokens_per_second")
    report.add(name, MEASURED, ", ".join(parts) + note + clocks(values), value=values["tokens_per_second"],
               unit="tokens/s", **({"predicted": predicted, "prediction": {
                   key: prediction[key] for key in prediction if key != "operations"}} if predicted else {}), **values)


def step(place, report, name, label, config, overrides, more=(), note=""):
    """A line of one measured step, and its numbers. `more`: arguments that a plan does not know, so that nothing is
    predicted for them."""
    prediction = {} if more else predict(place, report, label, config, overrides)
    code, text, values = bench_step(place, label, config, [*overrides, *more])
    if does_not_fit(code, text) and "training.micro_batch_size=auto" not in overrides:
        overrides = [*overrides, "training.micro_batch_size=auto"]
        prediction = {} if more else predict(place, report, label, config, overrides)
        code, text, values = bench_step(place, label, config, [*overrides, *more])
    tell(report, name, code, text, values, prediction, note)
    return values if code == 0 else {}


def shape(layers, *more, micro_batches=2):
    return [f"model.num_hidden_layers={layers}", SHAPE[0], f"training.global_batch_tokens={micro_batches * MICRO_BATCH}", *more]


def steps_8b(place, report):
    """As many layers as fit, whole sequences and masked documents, and four layers less: the difference is of layers
    alone."""
    layers, why = layers_that_fit(place)
    if not layers:
        report.add("step 8B", NOT_RUN, detail=why)
        return
    report.facts["layers_8b"] = layers
    off = "runtime.cuda_graphs=off"
    most = step(place, report, "step 8B", "8b", "llama-8b.yaml", shape(layers, off),
                note=f"; {layers} of 32 layers, T 8192")
    masked, of = ["--documents", MASKED], f"; documents of {MASKED}"
    step(place, report, "step 8B, masked", "8b-masked", "llama-8b.yaml", shape(layers, off), masked, of)
    for name, label, more, note in () if place.emulated else (("", "more", [], ""), (", masked", "masked-more", masked, of)):
        step(place, report, f"step 8B{name}, {MORE} micro-batches", f"8b-{label}", "llama-8b.yaml",
             shape(layers, off, micro_batches=MORE), more, note)
    fewer = max(1, layers - FEWER)
    least = step(place, report, f"step 8B, {fewer} layers", "8b-fewer", "llama-8b.yaml", shape(fewer, off))
    layer(place, report, most, least, layers - fewer)


def layer(place, report, most, least, difference):
    """A layer's rate alone: of the difference of two steps."""
    name = "a layer of 8B alone"
    if not (difference and most.get("step_seconds") and least.get("step_seconds")):
        report.add(name, NOT_RUN, detail="one of the two steps is missing")
        return
    seconds = (most["step_seconds"] - least["step_seconds"]) / difference / 2  # two micro-batches
    predicted = [line["values"].get("prediction", {}).get("step_seconds") for line in report.lines
                 if line["name"] in ("step 8B", f"step 8B, {report.facts['layers_8b'] - difference} layers")]
    known = len(predicted) == 2 and all(predicted)
    report.add(name, MEASURED, f"{1e3 * seconds:.2f} ms a micro-batch of 8192 tokens, its update included",
               value=1e3 * seconds, unit="ms",
               **({"predicted": 1e3 * (predicted[0] - predicted[1]) / difference / 2} if known else {}))


def models(place, report):
    for model, (config, overrides) in MODELS.items():
        if place.emulated and "Qwen" in model:
            continue  # as small as the others there
        few = ["model.num_hidden_layers=2"] if place.emulated else []
        step(place, report, f"step {model}", model, config, [*overrides, *few])


def rest(place, report):
    """What this GPU's own row of the hardware table would be, and CUDA graphs."""
    calibrate(place, report)
    layers = report.facts.get("layers_8b") or layers_that_fit(place)[0]
    if layers:
        step(place, report, "step 8B, CUDA graphs", "8b-graphs", "llama-8b.yaml", shape(layers),
             ["runtime.cuda_graphs=on"])


def calibrate(place, report):
    if place.emulated:
        report.add("bench --calibrate", NOT_RUN, detail=EMULATED)
        return
    path = place.output / "machine.json"
    code, text = place.run("calibrate", [
        place.tokamak, "bench", place.configs / "llama-8b.yaml", *shape(1), "runtime.backend=cuda", *place.tiny,
        "--rounds", 1, "--calibrate", path], LIMIT)
    try:
        machine = json.loads(path.read_text())
    except (OSError, ValueError):
        machine = None
    if code != 0 or not machine:
        report.add("bench --calibrate", not_zero(code, text), detail=ended(code, text))
        return
    report.facts["machine"] = machine
    report.add("bench --calibrate", MEASURED, "machine.json in the archive: tokamak plan --gpu machine.json")


def layers_that_fit(place):
    """(how many layers of the 8B shape, why none)."""
    free = [float(gpu["memory.free"]) * 2**20 for gpu in ask_gpu("memory.free") if gpu["memory.free"].isdigit()]
    free = 8 * 2**30 if place.emulated else free[0] if free else ask_driver()[1]
    code, text = place.run("plan", [
        place.tokamak, "plan", place.configs / "llama-8b.yaml", "runtime.backend=cuda", *SHAPE, *place.tiny, "--layers-in",
        int(max(1, free - NOT_PLANNED))], 20, on_gpu=False)
    told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if code != 0 or not told:
        return None, ended(code, text)
    return (min(2, told[0]["value"]) if place.emulated else told[0]["value"]), ""
