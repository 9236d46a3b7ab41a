"""scripts/gpu_check.sh on the emulated programs, with faults planted in kernels (tests/cuda/emulator/faults.h) of some
programs and not of others. Each fault is named in the table, and what does not have it is reported as without it."""
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from harness import Workplace

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ["PROGRAMS"])
PLANTED = {"rmsnorm": "illegal", "swiglu": "trap", "rope": "hang", "column_sums": "memory", "statistics": "wrong"}
SAID = {"illegal": 'device fault in "rmsnorm', "trap": 'device fault in "swiglu', "hang": 'hung in "rope rotates',
        "memory": 'out of memory in "column_sums', "wrong": 'wrong result in "statistics finds'}
SOUND = ["contributions", "pack_lse"]
# Programs whose arguments have these words get these variables, all others none.
IN_ONE_PROGRAM = {
    "[#rope_test]": "TOKAMAK_PLANT=rope:hang", "[#swiglu_test]": "TOKAMAK_PLANT=swiglu:trap",
    "[#statistics_test]": "TOKAMAK_PLANT=statistics:wrong", "llama-1.5b.yaml --gpu": "",
    # Blocking, so that a kernel has run before the next allocation.
    "bench*llama-1.5b.yaml": "TOKAMAK_PLANT=random_normal:memory CUDA_LAUNCH_BLOCKING=1", "cuda_graphs=on": "TOKAMAK_EMULATOR_NO_CAPTURE=1"}


def environment(planted):
    return dict(os.environ, TOKAMAK_CONTACT="tiny", OMP_WAIT_POLICY="passive",
                TOKAMAK_PLANT=",".join(f"{kernel}:{fault}" for kernel, fault in planted.items()))


def command(folder, seconds, only, *more, programs=PROGRAMS):
    return [ROOT / "scripts" / "gpu_check.sh", "--programs", programs, "--output", folder, "--only", only, "--seconds",
            str(seconds), *more]


def families(names):
    return [word for name in names for word in ("--family", name)]


def results(folder):
    """{name: line} of the check's JSON. The check must have written no more than three files."""
    assert sorted(path.name for path in folder.iterdir()) == ["gc.tar.gz", "gpu_check.json", "table.txt"], list(folder.iterdir())
    lines = json.loads((folder / "gpu_check.json").read_text())["lines"]
    return {line["name"]: line for line in lines}


def check(folder, seconds, only, planted, names, *more, programs=PROGRAMS):
    """Runs the check. Returns (exit code, {name: line}, its text, the seconds that it took)."""
    begin = time.monotonic()
    done = subprocess.run(command(folder, seconds, only, *families(names), *more, programs=programs),
                          env=environment(planted), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    return done.returncode, results(folder), done.stdout, time.monotonic() - begin


def wrapped(folder):
    """Programs that get a fault by their arguments."""
    folder.mkdir()
    cases = "\n".join(f'  *{pattern}*) export {variable or "_="} ;;' for pattern, variable in (
        (word.replace("[", "\\[").replace("]", "\\]").replace("#", "\\#").replace(" ", "\\ "), variable)
        for word, variable in IN_ONE_PROGRAM.items()))
    for program in ("tokamak_emulated", "test_cuda_emulated", "test_nccl_emulated"):
        path = folder / program
        path.write_text(f'#!/bin/bash\ncase "$*" in\n{cases}\nesac\nexec {PROGRAMS / program} "$@"\n')
        path.chmod(0o755)
    return folder


def each_fault_is_reported_as_what_it_is(folder):
    code, lines, text, _ = check(folder, 75, "families", PLANTED, [*PLANTED, *SOUND])
    assert code == 1
    for family, fault in PLANTED.items():
        line = lines[f"op {family}"]
        assert line["result"] == "FAILED" and SAID[fault] in line["detail"], line
    for family in SOUND:
        assert lines[f"op {family}"]["result"] == "passed", lines
    assert lines["the kernel at fault in op rmsnorm"]["measured"] == "rmsnorm, wide", lines
    table = (folder / "table.txt").read_text()
    assert table in text and max(map(len, table.splitlines())) <= 100, table


def sound_kernels_pass(folder):
    code, lines, _, _ = check(folder, 60, "families", {}, SOUND)
    assert code == 0 and all(line["result"] == "passed" for line in lines.values()), lines


def first_brings_every_fact_that_has_no_fault(folder):
    seconds = 400
    with Workplace() as data:
        code, lines, text, took = check(folder, seconds, "first", {}, ["rope", "swiglu", "statistics", *SOUND], "--data",
                                        data.data, programs=wrapped(Path(f"{folder}-programs")))
    assert code == 1 and took <= seconds, took
    for name, words in (("op rope", 'hung in "rope rotates'), ("op swiglu", 'device fault in "swiglu'),
                        ("op statistics", 'wrong result in "statistics'), ("step 1.5B", "out of memory"),
                        ("step 8B, CUDA graphs", "apture")):
        assert lines[name]["result"] == "FAILED" and words in lines[name]["detail"], lines[name]
    table = (folder / "table.txt").read_text()
    for name in ("op rope", "op swiglu", "op statistics", "step 1.5B", "step 8B, CUDA graphs"):
        assert any(row.startswith("FAILED") and name in row for row in table.splitlines()), table
    for name in ("8B shape: every operation once, finite", "8B shape: cuDNN's attention is ours",
                 "30 steps, default options", "30 steps, default options, and the CPU", "op contributions", "op pack_lse",
                 "loss curve f32, CPU and CUDA", "NCCL, 2 ranks"):
        assert lines[name]["result"] == "passed", lines[name]
    for name in ("step 8B", "step 8B, masked", "step 0.5B", "a layer of 8B alone"):
        assert lines[name]["result"] == "measured", lines[name]
    assert lines["step 8B"]["values"]["predicted"] > 0 and "predicted" not in lines["step 8B, masked"]["values"], lines
    parts = list(dict.fromkeys(line["part"] for line in lines.values()))
    assert parts == ["machine", "contact", "learns", "steps", "kernels", "models", "families", "curves", "rest",
                     "two_ranks"], parts
    assert table in text
    with tarfile.open(folder / "gc.tar.gz") as archive:
        names = archive.getnames()
    assert "gpu_check/op-rope.log" in names and not any("checkpoints" in name for name in names), names


def a_signal_keeps_what_there_is(folder):
    """The signal comes in the first part, which hangs. The archive then has its log, and no program is left."""
    with open(f"{folder}.txt", "w+", encoding="utf-8") as output:
        process = subprocess.Popen(command(folder, 400, "first"), env=environment({"embedding": "hang"}), stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        while not (waiting := running(folder)) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, Path(output.name).read_text()
    lines = results(folder)
    assert lines["the check"]["detail"] == "stopped by SIGTERM while contact-0 ran" and lines["versions"]["result"] == "measured", lines
    with tarfile.open(folder / "gc.tar.gz") as archive:
        assert "gpu_check/contact-0.log" in archive.getnames(), archive.getnames()
    assert waiting and not any(Path(f"/proc/{pid}").exists() for pid in waiting), waiting


def running(folder):
    """The hanging test programs of the check that writes to `folder`. They have a facts file once a case has begun."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "cmdline").read_bytes()
            facts = dict(entry.split(b"=", 1) for entry in (path / "environ").read_bytes().split(b"\0") if b"=" in entry)
        except OSError:
            continue
        place = facts.get(b"TOKAMAK_FACTS", b"").decode()
        if b"test_cuda_emulated" in text and b"every operation" in text and place and Path(place).exists() and \
                f"--output\0{folder}".encode() in parent_command(path):
            found.append(int(path.name))
    return found


def parent_command(path):
    try:
        parent = (path / "stat").read_text().rsplit(")", 1)[1].split()[1]
        return Path(f"/proc/{parent}/cmdline").read_bytes()
    except OSError:
        return b""


with tempfile.TemporaryDirectory() as scratch:
    for case in (each_fault_is_reported_as_what_it_is, sound_kernels_pass, first_brings_every_fact_that_has_no_fault,
                 a_signal_keeps_what_there_is):
        if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
            case(Path(scratch) / case.__name__)
            print(f"ok: {case.__name__}")
sys.exit(0)
