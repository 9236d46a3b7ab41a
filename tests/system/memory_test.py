"""The memory that a run plans is the memory that it takes."""
import json
import os
import re
import subprocess
import sys

from harness import ENV, TOKAMAK, main, mebibytes, mpirun, tokamak

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "llama-125m.yaml")
SELECTIVE = ("activation_checkpoint.mode=selective", "activation_checkpoint.kept_bytes=150M")
CASES = ((1, ()), (2, ()), (1, SELECTIVE), (1, ("activation_checkpoint.mode=full",)))


def plan_and_peak(place):
    """125M parameters on 1 and 2 ranks, keeping all, some or no activations: planned and measured peak differ by less
    than 5 %, and what is kept is the difference"""
    with open(CONFIG) as file:
        text = file.read().replace("{", "{{").replace("}", "}}")
    found = []
    for number, (ranks, recompute) in enumerate(CASES):
        # The real model, on little data: one step of one micro-batch on each rank, which touches all memory.
        output = place.train(
            f"memory{number}", ranks, f"run.output_dir={place.run(f'memory{number}')}",
            f"data.sources=[{{path: {place.data}/train}}]", "data.validation=[]", "training.validation_interval=0",
            "training.max_tokens=0", "training.max_steps=1", f"training.global_batch_tokens={2048 * ranks}",
            "training.micro_batch_size=2", "checkpoint.interval=none", "lr_scheduler.warmup=none",
            f"runtime.threads_per_rank={2 // ranks}", *recompute, text=text)
        planned, peak, percent = re.search(r"memory: planned (.*), peak (.*) \(([\d.]+)% of the plan\)", output).groups()
        print(f"  {ranks} ranks {' '.join(recompute)}: planned {planned}, peak {peak}: {percent} %")
        assert 95 < float(percent) < 105
        if ranks == 1:
            found.append((mebibytes(planned), mebibytes(peak)))
    for (planned_more, peak_more), (planned_less, peak_less) in zip(found, found[1:]):
        saved, measured = planned_more - planned_less, peak_more - peak_less
        print(f"  less by {saved:.0f} MiB in the plan, by {measured:.0f} MiB at the peak")
        assert saved > 100 and abs(measured - saved) < 40  # the log rounds to 10 MiB


# Models from far smaller than the libraries' memory to some times larger.
SIZES = {"tiny": [], "small": ["model.hidden_size=256", "model.intermediate_size=688", "model.head_dim=64"]}
# MiB: code, heap and buffers of data that the first steps touch (3 to 4 measured), for any model size.
FLOOR = 5.0


def small_models(place):
    """tiny and small models on 1 and 2 ranks, f32 and bf16: the peak is within 5 % or 5 MiB of `tokamak plan`"""
    for name, size in SIZES.items():
        for precision in ("f32", "bf16"):
            for ranks in (1, 2):
                run = f"{name}-{precision}-{ranks}"
                overrides = [*size, f"precision.compute={precision}", "training.max_steps=4", "checkpoint.interval=2"]
                output = place.train(run, ranks, *overrides)
                program = mebibytes(re.search(r"besides ([\d.]+ \w+) of program", output).group(1))
                planned, peak = map(mebibytes, re.search(r"memory: planned (.*), peak (.*) \(", output).groups())
                plan = json.loads(tokamak("plan", place.config(run), "--ranks", str(ranks), "--json", *overrides))
                said = program + plan["memory_bytes"] / 2**20
                print(f"  {run}: planned {planned:.1f} MiB ({said:.1f} by tokamak plan), peak {peak:.1f}")
                assert abs(said - planned) < 0.02 * planned  # within the rounding of the log
                assert abs(peak - planned) < max(0.05 * planned, FLOOR)


# 10M weights: 30 bytes of state for each, shared by the ranks, or whole units of it dominate what libraries take.
MODEL = ["model.hidden_size=384", "model.intermediate_size=1024", "model.num_hidden_layers=6", "model.head_dim=96",
         "model.vocab_size=1024", "model.max_position_embeddings=128", "data.sequence_length=128",
         "training.global_batch_tokens=2048", "training.micro_batch_size=2", "training.max_steps=2",
         "precision.compute=bf16"]
# Runs the rest of its arguments, and writes its peak of resident memory into DIRECTORY/<rank>.
MEASURE = """
import os, resource, sys
code = os.spawnv(os.P_WAIT, sys.argv[2], sys.argv[2:])
with open(os.path.join(sys.argv[1], os.environ["OMPI_COMM_WORLD_RANK"]), "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def peaks_of_ranks(place, name, ranks, overrides):
    """The output of a run, and each rank's peak of resident memory in MiB."""
    directory = place.file(f"{name}-peaks")
    os.mkdir(directory)
    launch = mpirun(ranks, "train", place.config(name), *overrides)
    program = launch.index(TOKAMAK)
    launch[program:program] = [sys.executable, "-c", MEASURE, directory]
    done = subprocess.run(launch, env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    assert done.returncode == 0, done.stdout
    peaks = []
    for rank in range(ranks):
        with open(os.path.join(directory, str(rank))) as file:
            peaks.append(int(file.read()) / 1024)
    return done.stdout, peaks


def stages(place):
    """Stages 1, 2 and 3 on 1, 2 and 4 ranks and in 2 copies of 2: the peak of every rank is the plan, within 5 %. By
    class: tests/train/memory_by_class_test.cc."""
    for ranks, copies in ((1, 1), (2, 1), (4, 1), (4, 2)):
        for stage in (1, 2, 3):
            name = f"stage{stage}-{ranks}-{copies}"
            overrides = [*MODEL, f"parallelism.zero_stage={stage}", f"parallelism.data_parallel_replicate_degree={copies}"]
            output, peaks = peaks_of_ranks(place, name, ranks, overrides)
            program = mebibytes(re.search(r"besides ([\d.]+ \w+) of program", output).group(1))
            plan = json.loads(tokamak("plan", place.config(name), "--ranks", str(ranks), "--json", *overrides))
            planned = program + plan["memory_bytes"] / 2**20
            print(f"  stage {stage}, {ranks // copies} x {copies} ranks: planned {planned:.0f} MiB with {program:.0f} of "
                  f"program, peaks {' '.join(f'{peak:.0f}' for peak in peaks)}")
            for peak in peaks:
                assert abs(peak - planned) < 0.05 * planned, (peak, planned)


main([plan_and_peak, small_models, stages])
