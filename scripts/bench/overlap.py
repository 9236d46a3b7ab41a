#!/usr/bin/env python3
"""Measures the gain of parallelism.overlap: two ranks on two hosts (network namespaces of this machine) train with and
without it. Their link is so slow that communication takes a given share of a step's computation. Prints medians of the
rounds and the predictions of `tokamak plan` for the same link (bench calibrate). Communication is exposed while a
collective runs or waits for the other rank, and no operation runs.

  scripts/bench/overlap.py [--share 0.6] [--steps 8] [--rounds 2] [KEY=VALUE ...]

Needs root, for namespaces and tc; without it the exit code is 77.
"""
import json
import os
import statistics
from pathlib import Path

import measure

SLOTS = {1: 1, 2: 1}  # ranks by host
FIRST_TRACED = 4
SHARE_TOLERANCE, MOST_PROBES = 0.02, 5
# As many layers as a model of half a billion parameters has. The reduction of the last layer cannot be hidden, and its
# share of a step falls with the number of layers: with 12 it takes 3 %.
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


def of_trace(path):
    """Seconds per step as means of the ranks: step, operations, collectives, exposed; and the bytes that a rank sends.
    A collective's span begins when the rank arrives, so the shorter span of the two ranks is the transfer."""
    events = [event for event in json.loads(Path(path).read_text())["traceEvents"] if event["ph"] == "X"]
    ranks, transfers = [], []
    for rank in {event["pid"] for event in events}:
        spans = {"step": [], "operation": [], "copy": [], "collective": []}
        sent, lengths = 0, []
        for event in (event for event in events if event["pid"] == rank):
            begin, seconds = event["ts"] / 1e6, event["dur"] / 1e6
            spans[event["cat"]].append((begin, begin + seconds))
            if event["cat"] == "collective":
                sent += event["args"].get("exchanged_bytes", 0)
                lengths.append((event["tid"], begin, seconds))
        steps = len(spans["step"])
        first, last = min(spans["step"])[0], max(spans["step"])[1]
        cut = {kind: [(max(a, first), min(b, last)) for a, b in found if b > first and a < last] for kind, found in spans.items()}
        busy = length(union(cut["operation"] + cut["copy"]))
        exposed = length(union(cut["operation"] + cut["copy"] + cut["collective"])) - busy
        ranks.append({"step": (last - first) / steps, "operations": busy / steps, "exposed": exposed / steps, "bytes": sent / steps})
        transfers.append([span for _, _, span in sorted(lengths)])
    assert len({len(rank) for rank in transfers}) == 1, "the ranks' traces have not the same collectives"
    return {**{key: statistics.mean(rank[key] for rank in ranks) for key in ranks[0]},
            "collectives": sum(map(min, zip(*transfers))) / steps}


class Bench:
    def __init__(self, options, harness, hosts, place):
        self.options, self.harness, self.hosts, self.place = options, harness, hosts, place
        self.overrides = [*MODEL, *options.overrides]

    def on_hosts(self, command, name, *words):
        command = [self.harness.TOKAMAK, *command, self.place.config(name), *self.overrides, *words]
        with self.hosts.start("mpirun", SLOTS, command, self.place.file(name + ".log"), self.harness.ENV) as run:
            codes = run.codes(900)
            assert set(codes) == {0}, (codes, run.text())

    def trained(self, name, overlap):
        last = FIRST_TRACED + self.options.steps - 1
        self.on_hosts(["train"], name, f"parallelism.overlap={overlap}", f"training.max_steps={last + 1}",
                      f"metrics.trace={FIRST_TRACED}-{last}")
        return of_trace(f"{self.place.run(name)}/trace-{FIRST_TRACED}-{last}.json")

    def shape_link(self):
        """Slows the link until the transfers take the wanted share of a step's operations."""
        free = self.trained("free", "false")
        rate = free["bytes"] / (self.options.share * free["operations"])
        for attempt in range(MOST_PROBES):
            for host in self.hosts.all:
                # The burst fits the largest packet: otherwise the kernel cuts each into 1500 bytes, which took 30 % of
                # the computing cores.
                host.shape(f"{8 * rate / 1e3:.0f}kbit", latency="100ms", burst="256kb")
            probe = self.trained(f"probe{attempt}", "false")
            share = probe["collectives"] / probe["operations"]
            if abs(share - self.options.share) < SHARE_TOLERANCE:
                break
            rate *= share / self.options.share
        return free, rate

    def measured(self, overlap, number):
        machine = self.place.file(f"machine{number}.json")
        if not Path(machine).exists():  # calibrated in turn with the runs, so that other programs disturb both equally
            self.on_hosts(["bench", "calibrate"], "calibration", "--output", machine, "--rounds", "3")
        found = self.trained(f"run{number}-{overlap}", overlap)
        plan = measure.predicted(self.harness, self.place, machine, 2, *self.overrides, f"parallelism.overlap={overlap}")
        return {**found, "predicted": {"step": plan["step_seconds"], "exposed": plan["exposed_communication_seconds"]}}


def main():
    parser = measure.arguments(__doc__, ("--share", 0.6, "communication over computation"), ("--steps", 8, "traced, of a run"),
                               ("--rounds", 2, "runs of either kind, in turn"))
    parser.add_argument("overrides", nargs="*")
    options = parser.parse_args()
    harness, two_hosts = measure.tests_harness("harness", "two_hosts")
    two_hosts.enter_or_skip()
    load = os.getloadavg()[0]
    with harness.Workplace() as place:
        hosts = two_hosts.Hosts(place.file("hosts"), 2)
        try:
            bench = Bench(options, harness, hosts, place)
            free, rate = bench.shape_link()
            runs = measure.in_turn(options.rounds, ["false", "true"], bench.measured)
        finally:
            hosts.down()
    print(f"{8 * rate / 1e6:.0f} Mbit/s a host; a rank sends {free['bytes'] / 1e6:.1f} MB a step; load "
          f"{load:.1f} before, {os.getloadavg()[0]:.1f} after (the ranks themselves are 2)")
    print(f"{'overlap':8s} {'':9s} {'step s':>8s} {'operations':>11s} {'collectives':>12s} {'of them':>8s} {'exposed':>9s} {'of step':>8s}")
    for overlap, found in runs.items():
        real = {key: statistics.median(run[key] for run in found) for key in ("step", "operations", "collectives", "exposed")}
        plan = {key: statistics.median(run["predicted"][key] for run in found) for key in ("step", "exposed")}
        print(f"{'on' if overlap == 'true' else 'off':8s} {'measured':9s} {real['step']:8.3f} {real['operations']:11.3f} "
              f"{real['collectives']:12.3f} {real['collectives'] / real['operations']:8.1%} "
              f"{real['exposed']:9.3f} {real['exposed'] / real['step']:8.1%}")
        print(f"{'':8s} {'predicted':9s} {plan['step']:8.3f} {'':33s} {plan['exposed']:9.3f} {plan['exposed'] / plan['step']:8.1%}"
              f"   step {plan['step'] / real['step'] - 1:+.1%}")


if __name__ == "__main__":
    main()
