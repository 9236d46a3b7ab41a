"""A run's numbers do not depend on how it is cut: ranks, micro-batches, recomputation, interruptions."""
import shutil
import struct

from harness import digest, gathered, main, relative


def ranks(place):
    """1, 2, 3 and 4 ranks: 50 steps in f32, losses within 1e-5 of each other, the same validation loss"""
    reference = None
    for count in (1, 2, 3, 4):
        place.train(f"ranks{count}", count)
        losses = place.records(f"ranks{count}")
        assert sorted(losses) == list(range(1, 51)), sorted(losses)
        validation = place.records(f"ranks{count}", "validation/loss")[50]
        if reference is None:
            reference, reference_validation = losses, validation
            assert losses[50] < losses[1] - 0.5, f"nothing was learned: {losses[1]} -> {losses[50]}"
        worst = max(relative(losses[step], reference[step]) for step in losses)
        print(f"  {count} ranks: largest relative difference from 1 rank {worst:.1e}")
        assert worst < 1e-5, worst
        assert relative(validation, reference_validation) < 1e-5, (validation, reference_validation)


def tied(place):
    """the same with the head tied to the embedding, which then has two gradients to add: 1 and 3 ranks"""
    for count in (1, 3):
        place.train(f"tied{count}", count, "model.tie_word_embeddings=true")
    one, three = place.records("tied1"), place.records("tied3")
    worst = max(relative(three[step], one[step]) for step in one)
    print(f"  largest relative difference {worst:.1e}")
    assert worst < 1e-5, worst
    assert one[50] < one[1] - 0.5


def initial_weights(place):
    """the initial weights are the same bits on 1, 2, 3 and 4 ranks"""
    reference = None
    for count in (1, 2, 3, 4):
        # A learning rate that moves no weight by a rounding error.
        place.train(f"initial{count}", count, "optimizer.lr=1e-30", "--stop-at-step", "1", expect=75)
        weights = {name: data for (kind, name), data in gathered(place.checkpoint(f"initial{count}", 1)).items()
                   if kind == "master"}
        assert len(weights) == 3 * 9 + 3, len(weights)
        reference = reference or weights
        assert weights == reference, f"{count} ranks start from other weights"


def accumulation(place):
    """a micro-batch of 8 and 8 micro-batches of 1: f32 losses within 1e-5"""
    place.train("whole", 1, "training.global_batch_tokens=256", "training.micro_batch_size=8")
    place.train("parts", 1, "training.global_batch_tokens=256", "training.micro_batch_size=1")
    place.train("parts2", 2, "training.global_batch_tokens=256", "training.micro_batch_size=1")
    whole = place.records("whole")
    for name in ("parts", "parts2"):
        parts = place.records(name)
        worst = max(relative(parts[step], whole[step]) for step in whole)
        print(f"  {name}: largest relative difference {worst:.1e}")
        assert worst < 1e-5, worst


def recomputation(place):
    """activation_checkpoint none and full: the same bits, in f32 and in bf16"""
    for compute in ("f32", "bf16"):
        for mode in ("none", "full"):
            place.train(f"recompute-{compute}-{mode}", 2, f"precision.compute={compute}",
                        f"activation_checkpoint.mode={mode}", "training.max_steps=10")
        none, full = (f"recompute-{compute}-{mode}" for mode in ("none", "full"))
        assert place.records(none) == place.records(full)
        assert gathered(place.checkpoint(none, 10)) == gathered(place.checkpoint(full, 10))


def options(place):
    """with biases, normalised heads and scaled angles: recomputed or not, the same bits; 1 rank and 3, f32 losses within
    1e-5; every bias and every norm of heads has moved"""
    model = ("model.qkv_bias=true", "model.qk_norm=true", "model.rope_scaling={rope_type: yarn, factor: 4, "
             "original_max_position_embeddings: 16}", "training.max_steps=20")
    for name, ranks, *more in (("one", 1, "precision.compute=f32"), ("three", 3, "precision.compute=f32"),
                               ("kept", 2, "precision.compute=bf16"),
                               ("again", 2, "precision.compute=bf16", "activation_checkpoint.mode=full")):
        place.train("options-" + name, ranks, *model, *more)
    assert place.records("options-kept") == place.records("options-again")
    kept, again = (gathered(place.checkpoint("options-" + name, 20)) for name in ("kept", "again"))
    assert kept == again
    one, three = place.records("options-one"), place.records("options-three")
    worst = max(relative(three[step], one[step]) for step in one)
    print(f"  3 ranks: largest relative difference from 1 rank {worst:.1e}")
    assert worst < 1e-5, worst
    for layer in range(3):
        for name in ("q_proj.bias", "k_proj.bias", "v_proj.bias", "q_norm.weight", "k_norm.weight"):
            data = kept["master", f"model.layers.{layer}.self_attn.{name}"]
            values = struct.unpack(f"<{len(data) // 4}f", data)
            initial = 1.0 if "norm" in name else 0.0
            assert all(value != initial for value in values), (layer, name)


def threads(place):
    """1, 2 and 3 threads: the same bits"""
    for count in (1, 2, 3):
        place.train(f"threads{count}", 1, f"runtime.threads_per_rank={count}", "precision.compute=bf16",
                    "training.max_steps=10", "training.micro_batch_size=24")
        assert gathered(place.checkpoint(f"threads{count}", 10)) == gathered(place.checkpoint("threads1", 10))


def resume(place):
    """stopped after step 20 of 50 and resumed: all later losses and the final weights are the same bits"""
    for compute in ("f32", "bf16"):
        straight, stopped = f"straight-{compute}", f"stopped-{compute}"
        place.train(straight, 2, f"precision.compute={compute}")
        place.train(stopped, 2, f"precision.compute={compute}", "--stop-at-step", "20", expect=75)
        assert max(place.records(stopped)) == 20
        output = place.train(stopped, 2, f"precision.compute={compute}")
        assert "resumed from" in output and "step 20" in output, output
        assert place.records(stopped) == place.records(straight)
        a, b = gathered(place.checkpoint(stopped, 50)), gathered(place.checkpoint(straight, 50))
        assert a == b, [key for key in a if a[key] != b[key]]


def other_world_size(place):
    """saved on 4 ranks, loaded on 1, 2 and 3: weights and moments the same bits, and the data goes on exactly"""
    place.train("four", 4, "--stop-at-step", "20", expect=75)
    saved = gathered(place.checkpoint("four", 20))
    shutil.copytree(place.run("four"), place.run("four-saved"))
    place.train("four", 4)
    straight = place.records("four")
    for count in (1, 2, 3):
        name = f"from-four-{count}"
        path = place.checkpoint("four-saved", 20)
        before = digest(path)
        place.train(name, count, f"checkpoint.load={path}", "--stop-at-step", "20", expect=75)
        assert gathered(place.checkpoint(name, 20)) == saved, f"{count} ranks hold other weights or moments"
        place.train(name, count)
        losses = place.records(name)
        assert sorted(losses) == list(range(21, 51)), sorted(losses)
        worst = max(relative(losses[step], straight[step]) for step in losses)
        print(f"  {count} ranks: largest relative difference after resuming {worst:.1e}")
        assert worst < 1e-5, worst
        assert digest(path) == before


def begun_elsewhere(place):
    """a run begun from another run's checkpoint goes on from its own when it is started again with the same command"""
    place.train("source", 2, "--stop-at-step", "10", expect=75)
    load = f"checkpoint.load={place.checkpoint('source', 10)}"
    place.train("branch", 2, load, "--stop-at-step", "15", expect=75)
    output = place.train("branch", 2, load, "--stop-at-step", "20", expect=75)
    assert "resumed from" in output and "(step 15," in output, output


def intervals(place):
    """checkpoint.interval in steps, tokens and none of a unit"""
    for name, interval, expected in (("steps", "20", [20, 40, 50]), ("tokens", "15360 tokens", [20, 40, 50]),
                                     ("zero-steps", "0", [50]), ("zero-tokens", "0 tokens", [50]),
                                     ("zero-time", "0min", [50])):
        place.train("every-" + name, 1, f"checkpoint.interval={interval}", "checkpoint.keep_latest=0")
        assert place.steps("every-" + name) == expected, (interval, place.steps("every-" + name))


main([ranks, tied, initial_weights, accumulation, recomputation, options, threads, resume, other_world_size, begun_elsewhere,
      intervals])
