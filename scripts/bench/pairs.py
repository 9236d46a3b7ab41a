#!/usr/bin/env python3
"""Compares the speed of two builds: runs `tokamak bench` of the old and the new one in turn. Prints tokens/s of each
pair, the median of their ratios, and its standard error.

  scripts/bench/pairs.py OLD_TOKAMAK NEW_TOKAMAK configs/llama-125m.yaml training.micro_batch_size=4 --rounds 10
"""
import statistics

import measure


def main():
    parser = measure.arguments(__doc__, ("--rounds", 10, "pairs"), ("--steps", 3, "of a run, which reports their median"))
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE over the file")
    options = parser.parse_intermixed_args()

    def rate(number, _):
        found = measure.bench([options.programs[number]], options.config, *options.overrides, "--rounds", options.steps)
        return found["tokens_per_second"]

    olds, news = measure.in_turn(options.rounds, [0, 1], rate).values()
    ratios = [new / old for old, new in zip(olds, news)]
    rows = [[str(i), f"{old:.0f}", f"{new:.0f}", f"{new / old:.3f}"] for i, (old, new) in enumerate(zip(olds, news), 1)]
    print(measure.table(["pair", "old, tokens/s", "new, tokens/s", "new / old"], rows))
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    print(f"\nmedian of the ratios {statistics.median(ratios):.4f}, standard error of their mean {error:.4f}")


if __name__ == "__main__":
    main()
