"""Paths in the source tree or in a bundle, the properties of this machine, and the programs that run. Each has its own
session, a time limit and a log of its whole output. While a program cannot be killed, no other program uses the GPU."""
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from report import CUT, FAILED, LOST, MEASURED, NOT_RUN, PASSED, Ended, kind_of, not_zero

ROOT = Path(__file__).resolve().parents[2]
# For `bench` of models on the emulator.
TINY = ["model.hidden_size=128", "model.intermediate_size=192", "model.num_attention_heads=2", "model.vocab_size=256",
        "model.num_key_value_heads=1", "data.sequence_length=64", "training.global_batch_tokens=128",
        "training.micro_batch_size=1"]
# For training of the quickstart on the emulator.
TINY_TRAINING = ["model.hidden_size=64", "model.intermediate_size=96", "model.num_attention_heads=1",
                 "model.num_hidden_layers=1", "data.sequence_length=32", "training.global_batch_tokens=128",
                 "training.micro_batch_size=4"]
MACHINE_SECONDS = 16  # for `tokamak doctor`
KILL_SECONDS = 10  # time for a killed process to exit; inside the driver it may not


class Place:
    def __init__(self, options, seconds, scale=1):
        """`scale`: factor of every program's time limit."""
        self.bundle = (ROOT / "libexec" / "tokamak").exists() and not (options.build or options.programs)
        folder = ROOT if self.bundle else options.build or ROOT / "build"
        self.emulated = options.programs is not None
        self.tiny, self.tiny_training = (TINY, TINY_TRAINING) if self.emulated else ([], [])
        suffix = "_emulated" if self.emulated else ""
        tests = options.programs or folder / ("tests" if self.bundle else "tests/cuda")
        self.tokamak = (options.programs or (folder / "libexec" if self.bundle else folder)) / f"tokamak{suffix}"
        self.test_cuda, self.test_nccl = tests / f"test_cuda{suffix}", tests / f"test_nccl{suffix}"
        self.call_counter = tests / "libtokamak_call_counter.so"
        self.options = options
        self.data = options.data or ROOT / "runs" / "quickstart" / "data"
        self.configs = ROOT / "configs"
        self.output = Path(tempfile.mkdtemp(prefix="gpu_check-"))  # logs; they leave it as one archive
        self.began = time.monotonic()
        self.deadline, self.seconds, self.scale = self.began + seconds, {}, scale
        self.running, self.stuck, self.stopped = {}, {}, ""  # {process: its name}
        self.lock = threading.RLock()  # a signal's handler may come while it is held
        self.environment = self._environment()

    def _environment(self):
        if not self.bundle:
            return dict(os.environ)
        entries = subprocess.run([ROOT / "bin" / "tokamak-env", "env", "-0"], check=True, stdout=subprocess.PIPE).stdout
        return dict(entry.split("=", 1) for entry in entries.decode().split("\0") if "=" in entry)

    def left(self):
        return self.deadline - time.monotonic()

    @property
    def lost(self):
        """Why the GPU cannot be used now: a killed program is still there. Empty once it has exited."""
        with self.lock:
            self.stuck = {process: name for process, name in self.stuck.items() if process.poll() is None}
            return "; ".join(f"the GPU is lost: {name} (process {process.pid}) cannot be killed"
                             for process, name in self.stuck.items())

    def stop(self, why):
        """Ends all programs; none starts after it."""
        with self.lock:
            processes = list(self.running)
            names = ", ".join(self.running.values())
        self.stopped = why + (f" while {names} ran" if names else "")
        for process in processes:
            end_session(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)

    @contextlib.contextmanager
    def part(self, name, seconds):
        """Limits the programs run in it to these seconds, and to the check's remaining time."""
        whole, begin = self.deadline, time.monotonic()
        self.deadline = min(whole, begin + seconds)
        try:
            yield
        finally:
            self.deadline, self.seconds[name] = whole, round(time.monotonic() - begin, 1)

    def need_data(self):
        if not self.data.exists():
            raise Ended(NOT_RUN, f"no {self.data}; scripts/quickstart.sh --data-only makes it")

    def scratch(self, name):
        """An empty folder of this name below output/."""
        path = self.output / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def start(self, name, command, environment=None, base=None):
        """`base`: the environment to extend, else that of our programs. Returns None if it may not start."""
        if self.stopped or self.lost:
            return None
        return self.launch(name, command, environment, base)

    def launch(self, name, command, environment, base):
        with open(self.output / f"{name}.log", "w", encoding="utf-8") as log:
            print(f"$ {' '.join(str(word) for word in command)}", file=log, flush=True)
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True, cwd=self.output,
                                       env=dict(self.environment if base is None else base, **(environment or {})))
        with self.lock:
            self.running[process] = name
        return process

    def finish(self, name, process, limit):
        """(exit code; None: it hung for its whole limit; CUT: the part's time was over before that; LOST: not started;
        its output)."""
        if process is None:
            return LOST, self.stopped or self.lost or "the GPU was lost"
        granted = max(1, min(limit, self.left()))
        try:
            code = process.wait(granted)
        except subprocess.TimeoutExpired:
            code = None if granted >= limit and not self.stopped else CUT
            end_session(process.pid)
            try:
                process.wait(min(KILL_SECONDS, max(1, KILL_SECONDS * self.scale)))
            except subprocess.TimeoutExpired:
                with self.lock:
                    self.stuck[process] = name
        with self.lock:
            self.running.pop(process, None)
        text = (self.output / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return CUT if self.stopped and code != 0 else code, text.split("\n", 1)[1]

    def run(self, name, command, limit, environment=None, on_gpu=True):
        """A program starts only if a third of its limit is left. One that needs no GPU starts on a lost one, too."""
        limit *= self.scale
        if self.left() < max(1, limit / 3):
            return LOST, self.stopped or "no time is left"
        start = self.start if on_gpu or self.stopped else lambda *its: self.launch(*its, None)
        return self.finish(name, start(name, command, environment), limit)


def session(leader):
    """The running processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = path.read_text(errors="replace").rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue  # the process has just ended
        if its_session == str(leader) and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def end_session(leader):
    """A process group is not enough: mpirun puts each rank in its own group."""
    for _ in range(10):  # new processes may start meanwhile
        for pid in session(leader):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
        if not session(leader):
            return


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it printed nothing"])[-1][:160]


def ended(code, text):
    """The failure of a program in words."""
    if code in (None, LOST, CUT):
        return {None: "hung: out of time", CUT: "cut off by the end of its part's time", LOST: text}[code]
    return f"{f'signal {-code}' if code < 0 else kind_of(code, text)}: {last_line(text)}"


def expect(code, text, wanted=0, what=""):
    if code != wanted:
        raise Ended(not_zero(code, text), what + ended(code, text))


def read_json(path):
    """The content, or {} without a whole file."""
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError):
        return {}


def json_lines(path):
    """The values of a file of JSON lines, without those that a crash cut short."""
    values = []
    for line in Path(path).read_text(errors="replace").splitlines() if Path(path).exists() else []:
        with contextlib.suppress(ValueError):
            values.append(json.loads(line))
    return values


# Asks the driver in a separate process, since a driver in a bad state may hang.
ASK_DRIVER = """import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, device, total, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(100)
if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0:
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
    driver.cuDeviceGetName(name, 100, device)
print(count.value, total.value, name.value.decode())"""


def ask_driver():
    """(number of GPUs, None without a responding driver; bytes and name of the first)."""
    report = output_of([sys.executable, "-c", ASK_DRIVER]).split(None, 2)
    return (int(report[0]), int(report[1]), "".join(report[2:])) if len(report) >= 2 else (None, 0, "")


def gpus():
    return ask_driver()[0]


def gpu_name(place):
    return "an emulated GPU" if place.emulated else ask_driver()[2]


def missing_gpu():
    """Why there is no GPU; empty if there is one."""
    return {None: "no GPU (no NVIDIA driver that answers)", 0: "no GPU (the driver shows none)"}.get(gpus(), "")


def output_of(command, environment=None, seconds=10, codes=(0,)):
    """The program's output; empty if it fails or hangs (it is then abandoned)."""
    try:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, errors="replace", start_new_session=True)
        text = process.communicate(timeout=seconds)[0].strip()
        return text if process.returncode in codes else ""
    except OSError:
        return ""
    except subprocess.TimeoutExpired:
        process.kill()
        return ""


def ask_gpu(query):
    """[{field: value}], one per GPU."""
    rows = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"])
    return [dict(zip(query.split(","), re.split(r",\s*", row))) for row in rows.splitlines()]


def doctor(place, seconds):
    """(the report of `tokamak doctor` on this machine, healthy or not, or {}; why it is missing). Without a directory
    it does not measure the disk."""
    code, text = place.run("doctor", [place.tokamak, "doctor", "--deadline", max(1, int(seconds * place.scale)), "--json"],
                           seconds + 3)
    try:
        return json.loads(text[text.index("{"):text.rindex("}") + 1]), ""
    except ValueError:
        return {}, ended(code, text)


def gpus_of(report):
    """[{fact: value}] of the doctor's report, one of each GPU: name, driver, total_bytes, bus ..."""
    facts = next((rank for check in report.get("checks", []) if check["name"] == "gpus" for rank in check["ranks"]), {})
    return [{"driver": facts["driver"], **{name.split(".", 1)[1]: value for name, value in facts.items()
                                           if name.startswith(f"gpu{i}.")}} for i in range(facts.get("gpus", 0))]


def faults_of(report):
    """The doctor's findings that prevent a run, in one text."""
    return "; ".join(note["text"] for check in report.get("checks", []) for note in check["notes"]
                     if note["status"] == "fail")


def facts(place):
    """The JSON's section about machine and versions, without the doctor's findings."""
    libraries = output_of(["ldconfig", "-p"]).splitlines()
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "gpus": [], "doctor": {},
            "kernel": os.uname().release, "python": sys.version.split()[0],
            "libraries": sorted({os.path.realpath(line.split("=> ")[1]) for line in libraries
                                 if re.search(r"lib(cudart|cublasLt|cudnn|nccl|nvrtc|cupti)\.so", line)}),
            "tokamak": output_of([place.tokamak, "--version"], place.environment).splitlines()}


def machine(place, report):
    """Versions, and the doctor's findings."""
    found, why = doctor(place, MACHINE_SECONDS) if not place.emulated else ({}, "the GPU is emulated")
    report.facts.update(doctor=found, gpus=gpus_of(found))
    faults = faults_of(found)
    if not found:
        report.add("doctor", NOT_RUN, detail=why)
    else:
        report.add("doctor", FAILED if faults else PASSED, ", ".join(f"{gpu['name']}, driver {gpu['driver']}"
                                                                     for gpu in report.facts["gpus"]), detail=faults)
    fields = ("clocks.max.sm", "clocks.max.mem", "power.limit", "memory.total", "persistence_mode")
    for gpu in ask_gpu(",".join(fields))[:1]:
        report.facts["clocks"] = gpu
        report.add("clocks, power", MEASURED, ", ".join(f"{field} {gpu[field]}" for field in fields))
    report.add("versions", MEASURED, "; ".join(line.strip() for line in report.facts["tokamak"][:6]))
