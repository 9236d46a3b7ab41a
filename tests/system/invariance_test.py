"""The real program under the real mpirun computes the same numbers as ranks that are threads
(tests/train/invariance_test.cc, which has every combination): 1, 2 and 4 ranks, and a run resumed on fewer."""
import shutil

from harness import digest, gathered, main, relative


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
    """stopped after step 10 of 20 on 4 processes: 4 resume to the same bits, 2 from the same weights and data"""
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


main([ranks, resume])
