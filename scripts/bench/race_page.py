"""The race's arithmetic and its page: medians, ratios, the share of the GEMM rate, the parts of a step's time."""
import os
import shlex
from statistics import median

from measure import table

LONGEST = 10
DISTURBED = 0.1  # the page warns if other processes used more than this share of the cores


def command_of(arguments):
    """The command for use elsewhere: paths are reduced to their last component."""
    def short(word):
        return os.path.basename(word) if os.path.isabs(word) else word
    return " ".join(shlex.quote(short(word)) for word in arguments)


def floor_of(entry, step, isolated):
    """The roofline time of an operation in seconds: its FLOPs at the GEMM rate of the model's shapes, or its bytes
    (each tensor once) at copy bandwidth, whichever is longer. None: its work is not known."""
    seconds = max(entry["flops"] / step["gemm_flops_per_second"], entry["bytes"] / isolated["copy_bytes_per_second"])
    return seconds or None


def where_it_goes(rounds, isolated):
    """Rows of a step by operation, the longest first: medians over the rounds' profiles."""
    steps = [race["tokamak"] for race in rounds]
    rows = []
    for name in steps[0]["operations"]:
        entries = [step["operations"][name] for step in steps if name in step["operations"]]
        seconds = median([entry["seconds"] for entry in entries])
        floors = [floor_of(entry, step, isolated) for entry, step in zip(entries, steps)]
        floor = median(floors) if None not in floors else None
        rows.append({"name": name, "calls": entries[0]["calls"], "seconds": seconds, "floor_seconds": floor})
    total = sum(row["seconds"] for row in rows)
    for row in rows:
        row["share"] = row["seconds"] / total
    return sorted(rows, key=lambda row: -row["seconds"])


def gemm_share(step, convention):
    """FLOP/s of training, counted by this convention of MFU, over the GEMMs' FLOP/s at the model's shapes."""
    return step["tokens_per_second"] * step[f"flops_per_token_{convention}"] / step["gemm_flops_per_second"]


def verdict(value, bar):
    return None if bar is None else "reached" if value >= bar else "MISSED"


def summary(rounds, isolated, bar, gemm_bar):
    ratios = [race["ratio"] for race in rounds]
    share = median([gemm_share(race["tokamak"], "causal") for race in rounds])
    return {"tokens_per_second": {who: median([race[who]["tokens_per_second"] for race in rounds])
                                  for who in ("tokamak", "torch")},
            "ratio": median(ratios), "ratio_spread": [min(ratios), max(ratios)], "bar": bar,
            "verdict": verdict(median(ratios), bar),
            "gemm_flops_per_second": median([race["tokamak"]["gemm_flops_per_second"] for race in rounds]),
            "gemm_share_causal": share, "gemm_bar": gemm_bar, "gemm_verdict": verdict(share, gemm_bar),
            "gemm_share_full": median([gemm_share(race["tokamak"], "full") for race in rounds]),
            "where": where_it_goes(rounds, isolated)}


# ---- the page ------------------------------------------------------------------------------------------------------

def against(result, bar, word):
    return "" if result[bar] is None else f"; the bar is {result[bar]:g}: **{result[word]}**"


def doubts(result):
    """Caveats of the measurement."""
    others = max(race[who]["others"] for race in result["rounds"] for who in ("tokamak", "torch"))
    (low, high), bar = result["ratio_spread"], result["bar"]
    said = []
    if bar is not None and low < bar <= high:
        said.append("The rounds lie on both sides of the bar.")
    if others > DISTURBED:
        said.append(f"The machine was not quiet: others had up to {others:.0%} of it.")
    if any("failed" in entry and "out of time" in entry["failed"] for entry in result["tried"]):
        said.append("Not every option of PyTorch could be tried.")
    return f"\n**Not settled.** {' '.join(said)} Repeat it on a quiet machine, with time to try.\n" if said else ""


def page(result):
    ours, theirs = result["rounds"][0]["tokamak"], result["rounds"][0]["torch"]
    versions = ", ".join(f"{name} {value}" for name, value in theirs["versions"].items() if value)
    where = result["machine"]
    rounds = [[str(i + 1), f"{race['tokamak']['tokens_per_second']:.0f}", f"{race['torch']['tokens_per_second']:.0f}",
               f"{race['ratio']:.2f}", f"{race['tokamak']['others']:.0%}", f"{race['torch']['others']:.0%}"]
              for i, race in enumerate(result["rounds"])]
    rates = result["tokens_per_second"]
    rounds.append(["median", f"{rates['tokamak']:.0f}", f"{rates['torch']:.0f}", f"{result['ratio']:.2f}", "", ""])
    low, high = result["ratio_spread"]
    micro_batches = theirs["tokens_per_step"] // (ours["sequence_length"] * theirs["micro_batch"])
    split = f"PyTorch's step: {micro_batches} micro-batch(es) of {theirs['micro_batch']} sequences"
    options = ", ".join(f"{name} {value}" for name, value in result["torch_options"].items())
    peaks = [race / 2**30 for race in (ours["memory_peak_bytes"], theirs["memory_peak_bytes"])]
    program = ", ".join(" ".join(line.split()) for line in result["tokamak"][:2])
    return f"""# {result['name']} against PyTorch, {result['device']}

    {result['command']}

{result['date']}; {ours['device']}; {where['cpu']}, {where['cores']} cores, {result['threads']} threads\
{''.join('; ' + gpu for gpu in where['gpus'])}; Linux {where['kernel']}; {program}; {versions}.

{ours['parameters'] / 1e6:.0f}M parameters in {ours['layers']} layers, T {ours['sequence_length']}, bf16, \
{ours['tokens_per_step']} tokens a step with its update. {split}. Peak memory: \
ours {peaks[0]:.1f} GiB, PyTorch's {peaks[1]:.1f} GiB.

{table(["round", "ours, tokens/s", "PyTorch, tokens/s", "ratio", "others, ours", "others, PyTorch"], rounds)}

"others": the share of the machine's cores that other programs had meanwhile.

- Ratio **{result['ratio']:.2f}** ({low:.2f} to {high:.2f}){against(result, 'bar', 'verdict')}.
- Share of the GEMM rate **{result['gemm_share_causal']:.1%}** by the causal count of FLOPs, \
{result['gemm_share_full']:.1%} by the full one, of {result['gemm_flops_per_second'] / 1e9:.0f} GFLOP/s, measured at the
  model's shapes in the same rounds{against(result, 'gemm_bar', 'gemm_verdict')}.
{doubts(result)}
## What PyTorch was given

{options}. {tried(result)}

## Where our step's time goes

The {LONGEST} longest operations of a step, profiled separately. The floor: FLOPs at the GEMM rate above, or bytes (each
tensor once) at a copy's {result['isolated']['copy_bytes_per_second'] / 1e9:.0f} GB/s, whichever is more.

{operations(result)}
"""


def operations(result):
    rows = [[row["name"], str(row["calls"]), f"{1e3 * row['seconds']:.1f}", f"{row['share']:.1%}"]
            + ([f"{1e3 * row['floor_seconds']:.1f}", f"{row['seconds'] / row['floor_seconds']:.2f}"]
               if row["floor_seconds"] else ["-", "-"]) for row in result["where"]]
    step = sum(row["seconds"] for row in result["where"])
    floor = sum(row["floor_seconds"] or 0 for row in result["where"])
    rest = result["where"][LONGEST:]
    last = [["all others", str(sum(r["calls"] for r in rest)), f"{1e3 * sum(r['seconds'] for r in rest):.1f}",
             f"{sum(r['share'] for r in rest):.1%}", "", ""]] if rest else []
    last.append(["all", "", f"{1e3 * step:.1f}", "100.0%", f"{1e3 * floor:.1f}", f"{step / floor:.2f}"])
    return table(["operation", "calls", "ms", "share", "floor, ms", "times its floor"], rows[:LONGEST] + last)


def tried(result):
    if not result["tried"]:
        return "As given on the command line; nothing else was tried."
    rows = [[entry["change"], f"{entry['tokens_per_second']:.0f}" if "failed" not in entry else entry["failed"]]
            for entry in result["tried"]]
    return ("Tried before the rounds, one change at a time on top of the fastest so far; kept where it was faster "
            f"(`scripts/bench/torch_baseline.py` says what they are):\n\n"
            + table(["option", "tokens/s"], rows))
