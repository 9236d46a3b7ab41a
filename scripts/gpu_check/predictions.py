"""Predictions of `tokamak plan` for the measured config on this GPU's row of the hardware table."""
import json

from place import ended


def predict(place, report, label, config, overrides):
    """{tokens_per_second, step_seconds, mfu_full, mfu_causal, peak_bytes, operations: {name: {seconds, flops, bytes} of
    its longest call}}; an empty dictionary if there is no plan: the log has the reason."""
    gpu, trace = "h100" if place.emulated else report.facts.get("gpu", ""), place.output / f"plan-{label}-trace.json"
    if not gpu:
        return {}
    code, text = place.run(f"plan-{label}", [
        place.tokamak, "plan", place.configs / config, *overrides, *place.tiny, "--gpu", gpu, "--as-configured", "--json",
        "--trace", trace], 20, on_gpu=False)
    try:
        plan = json.loads(text[text.index("{"):text.rindex("}") + 1])
        choice, operations = plan["choices"][0], longest(json.loads(trace.read_text())["traceEvents"])
        return {"tokens_per_second": choice["tokens_per_second_per_gpu"], "step_seconds": choice["step_seconds"],
                "mfu_full": choice["mfu_full"], "mfu_causal": choice["mfu_causal"],
                "peak_bytes": choice["peak_bytes_per_rank"], "operations": operations}
    except (OSError, ValueError, KeyError, IndexError) as error:
        report.facts.setdefault("not_predicted", {})[label] = ended(code, text) if code != 0 else repr(error)
        return {}


def longest(events):
    """The longest call of each operation: weights' gradients take longer where they accumulate."""
    found = {}
    for event in events:
        if event["ph"] != "X" or "flops" not in event.get("args", {}):
            continue
        call = {"seconds": event["dur"] / 1e6, "flops": event["args"]["flops"], "bytes": event["args"]["bytes"]}
        if call["seconds"] > found.get(event["name"], {}).get("seconds", 0):
            found[event["name"]] = call
    return found


def seconds_of(prediction, name, operation):
    """Predicted seconds of an operation that bench timed; None if the step has none of its name. Bench cuts the
    optimizer's state, so that time is by bytes there."""
    call = prediction.get("operations", {}).get(name)
    if not call:
        return None
    moved = operation.get("bytes") or 0
    return call["seconds"] * (moved / call["bytes"] if not call["flops"] and moved and call["bytes"] else 1)
