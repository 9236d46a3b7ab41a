"""A damaged checkpoint is reported, an older one is used, and a run never silently restarts from step 0."""
import os
import shutil

from harness import digest, main


def flip(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))


def truncate(path):
    os.truncate(path, os.path.getsize(path) - 5)


DAMAGES = {
    "a flipped byte": lambda step: flip(step + "/rank-00001-of-00002.safetensors"),
    "a truncated file": lambda step: truncate(step + "/rank-00000-of-00002.safetensors"),
    "a missing file": lambda step: os.remove(step + "/rank-00001-of-00002.safetensors"),
    "a missing manifest": lambda step: os.remove(step + "/manifest.json"),
    "a flipped byte in the manifest": lambda step: flip(step + "/manifest.json"),
}


def fall_back(place):
    """flipped byte, truncated file, missing file, missing manifest: named in the log, and the older one is loaded"""
    place.train("origin", 2, "checkpoint.interval=10", "--stop-at-step", "20", expect=75)
    assert place.steps("origin") == [10, 20]
    for number, (what, damage) in enumerate(DAMAGES.items()):
        name = f"damaged{number}"
        shutil.copytree(place.run("origin"), place.run(name))
        damage(place.checkpoint(name, 20))
        output = place.train(name, 2, "--stop-at-step", "12", expect=75)
        assert "step-00000020" in output and "warning" in output, f"{what} is not named:\n{output}"
        assert "resumed from" in output and "step 10" in output, f"{what}: no fallback\n{output}"
        print(f"  {what}:", next(line for line in output.splitlines() if "warning" in line))


def none_left(place):
    """with no intact checkpoint left: exit 4, and nothing on disk is changed"""
    for number, (what, damage) in enumerate(DAMAGES.items()):
        name = f"hopeless{number}"
        shutil.copytree(place.run("origin"), place.run(name))
        for step in (10, 20):
            damage(place.checkpoint(name, step))
        checkpoints = place.run(name) + "/checkpoints"
        before = digest(checkpoints)
        output = place.train(name, 2, expect=4)
        assert output.count("error") == 1, f"{what}: not one error\n{output}"
        assert digest(checkpoints) == before, f"{what}: the directory was changed"


def never_from_scratch(place):
    """load: none where checkpoints exist is refused with exit 4; so is a named checkpoint that is missing"""
    assert "none" in place.train("origin", 2, "checkpoint.load=none", expect=4)
    missing = place.checkpoint("origin", 77)
    assert missing in place.train("origin", 2, f"checkpoint.load={missing}", expect=4)


main([fall_back, none_left, never_from_scratch])
