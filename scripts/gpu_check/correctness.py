"""Is what the GPU computes right? The operations against their float64 references, the same under compute-sanitizer, a
training against the CPU's, and a resumed one against one that was never stopped."""
import glob
import json
import os
import re
import shutil
import threading

from place import ended
from report import FAILED, NOT_RUN, PASSED, not_zero

FAMILIES = ["attention", "cross_entropy", "elementwise", "embedding", "gemm", "optimizer", "rmsnorm", "rope",
            "statistics", "swiglu"]  # tests/backend/NAME_test.cc
# Races are looked for in our own kernels only: their mangled names have the namespace.
SANITIZERS = {"memcheck": ["--leak-check", "no", "--report-api-errors", "no"],
              "racecheck": ["--kernel-name", "kns=7tokamak"]}
SANITIZER_EXIT = 86
STEPS, HALF, SAVED = 50, 10, 75
CURVES = {"f32": 1e-4, "bf16": 2e-2}  # nats
NOT_ON_CPU = "~[cpu]"  # cases that need the host to find a fault in the arguments
OUR_ATTENTION = {"TOKAMAK_TEST_ATTENTION": "native"}  # where cuDNN would be taken


def names():
    return ([f"twin {family}" for family in FAMILIES] + ["twin attention, native"]
            + [f"{tool}, all operations" for tool in SANITIZERS]
            + [f"loss curve {dtype}, CPU against CUDA" for dtype in CURVES] + ["resume, bit for bit"])


# ---- operations ----------------------------------------------------------------------------------------------------

def cases_of(text):
    """[(family, title, True, False, or None if it did not end)] of Catch's XML, which may be cut off."""
    cases = []
    for part in text.split("<TestCase ")[1:]:
        title = re.search(r'name="([^"]*)"', part)[1]
        family = re.search(r'filename="[^"]*?([^"/]*?)(?:_test)?\.cc"', part)[1]
        result = re.search(r'<OverallResult success="(\w+)"', part)
        cases.append((family, title, result[1] == "true" if result else None))
    return cases


def twins(place, report):
    program, attention = place.test_cuda, f"{NOT_ON_CPU}attention*"
    twins_of(place, report, "test_cuda", program, NOT_ON_CPU, FAMILIES, "")
    twins_of(place, report, "test_cuda-native", program, attention, ["attention"], ", native", OUR_ATTENTION)


def twins_of(place, report, run, program, cases, families, suffix, environment=None):
    if not program.exists():
        for family in families:
            report.add(f"twin {family}{suffix}", NOT_RUN, detail=f"no {program}")
        return
    xml = place.output / f"{run}.xml"
    xml.unlink(missing_ok=True)
    code, text = place.run(run, [program, cases, "-r", "xml", "-o", xml], 120, environment)
    found = cases_of(xml.read_text(errors="replace")) if xml.exists() else []
    for family in families + sorted({family for family, _, _ in found} - set(families)):
        here = [(title, good) for f, title, good in found if f == family]
        passed = sum(good is True for _, good in here)
        bad = [title for title, good in here if good is False or (good is None and code is not None)]
        name, measured, bar = f"twin {family}{suffix}", f"{passed} of {len(here)} cases", "the tolerance of its dtype"
        if bad:
            report.add(name, FAILED, measured, bar, f"{bad[0]} (see {xml.name})")
        elif code is None or passed == 0:
            report.add(name, NOT_RUN, measured, bar, ended(code, text) if code != 0 else "no such case")
        else:
            report.add(name, PASSED, measured, bar, cases=passed)


def find_sanitizer():
    places = sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"))
    return shutil.which("compute-sanitizer") or (places[-1] if places else None)


def sanitizers(place, report):
    program = find_sanitizer()
    _, listing = place.run("test_cuda_names", [place.test_cuda, NOT_ON_CPU, "--list-test-names-only"], 30) \
        if place.test_cuda.exists() else (None, "")
    titles = [line.strip() for line in listing.splitlines() if line.strip()]
    for number, (tool, options) in enumerate(SANITIZERS.items()):
        name = f"{tool}, all operations"
        if not program or not titles:
            report.add(name, NOT_RUN, bar="0 errors", detail="no test_cuda" if program else "no compute-sanitizer")
            continue
        share = place.left() / (len(SANITIZERS) - number) - 5
        sanitize(place, report, name, [program, "--tool", tool, *options], titles, share)


def sanitize(place, report, name, command, titles, limit):
    """The cases spread over a few processes: the host's part of each is most of its time."""
    workers = max(1, min(8, len(os.sched_getaffinity(0)) // 2, len(titles)))
    tool, processes = command[2], {}
    for i in range(workers):
        chosen = place.output / f"{tool}-{i}.txt"
        chosen.write_text("".join(f"{title}\n" for title in titles[i::workers]))
        processes[f"{tool}-{i}"] = place.start(f"{tool}-{i}", [
            *command, "--port", 49152 + 64 * i, "--error-exitcode", SANITIZER_EXIT, place.test_cuda, "-f", chosen],
            OUR_ATTENTION)
    errors, unfinished, broken = 0, 0, ""
    for i, (log, process) in enumerate(processes.items()):
        code, text = place.finish(log, process, limit)
        found = [int(n) for n in re.findall(r"(?:ERROR SUMMARY: (?=\d)|RACECHECK SUMMARY: )(\d+)", text)]
        errors += sum(found)
        if code is None:
            unfinished += len(titles[i::workers])
        elif not found:
            broken = broken or ended(code, text)
        elif code != 0 and sum(found) == 0:
            broken = broken or f"the tests fail under it (see {log}.log)"
    measured = f"{errors} errors, {len(titles) - unfinished} of {len(titles)} cases"
    if errors > 0:
        report.add(name, FAILED, measured, "0 errors", f"see {tool}-*.log", errors=errors)
    elif unfinished or broken:
        report.add(name, NOT_RUN, measured, "0 errors", broken or "out of time")
    else:
        report.add(name, PASSED, measured, "0 errors", errors=0)


# ---- training ------------------------------------------------------------------------------------------------------

def training(place, folder, backend, dtype, stop, *overrides):
    """The command of the quickstart's training up to a step."""
    return [
        place.tokamak, "train", place.configs / "quickstart.yaml", "--stop-at-step", stop, f"run.output_dir={folder}",
        f"data.sources=[{{path: {place.data}/train}}]", "data.validation=[]", "training.validation_interval=0",
        "model.vocab_size=0", "training.micro_batch_size=8", "checkpoint.interval=0", "metrics.log_interval=1",
        f"precision.compute={dtype}", f"runtime.backend={backend}", "runtime.deterministic=true", *overrides]


def train(place, name, backend, dtype, stop, limit, fresh=True, threads="auto"):
    """That training, run here; (exit code, output)."""
    folder = place.scratch(name) if fresh else place.output / name
    return place.run(f"{name}-{stop}", training(
        place, folder, backend, dtype, stop, f"runtime.threads_per_rank={threads}"), limit)


def records(folder):
    """{step: record} of metrics.jsonl, the later one of a step logged twice."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line for line in lines if "loss/last" in line}


class CpuCurves(threading.Thread):
    """The CPU's trainings, on half the cores, while the GPU is tested."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.ended = place, {}
        if place.data.exists():
            self.start()

    def run(self):
        threads = max(1, len(os.sched_getaffinity(0)) // 2)
        for dtype in CURVES:
            self.ended[dtype] = train(self.place, f"curve-cpu-{dtype}", "cpu", dtype, STEPS, 200, threads=threads)


def curves(place, report, on_cpu):
    for dtype, tolerance in CURVES.items():
        name, bar = f"loss curve {dtype}, CPU against CUDA", f"within {tolerance:g} at each of {STEPS} steps"
        if not place.data.exists():
            report.add(name, NOT_RUN, bar=bar, detail=f"no {place.data}; scripts/quickstart.sh --data-only makes it")
            continue
        code, text = train(place, f"curve-cuda-{dtype}", "cuda", dtype, STEPS, 60)
        if code != SAVED:
            report.add(name, not_zero(code), bar=bar, detail=f"CUDA: {ended(code, text)}")
            continue
        on_cpu.join(max(0, place.left() - 150))
        code, text = on_cpu.ended.get(dtype, (None, ""))
        if code != SAVED:
            report.add(name, NOT_RUN, bar=bar, detail=f"CPU: {ended(code, text)}")
            continue
        folders = [place.output / f"curve-{backend}-{dtype}" for backend in ("cpu", "cuda")]
        cpu, cuda = map(records, folders)
        for folder in folders:
            shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        steps = sorted(set(cpu) & set(cuda))
        apart = {step: abs(cpu[step]["loss/last"] - cuda[step]["loss/last"]) for step in steps}
        worst = max(steps, key=apart.get)
        report.against(name, len(steps) == STEPS and apart[worst] <= tolerance,
                       f"{apart[worst]:.2g} at step {worst} (loss {cpu[worst]['loss/last']:.4f})", bar,
                       "" if len(steps) == STEPS else f"only {len(steps)} steps", worst=apart[worst],
                       cpu=[cpu[s]["loss/last"] for s in steps], cuda=[cuda[s]["loss/last"] for s in steps])


def payload(path):
    """The tensors' bytes of a safetensors file."""
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def state(folder, step):
    files = sorted((folder / "checkpoints" / f"step-{step:08d}").glob("*.safetensors"))
    return [payload(path) for path in files]


def resume(place, report):
    name, bar = "resume, bit for bit", f"equal at step {2 * HALF} and on the way"
    if not place.data.exists():
        report.add(name, NOT_RUN, bar=bar, detail=f"no {place.data}; scripts/quickstart.sh --data-only makes it")
        return
    for folder, stops in (("straight", [2 * HALF]), ("resumed", [HALF, 2 * HALF])):
        for i, stop in enumerate(stops):
            code, text = train(place, folder, "cuda", "bf16", stop, 60, fresh=i == 0)
            if code != SAVED:
                report.add(name, not_zero(code), bar=bar, detail=ended(code, text))
                return
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
