"""The real program under the real mpirun computes the same numbers as ranks that are threads. It runs 1, 2 and 4 ranks,
and a run resumed on fewer. tests/train/invariance_test.cc has every combination."""
import json
import shutil

from harness import digest, gathered, generated, main, relative, tokamak


def worst(place, name, reference):
    losses, expected = place.records(name), place.records(reference)
    assert losses and set(losses) <= set(expected), (losses, expected)
    return max(relative(losses[step], expected[step]) for step in losses)


def ranks(place):
    """1, 2 and 4 processes: 30 steps in f32, losses within 1e-5 of each other, the same validation loss"""
    for count in (1, 2, 4):
        place.train(f"ranks{count}", count, "training.max_steps=30")
        losses = place.records(f"ranks{count}")
        assert sorted(losses) == list(range(1, 31)), sorted(losses)
        difference = worst(place, f"ranks{count}", "ranks1")
        print(f"  {count} ranks: largest relative difference from 1 rank {difference:.1e}")
        assert difference < 1e-5, difference
        validation = [place.records(name, "validation/loss")[30] for name in (f"ranks{count}", "ranks1")]
        assert relative(*validation) < 1e-5, validation
    losses = place.records("ranks1")
    assert losses[30] < losses[1] - 0.3, f"nothing was learned: {losses[1]} -> {losses[30]}"


def resume(place):
    """a run of 4 processes stops after step 10 of 20: 4 resume to the same bits, 2 from the same weights and data"""
    steps = ("training.max_steps=20",)
    place.train("straight", 4, *steps)
    place.train("halves", 4, *steps, "--stop-at-step", "10", expect=75)
    shutil.copytree(place.run("halves"), place.run("saved"))
    output = place.train("halves", 4, *steps)
    assert "resumed from" in output and "step 10" in output, output
    assert place.records("halves") == place.records("straight")
    a, b = gathered(place.checkpoint("halves", 20)), gathered(place.checkpoint("straight", 20))
    assert a == b, [key for key in a if a[key] != b[key]]
    path = place.checkpoint("saved", 10)
    before = digest(path)
    place.train("fewer", 2, *steps, f"checkpoint.load={path}")
    assert sorted(place.records("fewer")) == list(range(11, 21))
    assert worst(place, "fewer", "straight") < 1e-5
    assert digest(path) == before


def recompute(place):
    """a run keeps all activations, resumes keeping some, then none: the bits of an uninterrupted run"""
    steps = ("training.max_steps=9",)
    place.train("kept", 2, *steps)
    place.train("less", 2, *steps, "--stop-at-step", "3", expect=75)
    place.train("less", 2, *steps, "activation_checkpoint={mode: selective, kept_bytes: 40K}", "--stop-at-step", "6",
                expect=75)
    output = place.train("less", 2, *steps, "activation_checkpoint.mode=full")
    assert "activation_checkpoint.mode" in output and "step 6" in output, output  # named as changed
    assert place.records("less") == place.records("kept")
    assert gathered(place.checkpoint("less", 9)) == gathered(place.checkpoint("kept", 9))


def sharing(place):
    """4 processes at every stage, in 1, 2 and 4 replicas: the losses of 1; each run resumes from the one before"""
    steps = ("training.max_steps=12",)
    place.train("alone", 1, *steps)
    saved = None
    for number, keys in enumerate((("zero_stage=1",), ("zero_stage=2", "data_parallel_replicate_degree=2"),
                                   ("keep_gathered=1", "reduce=last_microbatch"),
                                   ("data_parallel_replicate_degree=4",),
                                   ("zero_stage=3", "data_parallel_replicate_degree=2"))):
        overrides = [f"parallelism.{key}" for key in keys]
        place.train(f"sharing{number}", 4, *steps, *overrides)
        difference = worst(place, f"sharing{number}", "alone")
        print(f"  {' '.join(keys)}: largest relative difference from 1 rank {difference:.1e}")
        assert difference < 1e-5, difference
        load = [f"checkpoint.load={saved}"] if saved else []
        place.train(f"next{number}", 4, *steps, *overrides, *load, "--stop-at-step", str(2 * number + 2), expect=75)
        assert worst(place, f"next{number}", "alone") < 1e-5
        saved = place.checkpoint(f"next{number}", 2 * number + 2)
    output = place.train("refused", 4, *steps, "parallelism.data_parallel_replicate_degree=3", expect=2)
    assert "data_parallel_replicate_degree is 3, which does not divide the 4 rank(s)" in output, output


def moments(place):
    """Moments in bf16, 1, 2, 3 and 4 processes and all stages: losses within 1e-6 of 1 rank's. A stopped run has the
    bits of an uninterrupted one, also when another stage resumes it. Checkpoints of either dtype resume with the other,
    and say so."""
    steps, bf16 = ("training.max_steps=20",), "optimizer.moments=bf16"
    place.train("wide", 1, *steps)
    place.train("narrow", 1, *steps, bf16)
    difference = worst(place, "narrow", "wide")
    print(f"  bf16 against f32: largest relative difference {difference:.1e}")
    assert 0 < difference < 1e-4, difference  # measured: 6.1e-6
    for number, (count, keys) in enumerate(((2, ()), (3, ()), (4, ("zero_stage=1",)), (4, ("zero_stage=2",)),
                                            (4, ("zero_stage=3", "data_parallel_replicate_degree=2")))):
        place.train(f"split{number}", count, *steps, bf16, *(f"parallelism.{key}" for key in keys))
        difference = worst(place, f"split{number}", "narrow")
        print(f"  {count} processes {' '.join(keys)}: largest relative difference from 1 {difference:.1e}")
        # Sums in another order differ by 1e-7. Other random numbers in rounding to bf16 would differ far more.
        assert difference < 1e-6, difference
    place.train("stopped", 4, *steps, bf16, "parallelism.zero_stage=1", "--stop-at-step", "10", expect=75)
    shutil.copytree(place.run("stopped"), place.run("moved"))
    place.train("stopped", 4, *steps, bf16, "parallelism.zero_stage=1")
    assert gathered(place.checkpoint("stopped", 20)) == gathered(place.checkpoint("split2", 20))
    place.train("moved", 4, *steps, bf16, "parallelism.reduce=last_microbatch")  # sums in the order of stage 1
    assert gathered(place.checkpoint("moved", 20)) == gathered(place.checkpoint("split2", 20))

    saved = place.checkpoint("narrow", 20)
    assert "exp_avg (BF16), exp_avg_sq (BF16)" in tokamak("checkpoint", "inspect", saved)
    tokamak("checkpoint", "verify", saved)
    tokamak("checkpoint", "export", "--to", "hf", saved, place.file("exported"))
    wide, small = (sum(map(len, gathered(place.checkpoint(name, 20)).values())) for name in ("wide", "narrow"))
    assert small * 12 == wide * 8, (small, wide)
    longer = ("training.max_steps=24", "lr_scheduler.decay_type=wsd")
    output = place.train("wide", 2, *longer, bf16)
    assert "optimizer.moments: f32 -> bf16" in output and "rounded to the nearest BF16" in output, output
    output = place.train("narrow", 2, *longer, "optimizer.moments=f32")
    assert "optimizer.moments: bf16 -> f32" in output and "rounded" not in output, output


ORDERS = {"mixture": (), "blocks": ("data.shuffle_block=2",), "packed": ("data.packing=best_fit",),
          "megatron": ("data.order=megatron",)}


def orders(place):
    """The default order of a mixture, blocks, packed rows and Megatron's order: 3 processes stop after step 3 of 6, and
    2 go on. Their losses are those of 1 process, and each order has its own. A plan counts the memory of the data."""
    for part in ("train", "validation"):
        tokamak("data", "pack", f"{place.data}/{part}", "--length", "32")
    given = ("training.max_steps=6", f"data.sources=[{{path: {place.data}/train, weight: 3, max_epochs: 9}}, "
             f"{{path: {place.data}/validation, weight: 1}}]")
    for name, keys in ORDERS.items():
        place.train(f"{name}1", 1, *given, *keys)
        place.train(f"{name}3", 3, *given, *keys, "--stop-at-step", "3", expect=75)
        place.train(f"{name}3", 2, *given, *keys)
        assert sorted(place.records(f"{name}3")) == list(range(1, 7)), place.records(f"{name}3")
        difference = worst(place, f"{name}3", f"{name}1")
        print(f"  {name}: largest relative difference from 1 rank {difference:.1e}")
        assert difference < 1e-5, difference
        plan = json.loads(tokamak("plan", place.config("planned"), *given, *keys, "--json"))
        data, samples = plan["data_memory"], 6 * 24
        assert 2 * (4 << 20) < data["read_ahead"] < 2 * (5 << 20) and data["sources"] > 0, data
        assert (data["order"] > 18 * samples) == (name == "megatron"), data
        assert "host memory of the data on each rank: " in tokamak("plan", place.config("planned"), *given, *keys)
    for name in ORDERS:
        others = [worst(place, f"{name}1", f"{other}1") for other in ORDERS if other != name]
        assert min(others) > 1e-3, (name, others)
    absent = json.loads(tokamak("plan", place.config("planned"), "model.vocab_size=400", "data.validation=[]",
                                "data.sources=[{path: nowhere}]", "--json"))["data_memory"]
    assert list(absent) == ["read_ahead"], absent


AUTO = ("activation_checkpoint.mode=auto", "parallelism.keep_gathered=auto", "training.micro_batch_size=auto")


def choosing(place):
    """The auto keys on 2 processes. The log and metrics.jsonl have the choice, and a plan makes the same one. A run
    with the choice written out has the same bits. A checkpoint of such a run generates. Unknown rates end the start
    with 2."""
    steps = ("training.max_steps=8", "checkpoint.interval=4 steps", "checkpoint.keep_latest=0")
    output = place.train("auto", 2, *steps, *AUTO)
    (line,) = [line for line in output.splitlines() if "chosen: " in line]
    text = line.split("chosen: ")[1].split(";")[0]
    tensors = ("qkv", "attention", "mid", "gate_up", "norm1", "norm2", "swiglu")
    chosen = {key: int(place.records("auto", f"chosen/{key}")[0]) for key in (
        "micro_batch_size", "keep_gathered", *(f"kept_layers/{tensor}" for tensor in tensors))}
    kept = [chosen[f"kept_layers/{tensor}"] for tensor in tensors]
    assert kept == [2] * len(tensors) and chosen["keep_gathered"] > 0, chosen  # memory suffices to keep everything
    assert f"training.micro_batch_size {chosen['micro_batch_size']}, parallelism.keep_gathered {chosen['keep_gathered']}" in text
    planned = tokamak("plan", place.config("auto"), "--ranks", "2", "--explain", *AUTO)
    assert f"chosen       {text}: of" in planned and "keeping gate_up of a layer saves" in planned, (text, planned)
    place.train("written", 2, *steps, f"training.micro_batch_size={chosen['micro_batch_size']}",
                f"parallelism.keep_gathered={chosen['keep_gathered']}",
                "activation_checkpoint.mode=none")
    assert gathered(place.checkpoint("written", 8)) == gathered(place.checkpoint("auto", 8))
    place.train("on", 2, *steps, f"checkpoint.load={place.checkpoint('written', 4)}", *AUTO)
    assert gathered(place.checkpoint("on", 8)) == gathered(place.checkpoint("auto", 8))
    assert len(generated("--checkpoint", place.checkpoint("auto", 8), "--prompt", "a", "--max-tokens", "3")) == 1
    output = place.train("unknown", 2, *steps, *AUTO, "runtime.machine=h10", expect=2)
    assert "the hardware table has no GPU 'h10'" in output and "did you mean h100?" in output, output


main([ranks, resume, recompute, sharing, moments, choosing, orders])
