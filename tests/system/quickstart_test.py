#!/usr/bin/env python3
"""The scripts of a first run, without the program: scripts/quickstart.sh with stand-ins for build/tokamak, cmake and
mpirun (what it starts, when it interrupts, what it repeats), the text it makes, the plot it draws."""
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Writes a line of metrics every 50 ms; SIGTERM saves; starts where it was saved. $FAIL_AT ends it like a crash.
TOKAMAK = r"""#!/bin/bash
echo "$*" >>calls
run=runs/quickstart
case "$1 $2" in
  "tokenizer train") shift 2; while [[ $1 != --output ]]; do shift; done; echo model >"$2" ;;
  "data tokenize") mkdir -p $run/data/{train,validation}; touch $run/data/{train,validation}/manifest.json ;;
  "train configs/quickstart.yaml")
    if [[ $3 == --print-config ]]; then printf 'training:\n  max_steps: 40  # steps\n'; exit; fi
    step=0
    [[ ! -f $run/checkpoints/step ]] || step=$(<$run/checkpoints/step)
    save() {
      mkdir -p $run/checkpoints; echo $step >$run/checkpoints/step
      [[ $RANK != 0 ]] || echo '{"event":"checkpoint","step":'$step',"detail":"x"}' >>$run/metrics.jsonl
    }
    trap 'touch stop' TERM
    while [[ $step -lt 40 ]]; do
      if [[ -e stop ]]; then save; sleep 0.3; rm -f stop; exit 75; fi
      [[ $step != "${FAIL_AT-}" ]] || exit 6
      step=$((step + 1)); sleep 0.05
      [[ $RANK != 0 ]] || echo '{"step":'$step',"loss/avg":'$((9 - step / 8))'.5,"throughput/tokens_per_sec":100.0}' \
        >>$run/metrics.jsonl
    done
    [[ $RANK != 0 ]] || echo '{"step":40,"validation/loss":4.25}' >>$run/metrics.jsonl
    save ;;
  generate*) echo "single man in possession" ;;
  *) exit 2 ;;
esac
"""
MPIRUN = r"""#!/bin/bash
echo "mpirun $*" >>calls
ranks=$2
while [[ $1 != build/tokamak ]]; do shift; done
for ((r = 0; r < ranks; ++r)); do RANK=$r "$@" & pids+=($!); done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit $code
"""


def rdata(novels):
    """What R's lazyLoadDB reads: a length and a zlib stream for each vector of lines."""
    out = b""
    for lines in novels:
        data = b"X\n" + struct.pack(">IIII", 3, 0x40201, 0x30500, 5) + b"UTF-8" + struct.pack(">II", 0x10, len(lines))
        for line in lines:
            flags, raw = (0x40009, line.encode("ascii")) if line.isascii() else (0x4009, line.encode("latin-1"))
            data += struct.pack(">II", flags, len(raw)) + raw
        out += struct.pack(">I", len(data)) + zlib.compress(data)
    return out


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        for name, text in {"build/tokamak": TOKAMAK, "bin/mpirun": MPIRUN, "bin/cmake": "#!/bin/bash\n"}.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        (self.root / "text.txt").write_text("Once upon a time.\n")
        self.environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}

    def start(self, *arguments, **environment):
        command = ["scripts/quickstart.sh", "--no-install", "--text", "text.txt", *arguments]
        return subprocess.Popen(command, cwd=self.root, env={**self.environment, **environment}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def quickstart(self, *arguments, **environment):
        process = self.start(*arguments, **environment)
        output, _ = process.communicate(timeout=60)
        calls = (self.root / "calls").read_text().splitlines() if (self.root / "calls").exists() else []
        (self.root / "calls").unlink(missing_ok=True)
        return process.returncode, output, calls

    def test_first_run_is_interrupted_half_way_and_resumes(self):
        code, output, calls = self.quickstart()
        self.assertEqual(code, 0, output)
        self.assertEqual(calls[0], "tokenizer train --input text.txt --vocab-size 4096"
                                   " --output runs/quickstart/tokenizer.model")
        self.assertEqual(calls[1], "data tokenize --input text.txt --tokenizer runs/quickstart/tokenizer.model"
                                   " --output runs/quickstart/data --validation 2%"
                                   " --max-document-bytes 16384")
        starts = [call for call in calls if call.startswith("mpirun -n 2 ")]
        self.assertEqual(len(starts), 2, calls)
        metrics = (self.root / "runs/quickstart/metrics.jsonl").read_text()
        saved = [json.loads(line)["step"] for line in metrics.splitlines() if "checkpoint" in line]
        self.assertGreaterEqual(saved[0], 20)
        self.assertLess(saved[0], 40)
        self.assertEqual(saved[1:], [40])
        for words in ("perplexity 70.1", "4.07 nats below ln(4096)", "single man in possession", "100 tokens/s",
                      "runs/quickstart/checkpoints", "| resumed"):
            self.assertIn(words, output)

    def test_second_run_repeats_nothing(self):
        self.quickstart()
        code, output, calls = self.quickstart()
        self.assertEqual(code, 0, output)
        self.assertEqual([call.split()[0] for call in calls], ["train", "generate"])
        self.assertIn("training is finished (40 steps)", output)
        self.assertIn("perplexity 70.1", output)

    def test_data_only_stops_at_the_shards_of_the_program_named(self):
        (self.root / "build" / "tokamak").rename(self.root / "built-elsewhere")
        code, output, calls = self.quickstart("--data-only", "--program", "./built-elsewhere")
        self.assertEqual(code, 0, output)
        self.assertEqual([call.split()[0] for call in calls], ["tokenizer", "data"])
        self.assertNotIn("== build", output)

    def test_fresh_trains_anew_on_the_same_tokens(self):
        self.quickstart()
        code, output, calls = self.quickstart("--fresh", "--ranks", "3")
        self.assertEqual(code, 0, output)
        self.assertEqual(sum(call.startswith("mpirun -n 3 ") for call in calls), 2)
        self.assertFalse([call for call in calls if call.startswith(("tokenizer", "data"))])

    def test_another_text_does_not_touch_a_training(self):
        self.quickstart()
        (self.root / "text.txt").write_text("Another time.\n")
        code, output, calls = self.quickstart()
        self.assertEqual(code, 2, output)
        self.assertIn("--fresh", output)
        self.assertEqual(calls, [])
        self.assertTrue((self.root / "runs/quickstart/checkpoints").exists())
        code, output, calls = self.quickstart("--fresh")
        self.assertEqual(code, 0, output)
        self.assertEqual(calls[0].split()[0], "tokenizer")

    def test_interrupting_the_script_saves_and_the_next_run_goes_on(self):
        process = self.start()
        metrics = self.root / "runs/quickstart/metrics.jsonl"
        while process.poll() is None and not metrics.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, output)
        self.assertIn('"event":"checkpoint"', metrics.read_text())
        code, output, _ = self.quickstart()
        self.assertEqual(code, 0, output)
        self.assertEqual(metrics.read_text().count('"step":1,'), 1)

    def test_a_failed_training_is_a_failed_script(self):
        for at in ("3", "30"):
            with self.subTest(at=at):
                shutil.rmtree(self.root / "runs", ignore_errors=True)
                code, output, _ = self.quickstart(FAIL_AT=at)
                self.assertEqual(code, 6, output)
                self.assertIn("error: training ended with exit code 6", output)

    def test_bad_arguments(self):
        for arguments in (["--ranks", "0"], ["--ranks", "two"], ["--nonsense"]):
            code, output, calls = self.quickstart(*arguments)
            self.assertEqual((code, calls), (2, []), output)
            self.assertIn("error:", output)
        code, output, _ = self.quickstart("--text", "nowhere.txt")
        self.assertEqual(code, 3)
        self.assertIn("nowhere.txt", output)


class Text(unittest.TestCase):
    def documents(self, data, verses="Ge1:1 In the beginning.\nGe1:2 And.\n1Sam2:1 And Hannah.\n"):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return subprocess.run([ROOT / "scripts/quickstart_text.pl", file.name], input=verses, text=True,
                                  capture_output=True, check=False)

    def test_chapters_become_documents(self):
        emma = ["EMMA", "", "By Jane Austen", "VOLUME I", "CHAPTER I", "", 'Said "she"', "and _left_ \\.", "", "Then.",
                "", "VOLUME II", "CHAPTER I", "", "Cost £5.", "FINIS"]
        done = self.documents(rdata([emma, ["PERSUASION", "Chapter 1", "Sir Walter."]]))
        self.assertEqual(done.stderr, "")
        self.assertEqual([json.loads(line) for line in done.stdout.splitlines()], [
            {"id": "emma/1", "text": 'Said "she" and left \\.\nThen.'},
            {"id": "emma/2", "text": "Cost £5."},
            {"id": "persuasion/1", "text": "Sir Walter."},
            {"id": "bible/Ge1", "text": "In the beginning.\nAnd."},
            {"id": "bible/1Sam2", "text": "And Hannah."},
        ])

    def test_a_damaged_file_is_an_error(self):
        good = rdata([["EMMA", "CHAPTER I", "Text."]])
        for data in (good[:-5], good[:20] + b"\0" + good[21:], good[:3] + b"\1" + good[4:]):
            done = self.documents(data)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotEqual(done.stderr, "")


class Plot(unittest.TestCase):
    def plot(self, records, *settings):
        text = "".join(json.dumps(record) + "\n" for record in records)
        command = ["awk", "-v", "width=11", "-v", "height=3", *settings, "-f", ROOT / "scripts/plot_loss.awk"]
        return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout

    def test_the_curve(self):
        records = [{"step": 0, "loss/avg": 9.0}, {"step": 5, "loss/avg": 8.0}, {"event": "resume", "step": 5},
                   {"step": 5, "loss/avg": 7.0}, {"step": 10, "loss/avg": 5.0}, {"step": 10, "validation/loss": 7},
                   {"step": 10, "loss/avg": None}]
        self.assertEqual(self.plot(records, "-v", "resumed_at=5").splitlines(), [
            "  9.000 |*    |",
            "  7.000 |     *    o",
            "  5.000 |     |    *",
            "        +-----------",
            "         0        10",
            "         loss in nats over steps: * training, o validation, | resumed"])

    def test_nothing_to_plot(self):
        self.assertEqual(self.plot([{"event": "start", "step": 0}]), "no losses to plot\n")


if __name__ == "__main__":
    unittest.main()
