#!/usr/bin/env python3
"""Predicts published training throughput with `tokamak plan` and compares each row with the published figure.

A row is predicted as it was run: its shape, GPUs, network, stage of ZeRO, micro-batch, accumulation and recompute. A
two-matrix MLP counts as a SwiGLU of the same FLOPs. Rows without a prediction are listed with the reason.
published_fit.txt names the rows that the hardware table's constants were fitted on; the others are untouched.
"""
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading

import measure

FITTED = pathlib.Path(__file__).with_name("published_fit.txt")
# The file's name of a GPU: the hardware table's, and its generation.
GPUS = {
    "A100-40": ("a100-40", "Ampere"),
    "A100-80": ("a100-80", "Ampere"),
    "A100-80-SXM": ("a100-80", "Ampere"),
    "A800": ("a800-80", "Ampere"),
    "H100-SXM": ("h100", "Hopper"),
    "H100-SXM-HBM2e-500W": ("h100-hbm2e-500w", "Hopper"),
    "H800": ("h800", "Hopper"),
    "H200": ("h200", "Hopper"),
    "B200": ("b200", "Blackwell"),
}
# The row whose constants were fitted on other programs. Other rows have constants of Tokamak's kernels.
OF_OTHERS = {"Hopper": "H100-SXM-HBM2e-500W"}
# Sources that reduce gradients in bf16 (published_runs.md). The others reduce them in f32.
REDUCES_BF16 = ("MosaicML", "fms-fsdp", "Maximizing training throughput", "NVIDIA", "Supercharging training")
# Sources whose attention kernels use no instruction newer than Ampere's: Triton's of 2023 (published_runs.md).
NATIVE_ATTENTION = ("MosaicML",)
# Networks that a source does not name, inferred from its rows in published_fit.txt bound by communication.
INFERRED_NETWORKS = {"YaFSDP README": "8x100Gb"}


class LeftOut(Exception):
    """A row that cannot be predicted; the message is the reason."""


def whole(row, key):
    if not row[key]:
        raise LeftOut(f"{key} is not stated")
    try:
        return round(float(row[key]))
    except ValueError:
        raise LeftOut(f"{key} is not a number: {row[key]}") from None


def gpu_of(row):
    """Returns (name in the hardware table, generation) of a GPU."""
    text = row["gpu"]
    if text in GPUS:
        return GPUS[text]
    for name in ("A800", "H800", "H200", "B200"):
        if re.fullmatch(rf"(NVIDIA )?{name}([ -](SXM\d?|HGX|80|80GB|141GB))*", text):
            return GPUS[name]
    if re.fullmatch(r"(NVIDIA )?A100([ -](SXM\d?|40|40GB|80|80GB))*", text):
        return GPUS["A100-40" if "40" in text.split("A100")[1].replace("SXM4", "") else "A100-80"]
    if re.fullmatch(r"(NVIDIA )?H100([ -](SXM\d?|HGX|80|80GB))*", text):
        return GPUS["H100-SXM"]
    raise LeftOut(f"the hardware table has no GPU {text or 'where none is stated'}")


def published_of(row):
    """Tokens per second and GPU."""
    if row["tokens_per_s_per_gpu"]:
        whole(row, "tokens_per_s_per_gpu")
        return float(row["tokens_per_s_per_gpu"])
    if row["step_time_s"] and row["global_batch_tokens"] and row["gpus"]:
        return float(row["global_batch_tokens"]) / float(row["step_time_s"]) / float(row["gpus"])
    raise LeftOut("neither tokens per second nor a step time is stated")


def sharding_of(row):
    """The overrides of `parallelism` for the row."""
    text = row["zero_or_parallel"].lower()
    if "RELATIVE ONLY" in row["notes"] or "WALL CLOCK ONLY" in row["notes"]:
        raise LeftOut("the source gives a ratio or a whole run only")
    if re.search(r"\b[tpcv]p\d|\btp\b", text) or "parallel" in text:
        raise LeftOut("tensor, pipeline or context parallel: the program has neither")
    if "offload" in text or "gemini" in text:
        raise LeftOut("offloads to the host")
    stage = re.search(r"zero-?([123])", text)
    if "ddp" in text or re.search(r"\bdp\d", text) and not stage and "fsdp" not in text:
        raise LeftOut("every GPU holds the optimizer's whole state: the program shards it")
    alone = text.startswith("none") and row["gpus"] == "1"
    if "zero3-like" in text or not (stage or "fsdp" in text or "hsdp" in text or alone):
        raise LeftOut("sharding is not stated, or none of ZeRO's stages")
    number = 2 if "shard_grad_op" in text else int(stage[1]) if stage else 3
    in_a_node = re.search("hsdp|hybrid|within a node", text)
    replicas = max(1, whole(row, "gpus") // 8) if in_a_node else 1
    return f"{{zero_stage: {number}, data_parallel_replicate_degree: {replicas}}}"


def recompute_of(row):
    """The share of layers that recompute everything."""
    text = row["recompute"]
    if text == "none":
        return 0.0
    if text == "full":
        return 1.0
    if match := re.fullmatch(r"full on (\d+) of (\d+) layers", text):
        return int(match[1]) / int(match[2])
    raise LeftOut("selective recompute: which tensors it keeps is the framework's choice" if text.startswith("selective")
                  else "recompute is not stated")


def network_of(row):
    """The value of --network. None means the network that the GPU usually has."""
    if match := re.search(r"(\d+x\d+)Gb", row["network"]):
        return match[1] + "Gb"
    if match := re.match(r"([\d.]+) (Gb|Tb)/s", row["network"]):
        return match[1] + match[2]
    return next((rate for source, rate in INFERRED_NETWORKS.items() if row["source"].startswith(source)), None)


def config_of(row, mode):
    gpus, length, micro_batch = whole(row, "gpus"), whole(row, "sequence"), whole(row, "micro_batch")
    assumed = [] if row["global_batch_tokens"] else ["one micro-batch a step"]
    tokens = round(float(row["global_batch_tokens"] or gpus * length * micro_batch))
    # A batch that the ranks cannot share equally is rounded to whole micro-batches.
    tokens = max(1, round(tokens / (gpus * length * micro_batch))) * gpus * length * micro_batch
    intermediate = whole(row, "intermediate")
    if row["mlp"] in ("gelu", "relu2"):
        intermediate = round(intermediate * 2 / 3 / 8) * 8
        assumed.append("SwiGLU of the same FLOPs")
    kv_heads = round(float(row["kv_heads"] or row["heads"]))
    tied = "tied embeddings" in row["notes"]
    reduce = "bf16" if row["source"].startswith(REDUCES_BF16) else "f32"
    text = f"""
model: {{hidden_size: {whole(row, "hidden")}, intermediate_size: {intermediate}, num_hidden_layers: {whole(row, "layers")},
  num_attention_heads: {whole(row, "heads")}, num_key_value_heads: {kv_heads}, vocab_size: {whole(row, "vocab")},
  max_position_embeddings: {length}, tie_word_embeddings: {str(tied).lower()}}}
data: {{sequence_length: {length}, sources: [{{path: none}}]}}
training: {{max_steps: 1, global_batch_tokens: {tokens}, micro_batch_size: {micro_batch}}}
precision: {{reduce: {reduce}}}
parallelism: {sharding_of(row)}
activation_checkpoint: {{mode: {mode}}}
runtime: {{attention: {"native" if row["source"].startswith(NATIVE_ATTENTION) else "auto"}}}
"""
    return text, assumed


class Predictor:
    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory()
        self.writing = threading.Lock()

    def plan(self, row, mode, machine=None):
        """The prediction of the row in one recompute mode."""
        machine = machine or self.machine_file(row)  # writes files of this name, too
        text, assumed = config_of(row, mode)
        path = pathlib.Path(self.folder.name, f"{row['id'].replace('/', '_')}-{mode}.yaml")
        path.write_text(text)
        command = [self.program, "plan", str(path), "--ranks", row["gpus"], "--gpu", machine, "--as-configured", "--json"]
        for option, value in (("--gpus-per-node", row["gpus_per_node"]), ("--network", network_of(row))):
            command += [option, value] if value else []
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            raise LeftOut("tokamak plan: " + done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout), assumed

    def predict(self, row):
        """{published, predicted, error, assumed} of a row; LeftOut."""
        published = published_of(row)
        if other := re.search(r"fp8|fp4|fp32|tf32|int8", row["precision"].lower()):
            raise LeftOut(f"{other[0]}: the prediction is of bf16")
        sharding_of(row)
        part = recompute_of(row)
        gpu_of(row)
        seconds, exposed, assumed = 0.0, 0.0, []
        for mode, share in (("none", 1 - part), ("full", part)):
            if share > 0:
                plan, assumed = self.plan(row, mode)
                choice = plan["choices"][0]
                seconds += share / choice["tokens_per_second_per_gpu"]
                exposed += share * choice["exposed_communication_seconds"] / choice["step_seconds"]
        if row["network"] in ("", "unknown") and whole(row, "gpus") > 8:
            inferred = network_of(row)
            assumed.append(f"a network of {inferred}, inferred" if inferred else "the GPU's usual network")
        if not row["precision"]:
            assumed.append("bf16")
        predicted = 1 / seconds
        return {"id": row["id"], "source": row["source"], "gpu": row["gpu"], "gpus": row["gpus"], "published": published,
                "predicted": predicted, "error": predicted / published - 1, "exposed": exposed, "assumed": assumed}

    def machine(self, gpu, row):
        """The hardware table's row of a GPU as a machine file, but with the efficiency of other programs."""
        # Without the row's own network, which is not the GPU's.
        usual = {**row, "gpu": gpu, "gpus_per_node": "", "network": "", "source": ""}
        name, generation = gpu_of(usual)
        machine, others = self.plan(usual, "none", name)[0]["machine"], OF_OTHERS.get(generation)
        return machine if others in (None, gpu) else {**machine, "efficiency": self.machine(others, row)["efficiency"]}

    def machine_file(self, row):
        """Returns the path of that machine file, which is written once."""
        path = pathlib.Path(self.folder.name, row["gpu"] + ".json")
        with self.writing:
            if not path.exists():
                path.write_text(json.dumps(self.machine(row["gpu"], row)))
        return str(path)


def errors_text(rows):
    if not rows:
        return "no rows"
    errors = [abs(row["error"]) for row in rows]
    within = sum(error <= 0.25 for error in errors) / len(errors)
    bias = statistics.median(row["error"] for row in rows)
    ninth_decile = statistics.quantiles(errors * 2 if len(errors) == 1 else errors, n=10, method="inclusive")[8]
    return (f"{len(rows):4d} rows: median {100 * statistics.median(errors):5.1f} %, 90th percentile {100 * ninth_decile:5.1f} %, "
            f"within 25 % {100 * within:5.1f} %, median bias {100 * bias:+5.1f} %")


def predict_all(rows, predictor):
    """(predictions in the file's order, {reason: ids})."""
    done, left_out = [], collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for row, future in [(row, pool.submit(predictor.predict, row)) for row in rows]:
            try:
                done.append(future.result())
            except LeftOut as reason:
                left_out[str(reason)].append(row["id"])
    return done, left_out


def report(rows, predictor, fitted, output, show_all):
    done, left_out = predict_all(rows, predictor)
    if not done:
        sys.exit("no row can be predicted: " + "; ".join(left_out))
    print(f"{'row':44s} {'published':>11s} {'predicted':>11s} {'error':>8s} {'exposed':>8s}  tokens/s/GPU")
    worst_first = sorted(done, key=lambda row: -abs(row["error"]))
    for row in done if show_all else worst_first[:20]:
        mark = "fitted" if row["id"] in fitted else ""
        print(f"{row['id']:44s} {row['published']:11.1f} {row['predicted']:11.1f} {100 * row['error']:+7.1f}% "
              f"{100 * row['exposed']:7.1f}%  {mark} {'; '.join(row['assumed'])}")
    print("\nleft out:")
    for reason, ids in sorted(left_out.items(), key=lambda item: -len(item[1])):
        print(f"{len(ids):4d} {reason}: {', '.join(ids[:3])}{' ...' if len(ids) > 3 else ''}")
    others = [row for row in done if row["id"] not in fitted]
    print("\nby source, of rows that nothing was fitted on:")
    for source in dict.fromkeys(row["source"] for row in others):
        print(f"  {source[:48]:48s} {errors_text([row for row in others if row['source'] == source])}")
    print(f"\nfitted    {errors_text([row for row in done if row['id'] in fitted])}")
    print(f"untouched {errors_text(others)}")
    print(f"untouched, without MosaicML's {errors_text([r for r in others if 'MosaicML' not in r['source']])}")
    print(f"all       {errors_text(done)}")
    if output:
        with open(output, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "source", "published_tokens_per_s_per_gpu", "predicted_tokens_per_s_per_gpu", "error",
                             "exposed_share", "fitted", "left_out_because", "assumed"])
            for row in done:
                writer.writerow([row["id"], row["source"], row["published"], round(row["predicted"], 1),
                                 round(row["error"], 4), round(row["exposed"], 4), int(row["id"] in fitted), "",
                                 "; ".join(row["assumed"])])
            source = {row["id"]: row["source"] for row in rows}
            for reason, ids in left_out.items():
                for row_id in ids:
                    writer.writerow([row_id, source[row_id], "", "", "", "", "", reason, ""])


def main():
    parser = measure.arguments(__doc__, ("--program", measure.TOKAMAK, "the program"),
                               ("--output", None, "also write every row to this CSV file"))
    parser.add_argument("file", help="the published runs, in CSV")
    parser.add_argument("--all", action="store_true", help="print every row in order, not the 20 worst")
    args = parser.parse_args()
    with open(args.file, newline="") as file:
        # A missing column is read as an empty cell.
        rows = [collections.defaultdict(str, {key: (value or "").strip() for key, value in row.items() if key})
                for row in csv.DictReader(file)]
    predictor = Predictor(args.program)
    fitted = {line for line in FITTED.read_text().splitlines() if line and not line.startswith("#")}
    report(rows, predictor, fitted, args.output, args.all)


if __name__ == "__main__":
    main()
