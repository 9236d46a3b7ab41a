"""scripts/restarts.sh: what follows the end of all ranks, by what status.json and the launcher say. The ranks are a line of
shell, so that every combination can come."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "restarts.sh")

# One start, as the scripts make it: `RANKS` in place of the launcher, then what they would do.
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
    "a checkpoint failed": ("status_is running 0 a", "exit 4", "end 4"),
    "no status, a config error": ("", "exit 2", "end 2"),
    "no status, nothing wrong": ("", "exit 0", "again 0"),
    "the launcher failed before any rank began": ("status_is stopped 75 a", "exit 1", "again 1"),
    "a defect of the program": ("", "status_is running 0 b; status_is failed 1 b; exit 1", "end 1"),
    "the launcher failed after a rank began": ("", "status_is running 0 b; exit 1", "end 1"),
    "half a status": ("", "echo '{\"state\":\"do' >$run/status.json; exit 0", "again 0"),
}


def main():
    failed = 0
    for name, (before, ranks, expected) in CASES.items():
        with tempfile.TemporaryDirectory() as run:
            text = ONE_START.format(script=SCRIPT, run=run, before=before, ranks=ranks)
            found = subprocess.run(["bash", "-c", text], text=True, capture_output=True, check=False, timeout=60)
        right = found.stdout.strip() == expected
        failed += not right
        print("ok:" if right else "FAILED:", name, "->", found.stdout.strip(), "" if right else f"not {expected}; {found.stderr}")
    return failed


sys.exit(main())
