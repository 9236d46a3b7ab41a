"""Files of megatron-core and datatrove, written by them and read by the program, and the reverse. Files of llm.c are
written and read by the code of its Python, and MDS by mosaicml-streaming's writer: shards_test.py [case].
TOKAMAK_SHARDS_PYTHON is a Python with the packages of scripts/dev/requirements-shards.txt; torch and numpy are those of
TOKAMAK_PYTHON."""
import os
import random
import sys
import warnings

from other_python import enter_python_with_shards, enter_package

enter_python_with_shards()
warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from harness import main, tokamak  # noqa: E402

try:
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile  # noqa: E402
    from datatrove.utils.dataset import DatatroveFolderDataset  # noqa: E402
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder  # noqa: E402
    enter_package("streaming", "streaming.base")
    from streaming.base.format.mds.writer import MDSWriter  # noqa: E402
    from streaming.base.hashing import get_hashes  # noqa: E402
except ModuleNotFoundError as error:
    print(f"SKIPPED: TOKAMAK_SHARDS_PYTHON has not all of scripts/dev/requirements-shards.txt: {error}")
    sys.exit(77)

EOS = 2


def documents(count, seed, largest):
    """Lists of ids, some empty, the others ending in EOS."""
    rng = random.Random(seed)
    return [[] if rng.random() < 0.05 else [rng.randint(3, largest) for _ in range(rng.randint(0, 60))] + [EOS]
            for _ in range(count)]


def read_megatron(prefix):
    """The documents, by their reader."""
    data = IndexedDataset(prefix)
    bounds = data.document_indices
    return [[int(t) for s in range(bounds[d], bounds[d + 1]) for t in data[s]] for d in range(len(bounds) - 1)]


def convert(place, source, to, name, *options):
    output = place.file(name)
    tokamak("data", "convert", "--input", source, "--to", to, "--output", output, *options)
    return output


def megatron_files(place):
    """megatron-core's builder, all of its integer types, several sequences a document: the same documents, and back"""
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16):
        # Its builder takes an empty sequence, not a document without any.
        docs = documents(150, 1, min(np.iinfo(dtype).max, 70000))
        prefix = place.file(f"theirs_{dtype.__name__}")
        builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype)
        for d, ids in enumerate(docs):
            cut = len(ids) // 3 if d % 4 == 0 else 0
            builder.add_document(torch.tensor(ids, dtype=torch.int64), [cut, len(ids) - cut] if cut else [len(ids)])
        builder.finalize(prefix + ".idx")
        assert read_megatron(prefix) == docs
        shown = tokamak("data", "inspect", prefix, "--lengths")
        assert f"documents:   {len(docs)}\n" in shown and f"lengths:     {len(docs)} documents" in shown, shown
        assert ": sound" in tokamak("data", "verify", prefix)
        ours = convert(place, prefix, "megatron", f"ours_{dtype.__name__}")
        assert read_megatron(ours + "/part-00000") == docs, dtype


def datatrove_files(place):
    """datatrove's TokenizedFile, of 2 and 4 bytes, with and without its metadata: the same documents, and back"""
    for size, metadata in ((2, True), (4, True), (2, False), (4, False)):
        docs = documents(200, size, 60000 if size == 2 else 200000)
        folder = place.file(f"datatrove_{size}_{metadata}")
        os.mkdir(folder)
        for part, half in enumerate((docs[:120], docs[120:])):
            file = TokenizedFile(folder, f"{part:05d}_unshuffled.ds", token_size=size, tokenizer_name_or_path="toy",
                                 save_final_metadata=metadata)
            for ids in half:
                file.write(ids, None)
            file.close()
        assert ": sound" in tokamak("data", "verify", folder)
        out = convert(place, folder, "megatron", f"of_datatrove_{size}_{metadata}")
        assert read_megatron(out + "/part-00000") == docs
        back = convert(place, out, "datatrove", f"datatrove_again_{size}_{metadata}", "--shard-tokens", "3000")
        assert len([name for name in os.listdir(back) if name.endswith(".ds")]) > 1
        # Their window has 17 tokens; a file's rest is left out.
        theirs = DatatroveFolderDataset(folder, 16, token_size=size, return_positions=True)
        ours = DatatroveFolderDataset(back, 16, token_size=size, return_positions=True)
        flat = [i for ids in docs for i in ids]
        read = [int(t) for k in range(len(ours)) for t in ours[k]["input_ids"]]
        assert read[:2992] == flat[:2992] and len(theirs) >= len(ours)  # 176 windows of the first file
        for k in range(100):
            assert torch.equal(ours[k]["input_ids"], theirs[k]["input_ids"])
            assert torch.equal(ours[k]["positions"], theirs[k]["positions"]), k
        whole = convert(place, back, "megatron", f"whole_{size}_{metadata}")
        assert read_megatron(whole + "/part-00000") == docs


def llmc_shard(path):
    """As llm.c's and modded-nanogpt's loaders read one."""
    with open(path, "rb") as file:
        header = np.frombuffer(file.read(1024), dtype=np.int32)
        assert header[0] in (20240520, 20240801) and header[1] == (1 if header[0] == 20240520 else 7)
        tokens = np.frombuffer(file.read(), dtype=np.uint16 if header[0] == 20240520 else np.uint32)
    assert len(tokens) == header[2]
    return tokens


def llmc_files(place):
    """llm.c's shards of both magics: the delimiter moves to the front, no token is lost, and all comes back"""
    for magic, dtype in ((20240520, np.uint16), (20240801, np.uint32)):
        docs = [[EOS] + ids[:-1] for ids in documents(200, magic, np.iinfo(np.uint16).max) if ids]
        flat = np.array([i for ids in docs for i in ids], dtype=dtype)
        folder = place.file(f"llmc_{magic}")
        os.mkdir(folder)
        for part, tokens in enumerate(np.array_split(flat, 3)):  # cut anywhere
            header = np.zeros(256, dtype=np.int32)
            header[:3] = magic, 1 if magic == 20240520 else 7, len(tokens)
            with open(f"{folder}/toy_train_{part:06d}.bin", "wb") as file:
                file.write(header.tobytes() + tokens.tobytes())
        out = convert(place, folder, "megatron", f"of_llmc_{magic}", "--delimiter-id", str(EOS))
        assert read_megatron(out + "/part-00000") == docs
        turned = [ids[1:] + [EOS] for ids in docs]
        prefix = place.file(f"turned_{magic}")
        builder = IndexedDatasetBuilder(prefix + ".bin", dtype=np.uint16 if dtype == np.uint16 else np.int32)
        for ids in turned:
            builder.add_document(torch.tensor(ids), [len(ids)])
        builder.finalize(prefix + ".idx")
        back = convert(place, prefix, "llmc", f"llmc_again_{magic}", "--delimiter-id", str(EOS), "--shard-tokens", "1k")
        shards = [llmc_shard(f"{back}/{name}") for name in sorted(os.listdir(back))]
        assert [len(s) for s in shards[:-1]] == [1000] * (len(shards) - 1) and len(shards) > 2
        assert shards[0].dtype == dtype and np.array_equal(np.concatenate(shards), flat)


def mds_files(place):
    """mosaicml-streaming's MDSWriter, raw, zstd and gz, every encoding of tokens and every hash: the same documents"""
    ways = [("tokens", "ndarray:int32", np.int32, None), ("tokens", "ndarray:uint16", np.uint16, "zstd:7"),
            ("input_ids", "ndarray:uint32", np.uint32, "gz"), ("tokens", "ndarray:int64", np.int64, "zstd"),
            ("tokens", "ndarray", np.int32, "gz:1"), ("tokens", "ndarray:int32:17", np.int32, None),
            ("tokens", "bytes", np.int64, "zstd"), ("tokens", "bytes", np.uint16, None)]
    for number, (column, encoding, dtype, compression) in enumerate(ways):
        docs = [ids for ids in documents(300, 40 + number, min(np.iinfo(dtype).max, 100000)) if ids]  # none is empty
        if encoding.endswith(":17"):
            flat = [i for ids in docs for i in ids]
            docs = [flat[at:at + 17] for at in range(0, len(flat) - 16, 17)]
        folder = place.file(f"mds_{number}")
        hashes = sorted(get_hashes()) if number % 2 == 0 else []
        columns = {column: encoding, "id": "int", "meta": "json", "name": "str"}
        with MDSWriter(columns=columns, out=folder, compression=compression, hashes=hashes, size_limit=8000) as out:
            for d, ids in enumerate(docs):
                array = np.array(ids, dtype=dtype)
                out.write({column: array.tobytes() if encoding == "bytes" else array, "id": d, "meta": {"d": d},
                           "name": "n" * (d % 5)})
        assert sum(name.startswith("shard.") for name in os.listdir(folder)) > 2
        typed = ["--token-type", dtype.__name__] if encoding == "bytes" else []
        report = tokamak("data", "verify", folder, *typed)
        checked = "checked by " + ", ".join(hashes) if hashes else "without checksums"
        assert ": sound" in report and f"({checked})" in report and f" {len(docs)} documents, " in report, report
        out = convert(place, folder, "megatron", f"of_mds_{number}", *typed)
        assert read_megatron(out + "/part-00000") == docs, ways[number]


def training(place):
    """the same losses on our data set and on its copies for Megatron and datatrove; llm.c's copy trains, too"""
    train = place.data + "/train"
    tokenizer = train + "/tokenizer.model"
    copies = {to: convert(place, train, to, "copy_" + to) for to in ("megatron", "datatrove", "llmc")}
    sources = {"ours": f"[{{path: {train}}}]",
               "mixed": f"[{{path: {train}, weight: 2}}, {{path: {copies['llmc']}, tokenizer: {tokenizer}}}, "
                        f"{{path: {copies['datatrove']}, tokenizer: {tokenizer}}}]"}
    for to in copies:
        sources[to] = f"[{{path: {copies[to]}, format: auto, tokenizer: {tokenizer}}}]"
    losses = {}
    llmc = tokamak("data", "inspect", copies["llmc"], "--tokenizer", tokenizer, "--lengths")
    count = tokamak("data", "inspect", train).split("documents:   ")[1].split()[0]
    assert f"lengths:     {count} documents" in llmc, (count, llmc)  # the delimiter is found
    for name, value in sources.items():
        place.train(name, 1, f"data.sources={value}", "training.max_steps=5")
        losses[name] = place.records(name)
        assert len(losses[name]) == 5
    assert losses["megatron"] == losses["datatrove"] == losses["ours"], losses
    back = convert(place, copies["megatron"], "tokamak", "back", "--tokenizer", tokenizer)
    assert ": sound" in tokamak("data", "verify", back)
    for name in sorted(os.listdir(train)):
        if name.endswith((".bin", ".idx", ".sum", ".model")):
            with open(f"{train}/{name}", "rb") as a, open(f"{back}/{name}", "rb") as b:
                assert a.read() == b.read(), name
    text = [tokamak("data", "inspect", path, "--sample", "3", "--sequence-length", "64", "--decode", *more).split("window", 1)[1]
            for path, more in ((train, ()), (copies["datatrove"], ("--tokenizer", tokenizer)))]
    assert text[0] == text[1]


if __name__ == "__main__":
    main([megatron_files, datatrove_files, llmc_files, mds_files, training])
