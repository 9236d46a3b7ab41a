"""Paths in the source tree or in a bundle, the properties of this machine, and how programs run: each in its own
session with a time limit and a log of its whole output. If a program cannot be killed, the GPU counts as lost."""
import contextlib
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from report import KINDS, LOST

ROOT = Path(__file__).resolve().parents[2]
# For `bench` of models on the emulator.
TINY = ["model.hidden_size=128", "model.intermediate_size=192", "model.num_attention_heads=2", "model.vocab_size=256",
        "model.num_key_value_heads=1", "data.sequence_length=64", "training.global_batch_tokens=128",
        "training.micro_batch_size=1", "--rounds", "1"]
KILL_SECONDS = 10  # time for a killed process to exit


class Place:
    def __init__(self, options, seconds, scale=1):
        """`scale`: factor of every program's time limit."""
        self.bundle = (ROOT / "libexec" / "tokamak").exists() and not (options.build or options.programs)
        folder = ROOT if self.bundle else options.build or ROOT / "build"
        self.emulated = options.programs is not None
        self.tiny = TINY if self.emulated else []
        suffix = "_emulated" if self.emulated else ""
        tests = options.programs or folder / ("tests" if self.bundle else "tests/cuda")
        self.tokamak = (options.programs or (folder / "libexec" if self.bundle else folder)) / f"tokamak{suffix}"
        self.test_cuda, self.test_nccl = tests / f"test_cuda{suffix}", tests / f"test_nccl{suffix}"
        self.call_counter = tests / "libtokamak_call_counter.so"
        self.data = options.data or ROOT / "runs" / "quickstart" / "data"
        self.configs, self.output = ROOT / "configs", options.output
        self.deadline, self.lost, self.seconds = time.monotonic() + seconds, "", {}
        self.scale = scale
        self.environment = self._environment()

    def _environment(self):
        if not self.bundle:
            return dict(os.environ)
        entries = subprocess.run([ROOT / "bin" / "tokamak-env", "env", "-0"], check=True, stdout=subprocess.PIPE).stdout
        return dict(entry.split("=", 1) for entry in entries.decode().split("\0") if "=" in entry)

    def left(self):
        return self.deadline - time.monotonic()

    @contextlib.contextmanager
    def part(self, name, seconds):
        """Limits the programs run in it to these seconds, and to the check's remaining time."""
        whole, begin = self.deadline, time.monotonic()
        self.deadline = min(whole, begin + seconds)
        try:
            yield
        finally:
            self.deadline, self.seconds[name] = whole, round(time.monotonic() - begin, 1)

    def scratch(self, name):
        """An empty folder of this name below output/."""
        path = self.output / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def start(self, name, command, environment=None, base=None):
        """`base`: the environment to extend, instead of that of our programs. None: the GPU is lost."""
        if self.lost:
            return None
        with open(self.output / f"{name}.log", "w", encoding="utf-8") as log:
            print(f"$ {' '.join(str(word) for word in command)}", file=log, flush=True)
            return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, start_new_session=True, cwd=self.output,
                                    env=dict(self.environment if base is None else base, **(environment or {})))

    def finish(self, name, process, limit):
        """(exit code, None after a timeout, or LOST; its output)."""
        if process is None:
            return LOST, self.lost
        try:
            code = process.wait(max(1, min(limit, self.left())))
        except subprocess.TimeoutExpired:
            code = None
            end_session(process.pid)
            try:
                process.wait(KILL_SECONDS)
            except subprocess.TimeoutExpired:
                self.lost = f"the GPU is lost: {name} (process {process.pid}) cannot be killed"
        text = (self.output / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return code, text.split("\n", 1)[1]

    def run(self, name, command, limit, environment=None):
        """The full time limit. A program is not started if less time is left: it would look like a hang."""
        limit *= self.scale
        if self.left() < max(1, limit / 3):
            return LOST, self.lost or "no time is left"
        return self.finish(name, self.start(name, command, environment), limit)


def session(leader):
    """The running processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = path.read_text(errors="replace").rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue  # it just ended
        if its_session == str(leader) and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def end_session(leader):
    """A process group is not enough: mpirun puts each rank in its own group."""
    for _ in range(10):  # new ones may have started meanwhile
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
    """How a program failed."""
    if code in (None, LOST):
        return "hung: out of time" if code is None else text
    kind = f"signal {-code}" if code < 0 else KINDS.get(code, f"exit {code}")
    return f"{kind}: {last_line(text)}"


# In a separate process: a driver in a bad state may hang.
ASK_DRIVER = """import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, device, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0:
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(total), device)
print(count.value, total.value)"""


def ask_driver():
    """(number of GPUs, None without a responding driver; the bytes of the first)."""
    told = output_of([sys.executable, "-c", ASK_DRIVER]).split()
    return (int(told[0]), int(told[1])) if len(told) == 2 else (None, 0)


def gpus():
    return ask_driver()[0]


def missing_gpu():
    """Why there is no GPU; empty if there is one."""
    return {None: "no GPU (no NVIDIA driver that answers)", 0: "no GPU (the driver shows none)"}.get(gpus(), "")


def output_of(command, environment=None):
    """The program's output; empty if it fails or hangs (it is then abandoned)."""
    try:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, errors="replace", start_new_session=True)
        text = process.communicate(timeout=10)[0].strip()
        return text if process.returncode == 0 else ""
    except OSError:
        return ""
    except subprocess.TimeoutExpired:
        process.kill()
        return ""


def ask_gpu(query):
    """[{field: value}], one per GPU."""
    rows = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"])
    return [dict(zip(query.split(","), re.split(r",\s*", row))) for row in rows.splitlines()]


def facts(place):
    """The JSON's section about machine and versions."""
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "")
    libraries = output_of(["ldconfig", "-p"]).splitlines()
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "gpus": ask_gpu("name,driver_version,memory.total,memory.free,pci.bus_id,clocks.max.sm,clocks.max.mem,"
                            "power.limit,compute_cap"),
            "cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
            "python": sys.version.split()[0],
            "libraries": sorted({os.path.realpath(line.split("=> ")[1]) for line in libraries
                                 if re.search(r"lib(cuda|cudart|cublasLt|cudnn|nccl|nvrtc|cupti)\.so", line)}),
            "tokamak": output_of([place.tokamak, "--version"], place.environment).splitlines()}
