"""scripts/gpu_check.sh on the emulated programs, with faults planted in kernels (tests/cuda/emulator/faults.h). Each is
reported correctly, in its family only, and a hanging kernel delays nothing beyond its time limit."""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLANTED = {"rmsnorm": "illegal", "swiglu": "trap", "rope": "hang", "column_sums": "memory", "statistics": "wrong"}
SAID = {"illegal": 'device fault in "rmsnorm', "trap": 'device fault in "swiglu', "hang": 'hung in "rope rotates',
        "memory": 'out of memory in "column_sums', "wrong": 'wrong result in "statistics finds'}
SOUND = ["contributions", "pack_lse"]


def check(folder, seconds, only, planted, families):
    """(exit code, {line: it}, its text, the seconds that it took)."""
    begin = time.monotonic()
    done = subprocess.run(
        [ROOT / "scripts" / "gpu_check.sh", "--programs", os.environ["PROGRAMS"], "--output", folder, "--only", only,
         "--seconds", str(seconds), *[word for family in families for word in ("--family", family)]],
        env=dict(os.environ, TOKAMAK_PLANT=",".join(f"{kernel}:{fault}" for kernel, fault in planted.items()),
                 TOKAMAK_CONTACT="tiny"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    lines = json.loads((folder / "gpu_check.json").read_text())["lines"]
    return done.returncode, {line["name"]: line for line in lines}, done.stdout, time.monotonic() - begin


def each_fault_is_reported_as_what_it_is(folder):
    code, lines, text, _ = check(folder, 45, "families", PLANTED, [*PLANTED, *SOUND])
    assert code == 1
    for family, fault in PLANTED.items():
        line = lines[f"op {family}"]
        assert line["result"] == "FAILED" and SAID[fault] in line["detail"], line
    for family in SOUND:
        assert lines[f"op {family}"]["result"] == "passed", lines
    assert lines["the kernel at fault in op rmsnorm"]["measured"] == "rmsnorm, wide", lines
    table = (folder / "table.txt").read_text()
    assert table in text and max(map(len, table.splitlines())) <= 100, table
    assert Path(f"{folder}.tar.gz").stat().st_size > 1000


def sound_kernels_pass(folder):
    code, lines, _, _ = check(folder, 60, "families", {}, SOUND)
    assert code == 0 and all(line["result"] == "passed" for line in lines.values()), lines


def contact_ends_in_time(folder):
    seconds = 40
    code, lines, _, took = check(folder, seconds, "contact", {"rope": "hang"}, ["rope", "contributions"])
    assert code == 1 and took <= seconds, took
    assert 'hung in "every operation once' in lines["8B shape: every operation once, finite"]["detail"], lines
    assert 'hung in "rope rotates' in lines["op rope"]["detail"], lines
    assert lines["8B shape: cuDNN's attention is ours"]["result"] == "passed", lines
    assert lines["op contributions"]["result"] == "passed", lines
    assert lines["training 8B-shaped"]["detail"].startswith("hung"), lines


with tempfile.TemporaryDirectory() as scratch:
    for case in (each_fault_is_reported_as_what_it_is, sound_kernels_pass, contact_ends_in_time):
        case(Path(scratch) / case.__name__)
        print(f"ok: {case.__name__}")
sys.exit(0)
