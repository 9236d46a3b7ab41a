"""Speed of whole training steps, from `tokamak bench --json` (src/cli/bench_report.cc), each with the prediction of
`tokamak plan` for the same config. Missing results are reported as not run."""
import json

from place import ask_driver, ask_gpu, ended, expect
from predictions import predict
from report import FAILED, MEASURED, NOT_RUN, Ended, does_not_fit, not_zero
from sampler import Sampler, clocks
from speed import EMULATED, MASKED, bench, number

MICRO_BATCH = 8192  # tokens: one sequence
SHAPE = ["training.micro_batch_size=1", f"training.global_batch_tokens={2 * MICRO_BATCH}"]
MORE = 8  # micro-batches, as many as users have: the update is a smaller share
FEWER = 4  # layers of the second model, so that the difference is of layers alone
NOT_PLANNED = 5 * 2**30  # context, libraries, and bench's buffers for single GEMMs


def qwen(layers, hidden, intermediate, heads, kv_heads, tied, sequences):
    """Qwen 2.5's shapes at T 1024, on which llmq publishes tokens/s of one H100: with bf16 moments, eight
    micro-batches."""
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
    """Returns (exit code, output, the reported numbers of the JSON)."""
    with Sampler() as sampler:
        code, text, found = bench(place, "step", label, config, arguments, limit, "--micro-batches", 0,
                                  *(["--rounds", 1] if place.emulated else []), environment=environment)
    return code, text, {**{key: number(found, key) for key in NUMBERS}, **sampler.found}


def add_step(report, name, code, text, values, prediction, note=""):
    expect(code, text)
    if not values["tokens_per_second"]:
        raise Ended(FAILED, "bench reports no tokens/s")
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
    """Adds a line of one measured step; returns its numbers. `more` are arguments that `tokamak plan` lacks: with
    them nothing is predicted."""
    for its in (overrides, [*overrides, "training.micro_batch_size=auto"]):
        prediction = {} if more else predict(place, report, label, config, its)
        code, text, values = bench_step(place, label, config, [*its, *more])
        if not does_not_fit(code, text):
            break
    with report.line(name):
        add_step(report, name, code, text, values, prediction, note)
    return values if code == 0 else {}


def shape(layers, *more, micro_batches=2):
    return [f"model.num_hidden_layers={layers}", SHAPE[0], f"training.global_batch_tokens={micro_batches * MICRO_BATCH}", *more]


def steps_8b(place, report):
    """Steps of as many layers as fit, with whole sequences and with masked documents. Another has four layers less, so
    that the difference is of layers alone."""
    with report.line("step 8B"):
        layers = report.facts["layers_8b"] = layers_that_fit(place)
        masked, of = ["--documents", MASKED], f"; documents of {MASKED}"
        most = step_8b(place, report, "", "", layers, note=f"; {layers} of 32 layers, T 8192")
        step_8b(place, report, ", masked", "-masked", layers, masked, of)
        if not place.emulated:
            step_8b(place, report, f", {MORE} micro-batches", "-more", layers, micro_batches=MORE)
            step_8b(place, report, f", masked, {MORE} micro-batches", "-masked-more", layers, masked, of, micro_batches=MORE)
        fewer = max(1, layers - FEWER)
        least = step_8b(place, report, f", {fewer} layers", "-fewer", fewer)
        layer(place, report, most, least, layers - fewer)


def step_8b(place, report, name, label, layers, more=(), note="", micro_batches=2):
    return step(place, report, f"step 8B{name}", f"8b{label}", "llama-8b.yaml",
                shape(layers, "runtime.cuda_graphs=off", micro_batches=micro_batches), more, note)


def layer(place, report, most, least, difference):
    """A layer's rate alone, from the difference of two steps."""
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
    """Measurements for this GPU's own row of the hardware table, and CUDA graphs."""
    with report.line("bench calibrate"):
        calibrate(place, report)
    with report.line("step 8B, CUDA graphs"):
        layers = report.facts.get("layers_8b") or layers_that_fit(place)
        step(place, report, "step 8B, CUDA graphs", "8b-graphs", "llama-8b.yaml", shape(layers),
             ["runtime.cuda_graphs=on"])


def calibrate(place, report):
    if place.emulated:
        raise Ended(NOT_RUN, EMULATED)
    code, text, machine = bench(place, "calibrate", "machine", "llama-8b.yaml", shape(1), LIMIT, "--rounds", 1)
    if code != 0 or not machine:
        raise Ended(not_zero(code, text), ended(code, text))
    report.facts["machine"] = machine
    report.add("bench calibrate", MEASURED, "calibrate-machine.json in the archive: tokamak plan --gpu FILE")


def layers_that_fit(place):
    """How many layers of the 8B shape fit on the GPU."""
    free = [float(gpu["memory.free"]) * 2**20 for gpu in ask_gpu("memory.free") if gpu["memory.free"].isdigit()]
    free = 8 * 2**30 if place.emulated else free[0] if free else ask_driver()[1]
    code, text = place.run("plan", [
        place.tokamak, "plan", place.configs / "llama-8b.yaml", "runtime.backend=cuda", *SHAPE, *place.tiny, "--layers-in",
        int(max(1, free - NOT_PLANNED))], 20, on_gpu=False)
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if code != 0 or not found:
        raise Ended(NOT_RUN, ended(code, text))
    return min(2, found[0]["value"]) if place.emulated else found[0]["value"]
