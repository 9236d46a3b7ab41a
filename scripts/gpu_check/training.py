"""Correctness of training on the GPU: its losses against the CPU's, also with cuDNN and with CUDA graphs, and a resumed
run against an uninterrupted one."""
import math
import os
import shutil
import threading
import time

from place import ended, expect, json_lines, read_json
from report import MEASURED, NOT_RUN, Ended

STEPS, TINY_STEPS, HALF, SAVED = 50, 12, 10, 75
# Steps with default options, and the nats by which the loss must have fallen. On the CPU it falls by 2.01, from 8.40 to
# a mean of 6.39 in the last five; a GPU's rounding moves that by hundredths (CURVES). The emulator's model is tiny.
LEARNING, FALL, TINY_FALL = 30, 1.8, 0.1
LAST = 5  # losses whose mean is compared
UNMASKED = "data.document_masking=false"  # documents of one length: cuDNN supports them
TRACED = "3-4"  # steps of a training without graphs
# name: (dtype, steps to average, tolerance of the averages in nats, overrides)
CURVES = {"f32": ("f32", 1, 1e-4, []), "bf16": ("bf16", 5, 2e-2, []), "bf16 unmasked": ("bf16", 5, 2e-2, [UNMASKED])}


def training(place, folder, backend, dtype, stop, *overrides, deterministic=True):
    """The command of the quickstart's training up to a given step."""
    return [
        place.tokamak, "train", place.configs / "quickstart.yaml", "--stop-at-step", stop, f"run.output_dir={folder}",
        f"data.sources=[{{path: {place.data}/train}}]", "data.validation=[]", "training.validation_interval=0",
        "training.samples.interval=0", "training.samples.prompts=[]", "model.vocab_size=0", "training.micro_batch_size=8",
        "checkpoint.interval=0", "metrics.log_interval=1",
        f"precision.compute={dtype}", f"runtime.backend={backend}", *place.tiny_training,
        *(["runtime.deterministic=true"] if deterministic else []), *overrides]


def train(place, name, backend, dtype, stop, limit, *overrides, fresh=True, deterministic=True):
    """Runs that training and returns (exit code, output)."""
    name = name.replace(" ", "-")
    folder = place.scratch(name) if fresh else place.output / name
    return place.run(f"{name}-{stop}", training(place, folder, backend, dtype, stop, *overrides,
                                                deterministic=deterministic), limit, on_gpu=backend != "cpu")


def trained(place, name, dtype, stop, limit, *overrides, what="", **options):
    """Trains on the GPU. Raises Ended if it does not save at that step."""
    expect(*train(place, name, "cuda", dtype, stop, limit, *overrides, **options), SAVED, what)


def records(folder):
    """{step: record} of metrics.jsonl; if a step was logged twice, the later record."""
    return {line["step"]: line for line in json_lines(folder / "metrics.jsonl") if "loss/last" in line}


class CpuTrainings(threading.Thread):
    """The CPU's trainings, on half the cores, while the GPU is tested. `jobs`: {name: (dtype, steps, overrides)}."""

    def __init__(self, place, jobs):
        super().__init__(daemon=True)
        self.place, self.jobs, self.ended, self.until = place, jobs, {}, place.deadline
        self.start()

    def run(self):
        threads = max(1, len(os.sched_getaffinity(0)) // 2)
        for name, (dtype, steps, overrides) in self.jobs.items():
            self.ended[name] = train(self.place, f"{name}-cpu", "cpu", dtype, steps,
                                     (self.until - time.monotonic()) / self.place.scale,
                                     f"runtime.threads_per_rank={threads}", *overrides)

    def wait_for(self, name):
        """(exit code, output) of that training."""
        while self.is_alive() and name not in self.ended and self.place.left() > 1:
            self.join(0.2)
        return self.ended.get(name, (None, ""))


def averages(losses, window):
    """[(last step, mean)] of each window of consecutive losses."""
    return [(end, math.fsum(losses[end - window:end]) / window) for end in range(window, len(losses) + 1)]


def curves(place, report):
    with report.line("loss curves, CPU against CUDA"):
        place.need_data()
        steps = TINY_STEPS if place.emulated else STEPS
        on_cpu = CpuTrainings(place, {f"curve-{curve}": (dtype, steps, overrides)
                                      for curve, (dtype, _, _, overrides) in CURVES.items()})
        for curve, (dtype, window, tolerance, overrides) in CURVES.items():
            name, bar = f"loss curve {curve}, CPU and CUDA", f"within {tolerance:g}"
            with report.line(name, bar):
                trained(place, f"curve-{curve}-cuda", dtype, steps, 60, *overrides, what="CUDA: ")
                compare_with_cpu(place, report, name, bar, on_cpu, f"curve-{curve}", tolerance, window, steps)
        on_cpu.join(max(0, place.left()))


def learns(place, report):
    """A training with default options: masked documents, not deterministic, graphs as `auto` decides. Its loss must
    fall as the CPU's does."""
    name, fall = f"{LEARNING} steps, default options", TINY_FALL if place.emulated else FALL
    bar, tolerance = f"the loss falls by {fall:g} nats", CURVES["bf16"][2]
    with report.line(name, bar):
        place.need_data()
        on_cpu = CpuTrainings(place, {"learns": ("bf16", LEARNING, [])})
        trained(place, "learns-cuda", "bf16", LEARNING, 40, deterministic=False)
        cuda = losses(place, "learns-cuda")
        # NaN compares as false.
        fallen = cuda[0] - math.fsum(cuda[-LAST:]) / LAST if len(cuda) == LEARNING else math.nan
        report.against(name, fallen >= fall, f"{cuda[0]:.3f} to {cuda[-1]:.3f}, by {fallen:.2f}", bar, losses=cuda)
        memory(report, place.output / "learns-cuda")
        with report.line(f"{name}, and the CPU"):
            compare_with_cpu(place, report, f"{name}, and the CPU", f"within {tolerance:g}", on_cpu, "learns", tolerance, LAST,
                             LEARNING)


def compare_with_cpu(place, report, name, bar, on_cpu, job, tolerance, window, steps):
    code, text = on_cpu.wait_for(job)
    if code != SAVED:
        raise Ended(NOT_RUN, f"CPU: {ended(code, text)}")
    cpu, cuda = (losses(place, f"{job}-{backend}") for backend in ("cpu", "cuda"))
    compare(report, name, bar, tolerance, averages(cpu, window), averages(cuda, window), len(cpu) == len(cuda) == steps)


def losses(place, name):
    """The losses of a training's steps; deletes its checkpoints."""
    folder = place.output / name.replace(" ", "-")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return [record["loss/last"] for _, record in sorted(records(folder).items())]


def compare(report, name, bar, tolerance, cpu, cuda, complete):
    apart = sorted(((abs(a - b), step) for (step, a), (_, b) in zip(cpu, cuda)), reverse=True)
    good = complete and all(difference <= tolerance for difference, _ in apart)  # NaN compares as false
    report.against(name, good, ", ".join(f"{difference:.2g} at {step}" for difference, step in apart[:3]), bar,
                   "" if complete else f"only {len(apart)} steps", cpu=cpu, cuda=cuda)


def graphs(place, report):
    """Training with and without CUDA graphs gives the same bits."""
    name = "CUDA graphs on and off, bit for bit"
    with report.line(name):
        place.need_data()
        for kind in ("off", "on"):
            trained(place, f"graphs-{kind}", "bf16", 2 * HALF, 60, UNMASKED, f"runtime.cuda_graphs={kind}",
                    *([f"metrics.trace={TRACED}"] if kind == "off" else []), what=f"{kind}: ")
        found = [losses(place, f"graphs-{kind}") for kind in ("off", "on")]
        report.against(name, found[0] == found[1] and len(found[0]) == 2 * HALF, f"{len(found[1])} steps", "equal",
                       losses=found)
        memory(report, place.output / "graphs-on")
        gpu_time(report, place.output / "graphs-off" / f"trace-{TRACED}.json")


def gpu_time(report, path):
    """Busy time of each stream, and waiting time of the compute stream, in traced steps, by GPU timestamps."""
    try:
        events = read_json(path)["traceEvents"]
        rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        spans = {}
        for event in events:
            if event["ph"] == "X" and rows[event["tid"]].startswith("stream "):
                spans.setdefault(rows[event["tid"]].removeprefix("stream "), []).append((event["ts"], event["dur"]))
        first = min(begin for row in spans.values() for begin, _ in row)
        whole = max(begin + length for row in spans.values() for begin, length in row) - first
        compute = sorted(spans["compute"])
    except (KeyError, ValueError) as error:
        report.add("GPU time by stream", NOT_RUN, detail=f"{path.name}: {error}")
        return
    busy = {stream: sum(length for _, length in row) / whole for stream, row in spans.items()}
    gaps = [begin - (last + length) for (last, length), (begin, _) in zip(compute, compute[1:])]
    report.add("GPU time by stream", MEASURED, ", ".join(f"{stream} {share:.1%}" for stream, share in busy.items())
               + f" of {whole / 1e3:.1f} ms; {len(gaps)} gaps of compute, the longest {max(gaps, default=0) / 1e3:.2f} ms",
               busy=busy, gaps_us=gaps)


def memory(report, folder):
    """Memory of a training from its start. The growth after the commit is covered by the plan's reserve: lazily
    loaded code, and graphs."""
    steps, start = records(folder), next(
        (line for line in json_lines(folder / "metrics.jsonl") if line.get("event") == "ready"), {})
    in_bytes = {"planned": start.get("memory/planned"), "after commit": start.get("memory/committed"),
               **{f"after step {step}": steps.get(step, {}).get("memory/used") for step in (1, 3)}}
    if None in in_bytes.values():
        missing = [name for name, number in in_bytes.items() if number is None]
        report.add("memory", NOT_RUN, detail=f"metrics.jsonl has no bytes {', '.join(missing)}")
        return
    report.add("memory", MEASURED, ", ".join(f"{name} {number / 2**20:.0f} MiB" for name, number in in_bytes.items()),
               **{name.replace(" ", "_"): number for name, number in in_bytes.items()})


def payload(path):
    """The tensors' bytes of a safetensors file."""
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def state(folder, step):
    files = sorted((folder / "checkpoints" / f"step-{step:08d}").glob("*.safetensors"))
    return [payload(path) for path in files]


def resume(place, report):
    name, bar = "resume, bit for bit", f"equal at step {2 * HALF} and on the way"
    with report.line(name, bar):
        place.need_data()
        for folder, stop, fresh in (("straight", 2 * HALF, True), ("resumed", HALF, True), ("resumed", 2 * HALF, False)):
            trained(place, folder, "bf16", stop, 60, fresh=fresh)
        straight, resumed = place.output / "straight", place.output / "resumed"
        numbers = [[(step, record["loss/last"], record["optim/grad_norm"]) for step, record in sorted(records(run).items())]
                   for run in (straight, resumed)]
        same_numbers = len(numbers[0]) == 2 * HALF and numbers[0] == numbers[1]
        saved = state(straight, 2 * HALF)
        same_state = len(saved) > 0 and saved == state(resumed, 2 * HALF)
        for run in (straight, resumed):
            shutil.rmtree(run / "checkpoints")
        differs = "" if same_numbers and same_state else "the saved states differ" if same_numbers else "the losses differ"
        report.against(name, not differs, "equal" if not differs else "different", bar, differs)
