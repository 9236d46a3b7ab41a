"""Where things are, in the source tree or in a bundle, what this machine is, and how programs are run here: each with
a time limit, its whole output in a log."""
import contextlib
import ctypes
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Place:
    def __init__(self, build, data, output, seconds):
        self.bundle = (ROOT / "libexec" / "tokamak").exists() and build is None
        folder = ROOT if self.bundle else build or ROOT / "build"
        self.tokamak = folder / ("libexec/tokamak" if self.bundle else "tokamak")
        self.test_cuda = folder / ("tests/test_cuda" if self.bundle else "tests/cuda/test_cuda")
        self.cudnn_rate = self.test_cuda.with_name("cudnn_rate")
        self.test_nccl = self.test_cuda.with_name("test_nccl")
        self.call_counter = self.test_cuda.with_name("libtokamak_call_counter.so")
        self.data = data or ROOT / "runs" / "quickstart" / "data"
        self.configs = ROOT / "configs"
        self.output = output
        self.deadline = time.monotonic() + seconds
        self.environment = self._environment()

    def _environment(self):
        if not self.bundle:
            return dict(os.environ)
        entries = subprocess.run([ROOT / "bin" / "tokamak-env", "env", "-0"], check=True, stdout=subprocess.PIPE).stdout
        return dict(entry.split("=", 1) for entry in entries.decode().split("\0") if "=" in entry)

    def left(self):
        return self.deadline - time.monotonic()

    def scratch(self, name):
        """An empty folder of this name below output/."""
        path = self.output / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def start(self, name, command, environment=None, base=None):
        """`base`: the environment to add to, in place of the one that our programs need."""
        log = open(self.output / f"{name}.log", "w", encoding="utf-8")
        print(f"$ {' '.join(str(word) for word in command)}", file=log, flush=True)
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True, cwd=self.output,
                                env=dict(self.environment if base is None else base, **(environment or {})))

    def finish(self, name, process, limit):
        """(exit code or None if it ran out of time, what it printed)."""
        try:
            code = process.wait(max(1, min(limit, self.left())))
        except subprocess.TimeoutExpired:
            code = None
            end_session(process.pid)
            process.wait()
        text = (self.output / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return code, text.split("\n", 1)[1]

    def run(self, name, command, limit, environment=None, base=None):
        return self.finish(name, self.start(name, command, environment, base), limit)


def session(leader):
    """The processes of a session that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = path.read_text(errors="replace").rsplit(")", 1)[1].split()[:4]
        except OSError:
            continue  # it has just ended
        if its_session == str(leader) and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def end_session(leader):
    """A process group would not be enough: mpirun gives each rank one of its own."""
    for _ in range(10):  # some may have been started meanwhile
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
    """How a program that should have ended well did not."""
    if code is None:
        return "out of time"
    return f"exit {code}: {last_line(text)}" if code >= 0 else f"signal {-code}: {last_line(text)}"


def gpus():
    """How many GPUs the driver shows; None without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    good = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if good else 0


def missing_gpu():
    """Why there is no GPU; empty where there is one."""
    return {None: "no GPU (no NVIDIA driver)", 0: "no GPU (the driver shows none)"}.get(gpus(), "")


def output_of(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=30,
                              errors="replace", check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def facts(place):
    """What the JSON says of machine and versions."""
    query = "name,driver_version,memory.total,pci.bus_id,clocks.max.sm,clocks.max.mem,power.limit"
    rows = output_of(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"])
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "")
    gpus = [dict(zip(query.split(","), re.split(r",\s*", row))) for row in rows.splitlines()]
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "gpus": gpus,
            "cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": os.uname().release,
            "python": sys.version.split()[0],
            "tokamak": subprocess.run([place.tokamak, "--version"], env=place.environment, stdout=subprocess.PIPE,
                                      text=True, check=True).stdout.strip().splitlines()}
