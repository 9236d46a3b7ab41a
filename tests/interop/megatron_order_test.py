"""data.order: megatron against the real megatron-core: GPTDataset and BlendedDataset, built by its own builder from our
shards, give the same samples, bit for bit. TOKAMAK_SHARDS_PYTHON is a Python with the packages of
scripts/dev/requirements-shards.txt; torch and numpy are those of TOKAMAK_PYTHON."""
import os
import random
import subprocess
import sys
import tempfile
import warnings

from other_python import enter_python_with_shards

CASES = int(os.environ.get("MEGATRON_CASES", "20"))

enter_python_with_shards()
warnings.simplefilter("ignore")
import numpy  # noqa: E402

try:
    from megatron.core.datasets.blended_dataset import BlendedDataset  # noqa: E402
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
except ModuleNotFoundError as error:
    print(f"SKIPPED: TOKAMAK_SHARDS_PYTHON has no megatron-core: {error}")
    sys.exit(77)


class Tokenizer:
    """The attributes that GPTDataset reads. No token is padding."""
    vocab_size, eod, pad, unique_identifiers = 60000, 0, 70000, {"class": "test"}


def a_case(number):
    """(T, seed, N, split, [(weight, lengths)])"""
    rng = random.Random(number)
    length = rng.choice([4, 8, 17, 64])
    count = [1, 1, 2, 3, 5, 12][number % 6]
    sources = []
    for _ in range(count):
        longest = rng.choice([3, 20, 150])
        lengths = [rng.randint(0, longest) for _ in range(rng.randint(100, 400))]
        lengths += [length + 2] * 50  # Megatron never returns if a part of the split has no tokens
        sources.append((round(rng.uniform(0.1, 3), rng.randint(1, 6)), lengths))
    tokens = sum(sum(lengths) for _, lengths in sources)
    # From a tenth of an epoch to five; the last one may be nearly whole or nearly empty.
    samples = max(1, int(tokens / length * rng.choice([0.1, 0.9, 1.05, 1.5, 1.9, 2.3, 3.85, 5])))
    split = rng.choice(["100,0,0", "96.9,2,1.1", "9,1,0", "1,1,0", "2/1"]) if number % 3 else "all"
    return length, rng.choice([0, 1, 1234, 2**32 - 1, rng.randrange(2**32)]), samples, split, sources


def ours(directory, case):
    length, seed, samples, split, sources = case
    text = [f"{length} {seed} {samples} {split} {len(sources)}"]
    text += [f"{weight!r} {len(lengths)} " + " ".join(map(str, lengths)) for weight, lengths in sources]
    done = subprocess.run([os.environ["PRINT_MEGATRON_SAMPLES"], directory], input="\n".join(text).encode(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    return numpy.frombuffer(done.stdout, numpy.int32).reshape(samples, length + 1)


def theirs(directory, case):
    length, seed, samples, split, sources = case
    prefixes = [f"{directory}/{i}/part-00000" for i in range(len(sources))]
    config = GPTDatasetConfig(
        random_seed=seed, sequence_length=length, split="1,0,0" if split == "all" else split,
        blend=(prefixes, [weight for weight, _ in sources] if len(sources) > 1 else None),
        tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
        create_attention_mask=False, mid_level_dataset_surplus=0.005)
    data = BlendedMegatronDatasetBuilder(GPTDataset, [samples, 1, 1], lambda: True, config).build()[0]
    assert isinstance(data, BlendedDataset) == (len(sources) > 1)
    rows = [data[k] for k in range(samples)]
    return numpy.array([row["tokens"].tolist() + [int(row["labels"][-1])] for row in rows], numpy.int32), data


def epochs_of(data, case):
    parts = data.datasets if isinstance(data, BlendedDataset) else [data]
    return [part._get_num_epochs(part._get_num_tokens_per_epoch()) for part in parts]


def main():
    seen = set()
    for number in range(CASES):
        case = a_case(number)
        with tempfile.TemporaryDirectory() as directory:
            our_samples = ours(directory, case)
            their_samples, data = theirs(directory, case)
            epochs = epochs_of(data, case)
        different = numpy.flatnonzero((our_samples != their_samples).any(axis=1))
        about = f"case {number}: T {case[0]}, seed {case[1]}, {case[2]} samples, split {case[3]}, {len(case[4])} source(s), epochs {epochs}"
        assert different.size == 0, (about, different[0], our_samples[different[0]], their_samples[different[0]])
        print(about, flush=True)
        seen |= set(epochs)
    assert {1, 2} <= seen, seen
    print(f"{CASES} cases: the same samples as megatron-core's")


main()
