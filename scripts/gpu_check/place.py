"""Where things are, in the source tree or in a bundle, what this machine is, and how programs are run here: each with
a time limit, its whole output in a log."""
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
        self.test_cudnn_backend = self.test_cuda.with_name("test_cuda_cudnn_backend")
        self.cudnn_rate = self.test_cuda.with_name("cudnn_rate")
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
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        text = (self.output / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        return code, text.split("\n", 1)[1]

    def run(self, name, command, limit, environment=None, base=None):
        return self.finish(name, self.start(name, command, environment, base), limit)


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it printed nothing"])[-1][:160]


def ended(code, text):
    """How a program that should have ended well did not."""
    if code is None:
        return "out of time"
    return f"exit {code}: {last_line(text)}" if code >= 0 else f"signal {-code}: {last_line(text)}"


def missing_gpu():
    """Why there is no GPU; empty where there is one. The driver itself is asked."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no GPU (no NVIDIA driver)"
    count = ctypes.c_int()
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "no GPU (the driver shows none)"
    return ""


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
