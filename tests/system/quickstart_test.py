"""Runs a shortened quickstart as a newcomer does: the two commands of the README in a fresh clone. It builds, trains,
is interrupted, resumes, and does nothing twice."""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEPS = 40
SKIPPED = 77


def git(*arguments, **options):
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE, **options).stdout


def clone(folder):
    """Clones the working tree, committed or not, as far as git tracks the files."""
    git("clone", "-q", str(ROOT), folder)
    if changes := git("-C", str(ROOT), "diff", "--binary", "HEAD"):
        git("-C", folder, "apply", input=changes)


def quickstart(folder, *arguments, expect=0):
    done = subprocess.run(["scripts/quickstart.sh", "--steps", str(STEPS), *arguments], cwd=folder, text=True, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 3 and "the text is not there" in done.stdout:
        print(f"skipped: {done.stdout.splitlines()[-2]}")
        sys.exit(SKIPPED)
    assert done.returncode == expect, f"{arguments}: exit {done.returncode}, expected {expect}\n{done.stdout}"
    return done.stdout


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, f"no {pattern!r} in\n{text}"
    return float(found[1])


def main():
    install = [] if os.environ.get("TOKAMAK_TEST_INSTALLS") == "yes" else ["--no-install"]
    with tempfile.TemporaryDirectory(prefix="tokamak-quickstart-") as folder:
        clone(folder)
        said = quickstart(folder, *install)
        with open(f"{folder}/runs/quickstart/metrics.jsonl") as lines:
            records = [json.loads(line) for line in lines]
        events = [record["event"] for record in records if "event" in record]
        losses = {record["step"]: record["loss/last"] for record in records if "loss/last" in record}
        assert events == ["start", "ready", "stop", "checkpoint", "end",
                          "start", "resume", "ready", "checkpoint", "end"], events
        # mpirun's message for exit code 75 looks like an error, so the script says before that it is not one.
        assert said.index("mpirun reports that as if it were an error") < said.index("Exit code:    75"), said
        # Logged every 10 steps; it is interrupted somewhere after the 20th.
        assert sorted(losses) == [10, 20, 30, 40], losses
        resumed_at = number(r"resumed +at step (\d+), after SIGTERM to one rank", said)
        assert STEPS / 2 <= resumed_at < STEPS, resumed_at
        loss = number(r"validation loss +([\d.]+) nats", said)
        assert loss < math.log(4096) - 1, "it has learned nothing"
        assert abs(math.exp(loss) / number(r"perplexity ([\d.]+)", said) - 1) < 1e-3
        assert re.search(r"tokens/s [\d.]+K?$", said, re.M) and "gradient norm" in said, said
        # The last sample is what the script's `generate` makes of the last checkpoint.
        (sampled,) = [record["samples"] for record in records if "samples" in record]
        assert [one["prompt"] for one in sampled] == ["It is a truth universally acknowledged, that", "In the beginning"]
        assert all(one["text"] for one in sampled) and sampled[0]["prompt"] + sampled[0]["text"] in said, (sampled, said)
        assert "A continuation of" in said and "It is a truth universally acknowledged, that" in said, said

        page = Path(folder, "runs/quickstart/report.html")
        assert f"the report is {page.resolve()}" in said, said
        html = page.read_text(encoding="utf-8")
        for words in ("dygraph", '"loss/avg"', "training.samples.interval", "In the beginning"):
            assert words in html, f"no {words!r} in the report"
        page.unlink()

        again = quickstart(folder, *install)
        assert page.exists(), again
        assert "Building CXX" not in again, again
        for words in ("text.jsonl is up to date", "tokenizer.model is up to date",
                      "data is up to date", f"training is finished ({STEPS} steps)"):
            assert words in again, f"no {words!r} in\n{again}"
        assert f"validation loss  {loss:.3f} nats" in again, again

        with open(f"{folder}/other.jsonl", "w") as other:
            other.writelines(json.dumps({"text": f"another text {i}"}) + "\n" for i in range(9))
        refused = quickstart(folder, *install, "--text", "other.jsonl", expect=2)
        assert "holds a training on other text" in refused and "--fresh" in refused, refused
        quickstart(folder, *install, "--fresh", "--text", "other.jsonl", expect=3)  # too small for a vocabulary
        assert f"training is finished ({STEPS} steps)" in quickstart(folder, *install)
        print(f"ok: trained, interrupted, resumed at step {resumed_at:.0f}: validation loss {loss}")
    for arguments, words in ((["--ranks", "none"], "--ranks needs a number"), (["--nonsense"], "unknown argument"),
                             (["--text", "/nowhere"], "cannot read --text")):
        done = subprocess.run([ROOT / "scripts/quickstart.sh", *arguments], text=True, check=False, capture_output=True)
        assert done.returncode in (2, 3) and words in done.stderr, (arguments, done)


if __name__ == "__main__":
    main()
