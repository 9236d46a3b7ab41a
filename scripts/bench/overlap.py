#!/usr/bin/env python3
"""What overlap is worth: two ranks on two hosts (network namespaces of this machine) whose link is so slow that all of a
step's communication takes a given share of its computation. Trains with and without parallelism.overlap, reads exposed
communication from the traces (a collective runs or waits for the other rank, and no operation runs), measures the machine
over the same link (bench --calibrate), and holds what `tokamak plan` says of both against them. Medians of the rounds.

  scripts/bench/overlap.py [--share 0.6] [--steps 12] [--rounds 3] [--json FILE] [KEY=VALUE ...]

Takes root, for namespaces and tc. Exits with 77 where it has not got that.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "fault"), str(ROOT / "tests" / "system")]
os.environ.setdefault("TOKAMAK", str(ROOT / "build" / "tokamak"))
os.environ.setdefault("MPIRUN", shutil.which("mpirun") or "mpiexec")
import two_hosts  # noqa: E402
from harness import ENV, TOKAMAK, Workplace, tokamak  # noqa: E402

SLOTS = {1: 1, 2: 1}  # ranks by host
FIRST_TRACED = 4
SHARE_TOLERANCE, MOST_PROBES = 0.02, 5
# As many layers as a model of half a billion parameters has: what nothing can hide is the reduction of the last one, whose
# share of a step falls with their number (with 12 layers it alone takes 3 %).
MODEL = ["model.hidden_size=320", "model.intermediate_size=864", "model.num_hidden_layers=24", "model.num_attention_heads=5",
         "model.num_key_value_heads=5", "model.head_dim=64", "model.max_position_embeddings=256", "data.sequence_length=256",
         "training.global_batch_tokens=4096", "training.micro_batch_size=8", "precision.compute=bf16",
         "training.validation_sequences=1"]


def union(spans):
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(spans):
    return sum(end - begin for begin, end in spans)


def overlap_of(a, b):
    """Seconds that two lists of disjoint, sorted spans have in common."""
    common, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        common += max(0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def of_trace(path):
    """Per step, in seconds, means of the ranks: the step, its operations, its collectives, exposed; bytes that a rank sends.
    A collective's span begins when the rank comes to it, so that of both ranks the shorter is the transfer."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    sums = {"step": [], "operations": [], "exposed": [], "bytes": []}
    transfers = []
    for rank in {event["pid"] for event in events}:
        spans = {"step": [], "operation": [], "copy": [], "collective": []}
        sent, lengths = 0, []
        for event in events:
            if event["pid"] != rank:
                continue
            begin = event["ts"] / 1e6
            spans[event["cat"]].append((begin, begin + event["dur"] / 1e6))
            if event["cat"] == "collective":
                sent += event["args"].get("exchanged_bytes", 0)
                lengths.append((event["tid"], begin, event["dur"] / 1e6))
        steps = len(spans["step"])
        begin, end = min(spans["step"])[0], max(spans["step"])[1]
        cut = {kind: union([(max(a, begin), min(b, end)) for a, b in found if b > begin and a < end])
               for kind, found in spans.items()}
        busy = union([tuple(span) for span in cut["operation"] + cut["copy"]])
        sums["step"].append((end - begin) / steps)
        sums["operations"].append(length(busy) / steps)
        sums["exposed"].append((length(cut["collective"]) - overlap_of(cut["collective"], busy)) / steps)
        sums["bytes"].append(sent / steps)
        transfers.append([span for _, _, span in sorted(lengths)])
    found = {key: statistics.mean(values) for key, values in sums.items()}
    assert len({len(rank) for rank in transfers}) == 1, "the ranks' traces have not the same collectives"
    found["collectives"] = sum(map(min, zip(*transfers))) / steps
    return found


def trained(hosts, place, name, arguments, steps, overlap):
    """One run; what its trace says."""
    last = FIRST_TRACED + steps - 1
    trace = f"{FIRST_TRACED}-{last}"
    command = [TOKAMAK, "train", place.config(name), *arguments, f"parallelism.overlap={str(overlap).lower()}",
               f"training.max_steps={last + 1}", f"metrics.trace={trace}"]
    with hosts.start("mpirun", SLOTS, command, place.file(name + ".log"), ENV) as run:
        codes = run.codes(900)
        assert set(codes) == {0}, (codes, run.text())
    return of_trace(f"{place.run(name)}/trace-{trace}.json")


def calibrated(hosts, place, arguments):
    path = place.file("machine.json")
    command = [TOKAMAK, "bench", place.config("calibration"), *arguments, "--calibrate", path, "--rounds", "3"]
    with hosts.start("mpirun", SLOTS, command, place.file("calibration.log"), ENV) as run:
        codes = run.codes(900)
        assert set(codes) == {0}, (codes, run.text())
    return path


def predicted(place, machine, arguments, overlap):
    plan = json.loads(tokamak("plan", place.config("plan"), *arguments, f"parallelism.overlap={str(overlap).lower()}",
                              "--ranks", "2", "--gpu", machine, "--as-configured", "--json"))
    (choice,) = plan["choices"]
    return {"step": choice["step_seconds"], "exposed": choice["exposed_communication_seconds"]}


def set_rate(hosts, bytes_per_second):
    for host in hosts.all:
        # A burst that takes the largest packet whole: else the kernel cuts each into 1500 bytes, on the cores that compute,
        # which took 30 % of them.
        host.shape(f"{8 * bytes_per_second / 1e3:.0f}kbit", latency="100ms", burst="256kb")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.6, help="communication over computation")
    parser.add_argument("--steps", type=int, default=8, help="traced steps of a run")
    parser.add_argument("--rounds", type=int, default=2, help="runs of either kind, in turn")
    parser.add_argument("--json", help="also write everything there")
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    two_hosts.enter_or_skip()
    arguments = [*MODEL, *options.overrides]
    result = {"load_before": os.getloadavg(), "share": options.share}
    with Workplace() as place:
        hosts = two_hosts.Hosts(place.file("hosts"), 2)
        try:
            # What the ranks compute without a slow link, then the rate at which what they send takes its share of that,
            # corrected by what the transfers really took until they do.
            free = trained(hosts, place, "free", arguments, options.steps, overlap=False)
            rate = free["bytes"] / (options.share * free["operations"])
            for attempt in range(MOST_PROBES):
                set_rate(hosts, rate)
                probe = trained(hosts, place, f"probe{attempt}", arguments, options.steps, overlap=False)
                share = probe["collectives"] / probe["operations"]
                if abs(share - options.share) < SHARE_TOLERANCE:
                    break
                rate *= share / options.share
            result |= {"bytes_per_second": rate, "bytes_per_step": free["bytes"], "free": free, "runs": [], "machines": []}
            # In turn, so that what is measured and what the predictions rest on see the same other processes.
            for number in range(options.rounds):
                machine = calibrated(hosts, place, arguments)
                with open(machine, encoding="utf-8") as file:
                    result["machines"].append(json.load(file))
                for overlap in (False, True):
                    found = trained(hosts, place, f"run{number}-{overlap}", arguments, options.steps, overlap)
                    result["runs"].append({"overlap": overlap, "load": os.getloadavg()[0], **found,
                                           "predicted": predicted(place, machine, arguments, overlap)})
        finally:
            hosts.down()
    result["load_after"] = os.getloadavg()
    print(f"{8 * rate / 1e6:.0f} Mbit/s a host; a rank sends {free['bytes'] / 1e6:.1f} MB a step; load "
          f"{result['load_before'][0]:.1f} before, {result['load_after'][0]:.1f} after (the ranks themselves are 2)")
    print(f"{'overlap':8s} {'':9s} {'step s':>8s} {'operations':>11s} {'collectives':>12s} {'of them':>8s} {'exposed':>9s} {'of step':>8s}")
    for overlap in (False, True):
        runs = [run for run in result["runs"] if run["overlap"] == overlap]
        measured = {key: statistics.median(run[key] for run in runs) for key in ("step", "operations", "collectives", "exposed")}
        result.setdefault("measured", {})[str(overlap)] = measured
        said = {key: statistics.median(run["predicted"][key] for run in runs) for key in ("step", "exposed")}
        print(f"{'on' if overlap else 'off':8s} {'measured':9s} {measured['step']:8.3f} {measured['operations']:11.3f} "
              f"{measured['collectives']:12.3f} {measured['collectives'] / measured['operations']:8.1%} "
              f"{measured['exposed']:9.3f} {measured['exposed'] / measured['step']:8.1%}")
        print(f"{'':8s} {'predicted':9s} {said['step']:8.3f} {'':33s} {said['exposed']:9.3f} {said['exposed'] / said['step']:8.1%}"
              f"   step {said['step'] / measured['step'] - 1:+.1%}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
