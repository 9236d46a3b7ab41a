"""tokamak doctor, the real program: alone, under mpirun, with a config that cannot run, and with a rank that hangs."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fault"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import processes  # noqa: E402
import run_ranks  # noqa: E402
from harness import ENV, TOKAMAK, main, mpirun  # noqa: E402

CHECKS = ["config", "data", "clocks", "device", "program", "environment", "memory", "disk", "burn-in", "gpus", "collectives", "pairs"]
SLOW = 5  # exit code if burn-in rates differ too much, as they may on a machine with other programs


def doctor(command, *expect):
    """Runs the doctor, which must end with one of these codes within a minute. Returns its standard output."""
    begin = time.monotonic()
    done = subprocess.run(command, env=ENV, text=True, capture_output=True, timeout=240, check=False)
    assert done.returncode in expect, (command, done.returncode, done.stdout, done.stderr)
    assert time.monotonic() - begin < 60, command
    return done.stdout


def status_of(report):
    return {check["name"]: check["status"] for check in report["checks"]}


def alone(place):
    """alone and without a config: a table that says what was checked and what was not, exit code 0"""
    text = doctor([TOKAMAK, "doctor", "--directory", place.file("not/yet/there")], 0)
    rows = [line.split()[1] for line in text.splitlines() if not line.startswith(" ")]
    assert rows[:-1] == CHECKS, text
    assert re.search(r"1 rank\(s\) on 1 host\(s\), .*: may start", text), text
    assert not os.path.exists(place.file("not")), "a probe was left"


def on_two_ranks(place):
    """under mpirun with a run's config: both ranks check everything, as JSON; the run's directory is unchanged"""
    report = json.loads(doctor(mpirun(2, "doctor", place.config("two"), "--json"), 0, SLOW))
    status = status_of(report)
    assert list(status) == CHECKS, report
    faults = [note["text"] for check in report["checks"] for note in check["notes"] if note["status"] == "fail"]
    assert all("of the others' rate" in fault for fault in faults), faults
    assert [name for name, its in status.items() if its == "skipped"] in (["gpus"], []), status
    assert report["ranks"] == 2 and report["exit_code"] == (SLOW if faults else 0), report
    by_name = {check["name"]: check for check in report["checks"]}
    for name, facts in (("burn-in", ["bits", "flops_per_second"]), ("disk", ["write_bytes_per_second", "same_directory"]),
                        ("memory", ["planned_bytes", "share_bytes"]), ("program", ["binary", "oneDNN", "MPI"])):
        for rank in by_name[name]["ranks"]:
            assert all(fact in rank for fact in facts), (name, rank)
    assert by_name["burn-in"]["ranks"][0]["bits"] == by_name["burn-in"]["ranks"][1]["bits"]
    assert by_name["data"]["ranks"][0]["tokens"] == by_name["data"]["ranks"][1]["tokens"] > 0
    assert not os.path.exists(place.run("two")), "a run's directory was made"


def bad_config(place):
    """an unknown key fails with 2, a model too large for the machine with 5, a missing data set with 3"""
    text = doctor([TOKAMAK, "doctor", place.config("bad"), "model.hiden_size=3"], 2)
    assert re.search(r"skipped +data +the config decides it", text), text
    assert "hidden_size" in text and "do not start" in text, text
    text = doctor([TOKAMAK, "doctor", place.config("bad"), "model.hidden_size=131072", "model.num_hidden_layers=99"], 5)
    assert "the run needs" in text, text
    doctor([TOKAMAK, "doctor", place.config("bad"), "model.vocab_size=0", "data.sources[0].path=/nowhere"], 3)


def blocked_path(place):
    """a checkpoint path below a file fails with 4, and no host is suspected"""
    with open(place.file("file"), "w") as file:
        file.write("x")
    suspects = place.file("suspects.txt")
    text = doctor([TOKAMAK, "doctor", "--directory", place.file("file") + "/run", "--suspects", suspects], 4)
    assert "disk" in text and not os.path.exists(suspects), text


def a_run_in_the_way(place):
    """if a run trains in the directory, the doctor names it and does not disturb it"""
    log = place.file("training.log")
    with open(log, "w") as out:
        process = subprocess.Popen([TOKAMAK, "train", place.config("busy"), "training.max_steps=1000000"], env=ENV, stdout=out, stderr=out)
    try:
        processes.wait_for(process, log, r"step 1/")
        text = doctor([TOKAMAK, "doctor", place.config("busy")], 0, SLOW)
        assert re.search(rf"a run writes to {place.run('busy')} now: incarnation .*pid {process.pid}", text), text
    finally:
        process.terminate()
    assert process.wait(timeout=60) == 75, open(log).read()


def different_environments(place):
    """a variable that only one rank has is listed, and is no failure"""
    command = mpirun(1, "doctor") + [":", "-n", "1", "env", "MALLOC_CHECK_=3", TOKAMAK, "doctor"]
    text = doctor(command, 0, SLOW)
    assert "MALLOC_CHECK_='3'" in text, text


def a_host_of_three_differs(place):
    """Three hosts over TCP, one with another binary and another file system at the path. The doctor finds both, and
    suspects that host. Hosts are namespaces; the case is skipped by name where the kernel or the user may not make
    them."""
    if subprocess.run(["unshare", "-um", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("skipped: no namespaces")
        return
    other, shared, suspects = place.file("other"), place.file("shared"), place.file("hosts.txt")
    shutil.copy(TOKAMAK, other)
    with open(other, "ab") as file:
        file.write(b"x")
    os.mkdir(shared)
    script = f"""program={TOKAMAK}
        hostname n$RANK
        if [ $RANK = 1 ]; then program={other}; mount -t tmpfs none {shared}; fi
        exec taskset -c $((RANK % $(nproc))) $program doctor --deadline 200 --directory {shared} --suspects {suspects} --json > {place.file("host")}$RANK.log 2>&1"""
    codes = run_ranks.wait(run_ranks.start(3, ["unshare", "-um", "sh", "-c", script], ENV), timeout=240)
    with open(place.file("host0.log")) as file:
        text = file.read()
    assert codes in ([4] * 3, [SLOW] * 3), (codes, text)
    report = json.loads(text[text.index("{\n"):])
    assert report["hosts"] == ["n0", "n1", "n2"] and report["suspects"][0] == "n1", report
    status = status_of(report)
    assert (status["program"], status["disk"]) == ("fail", "fail") and status["collectives"] == "ok", report
    with open(suspects) as file:
        assert file.read().startswith("n1\n")


def hanging_rank(place):
    """a rank that stops answering ends the doctor at its deadline with exit code 6; the log names check and rank"""
    log = place.file("hang.log")
    with open(log, "w") as out:
        process = subprocess.Popen(mpirun(2, "doctor", "--deadline", "15"), env=ENV, stdout=out, stderr=out)
    stopped = []
    try:
        processes.wait_for(process, log, r"device ")
        ranks = processes.children(process.pid)
        assert len(ranks) == 2, ranks
        stopped = [max(ranks)]
        os.kill(stopped[0], signal.SIGSTOP)
        code = process.wait(timeout=120)
    finally:
        for pid in processes.alive(stopped):
            os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
    with open(log) as file:
        text = file.read()
    assert code == 6, (code, text)
    assert re.search(r"doctor: the check '[a-z-]+' has not ended on ", text), text
    name = f"rank [01] \\(on {os.uname().nodename}\\), pid {stopped[0]}"
    missing = re.findall(rf"; did not arrive: {name} \(nothing heard for \d+", text)
    assert len(missing) == 1 and text.count(" error ") == 1, text


main([alone, on_two_ranks, bad_config, blocked_path, a_run_in_the_way, different_environments, a_host_of_three_differs, hanging_rank])
