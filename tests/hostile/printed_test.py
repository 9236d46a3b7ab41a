"""Each text of a manifest in turn holds escapes that would move a terminal's cursor or forge a line. Every command that
shows or refuses the manifest prints it as text: the judge finds no control character. Texts are tested one at a time,
so that none hides another."""
import os
import shutil
import sys

import damage
import judge

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from formats import as_json, as_sealed  # noqa: E402
from harness import Workplace  # noqa: E402


def faults_in(manifest, parts, commands):
    """The faults in the commands' answers to hostile names in the manifest."""
    with open(manifest, "rb") as file:
        value, again = parts(file.read())
    places = [place for place in damage.paths_of(value) if isinstance(damage.get(value, place), str)]
    assert len(places) > 5, places
    for place in places:
        with open(manifest, "wb") as file:
            file.write(again(damage.text_of(damage.replaced(value, place, damage.ESCAPES))))
        for command in commands:
            answer = judge.start(command, os.path.dirname(manifest))
            for fault in judge.faults_of(*answer, may_pass=True):
                yield f"{' '.join(command[:2])}, text {place}: {fault}"
    print(f"{len(places)} texts of {os.path.basename(os.path.dirname(manifest))}/{os.path.basename(manifest)}")


with Workplace() as workplace:
    data = workplace.file("data-set")
    shutil.copytree(workplace.data + "/train", data)
    workplace.train("run", 1, "training.max_steps=1")
    run, step = workplace.run("run"), workplace.checkpoint("run", 1)
    faults = [*faults_in(data + "/manifest.json", as_json, [["data", "inspect", data], ["data", "verify", data]]),
              *faults_in(step + "/manifest.json", as_sealed, [["checkpoint", "inspect", run], ["checkpoint", "inspect", step],
                                                              ["checkpoint", "verify", step]])]
print(*(f"FAILED: {fault}" for fault in faults), sep="\n")
sys.exit(bool(faults))
