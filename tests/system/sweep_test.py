"""`tokamak sweep` by the real program. A sweep that is stopped and started again repeats nothing. Its table has the
numbers of the runs' own records. Runs that diverge or fail are rows and not the end."""
import json
import math
import os
import shutil
import signal
import subprocess
import time

from harness import CONFIG, ENV, MPIRUN, TOKAMAK, call, digest, main, tokamak

GRID = ("optimizer.lr=1e-3,3e-3", "model.hidden_size=24,48")
SHORT = CONFIG.replace("validation_sequences: 5", "validation_sequences: 5, validation_interval: 10")


def directory(place, name):
    return place.file("runs/sweeps/" + name)


def rows_of(place, name):
    path = directory(place, name) + "/table.jsonl"
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def events(place, name, row, event):
    with open(f"{directory(place, name)}/runs/{row['id']}/metrics.jsonl") as lines:
        return [record for record in map(json.loads, lines) if record.get("event") == event]


def sweep(place, name, *arguments, expect=0):
    done = call([TOKAMAK, "sweep", place.config(name, SHORT), "--name", name, *arguments], timeout=300)
    assert done.returncode == expect, f"{name} {arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}"
    return done.stdout


def started(place, name, *arguments):
    return subprocess.Popen([TOKAMAK, "sweep", place.config(name, SHORT), "--name", name, *arguments], env=ENV, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_for_done(place, name, count, process):
    while sum(row["status"] == "done" for row in rows_of(place, name)) < count:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def wait_for_steps(place, name):
    """until a run that is not over has logged a step; returns its directory"""
    while True:
        over = {row["id"] for row in rows_of(place, name) if row["status"] == "done"}
        runs = directory(place, name) + "/runs/"
        for run in set(os.listdir(runs)) - over:
            path = runs + run + "/metrics.jsonl"
            if os.path.exists(path) and '"loss/avg"' in open(path).read():
                return runs + run
        time.sleep(0.01)


def state_of(run):
    with open(run + "/status.json") as file:
        return json.load(file)["state"]


def stopped_and_resumed(place):
    """2 x 2 arms of 2 seeds, stopped by SIGTERM, then by kill -9: the next start resumes the interrupted run and leaves
    finished runs alone. The table has the numbers of the runs' own records."""
    options = (*GRID, "--seeds", "1,2", "training.max_steps=120")
    first = started(place, "grid", *options)
    wait_for_done(place, "grid", 2, first)
    interrupted = wait_for_steps(place, "grid")
    first.send_signal(signal.SIGTERM)
    said = first.communicate(timeout=60)[0]
    assert first.returncode == 75 and state_of(interrupted) == "stopped", (first.returncode, said)

    second = started(place, "grid", *options)
    wait_for_done(place, "grid", 4, second)
    killed = wait_for_steps(place, "grid")
    second.kill()
    second.communicate()
    while state_of(killed) == "running":  # its signal comes from the death of the sweep
        time.sleep(0.01)
    assert state_of(killed) == "stopped"

    finished = [row for row in rows_of(place, "grid") if row["status"] == "done"]
    before = {row["id"]: digest(f"{directory(place, 'grid')}/runs/{row['id']}") for row in finished}
    said = sweep(place, "grid", *options)
    assert f"8 run(s), {len(finished)} of them over" in said, said
    for id, bytes_before in before.items():
        assert digest(f"{directory(place, 'grid')}/runs/{id}") == bytes_before, id
    rows = rows_of(place, "grid")
    assert len(rows) == 8 and {row["status"] for row in rows} == {"done"}, rows
    for row in rows:
        run = f"{directory(place, 'grid')}/runs/{row['id']}"
        starts = events(place, "grid", row, "start")
        assert len(starts) == 1 + (run in (interrupted, killed)), (row, len(starts))
        with open(run + "/metrics.jsonl") as lines:
            records = {record["step"]: record for record in map(json.loads, lines) if "validation/loss" in record}
        losses = [records[step]["validation/loss"] for step in sorted(records)]
        report = json.loads(tokamak("report", run, "--json"))
        assert len(losses) == 12 and row["loss"] == losses[-1], (row, losses)
        assert math.isclose(row["loss_last3"], sum(losses[-3:]) / 3, rel_tol=1e-12)
        assert row["tokens"] == 120 * 768 == records[120]["tokens"] and row["steps"] == 120
        assert row["program"] == starts[-1]["program"]
        plan = json.loads(tokamak("plan", run + "/config.yaml", "--json"))
        assert row["n_total"] == plan["parameters"]
        assert row["n_body"] + row["n_head"] == plan["parameters"] - plan["lookup_parameters"]
        assert math.isclose(row["flops_full"], plan["flops_per_token_full"] * row["tokens"], rel_tol=1e-12)
        assert math.isclose(row["tokens_per_second"], report["productive_tokens_per_second"], rel_tol=1e-3), (row, report)
    means = {}
    for row in rows:
        means.setdefault(tuple(row["overrides"].values()), []).append(row["loss"])
    best = min(sum(losses) / 2 for losses in means.values())
    assert f"{best:.4f}" in said and "edge of its grid" in said, said
    page = open(directory(place, "grid") + "/report.html").read()
    assert all(row["id"] in page for row in rows)
    more = sweep(place, "grid", *GRID, "--seeds", "1,2,3", "training.max_steps=120", "--parallel", "2")
    assert "12 run(s), 8 of them over" in more and len(rows_of(place, "grid")) == 12, more


def diverged_and_failed(place):
    """A learning rate of 1e9 makes a diverged row, a launcher that is not there makes failed ones with their reason;
    the other runs go on. A failure is the exit code, and is tried again. So is a diverged run without its directory."""
    name = "bad"
    said = sweep(place, name, "optimizer.lr=1e9,1e-3", "resilience.max_bad_steps=3", "training.max_steps=30")
    status = {row["overrides"]["optimizer.lr"]: row["status"] for row in rows_of(place, name)}
    assert list(status.values()) == ["diverged", "done"], (status, said)
    said = sweep(place, name, "optimizer.lr=1e9,1e-3", "resilience.max_bad_steps=3", "training.max_steps=30")
    assert "2 run(s), 2 of them over" in said, said
    (diverged,) = [row["id"] for row in rows_of(place, name) if row["status"] == "diverged"]
    shutil.rmtree(f"{directory(place, name)}/runs/{diverged}")
    said = sweep(place, name, "optimizer.lr=1e9,1e-3", "resilience.max_bad_steps=3", "training.max_steps=30")
    assert "2 run(s), 1 of them over" in said and f"{diverged}: diverged" in said, said

    said = sweep(place, "missing", "optimizer.lr=1e-3,2e-3", "--launch", "/no/launcher -n 2", expect=127)
    for row in rows_of(place, "missing"):
        assert (row["status"], row["exit_code"], row["error"]) == ("failed", 127, "cannot start /no/launcher"), row
    said = sweep(place, "missing", "optimizer.lr=1e-3,2e-3", "training.max_steps=3", "--launch",
                 f"{MPIRUN} -n 2 --oversubscribe --bind-to none")
    with_ranks = [row for row in rows_of(place, "missing") if row["status"] == "done"]
    assert len(with_ranks) == 2 and events(place, "missing", with_ranks[0], "start")[0]["ranks"] == 2, said


def refusals(place):
    """one of several ranks, a run whose recorded config differs, a config that is not valid for some values: exit 2"""
    done = call([MPIRUN, "-n", "2", "--oversubscribe", TOKAMAK, "sweep", place.config("r", SHORT), *GRID])
    assert done.returncode == 2 and "--launch 'mpirun -n 4'" in done.stdout, done
    said = sweep(place, "r", "model.num_key_value_heads=2,3", expect=2)
    assert "num_key_value_heads" in said and not os.path.exists(directory(place, "r")), said
    sweep(place, "r", "training.max_steps=2")
    (row,) = rows_of(place, "r")
    path = f"{directory(place, 'r')}/runs/{row['id']}/config.yaml"
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("weight_decay: 0.1", "weight_decay: 0.2"))
    said = sweep(place, "r", "training.max_steps=2", expect=2)
    assert "optimizer.weight_decay: 0.2 -> 0.1" in said, said


def listed(place):
    """--dry-run writes nothing. --commands prints commands for a shell, and --table reads what they have made."""
    said = sweep(place, "list", *GRID, "training.max_steps=2", "--dry-run")
    assert "4 runs" in said and "1.54K" in said and not os.path.exists(directory(place, "list")), said  # 2 x 768 tokens
    done = subprocess.run([TOKAMAK, "sweep", place.config("list", SHORT), *GRID, "training.max_steps=2", "--commands",
                           "--name", "list"], env=ENV, text=True, capture_output=True)
    commands = done.stdout.splitlines()
    assert done.returncode == 0 and len(commands) == 4, done
    assert {row["status"] for row in rows_of(place, "list")} == {"waiting"}
    for command in commands[:3]:
        assert call(["sh", "-c", command]).returncode == 0, command
    said = tokamak("sweep", "--table", directory(place, "list"))
    assert [row["status"] for row in rows_of(place, "list")] == ["done"] * 3 + ["waiting"] and "1 unfinished" in said, said


def fit(place):
    """a table of 4 sizes and 4 horizons gives back the law that made it"""
    path = place.file("table.jsonl")
    with open(path, "w") as out:
        for i in range(4):
            for j in range(4):
                size = 10 ** (6 + i)
                tokens = 5 * size * 3 ** j
                loss = 1.817 + 482 / size ** 0.348 + 2085 / tokens ** 0.366
                out.write(json.dumps({"id": f"{i}-{j}", "overrides": {}, "seed": 1, "n_body": size - 1000, "n_head": 1000,
                                      "n_total": size + 1000, "tokens": tokens, "loss": loss, "status": "done"}) + "\n")
    said = tokamak("sweep", "--fit", path, "--budget", "1e19", "--size", "2B", "--tokens", "40B")
    values = {line.split("  ")[0]: line.split()[-3] for line in said.splitlines() if "[" in line}
    for name, expected in (("E", "1.817"), ("A", "482"), ("B", "2085"), ("alpha", "0.348"), ("beta", "0.366")):
        assert values[name] == expected, (name, said)
    assert values["loss of N 2.00B, D 40.0B"] == f"{1.817 + 482 / 2e9 ** 0.348 + 2085 / 4e10 ** 0.366:.4f}", said
    done = call([TOKAMAK, "sweep", "--fit", place.file("none.jsonl")])
    assert done.returncode == 2 and "no table" in done.stdout, done


main([stopped_and_resumed, diverged_and_failed, refusals, listed, fit])
