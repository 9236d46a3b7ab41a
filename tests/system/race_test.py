"""scripts/bench/race.py with stand-ins for the program and for an interpreter that has torch, which tell figures of
their own: the order of the runs, the choice of PyTorch's options, the arithmetic, the page, what is missing."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKAMAK = os.environ["TOKAMAK"]

# The first run, before the rounds, is of 1 step. A step: 0.4 s of products at 200 of 250 GFLOP/s, AdamW of 1e9
# parameters, 30 bytes each, at 100 GB/s, and so on. 8192 tokens of which 4 x 1024 a micro-batch.
PROGRAM = r"""#!/bin/bash
echo "tokamak $*" >>"$RACE_LOG"
case $1 in
  --version) echo "tokamak 0.0"; echo "commit 0" ; exit ;;
  train) exec "$TOKAMAK" "$@" ;;
esac
while [[ $# -gt 0 ]]; do [[ $1 != --json ]] || json=$2; [[ $1 != --ops ]] || ops=yes; shift; done
[[ $PLANT != program ]] || { echo "error: no such thing" >&2; exit 7; }
if [[ -n $ops ]]; then
  echo '{"copy_bytes_per_second": 1e11, "operations": {"adamw": {"bytes": 1}, "rmsnorm": {"bytes": 2e9}}}' >"$json"
  exit
fi
rates=(1 1200 1500 1300)
rate=${rates[$(grep -c 'tokamak bench' "$RACE_LOG") - 1]}
cat >"$json" <<END
{"device": "CPU", "parameters": 1e9, "layers": 2, "sequence_length": 1024, "tokens_per_step": 8192,
 "tokens_per_second": $rate, "gemm_flops_per_second": 2.5e11, "peak_flops_per_second": 5e11, "mfu_causal": 0.3,
 "mfu_full": 0.4, "memory_peak_bytes": 1073741824, "operations": {
 "adamw": {"calls": 2, "seconds": 0.45, "flops": 0}, "fill": {"calls": 1, "seconds": 0.01, "flops": 0},
 "gemm": {"calls": 9, "seconds": 0.5, "flops": 1e11}, "rmsnorm": {"calls": 3, "seconds": 0.04, "flops": 0}}}
END
"""
# Chunks are faster, autocast fails, a micro-batch of 4 sequences does not fit.
PYTHON = r"""#!/bin/bash
[[ $1 != -c ]] || exit "${NO_TORCH-0}"
echo "torch $* $MALLOC_MMAP_MAX_ $OMP_NUM_THREADS" >>"$RACE_LOG"
rate=1000
tokens=8192
[[ $PLANT != torch ]] || { echo "RuntimeError: never" >&2; exit 1; }
[[ $PLANT != tokens ]] || tokens=4096
case "$*" in *"--micro-batch 4 "*) exit 3 ;; esac
case "$*" in *"--weights autocast"*) echo "RuntimeError: not so" >&2; exit 1 ;; esac
[[ -n $MALLOC_MMAP_MAX_ ]] || rate=$((rate - 200))
case "$*" in *"--head chunked"*) rate=$((rate + 200)) ;; esac
case "$*" in *"--compile none"*) rate=$((rate - 300)) ;; esac
echo "chatter"
echo '{"tokens_per_second": '$rate', "tokens_per_step": '$tokens', "micro_batch": 2, "memory_peak_bytes": 2147483648,
 "versions": {"torch": "9.9", "cuda": null}}' | tr '\n' ' '
"""


def race(folder, *arguments, **environment):
    """(exit code, the JSON or None, what it printed, the runs in their order)."""
    for name, text in (("tokamak", PROGRAM), ("python", PYTHON)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    log, stem = folder / "log", folder / "out" / "result"
    log.write_text("")
    for path in (folder / "out").glob("*"):
        path.unlink()
    done = subprocess.run([
        sys.executable, ROOT / "scripts/bench/race.py", ROOT / "configs/llama-125m.yaml", "training.micro_batch_size=4",
        "--device", "cpu", "--threads", "2", "--python", folder / "python", "--tokamak", folder / "tokamak",
        "--output", stem, *arguments], env=dict(os.environ, RACE_LOG=str(log), **environment), text=True, timeout=120,
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    path = Path(f"{stem}.json")
    return done.returncode, json.loads(path.read_text()) if path.exists() else None, done.stdout, \
        [line for line in log.read_text().splitlines() if line.startswith(("tokamak bench", "torch"))]


def near(value, expected):
    return abs(value - expected) < 1e-9 * abs(expected)


def a_race(folder):
    """ours and PyTorch's in turn, PyTorch with the options that were fastest; medians of ratios against the bars"""
    code, result, output, runs = race(folder, "--rounds", "3", "--bar", "1.08", "--gemm-bar", "0.65")
    assert code == 0, output
    assert [run.split()[0] for run in runs[-7:]] == ["tokamak", "torch"] * 3 + ["tokamak"], runs
    for run in runs[-6:-1:2]:
        assert "--head chunked" in run and "--weights bf16" in run and "--compile whole" in run, run
        assert "--micro-batch 2 --micro-batches 4" in run and run.endswith(" 0 2"), run
    assert sum("--micro-batch 4 " in run for run in runs) == 1, runs  # that it does not fit is learnt once
    assert all("runtime.threads_per_rank=2" in run and "runtime.backend=cpu" in run for run in runs), runs
    assert [round(r["ratio"], 6) for r in result["rounds"]] == [1.0, 1.25, round(1300 / 1200, 6)], output
    assert near(result["ratio"], 1300 / 1200) and result["verdict"] == "reached", output
    assert result["tokens_per_second"] == {"tokamak": 1300, "torch": 1200}, output
    assert near(result["gemm_share_causal"], 0.6) and result["gemm_verdict"] == "MISSED", output
    assert near(result["gemm_share_full"], 0.8), output
    tried = {entry["change"]: entry for entry in result["tried"]}
    assert tried["head chunked"]["tokens_per_second"] == 1200 and "not so" in tried["weights autocast"]["failed"], tried
    assert "Ratio **1.08** (1.00 to 1.25); the bar is 1.08: **reached**" in output, output
    assert "Not settled.** The rounds lie on both sides of the bar." in output, output
    assert "**60.0%**" in output and "the bar is 0.65: **MISSED**" in output, output
    page = (folder / "out/result.md").read_text()
    assert page in output and str(folder) not in page and str(ROOT) not in page, page  # it names no places


def where_it_goes(folder):
    """each operation beside its floor: FLOPs at the GEMM rate, bytes at a copy's, AdamW over the whole state"""
    _, result, output, _ = race(folder, "--rounds", "1", "--torch", "")
    rows = {row["name"]: row for row in result["where"]}
    assert [row["name"] for row in result["where"]] == ["gemm", "adamw", "rmsnorm", "fill"], output
    assert near(rows["gemm"]["floor_seconds"], 0.4) and near(rows["adamw"]["floor_seconds"], 0.3), rows
    assert near(rows["rmsnorm"]["floor_seconds"], 0.06) and rows["fill"]["floor_seconds"] is None, rows
    assert near(rows["gemm"]["share"], 0.5), rows
    assert "| gemm | 9 | 500.0 | 50.0% | 400.0 | 1.25 |" in output, output
    assert "| fill | 1 | 10.0 | 1.0% | - | - |" in output, output
    assert result["tried"] == [] and "nothing else was tried" in output, output


def out_of_time(folder):
    """options that there is no time to try are named as not tried, and the page takes nothing for settled"""
    _, result, output, runs = race(folder, "--rounds", "1", "--tuning-seconds", "0")
    assert len(result["tried"]) == 5 and output.count("not tried: out of time") == 4, output
    assert "--head whole" in runs[-2] and "Not every option of PyTorch could be tried." in output, output


def report_of_the_race():
    sys.path.insert(0, str(ROOT / "scripts/bench"))
    import report
    del sys.modules["report"]  # the GPU check has one of its own
    sys.path.remove(str(ROOT / "scripts/bench"))
    return report


def verdicts(_):
    """the median is held against the bar, which is reached where it is equalled; no bar, no verdict"""
    report = report_of_the_race()
    def round_of(ours, theirs, causal):
        step = {"tokens_per_second": ours, "gemm_flops_per_second": 100, "peak_flops_per_second": 200,
                "mfu_causal": causal, "mfu_full": 0.4, "operations": {}}
        return {"tokamak": step, "torch": {"tokens_per_second": theirs}, "ratio": ours / theirs}
    rounds = [round_of(10, 10, 0.2), round_of(30, 20, 0.3), round_of(40, 20, 0.5), round_of(10, 8, 0.1)]
    for bar, gemm_bar, expected in ((1.375, 0.5, ("reached", "reached")), (1.376, 0.5, ("MISSED", "reached")),
                                    (1.3, 0.501, ("reached", "MISSED")), (None, None, (None, None))):
        found = report.summary(rounds, {}, bar, gemm_bar)
        assert near(found["ratio"], 1.375) and near(found["gemm_share_causal"], 0.5), found
        assert found["ratio_spread"] == [1, 2] and (found["verdict"], found["gemm_verdict"]) == expected, found
        assert found["tokens_per_second"] == {"tokamak": 20, "torch": 15}, found


def doubts(_):
    """a page says that others had the machine, and doubts nothing where all was well"""
    report = report_of_the_race()
    for others, ratio, doubtful in ((0.0, 1.4, False), (0.1, 1.3, False), (0.2, 1.4, True), (0.0, 1.29, True)):
        quiet, measured = {"others": 0.0}, {"others": others}
        said = report.doubts({"rounds": [{"tokamak": quiet, "torch": measured}], "ratio_spread": [ratio, 1.5],
                              "bar": 1.3, "tried": [{"change": "a", "tokens_per_second": 1}]})
        assert bool(said) == doubtful and ("others had up to 20%" in said) == (others == 0.2), said


def no_torch(folder):
    """without torch the race is skipped, and says so; so without an interpreter"""
    for arguments, environment in (([], {"NO_TORCH": "1"}), (["--python", "/nowhere/python"], {})):
        code, result, output, runs = race(folder, *arguments, **environment)
        assert code == 77 and result is None and not runs and "skipped" in output and "no torch" in output, output


def a_program_fails(folder):
    """a program that fails ends the race with its message, and leaves no page"""
    code, result, output, _ = race(folder, PLANT="program")
    assert code == 1 and result is None and "exit 7: error: no such thing" in output, output


def pytorch_fails(folder):
    """that PyTorch fails with every option is told apart from a failure of ours"""
    code, result, output, _ = race(folder, "--torch", "weights=autocast")
    assert code == 3 and result is None and "torch_baseline.py: exit 1: RuntimeError: not so" in output, output
    code, result, output, runs = race(folder, PLANT="torch")
    assert code == 3 and result is None and "no set of options works: torch_baseline.py: exit 1" in output, output
    assert len(runs) == 6, runs  # each set of options was tried once


def another_batch(folder):
    """steps of different numbers of tokens are not compared"""
    code, result, output, _ = race(folder, "--torch", "", PLANT="tokens")
    assert code == 3 and result is None and "it took 4096 tokens a step" in output, output


class Check:
    """A place for scripts/gpu_check/peer.py, in which the race ends as told; and the report of its lines."""
    bundle, tokamak, configs = False, "/nowhere/tokamak", ROOT / "configs"

    def __init__(self, folder, code, ratio, left=1000):
        self.output, self.code, self.ratio, self.seconds, self.lines = folder, code, ratio, left, {}

    def left(self):
        return self.seconds

    def run(self, _, command, __, base):
        assert "cuda" in command and base["PATH"] == os.environ["PATH"], command
        if self.code == 0:
            stem = str(command[command.index("--output") + 1])
            Path(f"{stem}.json").write_text(json.dumps({
                "ratio": self.ratio, "ratio_spread": [1, 2], "tokens_per_second": {"tokamak": 2, "torch": 1},
                "gemm_share_causal": 0.6, "torch_options": {}}))
        return self.code, "race: error: why\n"

    def add(self, name, verdict, *_, **values):
        self.lines[name] = verdict, values.get("detail", "")

    def against(self, name, good, *_, **__):
        self.lines[name] = "passed" if good else "FAILED", ""


def in_the_gpu_check(folder):
    """the GPU check fails where PyTorch is too near, and says what was not run and why"""
    sys.path.insert(0, str(ROOT / "scripts/gpu_check"))
    import peer
    for code, ratio, left, expected in (
            (0, 1.2, 900, ("passed", "")), (0, 1.15, 900, ("passed", "")), (0, 1.149, 900, ("FAILED", "")),
            (77, 0, 900, ("not run", "no torch")), (1, 0, 900, ("FAILED", "exit 1: race: error: why")),
            (3, 0, 900, ("not run", "exit 3: race: error: why")),
            (None, 0, 900, ("not run", "out of time")),
            (0, 2, 40, ("not run", "40 s are left; --only race --seconds 1700"))):
        check = Check(folder, code, ratio, left)
        peer.race(check, check, "python3")
        assert list(check.lines) == peer.names() and set(check.lines.values()) == {expected}, (check.lines, expected)


def the_config(_):
    """the baseline reads the config as the program prints it: defaults, units and overrides"""
    sys.path.insert(0, str(ROOT / "scripts/bench"))
    from printed_config import read_config
    config = read_config(TOKAMAK, ROOT / "configs/llama-0.5b.yaml", ["optimizer.lr=3e-4", "data.sequence_length=1Ki"])
    assert config["model"]["num_key_value_heads"] == 4 and config["model"]["tie_word_embeddings"] is False, config
    assert config["data"]["sequence_length"] == 1024 and config["precision"]["compute"] == "bf16", config
    assert config["optimizer"]["lr"] == 3e-4 and config["optimizer"]["betas"] == [0.9, 0.95], config
    assert config["training"]["max_grad_norm"] == 1 and config["model"]["rms_norm_eps"] == 1e-5, config


for test in (a_race, where_it_goes, out_of_time, verdicts, doubts, no_torch, a_program_fails, pytorch_fails,
             another_batch, in_the_gpu_check, the_config):
    with tempfile.TemporaryDirectory(prefix="tokamak-race-") as place:
        test(Path(place))
    print("ok:", test.__doc__, flush=True)
