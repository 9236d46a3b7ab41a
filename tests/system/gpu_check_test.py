"""scripts/gpu_check.sh with stand-ins for the GPU: a driver library that shows one, the program computing on the CPU
and telling figures of its own, sanitizers that find what they are told to. What is right passes, what is wrong fails.
"""
import json
import os
import stat
import subprocess
from pathlib import Path

from harness import TOKAMAK, main

ROOT = Path(__file__).resolve().parents[2]
TEST_BACKEND = os.environ["TEST_BACKEND"]

DRIVER = "int cuInit(unsigned flags) { return (int)flags; } int cuDeviceGetCount(int* n) { *n = 1; return 0; }"

# $PLANT names what is wrong. A tiny model in place of the quickstart's; what the GPU would print of speeds.
PROGRAM = r"""#!/bin/bash
arguments=("$@") RANKS=${OMPI_COMM_WORLD_SIZE-1}
for i in "${!arguments[@]}"; do
  case ${arguments[i]} in
    runtime.backend=cuda) arguments[i]=runtime.backend=cpu cuda=yes ;;
    run.output_dir=*/resumed) resumed=yes run=${arguments[i]#*=} ;;
    run.output_dir=*/ranks-2-4) moved=yes ;;
    runtime.ranks_per_gpu=*) sharers=${arguments[i]#*=} ;;
    runtime.attention=*) attention=${arguments[i]#*=} ;;
    model.num_hidden_layers=*) layers=${arguments[i]#*=} ;;
    --json) json=${arguments[i + 1]} ;;
    --stop-at-step) stop=${arguments[i + 1]} ;;
  esac
done
case $1 in
  train)
    arguments+=(model.hidden_size=32 model.intermediate_size=64 model.num_hidden_layers=1 model.num_attention_heads=2
      data.sequence_length=32 training.global_batch_tokens=512 data.max_epochs=1000 runtime.threads_per_rank=1)
    if [[ $cuda$PLANT == yescurve || $resumed$PLANT == yesresume ]]; then arguments+=(optimizer.lr=4e-3); fi
    case $RANKS$moved$PLANT in 4ranks | 4yesmoved) arguments+=(optimizer.lr=4e-3) ;; esac
    if [[ $cuda$PLANT == yescrash || $RANKS$PLANT == 2lost ]]; then exit 7; fi
    if [[ $RANKS$PLANT == 4hang ]]; then echo $$ >>"$PIDS" && sleep 600; fi
    if [[ -n $sharers && $PLANT != other_mpi && $sharers != "$RANKS" ]]; then exit 2; fi
    "$TOKAMAK" "${arguments[@]}"
    code=$?
    case $resumed$PLANT in
      yesstate) for file in "$run"/checkpoints/step-00000020/*.safetensors; do
        [[ ! -e $file ]] || { truncate -s -1 "$file" && echo >>"$file"; }; done ;;
      yesnumbers) sed -i '/"step":15,/s/"loss\/last":/&1/' "$run/metrics.jsonl" ;;
    esac
    if [[ -n $TOKAMAK_CALLS ]]; then
      [[ $CUDA_INJECTION64_PATH == */libtokamak_call_counter.so ]] || exit 1
      case $PLANT in
        mute) echo "call counter: error: cuptiSubscribe: refused" ;;
        blind) echo '{}' >"$TOKAMAK_CALLS" ;;
        stall) echo "{\"cudaMalloc\": $stop, \"cudaStreamSynchronize\": 9, \"cudaMemcpy\": 2}" >"$TOKAMAK_CALLS" ;;
        *) echo "{\"cudaMalloc\": 9, \"cudaStreamSynchronize\": 9, \"cudaEventSynchronize\": $stop}" >"$TOKAMAK_CALLS" ;;
      esac
    fi
    exit $code ;;
  bench)
    if [[ ${layers-0} -gt 20 ]]; then
      echo "error: the run needs $((layers * 4)).5 GiB on each rank, but 81.0 GiB are available" >&2; exit 5; fi
    if [[ -n $attention ]]; then
      product=6.5e14; [[ $* != *runtime.autotune=true* ]] || product=6.6e14
      rate=600e12; [[ $attention == cudnn ]] || rate=310e12; [[ $PLANT != slow ]] || rate=200e12
      cat >"$json" <<END
{"copy_bytes_per_second": 4e12, "product_flops_per_second": 7e14,
 "attention_shape": {"documents": 1, "length": 8192, "q_heads": 32, "kv_heads": 8, "head_dim": 128}, "operations": {
 "rmsnorm": {"seconds": 1, "bytes": 3.3e12, "flops": 0}, "swiglu": {"seconds": 1, "bytes": 3.1e12, "flops": 0},
 "adamw": {"seconds": 1, "bytes": 3.5e12, "flops": 0}, "cast": {"seconds": 1, "bytes": 1e12, "flops": 0},
 "gemm qkv forward": {"seconds": 1, "bytes": 1, "flops": $product},
 "attention": {"seconds": 1, "bytes": 1, "flops": $rate},
 "attention_backward": {"seconds": 1, "bytes": 1, "flops": $rate}}}
END
    else
      echo '{"tokens_per_second": 1000, "mfu_full": 0.45, "mfu_causal": 0.4, "memory_peak_bytes": 1e10}' >"$json"
    fi ;;
  *) exec "$TOKAMAK" "$@" ;;
esac
"""
TEST_CUDA = r"""#!/bin/bash
if [[ $PLANT == hang ]]; then sleep 600; fi
if [[ $PLANT == operation ]]; then # one case that fails, and an end in the middle of the next
  while [[ $1 != -o ]]; do shift; done
  echo '<TestCase name="a" filename="/x/gemm_test.cc"><OverallResult success="false"/></TestCase>' >"$2"
  echo '<TestCase name="b" filename="/x/rope_test.cc">' >>"$2"
  exit 139
fi
if [[ $PLANT$0 == own_api*_cudnn_backend ]]; then # in this program alone
  while [[ $1 != -o ]]; do shift; done
  echo '<TestCase name="c" filename="/x/attention_test.cc"><OverallResult success="false"/></TestCase>' >"$2"
  exit 1
fi
[[ $1 != '~[cpu]' ]] || set -- 'swiglu*,rope*' "${@:2}" # some of them, for the sake of time
exec "$TEST_BACKEND" "$@"
"""
TEST_NCCL = r"""#!/bin/bash
RANKS=${OMPI_COMM_WORLD_SIZE-1}
case $RANKS$PLANT in
  4hang) echo $$ >>"$PIDS" && sleep 600 ;;
  ?no_nccl) echo "nccl_comm_test skipped: no libnccl.so.2"; exit 77 ;;
  2collective) echo "error: wrong == 0"; exit 1 ;;
esac
echo "nccl_comm_test: $RANKS ranks"
[[ $* == "--use-colour no" ]] || colour=$'\e[0m'
echo "All tests passed$colour (40 assertions in 6 test cases)"
"""
CUDNN_RATE = r"""#!/bin/bash
[[ $* == "1 8192 32 8 128" ]] || exit 1
case $PLANT in
  no_cudnn) echo "skipped: no libcudnn.so.9 on this machine"; exit 77 ;;
  rate_refused) echo "error: cuDNN does not take it: no engine" >&2; exit 5 ;;
  rate_crash) exit 139 ;;
  rate_mute) echo '{"attention": {}}' ; exit ;;
  rate_torn) echo '{"attention": {"tfl' ; exit ;;
esac
echo '{"attention": {"seconds": 1, "tflops": 610}, "attention_backward": {"seconds": 1, "tflops": 615}}'
"""
SANITIZER = r"""#!/bin/bash
found=0; [[ $PLANT != sanitizer || $2 != memcheck ]] || found=2
while [[ $1 != --error-exitcode ]]; do shift; done
shift 2
"$@" || exit
if [[ $found -gt 0 ]]; then echo "========= ERROR SUMMARY: 2 errors"; exit 86; fi
echo "========= ERROR SUMMARY: 0 errors"
"""


RANKS = ("training, 2 ranks against 1", "training, 4 ranks against 1", "resume, from 2 ranks to 4, against 1")
STALLS = "a step's synchronisations and allocations"
# An mpirun that starts one process, as one of another MPI starts processes that know nothing of each other.
OTHER_MPIRUN = """#!/bin/bash
if [[ $1 == --version ]]; then echo "mpirun (Open MPI) 9.9"; exit; fi
exec "${@:6}"
"""
NOT_OPEN_MPI = """#!/bin/bash
echo "HYDRA build details:"
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def path_without(program, folder):
    """The PATH's programs but one."""
    folder.mkdir()
    for entry in (entry for part in os.environ["PATH"].split(":") if os.path.isdir(part) for entry in os.scandir(part)):
        if entry.name != program and not os.path.lexists(folder / entry.name):
            os.symlink(entry.path, folder / entry.name)
    return folder


def check(place, name, *arguments, plant="", gpu=True, mpirun=""):
    """(exit code, {line: record}, what it printed)."""
    folder = Path(place.file(name))
    executable(folder / "build/tokamak", PROGRAM)
    for program in ("test_cuda", "test_cuda_cudnn_backend"):
        executable(folder / f"build/tests/cuda/{program}", TEST_CUDA)
    if plant != "no_rate":
        executable(folder / "build/tests/cuda/cudnn_rate", CUDNN_RATE)
    if plant != "no_test_nccl":
        executable(folder / "build/tests/cuda/test_nccl", TEST_NCCL)
    if plant != "no_counter":
        executable(folder / "build/tests/cuda/libtokamak_call_counter.so", "what the loader takes for no library")
    if plant not in ("no_counter", "no_cupti"):
        (folder / "counter.c").write_text("int InitializeInjection(void) { return 1; }")
        subprocess.run(["cc", "-shared", "-fPIC", folder / "counter.c", "-o",
                        folder / "build/tests/cuda/libtokamak_call_counter.so"], check=True)
    executable(folder / "bin/compute-sanitizer", SANITIZER)
    executable(folder / "bin/nvidia-smi", "#!/bin/bash\nexit 9\n")
    if mpirun:
        executable(folder / "bin/mpirun", mpirun)
    path = path_without("mpirun", folder / "path") if plant == "no_mpirun" else os.environ["PATH"]
    environment = dict(os.environ, PLANT=plant, TOKAMAK=TOKAMAK, TEST_BACKEND=TEST_BACKEND, OMP_NUM_THREADS="1",
                       PIDS=folder / "pids", PATH=f"{folder}/bin:{path}")
    if gpu:
        (folder / "cuda.c").write_text(DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", folder / "cuda.c", "-o", folder / "libcuda.so.1"], check=True)
        environment["LD_LIBRARY_PATH"] = f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    done = subprocess.run([ROOT / "scripts/gpu_check.sh", "--build", folder / "build", "--output", folder / "out",
                           "--data", place.data, "--python", "/nowhere/python3", *arguments], env=environment,
                          text=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = json.loads((folder / "out/gpu_check.json").read_text())["lines"]
    return done.returncode, {line["name"]: line for line in lines}, done.stdout


def results(lines, start=""):
    return {line["result"] for name, line in lines.items() if name.startswith(start)}


def without_gpu(place):
    """without a GPU every line is skipped, and that is no failure"""
    if os.path.exists("/dev/nvidia0"):
        return
    code, lines, output = check(place, "absent", gpu=False)
    assert code == 0 and results(lines) == {"skipped"} and len(lines) > 20, output
    assert "skipped: no GPU" in output and output.rstrip().endswith("skipped"), output


def all_is_well(place):
    """what is right passes, speeds stand against their goals, the 8B shape has the layers that fit"""
    code, lines, output = check(place, "well")
    assert code == 0, output
    for start in ("twin rope", "twin swiglu", "twin attention, native", "twin attention, cuDNN's", "memcheck",
                  "racecheck", "loss curve", "resume", "rmsnorm", "adamw", "gemm qkv"):
        assert results(lines, start) == {"passed"}, (start, output)
    assert lines["twin gemm"]["result"] == "not run", output
    assert lines["loss curve f32, CPU against CUDA"]["values"]["worst"] == 0
    assert lines["swiglu"]["result"] == "below goal", output  # 3.1 of 4 TB/s
    assert lines["cast"]["result"] == "measured", output
    assert lines["attention through cuDNN, of cuDNN alone"]["values"]["share"] == 600 / 610, output
    assert lines["attention_backward through cuDNN, of cuDNN alone"]["values"]["share"] == 600 / 615, output
    for name in ("attention", "attention_backward"):
        assert lines[f"{name} through cuDNN, of cuDNN alone"]["result"] == "passed", output
    assert results(lines, "attention, native") == results(lines, "attention_backward, native") == {"passed"}, output
    assert results(lines, "NCCL, ") == {"passed"} and "6 cases on 1 GPU" in lines["NCCL, 4 ranks"]["measured"], output
    for name in RANKS:
        assert lines[name]["result"] == "passed" and lines[name]["values"]["worst"] <= 1e-5, output
    assert lines[STALLS]["result"] == "passed" and lines[STALLS]["measured"] == "0 in 20 steps", output
    assert lines[STALLS]["values"]["event_waits"] == 20, output
    assert results(lines, "race ") == {"not run"} and "no torch" in output, output
    assert "20 of 32 layers" in lines["training 8B-shaped"]["measured"], output
    assert "mfu_full 45.0%, mfu_causal 40.0%" in lines["training 0.5B"]["measured"], output


def what_is_wrong_fails(place):
    """a failed case, a sanitizer's error, another curve, another state after resuming, a crash: each its own line"""
    curves = {"loss curve f32, CPU against CUDA", "loss curve bf16, CPU against CUDA"}
    operations = {f"twin {name}{how}" for name in ("gemm", "rope") for how in ("", ", native", ", cuDNN's own API")}
    planted = {"operation": ("twins", operations),
               "own_api": ("twins", {"twin attention, cuDNN's own API"}),
               "sanitizer": ("sanitizers", {"memcheck, all operations"}),
               "curve": ("training", curves),
               "resume": ("training", {"resume, bit for bit"}),
               "state": ("training", {"resume, bit for bit"}),
               "numbers": ("training", {"resume, bit for bit"}),
               "crash": ("training", curves | {"resume, bit for bit"}),
               "stall": ("stalls", {STALLS}),
               "collective": ("ranks", {"NCCL, 2 ranks"}),
               "ranks": ("ranks", {RANKS[1]}),
               "moved": ("ranks", {RANKS[2]}),
               "lost": ("ranks", {RANKS[0], RANKS[2]})}
    for plant, (part, wrong) in planted.items():
        code, lines, output = check(place, plant, "--only", part, plant=plant)
        assert code == 1, output
        assert {name for name, line in lines.items() if line["result"] == "FAILED"} == wrong, output


def slow_is_told(place):
    """a speed below its goal is told and fails nothing"""
    code, lines, output = check(place, "slow", "--only", "kernels", plant="slow")
    assert code == 0, output
    for start in ("attention, native", "attention through cuDNN", "attention_backward through cuDNN"):
        assert results(lines, start) == {"below goal"}, output


def cudnn_alone_is_needed(place):
    """without cuDNN's own rate there is no verdict on it but why; a crash fails, and our own kernels have another bar"""
    for plant, verdict, why in (("no_rate", "not run", "no /"), ("no_cudnn", "not run", "no libcudnn"),
                                ("rate_refused", "not run", "no engine"), ("rate_mute", "not run", "no rate"),
                                ("rate_crash", "FAILED", "exit 139"), ("rate_torn", "FAILED", "cudnn_rate: ")):
        code, lines, output = check(place, plant, "--only", "kernels", plant=plant)
        assert code == (verdict == "FAILED"), output
        for name in ("attention", "attention_backward"):
            line = lines[f"{name} through cuDNN, of cuDNN alone"]
            assert line["result"] == verdict and why in line["detail"] and line["measured"] == "600 TFLOP/s", output
            assert lines[f"{name}, native, of cuDNN"]["values"]["share"] == 310 / 600, output


def time_runs_out(place):
    """what does not end in time is not run, and never passed"""
    code, lines, output = check(place, "hang", "--only", "twins", "--seconds", "14", plant="hang")
    assert code == 0 and results(lines) == {"not run"} and "out of time" in output, output


def ranks_need_their_mpi(place):
    """without an mpirun, without NCCL, under another MPI: not run, and why"""
    for plant, mpirun, starts, why in (("no_mpirun", "", [""], "no mpirun on the PATH"),
                                       ("not_open_mpi", NOT_OPEN_MPI, [""], "is not Open MPI's"),
                                       ("other_mpi", OTHER_MPIRUN, [""], "ran on 1 rank(s): this mpirun is not"),
                                       ("no_test_nccl", "", ["NCCL, "], "no /"),
                                       ("no_nccl", "", ["NCCL, "], "no libnccl.so.2")):
        code, lines, output = check(place, plant, "--only", "ranks", plant=plant, mpirun=mpirun)
        assert code == 0, output
        for name, line in lines.items():
            affected = name.startswith(tuple(starts))
            assert line["result"] == ("not run" if affected else "passed"), (name, output)
            assert not affected or why in line["detail"], (name, output)


def ranks_that_hang_are_ended(place):
    """ranks that wait for ever are ended, mpirun and all of them; the lines say so"""
    code, lines, output = check(place, "hang_ranks", "--only", "ranks", "--seconds", "25", plant="hang")
    assert code == 0 and lines["NCCL, 2 ranks"]["result"] == "passed", output
    assert lines["NCCL, 4 ranks"]["detail"].startswith("out of time") and results(lines, "resume") == {"not run"}, output
    pids = Path(place.file("hang_ranks/pids")).read_text().split()
    assert len(pids) >= 4, pids
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")], pids


def counting_needs_cupti(place):
    """without CUPTI, or where it tells of no calls, a step's stalls are not run, and the reason is told"""
    for plant, why in (("no_counter", "no /"), ("no_cupti", "OSError: "), ("mute", "cuptiSubscribe: refused"),
                       ("blind", "no cudaMalloc")):
        code, lines, output = check(place, plant, "--only", "stalls", plant=plant)
        assert code == 0 and list(lines) == [STALLS], output
        assert lines[STALLS]["result"] == "not run" and why in lines[STALLS]["detail"], output


main([without_gpu, all_is_well, what_is_wrong_fails, slow_is_told, cudnn_alone_is_needed, time_runs_out,
      ranks_need_their_mpi, ranks_that_hang_are_ended, counting_needs_cupti])
