"""tokamak plan --gpu by the real program: what its JSON holds, what a choice must obey, its trace, its errors; and the
script that predicts published runs."""
import csv
import json
import os
import pathlib
import subprocess
import sys

from harness import ENV, TOKAMAK, call, main, mpirun, tokamak

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA = str(ROOT / "configs/llama-8b.yaml")
FEW_LAYERS = ["model.num_hidden_layers=8"]  # a search over all choices then takes a quarter of the time
PREDICT = str(ROOT / "scripts/bench/predict_published.py")
CHOICE = ["micro_batch", "micro_batches", "activation_checkpoint", "kept_layers", "reduce", "unit", "keep_gathered", "zero_stage",
          "data_parallel_replicate_degree", "fits", "step_seconds",
          "tokens_per_second_per_gpu", "mfu_full", "mfu_causal", "exposed_communication_seconds", "peak_bytes_per_rank",
          "free_bytes_per_rank", "pinned_bytes_per_rank", "memory", "terms", "flops_per_rank", "exchanged_bytes_per_rank"]


def plan(*arguments, ranks=64, gpu="h100"):
    return json.loads(tokamak("plan", LLAMA, "--ranks", str(ranks), "--gpu", gpu, "--json", *arguments))


def refused(*arguments):
    done = subprocess.run([TOKAMAK, *arguments], env=ENV, text=True, capture_output=True)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def choices(place):
    """each choice has the promised keys; all but the last fit; the fastest is recommended; memory grows"""
    found = plan()
    assert list(found) == ["machine", "published_error", "choices", "recommended", "run", "checkpoint"], list(found)
    assert all(list(choice) == CHOICE for choice in found["choices"])
    fitting = [choice for choice in found["choices"] if choice["fits"]]
    assert len(fitting) > 3
    seconds = [choice["step_seconds"] for choice in fitting]
    assert seconds == sorted(seconds)
    assert f"micro_batch_size: {fitting[0]['micro_batch']}\n" in found["recommended"]
    assert f"mode: {fitting[0]['activation_checkpoint']}\n" in found["recommended"]
    assert f"zero_stage: {fitting[0]['zero_stage']}\n" in found["recommended"]
    ways = {(c["zero_stage"], c["data_parallel_replicate_degree"]) for c in fitting}
    assert ways <= {(stage, copies) for stage in (1, 2, 3) for copies in (1, 2, 4, 8)} and {(3, 1), (2, 1)} <= ways, ways
    fully_sharded = [c for c in fitting if (c["zero_stage"], c["data_parallel_replicate_degree"]) == (3, 1)]
    for mode in ("none", "full"):
        of_mode = sorted((c for c in fully_sharded if c["activation_checkpoint"] == mode), key=lambda c: c["micro_batch"])
        memory = [choice["peak_bytes_per_rank"] for choice in of_mode]
        assert memory == sorted(memory) and len(set(memory)) == len(memory), memory
    by = {(c["micro_batch"], c["activation_checkpoint"]): c for c in fully_sharded}
    assert by[1, "full"]["step_seconds"] > by[1, "none"]["step_seconds"]
    assert by[1, "full"]["peak_bytes_per_rank"] < by[1, "none"]["peak_bytes_per_rank"]
    best = min((c for c in fully_sharded if c["activation_checkpoint"] == "auto"), key=lambda c: c["step_seconds"])
    assert best["step_seconds"] <= min(c["step_seconds"] for c in fully_sharded), best
    (asked,) = plan("--as-configured", "activation_checkpoint.mode=auto", "parallelism.keep_gathered=auto",
                    "training.micro_batch_size=auto")["choices"]
    assert asked == best, (asked, best)
    tokens = 4 * 2**20 / 64 / fitting[0]["step_seconds"]
    assert abs(tokens / fitting[0]["tokens_per_second_per_gpu"] - 1) < 1e-9
    assert sum(fitting[0]["memory"].values()) < fitting[0]["peak_bytes_per_rank"] < 0.96 * 81559 * 2**20
    # The snapshot: 12 bytes of each parameter, a rank's share; padding and statistics of tensors come to little.
    assert 1 < fitting[0]["pinned_bytes_per_rank"] / (12 * 8030261248 / 64) < 1.01, fitting[0]
    for choice in found["choices"]:
        assert choice["peak_bytes_per_rank"] + choice["free_bytes_per_rank"] == 81559 * 2**20
        assert choice["fits"] == (choice["free_bytes_per_rank"] >= 81559 * 2**20 // 25), choice


def hardware(place):
    """a slower network exposes more; a larger GPU fits more; a machine file of the same numbers predicts the same"""
    fast, slow = plan("--as-configured"), plan("--as-configured", "--network", "100Gb")
    assert len(fast["choices"]) == len(slow["choices"]) == 1
    exposed = [found["choices"][0]["exposed_communication_seconds"] for found in (fast, slow)]
    assert exposed[1] > 5 * exposed[0], exposed
    one_node = plan("--as-configured", "--network", "100Gb", "--gpus-per-node", "64")
    assert one_node["choices"][0]["exposed_communication_seconds"] < 2 * exposed[0]
    fits = [sum(choice["fits"] for choice in plan(*FEW_LAYERS, ranks=8, gpu=gpu)["choices"]) for gpu in ("h100", "b200")]
    assert fits[0] < fits[1], fits
    path = os.path.join(place.path, "machine.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fast["machine"], file)
    assert plan("--as-configured", gpu=path)["choices"] == fast["choices"]


def configured(place):
    """--as-configured keeps the config's settings, also where they do not fit, and says so; auto is resolved"""
    found = plan("--as-configured", "training.micro_batch_size=8", "activation_checkpoint.mode=none")
    (choice,) = found["choices"]
    assert choice["micro_batch"] == 8 and choice["activation_checkpoint"] == "none" and not choice["fits"]
    assert found["recommended"] == ""
    found = plan("--as-configured", "training.micro_batch_size=auto", "activation_checkpoint.mode=full", gpu="a100-40")
    # The coarsest equal pieces of 8 sequences that fit: GPUs that share weights gather less often.
    assert found["choices"][0]["micro_batch"] == 4 and found["choices"][0]["fits"], found["choices"]


def kept(place):
    """without --gpu, text and JSON say what layers keep and recompute; --memory is what automatic choices fill"""
    def planned(*arguments):
        return json.loads(tokamak("plan", LLAMA, "--ranks", "64", "--json", "runtime.backend=cuda", *arguments))
    tensors, layers = ["qkv", "attention", "mid", "gate_up", "norm1", "norm2", "swiglu"], 32
    none, full = (planned(f"activation_checkpoint.mode={mode}") for mode in ("none", "full"))
    assert none["kept_layers"] == dict.fromkeys(tensors, layers - 1) and none["recomputed_flops"] == 0, none["kept_layers"]
    assert full["kept_layers"] == dict.fromkeys(tensors, 0), full["kept_layers"]
    # All of a layer's forward pass but the down projection, for a token that attends to half the sequence.
    length, tokens = full["sequence_length"], full["tokens_per_step"] / 64
    layer = 2 * 4096 * ((32 + 2 * 8) * 128 + 4096 + 2 * 14336) + 4 * 4096 * (length + 1) / 2
    assert abs(full["recomputed_flops"] / ((layers - 1) * layer * tokens) - 1) < 1e-9
    assert abs((full["step"]["flops"] - none["step"]["flops"]) / full["recomputed_flops"] - 1) < 1e-9
    # Selective recompute keeps as much as the memory holds; without a limit it keeps all.
    selective = "activation_checkpoint.mode=selective"
    assert planned(selective)["memory"] == none["memory"]
    limit = (none["memory_bytes"] + full["memory_bytes"]) // 2
    some = planned(selective, "--memory", str(limit))
    assert 0.97 * limit < some["memory_bytes"] <= limit, (some["memory_bytes"], limit)
    assert 0 < some["recomputed_flops"] < full["recomputed_flops"]
    assert all(0 <= some["kept_layers"][tensor] < layers for tensor in tensors)
    page = tokamak("plan", LLAMA, "--ranks", "64", "runtime.backend=cuda", selective, "--memory", str(limit))
    (line,) = [line for line in page.splitlines() if line.startswith("keeps ")]
    for tensor in tensors:
        assert f"{tensor} of {some['kept_layers'][tensor]}" in line, line
    assert f"of {layers - 1} that may keep them; recomputes " in line, line
    stated = float(line.split("recomputes ")[1].split("TFLOP")[0].split("PFLOP")[0])
    assert any(abs(stated * unit / some["recomputed_flops"] - 1) < 0.01 for unit in (1e12, 1e15)), line
    for wrong in ("80G?", "0", "-1Gi"):
        assert "--memory" in refused("plan", LLAMA, f"--memory={wrong}")


def any_config(place):
    """a micro-batch or a batch that the ranks cannot share does not stop `plan --gpu`; it stops a start"""
    large = str(ROOT / "configs/llama-70b.yaml")
    for path, ranks in ((str(ROOT / "configs/llama-125m.yaml"), 64), (str(ROOT / "configs/quickstart.yaml"), 64), (large, 1024)):
        page = tokamak("plan", path, "--ranks", str(ranks), "--gpu", "h100")
        assert "<- recommended" in page, page
        raised = "training.global_batch_tokens 16384 instead of 4096, which 64 ranks cannot share equally" in page
        assert raised == ("quickstart" in path) == ("\n  global_batch_tokens: 16384\n" in page), page
    assert "cannot share equally" in refused("plan", str(ROOT / "configs/quickstart.yaml"), "--ranks", "64")
    assert "has only 1 sequences" in refused("plan", large, "--ranks", "1024", "--gpu", "h200", "--as-configured")


def page(place):
    """The table has the config's keys and no row twice. It shows free memory and the accuracy of predictions. --memory
    replaces the GPU's memory."""
    small = [str(ROOT / "configs/llama-350m.yaml"), "--ranks", "64", "--gpu", "h100"]
    text = tokamak("plan", *small)
    lines = text.splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.startswith("   zero_  data_parallel_")]
    rows = [line for line in lines[head + 2:] if line[:8].strip().isdigit() and "does not fit" not in line]
    assert len(rows) > 4 and rows[0].endswith("  <- recommended"), text
    # Step, exposed, tokens/s, MFU, and two memories with units.
    results = [row.split("  <-")[0].split()[-8:] for row in rows]
    assert len({tuple(result + row.split()[1:3]) for result, row in zip(results, rows)}) == len(rows), text
    assert any("none, selective, auto" in row for row in rows), text
    assert "predictions  within 4.9 % of half of 150 published runs" in text and "plans leave 4 %" in text, text
    assert all(len(number.replace(".", "").strip("0")) <= 3 for result in results for number in result[:3]), text
    (host,) = [line for line in lines if line.startswith("host memory ")]
    assert " pinned for each rank, " in host and host.endswith(" on a node of 8"), host
    untouched = next(line for line in (ROOT / "docs/benchmarks/plan-validation.md").read_text(encoding="utf-8").splitlines()
                     if line.startswith("| untouched | 150 |"))
    limited = json.loads(tokamak("plan", *small, "--json", "--memory", "9Gi"))
    error = limited["published_error"]
    assert untouched.startswith(f"| untouched | {error['rows']} | {100 * error['median']:.1f} % | {100 * error['ninth_decile']:.1f} % |")
    assert max(c["peak_bytes_per_rank"] for c in limited["choices"] if c["fits"]) <= 9 * 2**30


def traced(place):
    """--trace is the simulated timeline: rows for the streams, collectives overlap operations; --explain has terms"""
    path = os.path.join(place.path, "trace.json")
    text = tokamak("plan", LLAMA, "--ranks", "64", "--gpu", "h100", "--trace", path, "--explain", *FEW_LAYERS)
    assert "predicting steps of 64 rank(s) on h100" in text and "GEMMs" in text and "Llama 3" in text and "recommended" in text
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    rows = {event["args"]["name"] for event in events if event["ph"] == "M" and "stream" in str(event["args"])}
    assert rows >= {"stream compute, simulated", "stream gather, simulated", "stream reduce, simulated"}, rows
    assert any(event.get("cat") == "collective" for event in events)


def errors(place):
    """an unknown GPU, a network without a unit, a machine file without its keys, options without --gpu: exit 2"""
    assert "did you mean h100?" in refused("plan", LLAMA, "--ranks", "64", "--gpu", "h10")
    assert "8x400Gb" in refused("plan", LLAMA, "--ranks", "64", "--gpu", "h100", "--network", "400")
    assert "--network needs --gpu" in refused("plan", LLAMA, "--ranks", "64", "--network", "400Gb")
    # This config leaves nothing to choose.
    assert "--explain needs --gpu" in refused("plan", LLAMA, "--ranks", "64", "--explain")
    auto = ("activation_checkpoint.mode=auto", "runtime.backend=cuda", "runtime.machine=h100")
    assert "saves 21.4 ms a step for 896 MiB" in tokamak("plan", LLAMA, "--ranks", "64", *auto, "--explain")
    path = os.path.join(place.path, "broken.json")
    pathlib.Path(path).write_text('{"name": "x"}', encoding="utf-8")
    assert "bf16_flops" in refused("plan", LLAMA, "--ranks", "64", "--gpu", path)


def published(place):
    """predict_published.py predicts what it can, leaves out the rest with the reason, and its rows reach the output"""
    columns = ("id source gpu gpus gpus_per_node network params_B layers hidden intermediate heads kv_heads vocab mlp sequence "
               "micro_batch global_batch_tokens zero_or_parallel recompute precision compile_or_kernels tokens_per_s_per_gpu "
               "tflops_per_gpu mfu_pct mfu_convention notes step_time_s").split()
    shape = dict(source="someone", gpu="H100-SXM", gpus=8, gpus_per_node=8, network="NVLink only", layers=8, hidden=4096,
                 intermediate=14336, heads=32, kv_heads=8, vocab=32000, mlp="swiglu", sequence=4096, micro_batch=2,
                 global_batch_tokens=65536, zero_or_parallel="zero3", recompute="none", precision="bf16",
                 tokens_per_s_per_gpu=30000)
    rows = [dict(shape, id="as it is"), dict(shape, id="gelu", mlp="gelu", intermediate=21504),
            dict(shape, id="by time", tokens_per_s_per_gpu="", step_time_s=65536 / 8 / 30000),
            dict(shape, id="half", recompute="full on 4 of 8 layers"), dict(shape, id="full", recompute="full"),
            dict(shape, id="tensor", zero_or_parallel="tp2 fsdp4"), dict(shape, id="eight bits", precision="fp8"),
            dict(shape, id="silent", tokens_per_s_per_gpu=""), dict(shape, id="unknown", gpu="TPU"),
            dict(shape, id="other name", gpu="NVIDIA H100 SXM5", zero_or_parallel="ZeRO-3 (dp8)"),
            dict(shape, id="a range", micro_batch="1-2")]
    path, output = os.path.join(place.path, "rows.csv"), os.path.join(place.path, "predicted.csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    done = subprocess.run([sys.executable, PREDICT, path, "--program", TOKAMAK, "--output", output], env=ENV, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    with open(output, newline="", encoding="utf-8") as file:
        found = {row["id"]: row for row in csv.DictReader(file)}
    assert set(found) == {row["id"] for row in rows}
    seconds = {name: 1 / float(row["predicted_tokens_per_s_per_gpu"]) for name, row in found.items()
               if row["predicted_tokens_per_s_per_gpu"]}
    assert set(seconds) == {"as it is", "gelu", "by time", "half", "full", "other name"}
    assert seconds["other name"] == seconds["as it is"]
    assert found["gelu"]["assumed"] == "SwiGLU of the same FLOPs" and seconds["gelu"] == seconds["as it is"]
    assert found["by time"]["published_tokens_per_s_per_gpu"] == "30000.0"
    assert abs(2 * seconds["half"] / (seconds["as it is"] + seconds["full"]) - 1) < 1e-4
    ratio = seconds["full"] / seconds["as it is"]
    assert 1.15 < ratio < 1.3, ratio  # 7 of 8 layers compute a third more, and the head computes no more
    reasons = {name: row["left_out_because"] for name, row in found.items() if row["left_out_because"]}
    assert "tensor" in reasons["tensor"] and "fp8" in reasons["eight bits"]
    assert "step time" in reasons["silent"] and "TPU" in reasons["unknown"] and "1-2" in reasons["a range"]
    assert "untouched    6 rows" in done.stdout, done.stdout


def calibrated(place):
    """bench calibrate measures this machine, on one rank and on two; a plan for it is the sum of what was measured"""
    shape = [str(ROOT / "configs/quickstart.yaml"), "runtime.backend=cpu", "runtime.threads_per_rank=1", "model.vocab_size=512",
             "model.num_hidden_layers=2", "model.hidden_size=64", "model.intermediate_size=96", "model.num_attention_heads=2",
             "data.sequence_length=64", "training.global_batch_tokens=1024", "training.micro_batch_size=4"]
    for ranks in (1, 2):
        path = os.path.join(place.path, f"here-{ranks}.json")
        bench = ["bench", "calibrate", *shape, "--output", path, "--rounds", "1"]
        done = call([TOKAMAK, *bench] if ranks == 1 else mpirun(ranks, *bench))
        assert done.returncode == 0, done.stdout
        with open(path, encoding="utf-8") as file:
            machine = json.load(file)
        names = {op["name"] for op in machine["measured"]}
        assert {"gemm qkv forward", "attention_backward", "adamw", "linear_cross_entropy"} <= names, names
        assert ({"all_gather", "reduce_scatter", "all_reduce"} <= names) == (ranks == 2), names
        assert all(op["seconds"] > 0 for op in machine["measured"]) and machine["cpu"]
        found = json.loads(tokamak("plan", *shape, "--ranks", str(ranks), "--gpu", path, "--as-configured", "--json"))
        (choice,) = found["choices"]
        exposed, exchanges = choice["exposed_communication_seconds"], choice["terms"]["collective_seconds"]
        assert 0 <= exposed <= exchanges * (1 + 1e-9) and (exposed > 0) == (ranks == 2), choice
        # In the order of one stream everything follows everything, and nothing is hidden.
        found = json.loads(tokamak("plan", *shape, "--ranks", str(ranks), "--gpu", path, "--as-configured", "--json",
                                   "parallelism.overlap=false"))
        (choice,) = found["choices"]
        assert abs(sum(choice["terms"].values()) / choice["step_seconds"] - 1) < 1e-9, choice
        assert abs(choice["exposed_communication_seconds"] - exchanges) <= 1e-9 * choice["step_seconds"], choice
    bench = ["bench", "calibrate", *shape, "--output", path, "--rounds", "1", "activation_checkpoint.mode=auto", "training.micro_batch_size=auto"]
    done = call(mpirun(2, *bench))
    assert done.returncode == 0, done.stdout
    with open(path, encoding="utf-8") as file:
        rows = {op["m"] for op in json.load(file)["measured"] if op["name"] == "gemm qkv forward"}
    assert rows == {64.0 * size for size in (1, 2, 4, 8)}, rows  # for each micro-batch size that auto may choose
    assert "must end in .json" in refused("bench", "calibrate", *shape, "--output", "machine.txt")


if __name__ == "__main__":
    main([choices, hardware, configured, kept, any_config, page, traced, errors, published, calibrated])
