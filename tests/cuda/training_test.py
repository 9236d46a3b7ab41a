"""Training on the CUDA backend against training on the CPU. The program in TOKAMAK is the real one with a GPU, or the
emulated one, with few steps of a small model. Without either, the cases are skipped by name."""
import functools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "system"))
from model_families import ALL_BIASES, FAMILIES, YARN  # noqa: E402
from harness import CONFIG, TOKAMAK, call, gathered, generated, main, mpirun, relative, tokamak  # noqa: E402

EMULATED = "emulated" in os.path.basename(TOKAMAK)
STEPS = 4 if EMULATED else 50
# A step may wait for past events: its outcome is read when the next step is queued, and an upload buffer is reused
# after its last copy is complete. Neither stalls the GPU.
PAST_EVENTS = ("cudaEventSynchronize", "cuEventSynchronize")
# Heads of 64, so that bf16 goes through the tensor cores.
WIDE = CONFIG.replace("head_dim: 12", "head_dim: 64").replace("num_hidden_layers: 3", "num_hidden_layers: 2")

# Less than the 129 KiB that the first of its two layers may keep with micro-batches of two sequences.
KEPT = "60Ki"

# For many steps on the emulator.
SMALL = ["model.num_hidden_layers=1", "data.sequence_length=16", "training.validation_sequences=1"]


class Skipped(Exception):
    pass


def cuda_missing(place):
    """Why CUDA is not available to this program, or None."""
    done = call([TOKAMAK, "train", place.config("probe", WIDE), "runtime.backend=cuda", "training.max_steps=1",
                 "training.global_batch_tokens=64", "training.validation_sequences=1"])
    if done.returncode == 0:
        return None
    assert done.returncode == 5, (done.returncode, done.stdout)
    return next(line for line in done.stdout.splitlines() if "runtime.backend is cuda" in line)


def on_cuda(case):
    @functools.wraps(case)
    def run(place):
        if missing := cuda_missing(place):
            raise Skipped(missing)
        case(place)
    return run


def train(place, name, backend, *overrides, expect=0, text=WIDE, environment=None):
    more = [f"runtime.backend={backend}", f"training.max_steps={STEPS}", "runtime.deterministic=true", *overrides]
    if EMULATED:
        more = [more[0], "training.global_batch_tokens=128", *more[1:]]
    done = call([TOKAMAK, "train", place.config(name, text), *more], environment, timeout=900)
    assert done.returncode == expect, f"{name}: exit {done.returncode}, expected {expect}\n{done.stdout}"
    return done.stdout


def recompute(mode):
    """The overrides of a mode; selective keeps some tensors and recomputes the others."""
    kept = [f"activation_checkpoint.kept_bytes={KEPT}"] if mode == "selective" else []
    return [f"activation_checkpoint.mode={mode}", *kept]


@on_cuda
def curves(place):
    """loss curves of CPU and CUDA from the same weights: f32 within 1e-4, bf16 within 2e-2; the initial bits agree"""
    for compute, bar in (("f32", 1e-4), ("bf16", 2e-2)):
        for backend in ("cpu", "cuda"):
            train(place, f"{compute}-{backend}", backend, f"precision.compute={compute}")
        cpu, cuda = (place.records(f"{compute}-{backend}") for backend in ("cpu", "cuda"))
        assert sorted(cpu) == sorted(cuda) == list(range(1, STEPS + 1)), (cpu, cuda)
        worst = max(relative(cuda[step], cpu[step]) for step in cpu)
        norms = [place.records(f"{compute}-{backend}", "optim/grad_norm") for backend in ("cpu", "cuda")]
        worst_norm = max(relative(norms[1][step], norms[0][step]) for step in norms[0])
        validation = [place.records(f"{compute}-{backend}", "validation/loss")[STEPS] for backend in ("cpu", "cuda")]
        print(f"  {compute}: losses differ by {worst:.1e} at most, gradient norms by {worst_norm:.1e}, validation by "
              f"{relative(*validation):.1e}")
        assert worst < bar and worst_norm < 10 * bar and relative(*validation) < bar
        assert cpu[1] != cpu[STEPS]
    starts = []
    for backend in ("cpu", "cuda"):
        train(place, f"start-{backend}", backend, "optimizer.lr=1e-30", "--stop-at-step", "1", expect=75)
        starts.append({name: data for (kind, name), data in gathered(place.checkpoint(f"start-{backend}", 1)).items()
                       if kind == "master"})
    assert starts[0] == starts[1], "the initial weights differ"


@on_cuda
def resume(place):
    """stopped half-way and resumed on CUDA: the same bits, also of averages in host memory, which one run validates.
    A CPU continues from a checkpoint of CUDA within 1e-4"""
    half = STEPS // 2
    averages = ("averages=[{name: ema, half_life: 2000 tokens, every: 1}, {name: mean, every: 2}]",
                "resilience.verify_state=true")
    for compute in ("f32", "bf16"):
        straight, stopped = f"straight-{compute}", f"stopped-{compute}"
        train(place, straight, "cuda", f"precision.compute={compute}", *averages, "training.validation_interval=1")
        assert place.records(straight, "validation/loss_ema") != place.records(straight, "validation/loss_mean")
        train(place, stopped, "cuda", f"precision.compute={compute}", *averages, "--stop-at-step", str(half), expect=75)
        train(place, stopped, "cuda", f"precision.compute={compute}", *averages)
        assert place.records(stopped) == place.records(straight)
        assert gathered(place.checkpoint(stopped, STEPS)) == gathered(place.checkpoint(straight, STEPS))
    train(place, "moved", "cuda", "precision.compute=f32", "--stop-at-step", str(half), expect=75)
    train(place, "moved", "cpu", "precision.compute=f32")
    moved, straight = place.records("moved"), place.records("straight-f32")
    assert max(relative(moved[step], straight[step]) for step in straight) < 1e-4


@on_cuda
def recomputation(place):
    """activation_checkpoint none, selective and full on CUDA: the same bits, also if batches come early"""
    for mode, order in (("none", "forward"), ("selective", "random"), ("full", "reverse")):
        name = f"recompute-{mode}-{order}"
        train(place, name, "cuda", "precision.compute=bf16", *recompute(mode),
              environment={"TOKAMAK_EMULATOR_ORDER": order})
        assert place.records(name) == place.records("recompute-none-forward"), name
        assert gathered(place.checkpoint(name, STEPS)) == gathered(place.checkpoint("recompute-none-forward", STEPS)), name


CAPS = ("model.attn_logit_softcapping=0.5", "model.final_logit_softcapping=2")
SWITCHES = {
    "biases, normalised heads and scaled angles": ("model.qkv_bias=true", "model.qk_norm=head", YARN),
    "caps, all biases and a norm after the embedding": (*CAPS, *ALL_BIASES, "model.embedding_norm=true"),
    "OLMo 3": (*FAMILIES["olmo3"], "model.rope_local_base_freq=50"),
    "Gemma 3": (*FAMILIES["gemma3"], "model.query_pre_attn_scalar=5"),
}


@on_cuda
def options(place):
    """with each family's switches: CPU and CUDA in f32 within 1e-4; the same bits recomputed"""
    for number, (family, switches) in enumerate(SWITCHES.items()):
        model = (*switches, "training.max_steps=2")
        name = f"options-{number}"
        for backend in ("cpu", "cuda"):
            train(place, f"{name}-{backend}", backend, "precision.compute=f32", *model)
        for key in ("loss/last", "optim/grad_norm"):
            cpu, cuda = (place.records(f"{name}-{backend}", key) for backend in ("cpu", "cuda"))
            worst = max(relative(cuda[step], cpu[step]) for step in cpu)
            print(f"  {family}: {key} differs by {worst:.1e} at most")
            assert len(cpu) == 2 and worst < 1e-4, worst
        for mode in ("none", "selective", "full"):
            train(place, f"{name}-{mode}", "cuda", "precision.compute=bf16", *recompute(mode), *model)
            assert gathered(place.checkpoint(f"{name}-{mode}", 2)) == gathered(place.checkpoint(f"{name}-none", 2))


@on_cuda
def generation(place):
    """greedy continuations of several prompts from a checkpoint are the same texts, also for a single prompt"""
    text = {}
    prompts = ["ab", "de la", "go"]
    every = [word for prompt in prompts for word in ("--prompt", prompt)]
    for backend in ("cpu", "cuda"):
        # The backend is the one that the checkpoint's config names.
        train(place, f"generate-{backend}", backend, "precision.compute=f32", *CAPS)
        checkpoint = ["--checkpoint", place.run(f"generate-{backend}") + "/checkpoints", "--temperature", "0",
                      "--max-tokens", "8", "--ignore-eos"]
        text[backend] = generated(*checkpoint, "--batch", "2", *every)
        assert generated(*checkpoint, "--prompt", prompts[1]) == [text[backend][1]]
    assert text["cpu"] == text["cuda"] and all(one["tokens"] == 8 for one in text["cpu"]), text


@on_cuda
def planning(place):
    """a plan for a GPU counts what its operations need, and leaves out what only a CPU has"""
    plans = {backend: tokamak("plan", place.config("plan", WIDE), f"runtime.backend={backend}", "model.vocab_size=400")
             for backend in ("cpu", "cuda")}
    assert "on its GPU" in plans["cuda"] and "CPU thread(s)" in plans["cpu"], plans
    assert "1.00 GiB reserved for code" in plans["cuda"] and "reserved" not in plans["cpu"], plans
    workspace = {backend: next(line for line in text.splitlines() if line.split()[:1] == ["workspace"])
                 for backend, text in plans.items()}
    assert workspace["cpu"] != workspace["cuda"] and "MiB" in workspace["cuda"], workspace


@on_cuda
def no_stall(place):
    """a training step allocates nothing, synchronises with no stream and copies from and to pinned memory only"""
    counter = os.environ.get("TOKAMAK_CALL_COUNTER")  # call_counter.cc
    if not EMULATED and not counter:
        raise Skipped("this build found no CUPTI, which counts the calls on a GPU")
    for graphs in ("off", "on"):
        counts = {}
        for steps in (3, 7):
            name = f"calls-{graphs}-{steps}"
            path = place.file(name + ".json")
            train(place, name, "cuda", "precision.compute=bf16", *SMALL, f"training.max_steps={steps}",
                  "training.global_batch_tokens=64", f"runtime.cuda_graphs={graphs}", "data.document_masking=false",
                  environment={"TOKAMAK_EMULATOR_CALLS": path} if EMULATED else
                  {"CUDA_INJECTION64_PATH": counter, "TOKAMAK_CALLS": path})
            with open(path) as file:
                counts[steps] = {name: count for name, count in json.load(file).items() if name not in PAST_EVENTS}
        launches = [counts[steps].pop("cudaGraphLaunch", 0) for steps in (3, 7)]
        print(f"  in all of a run, graphs {graphs}: {counts[7]}")
        assert counts[3]["cudaMalloc"] > 0 and counts[3]["cudaStreamSynchronize"] > 0, counts
        assert counts[3] == counts[7], f"steps make calls: {counts}"
        if EMULATED:  # two micro-batches a step, each captured in the second step; the run's last one is measured
            recorded = counts[7].get("cudaGraphInstantiate", 0)
            assert (recorded, launches) == ((2, [3, 11]) if graphs == "on" else (0, [0, 0])), (recorded, launches)


@on_cuda
def graphs(place):
    """cuda_graphs on, off and auto: the same bits, with accumulation, document masking, and resumed; graphs are used,
    and replay in any order that their dependencies allow"""
    def run(name, *overrides, expect=0, **environment):
        """(output, graphs captured, graphs launched); three micro-batches a step."""
        path = place.file(name + ".json")
        said = train(place, name, "cuda", *SMALL, "training.max_steps=6", "training.global_batch_tokens=96",
                     *overrides, expect=expect, environment={"TOKAMAK_EMULATOR_CALLS": path, **environment})
        with open(path) if EMULATED else open(os.devnull) as file:
            calls = json.loads(file.read() or "{}")
        return said, calls.get("cudaGraphInstantiate"), calls.get("cudaGraphLaunch")

    def bits(name, steps=6):
        return place.records(name), gathered(place.checkpoint(name, steps))

    for compute, masking in (("f32", "true"), ("bf16", "false")):
        which = [f"precision.compute={compute}", f"data.document_masking={masking}",
                 f"model.num_hidden_layers={1 if compute == 'f32' else 2}"]
        off, on = f"off-{compute}", f"on-{compute}"
        _, recorded, launched = run(off, *which, "runtime.cuda_graphs=off")
        assert not recorded and not launched, (recorded, launched)
        _, recorded, launched = run(on, *which, "runtime.cuda_graphs=on", TOKAMAK_EMULATOR_ORDER="random")
        print(f"  {compute}, document masking {masking}: {recorded} graphs, launched {launched} times")
        # Two buffers, overwrite or accumulate: the first pass of each runs eagerly. So does the last pass of all, whose
        # activations are measured.
        if EMULATED and masking == "false":
            assert (recorded, launched) == (4, 13), (recorded, launched)
        assert not EMULATED or launched > recorded > 0
        assert bits(on) == bits(off)
    stopped = ["precision.compute=f32", "runtime.cuda_graphs=on"]
    run("halves", *stopped, "--stop-at-step", "3", expect=75)
    run("halves", *stopped, TOKAMAK_EMULATOR_ORDER="reverse")
    assert bits("halves") == bits("off-f32")

    # Enough passes of one kind to be timed both ways.
    long = ["precision.compute=f32", "training.max_steps=11", "training.global_batch_tokens=32",
            "training.micro_batch_size=1", "data.document_masking=false"]
    said, recorded, launched = run("auto", *long)
    assert " as a CUDA graph, " in said and (not EMULATED or launched >= 4), (said, recorded, launched)
    run("auto-off", *long, "runtime.cuda_graphs=off")
    assert bits("auto", 11) == bits("auto-off", 11)
    if EMULATED:
        said, recorded, _ = run("refused", *long, TOKAMAK_EMULATOR_NO_CAPTURE="1")
        assert "micro-batches run without CUDA graphs: " in said and recorded is None, said
        assert bits("refused", 11) == bits("auto-off", 11)
        said, _, _ = run("required", *long, "runtime.cuda_graphs=on", expect=9, TOKAMAK_EMULATOR_NO_CAPTURE="1")
        assert "recording a graph" in said, said
    said = train_on(2, place, "graphs-two", "runtime.cuda_graphs=on", expect=2)
    assert "runtime.cuda_graphs is on, and 2 ranks train" in said, said


def train_on(ranks, place, name, *overrides, expect=0, devices=None, env=None):
    """Runs ranks, which share GPUs if there are too few."""
    more = ["runtime.backend=cuda", f"training.max_steps={STEPS}", "runtime.deterministic=true"]
    if EMULATED:
        more += ["training.global_batch_tokens=128", "runtime.nccl_warm_up=64Ki"]
    more += overrides
    env = dict({"TOKAMAK_EMULATOR_DEVICES": str(devices or ranks)}, **(env or {}))
    if not EMULATED and devices is None:
        env["TOKAMAK_RANKS_PER_GPU"] = str(ranks)
    done = call(mpirun(ranks, "train", place.config(name, WIDE), *more), env, timeout=900)
    assert done.returncode == expect, f"{name}: exit {done.returncode}, expected {expect}\n{done.stdout}"
    return done.stdout


@on_cuda
def ranks(place):
    """1 and 2 CUDA ranks: f32 losses within 1e-5, bf16 within 2e-2; either resumes from the other; repeatable"""
    half = str(STEPS // 2)
    # More layers than buffers, so that the gradient of one waits until another's is reduced.
    deep = ["model.num_hidden_layers=4", "training.micro_batch_size=1"]
    for kind, overrides, bar in (("f32", ["precision.compute=f32"], 1e-5),
                                 ("bf16", ["precision.compute=bf16", "precision.reduce=bf16", *deep], 2e-2)):
        alone, two = f"{kind}-alone", f"{kind}-two"
        train_on(1, place, alone, *overrides)
        said = train_on(2, place, two, *overrides)
        assert "NCCL " in said and "NCCL_LAUNCH_ORDER_IMPLICIT=1" in said, said
        assert not EMULATED or "2 communicator(s), as symmetric windows with 1 of them" in said, said
        one, both = place.records(alone), place.records(two)
        worst = max(relative(both[step], one[step]) for step in one)
        print(f"  {kind}: losses of 1 and 2 ranks differ by {worst:.1e} at most")
        assert sorted(one) == sorted(both) == list(range(1, STEPS + 1)) and worst < bar, (one, both)
        train_on(2, place, two + "-again", *overrides,
                 env={"TOKAMAK_EMULATOR_NCCL_NO_MEMORY": "1", "TOKAMAK_EMULATOR_ORDER": "reverse"})
        assert place.records(two + "-again") == both
    one = place.records("f32-alone")
    for first, second in ((1, 2), (2, 1)):
        moved = f"{first}-to-{second}"
        train_on(first, place, moved, "precision.compute=f32", "--stop-at-step", half, expect=75)
        train_on(second, place, moved, "precision.compute=f32")
        assert max(relative(place.records(moved)[step], one[step]) for step in one) < 1e-5


def lost_rank(place):
    """an error that NCCL reports of a rank ends all ranks within seconds, with that rank's name and exit code 6"""
    said = train_on(3, place, "lost", "training.global_batch_tokens=192", "training.micro_batch_size=1",
                    "training.max_steps=100000", expect=6, env={"TOKAMAK_EMULATOR_NCCL_FAILS": "1"})
    assert "rank 1 on " in said and "NCCL: remote error" in said, said


@on_cuda
def ranks_beyond_gpus(place):
    """more ranks than GPUs: exit 5 with both numbers, before anything is written"""
    said = train_on(3 if EMULATED else 17, place, "beyond", expect=5, devices=2)
    assert "has no GPU: this node shows" in said and "TOKAMAK_RANKS_PER_GPU is 1" in said, said
    assert not os.path.exists(place.run("beyond")), said


def without_gpu(place):
    """no GPU: runtime.backend cuda reports what is missing and exits 5; auto reports that it uses the CPU"""
    if not cuda_missing(place):
        raise Skipped("there is a GPU")
    done = call([TOKAMAK, "train", place.config("asked"), "runtime.backend=cuda"])
    assert done.returncode == 5 and "runtime.backend is cuda: " in done.stdout, (done.returncode, done.stdout)
    assert not os.path.exists(place.run("asked") + "/checkpoints/LOCK"), done.stdout
    done = call([TOKAMAK, "train", place.config("auto"), "runtime.backend=auto", "training.max_steps=1"])
    assert done.returncode == 0 and "backend cpu: " in done.stdout, done.stdout


if __name__ == "__main__":
    try:
        main([curves, resume, recomputation, options, generation, planning, no_stall, graphs, ranks, lost_rank,
              ranks_beyond_gpus, without_gpu])
    except Skipped as why:
        print(f"skipped: {' '.join(sys.argv[1:])}: {why}")
        sys.exit(77)
