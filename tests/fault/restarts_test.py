"""scripts/restarts.sh: its decision after all ranks end, from status.json and the launcher's status. The ranks are a
line of shell, so that every combination can occur. A hostile file in the run's directory must have no effect."""
import json
import os
import subprocess
import sys
import tempfile

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
SCRIPT = os.path.join(SCRIPTS, "restarts.sh")
TOKAMAK = os.environ["TOKAMAK"]

# One start as in the scripts, with the command `RANKS` in place of the launcher. It prints what the script decides.
ONE_START = """\
set -u
TOKAMAK=false
source {script}
run={run}
status_is() {{ printf '{{"state":"%s","code":%d,"step":7,"total_steps":9,"time":"now","incarnation":"%s"}}\\n' "$@" >$run/status.json; }}
start_ranks() {{
  ({ranks}) &
  launcher=$!
}}
{before}
run_once
if is_done; then verdict="done"; elif is_transient; then verdict=again; else verdict=end; fi
echo "$verdict $code"
"""
KILLED_HARD = "kill -9 $BASHPID"

# name: (before the start, the ranks, what follows)
CASES = {
    "done": ("", "status_is running 0 b; status_is done 0 b", "done 0"),
    "done, though the launcher failed": ("", "status_is done 0 b; exit 1", "done 0"),
    "done, though the launcher was killed": ("", f"status_is done 0 b; {KILLED_HARD}", "done 0"),
    "an older start was done": ("status_is done 0 a", "exit 6", "again 6"),
    "an older start was done, and the launcher saw nothing wrong": ("status_is done 0 a", "exit 0", "again 0"),
    "done again": ("status_is done 0 a", "status_is running 0 b; status_is done 0 b", "done 0"),
    "killed while it ran": ("", f"status_is running 0 b; {KILLED_HARD}", "again 137"),
    "killed, and the launcher saw nothing wrong": ("", "status_is running 0 b; exit 0", "again 0"),
    "hung": ("status_is stopped 75 a", "status_is running 0 b; exit 6", "again 6"),
    "mpirun after SIGTERM": ("", "status_is stopped 75 b; exit 1", "end 75"),
    "an older start was stopped": ("status_is stopped 75 a", "exit 2", "end 2"),
    "failed, and srun killed the last ranks": ("", "status_is failed 7 b; exit 137", "end 7"),
    "communication failed": ("", "status_is failed 6 b; exit 137", "again 6"),
    "a device failed": ("", "status_is failed 8 b; exit 8", "again 8"),
    "a device refuses what an option requires": ("", "status_is failed 9 b; exit 9", "end 9"),
    "a checkpoint failed": ("status_is running 0 a", "exit 4", "end 4"),
    "no status, a config error": ("", "exit 2", "end 2"),
    "no status, nothing wrong": ("", "exit 0", "again 0"),
    "the launcher failed before any rank began": ("status_is stopped 75 a", "exit 1", "again 1"),
    "a defect of the program": ("", "status_is running 0 b; status_is failed 1 b; exit 1", "end 1"),
    "the launcher failed after a rank began": ("", "status_is running 0 b; exit 1", "end 1"),
    "half a status": ("", "echo '{\"state\":\"do' >$run/status.json; exit 0", "again 0"),
}

# Words that bash would run if it evaluated them.
BOMBS = ["attempt[$(touch {marker})]", "$(touch {marker})", "a[`touch {marker}`]", "x=1,y[$(touch {marker})0]"]
CODES = [*BOMBS, "-7", "0x1F", "1e9", "08", "256", "99999999999999999999", "", "[1]", "75 75", "\x1b[31m6"]


def bash(text):
    return subprocess.run(["bash", "-c", text], text=True, capture_output=True, check=False, timeout=60)


def hostile_status(place):
    """if the code in status.json is no number, the launcher's exit code is used; bash evaluates none of them"""
    marker = os.path.join(place, "marker")
    for word in CODES:
        word = word.format(marker=marker)
        with open(os.path.join(place, "planted"), "w") as file:
            file.write(json.dumps({"state": "failed", "code": "CODE", "incarnation": "b"}).replace('"CODE"', word))
        text = ONE_START.format(script=SCRIPT, run=place, before="", ranks=f"cp {place}/planted {place}/status.json; exit 3")
        found = bash(text)
        expected = {"08": "again 8", "256": "again 255"}.get(word, "end 3")
        assert found.stdout.strip() == expected and not found.stderr, (word, found.stdout, found.stderr)
        assert not os.path.exists(marker), f"{word} was evaluated"
        os.remove(os.path.join(place, "status.json"))


def hostile_restarts(place):
    """a word of .restarts that is no number is ignored; bash evaluates none, and a link in its place is not followed"""
    marker, kept, victim = (os.path.join(place, name) for name in ("marker", ".restarts", "victim"))
    text = f"set -u; TOKAMAK=false; source {SCRIPT}; run={place}; may_start series && echo started"
    for word in CODES:
        for line in (f"series 0 {word}", f"series {word} 1", f"{word} 0 1"):
            with open(kept, "w") as file:
                file.write(line.format(marker=marker) + "\n")
            found = bash(text)
            assert "started" in found.stdout or "giving up" in found.stdout, (line, found.stdout, found.stderr)
            assert not found.stderr and not os.path.exists(marker), (line, found.stderr)
    with open(victim, "w") as file:
        file.write("precious")
    os.remove(kept)
    os.symlink(victim, kept)
    assert "started" in bash(text).stdout
    with open(victim) as file:
        assert file.read() == "precious", "the link was followed"
    os.remove(kept)
    os.mkfifo(kept)  # would block a reader
    assert "started" in bash(text).stdout


def hostile_directory(place):
    """the real run_until_done.sh, in a directory with hostile names and files: it keeps count there, runs nothing"""
    marker = os.path.join(place, "marker")
    config = os.path.join(place, "config.yaml")
    for name in ("a#b #c;touch marker", '-n "$(touch marker)"', "*"):
        run = os.path.join(place, name)
        os.mkdir(run)
        with open(os.path.join(run, ".restarts"), "w") as file:
            file.write(f"series 0 attempt[$(touch {marker})]\n")
        with open(config, "w") as file:
            file.write("model: {hidden_size: 32, intermediate_size: 64, num_hidden_layers: 1, num_attention_heads: 2, "
                       "vocab_size: 300}\ndata: {sources: [{path: none}], sequence_length: 32}\n"
                       "training: {max_steps: 1, global_batch_tokens: 64}\nrun: {output_dir: " + json.dumps(name) + "}\n")
        found = subprocess.run(
            [os.path.join(SCRIPTS, "run_until_done.sh"), "-n", "1", "--", "train", config], cwd=place, text=True,
            capture_output=True, check=False, timeout=60,
            env=dict(os.environ, TOKAMAK=TOKAMAK, TOKAMAK_JOB="series", OMPI_ALLOW_RUN_AS_ROOT="1",
                     OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1"))
        assert found.returncode in (2, 3), (name, found.returncode, found.stdout, found.stderr)
        with open(os.path.join(run, ".restarts")) as file:
            assert file.read() == "series 0 1\n", (name, found.stdout, found.stderr)
        assert not os.path.exists(marker), f"{name}: a command was run"


def outside_slurm(place):
    """train.sbatch as a plain script says that it is a job's, and ends with 2"""
    found = subprocess.run([os.path.join(SCRIPTS, "slurm", "train.sbatch"), "config.yaml"], cwd=place, text=True,
                           capture_output=True, check=False, timeout=60, env={"PATH": os.environ["PATH"]})
    assert found.returncode == 2 and "start it by sbatch" in found.stderr, (found.returncode, found.stderr)
    assert len(found.stderr.splitlines()) == 1 and not os.listdir(place), found.stderr


def check(test):
    with tempfile.TemporaryDirectory() as place:
        try:
            test(place)
        except AssertionError as error:
            print("FAILED:", test.__doc__, "->", error)
            return 1
    print("ok:", test.__doc__)
    return 0


def main():
    failed = sum(check(test) for test in (hostile_status, hostile_restarts, hostile_directory, outside_slurm))
    for name, (before, ranks, expected) in CASES.items():
        with tempfile.TemporaryDirectory() as run:
            text = ONE_START.format(script=SCRIPT, run=run, before=before, ranks=ranks)
            found = subprocess.run(["bash", "-c", text], text=True, capture_output=True, check=False, timeout=60)
        right = found.stdout.strip() == expected
        failed += not right
        print("ok:" if right else "FAILED:", name, "->", found.stdout.strip(), "" if right else f"not {expected}; {found.stderr}")
    return failed


sys.exit(main())
