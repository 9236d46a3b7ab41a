"""Exported models and tokenizers against the real transformers: hf_test.py [case]."""
import functools
import json
import os
import shutil

from reference import expect_equal_logits, export, our_logits, their_logits  # first: enters the right Python
import numpy as np
import safetensors.numpy
import torch
import transformers
from model_families import FAMILIES, WINDOWS, YARN
from harness import generated, main, tokamak

# Matrices five times as wide as usual, so that attention is far from uniform and a wrong position shows.
SHORT = ("training.max_steps=6", "model.initializer_range=0.1")
LLAMA3 = ("{rope_type: llama3, factor: 4.0, low_freq_factor: 1.0, high_freq_factor: 4.0, "
          "original_max_position_embeddings: 32}")
MODELS = {  # name: ranks, what differs from harness.CONFIG
    "mha": (1, "model.num_key_value_heads=4"),
    "mha-tied": (2, "model.num_key_value_heads=4", "model.tie_word_embeddings=true"),
    "gqa": (2,),
    "gqa-tied": (1, "model.tie_word_embeddings=true"),
    "linear": (1, "model.rope_scaling={rope_type: linear, factor: 2.0}"),
    "dynamic": (1, "model.rope_scaling={rope_type: dynamic, factor: 2.0}", "model.tie_word_embeddings=true"),
    "yarn": (1, YARN),
    "llama3": (1, f"model.rope_scaling={LLAMA3}", "model.rope_theta=500"),
    "mistral": (2, "model.sliding_window=9"),
    "ministral": (1, *WINDOWS),
    "qwen2-window": (1, *FAMILIES["qwen2"], *WINDOWS),
    **{name: (1 + number % 2, *keys) for number, (name, keys) in enumerate(FAMILIES.items())},
}
# Values that GGUF has no place for, and caps that bend.
MODELS["olmo3"] += ("model.rope_local_base_freq=500",)
MODELS["gemma2"] += ("model.query_pre_attn_scalar=5", "model.attn_logit_softcapping=2", "model.final_logit_softcapping=3")
MODELS["gemma3"] += ("model.query_pre_attn_scalar=5", "model.final_logit_softcapping=3", "model.qkv_bias=true",
                     "model.o_bias=true")
ARCHITECTURES = {"qwen2": "Qwen2", "qwen3": "Qwen3", "mistral": "Mistral", "ministral": "Ministral",
                 "qwen2-window": "Qwen2", "smollm3": "SmolLM3", "olmo2": "Olmo2",
                 "olmo3": "Olmo3", "gemma2": "Gemma2", "gemma3": "Gemma3"}


def exported_logits(place):
    """exports of MHA, GQA, each rope_scaling and each architecture: transformers has our f32 logits to 1e-4"""
    rng = np.random.default_rng(1)
    for name, (ranks, *overrides) in MODELS.items():
        place.train(name, ranks, *SHORT, *overrides)
        out = export(place, name, "--dtype", "f32")
        # As long as the context; dynamic scaling begins only beyond it.
        ids = rng.integers(0, 400, (2, 96 if name == "dynamic" else 64))
        theirs, model = their_logits(out, ids)
        expect_equal_logits(our_logits(place, place.run(name) + "/checkpoints", ids), theirs, name)
        expect_equal_logits(our_logits(place, out, ids), theirs, name + ", read back from the export")
        tied = "model.tie_word_embeddings=true" in overrides and name != "embedding-norm"  # has the norm in one of them
        assert model.config.tie_word_embeddings == tied
        with open(out + "/config.json") as file:
            config = json.load(file)
        architecture = ARCHITECTURES.get(name, "Llama") + "ForCausalLM"
        assert config["architectures"] == [architecture] and type(model).__name__ == architecture, config


def exported_shards(place):
    """a small --max-shard-size gives several files and their index, with the same tensors; bf16 is theirs, rounded"""
    place.train("sharded", 2, *SHORT)
    whole = export(place, "sharded", "--dtype", "f32")
    several = place.file("several")
    tokamak("checkpoint", "export", "--to", "hf", "--dtype", "f32", "--max-shard-size", "100KB",
            place.run("sharded") + "/checkpoints", several)
    files = sorted(f for f in os.listdir(several) if f.endswith(".safetensors"))
    assert len(files) > 3 and files[0] == f"model-00001-of-{len(files):05d}.safetensors", files
    assert all(os.path.getsize(f"{several}/{f}") < 102_000 for f in files)
    expected = safetensors.numpy.load_file(whole + "/model.safetensors")
    found = {}
    for file in files:
        found.update(safetensors.numpy.load_file(f"{several}/{file}"))
    assert found.keys() == expected.keys() and all(np.array_equal(found[k], expected[k]) for k in expected)
    with open(several + "/model.safetensors.index.json") as file:
        index = json.load(file)
    assert index["metadata"]["total_size"] == sum(a.nbytes for a in expected.values())
    ids = np.random.default_rng(2).integers(0, 400, (1, 32))
    expect_equal_logits(our_logits(place, several, ids), their_logits(several, ids)[0], "in several files")

    half = place.file("half")
    tokamak("checkpoint", "export", "--to", "hf", place.run("sharded") + "/checkpoints", half)
    rounded = transformers.AutoModelForCausalLM.from_pretrained(half)
    assert rounded.dtype == torch.bfloat16
    for name, tensor in rounded.state_dict().items():
        assert torch.equal(tensor, torch.from_numpy(expected[name]).to(torch.bfloat16)), name


def expect_same_text(place, name, out, ours=(), tokens=64, **theirs):
    """Tokens at temperature 0, of our checkpoint and of its export."""
    model = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    prompts = [document[:20] for document in list(place.documents())[:3]]
    expected = []
    for prompt in prompts:
        ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
        text = model.generate(ids, do_sample=False, max_new_tokens=tokens, pad_token_id=0, **theirs)[0]
        assert len(text) - ids.shape[1] == tokens or text[-1] == tokenizer.eos_token_id
        expected.append(tokenizer.decode(text, skip_special_tokens=True))
        print(f"  {len(text) - ids.shape[1]} tokens: {expected[-1][:60]!r}...")
    for source in (["--checkpoint", place.run(name) + "/checkpoints"], ["--model", out]):
        made = generated(*source, *(word for prompt in prompts for word in ("--prompt", prompt)), "--max-tokens", str(tokens),
                         "--temperature", "0", "--dtype", "f32", *ours)
        assert [one["prompt"] + one["text"] for one in made] == expected, f"{made!r}\n{expected!r}"


def greedy_text(place):
    """64 tokens at temperature 0 are those of transformers' generate, with a repetition penalty too"""
    place.train("greedy", 1, "data.sequence_length=96", "model.max_position_embeddings=128",
                "training.global_batch_tokens=768", "training.max_steps=40", "model.initializer_range=0.1")
    out = export(place, "greedy", "--dtype", "f32")
    expect_same_text(place, "greedy", out)
    expect_same_text(place, "greedy", out, ("--repetition-penalty", "1.3"), repetition_penalty=1.3)


def text_past_the_window(place):
    """with windows, 200 tokens at temperature 0 are those of transformers' generate, far past the window"""
    for name in ("mistral", "ministral", "smollm3", "olmo2", "olmo3", "gemma2", "gemma3"):
        switches = MODELS[name][1:]
        place.train("past-" + name, 1, "data.sequence_length=96", "model.max_position_embeddings=256",
                    "training.global_batch_tokens=768", "training.max_steps=40", "model.initializer_range=0.1", *switches)
        out = export(place, "past-" + name, "--dtype", "f32")
        expect_same_text(place, "past-" + name, out, tokens=200)


def dynamic_text(place):
    """with dynamic rope_scaling the text is that of transformers also beyond max_position_embeddings"""
    place.train("stretched", 1, "model.max_position_embeddings=32", "training.max_steps=20",
                "model.rope_scaling={rope_type: dynamic, factor: 4.0}", "model.initializer_range=0.1")
    out = export(place, "stretched", "--dtype", "f32")
    expect_same_text(place, "stretched", out, ("--context", "128"))


RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка, объём, съезд."
TEXTS = [
    "", " ", "  ", "a", " a", "   three spaces before", "and after   ", "runs  of   spaces    in     between",
    "Hello, world!", "first\nsecond\n\nfourth", "\n", "\n\n  \n", "tab\tone\t\ttwo", "\t", "1234567890 3.14159 007",
    "digits12in3words", "emoji 😀🎉👩‍👩‍👧‍👦🇷🇺 end", "😀", RUSSIAN, " " + RUSSIAN, "中文 日本語 한국어 العربية",
    "<s>", "</s>", "<unk>", "a <s> b</s>c <unk> d", "<s></s>", "<0x0A>", "a<0x41>b", "▁", "a▁b", "e\u0301 café naïve",
    "\u00a0nbsp\u2003em\u200bzero", "\ufffd", "x" * 300, "ab" * 200, " " * 50, "mixed: Привет <s> 42\n\t😀  конец ",
]
SYMBOLS = ["<|sep|>", "<|im▁start|>", "@@", "@@@"]
SYMBOL_TEXTS = ["a<|sep|>b", "a <|sep|> b", "<|sep|>b", " <|sep|>", "x<|sep|><|sep|>", "y <|im start|> z", "@@ @@@ @@@@",
                "s@@t", "end<|sep|>", "<|sep|> <s> @@", "<|sep", RUSSIAN + "<|sep|>" + RUSSIAN]


def corpus(place):
    path = place.file("many.txt")
    with open(path, "w") as file:
        for document in place.documents():
            file.write(document + "\n")
        for text in TEXTS * 20:
            file.write(text.replace("\n", " ") + "\n")
    return path


def tokenizer_export(place, name, *options):
    """A run with a tokenizer of its own, exported."""
    model = place.file(name + ".model")
    tokamak("tokenizer", "train", "--input", corpus(place), "--vocab-size", "700", "--output", model, *options)
    if not os.path.exists(place.run("words")):
        place.train("words", 1, "training.max_steps=1", "model.vocab_size=800")
    out = export(place, name, "--tokenizer", model, source=place.run("words") + "/checkpoints")
    return model, out


def random_texts(count):
    rng = np.random.default_rng(3)
    alphabet = list("abc aeiou  \n\t12<>s/▁😀ж") + [RUSSIAN[:9], "  ", "the"]
    return ["".join(rng.choice(alphabet, rng.integers(1, 60))) for _ in range(count)]


@functools.cache
def encode(model, text):
    return [int(word) for word in tokamak("tokenizer", "encode", "--model", model, text).split()]


def tokenizers(place):
    """tokenizer.json by both classes, and tokenizer.model by sentencepiece, cut text as ours does; decoding too"""
    import sentencepiece
    model, out = tokenizer_export(place, "plain")
    auto = transformers.AutoTokenizer.from_pretrained(out)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_file=out + "/tokenizer.json", split_special_tokens=True)
    library = sentencepiece.SentencePieceProcessor(model_file=out + "/tokenizer.model")
    texts = TEXTS + random_texts(150)
    for text in texts:
        ids = encode(model, text)
        assert library.encode(text) == ids, (text, ids, library.encode(text))
        assert auto(text)["input_ids"] == ids, (text, ids, auto.convert_ids_to_tokens(auto(text)["input_ids"]))
        assert fast(text)["input_ids"] == ids, (text, ids)
        if ids:
            assert auto.decode(ids) == library.decode(ids), (text, auto.decode(ids))
    assert (auto.bos_token_id, auto.eos_token_id, auto.unk_token_id) == (1, 2, 0)
    assert len(auto) == 700

    # LlamaTokenizer of transformers 5 builds its own pipeline, which keeps no space at the start of a text.
    only_model = place.file("only-model")
    os.makedirs(only_model)
    shutil.copy(out + "/tokenizer.model", only_model)
    for directory in (out, only_model):
        llama = transformers.LlamaTokenizer.from_pretrained(directory, legacy=False, add_bos_token=False,
                                                            split_special_tokens=True)
        compared = [text for text in texts if not text.startswith((" ", "▁"))]
        for text in compared:
            assert llama(text, add_special_tokens=False)["input_ids"] == encode(model, text), (directory, text)
    print(f"  {len(texts)} texts, {len(compared)} by LlamaTokenizer")

    with_bos = place.file("with-bos")
    tokamak("checkpoint", "export", "--to", "hf", "--bos", "--tokenizer", model, place.run("words") + "/checkpoints",
            with_bos)
    auto = transformers.AutoTokenizer.from_pretrained(with_bos)
    assert auto("Hello")["input_ids"] == [1] + encode(model, "Hello")


def user_symbols(place):
    """user-defined symbols are found in exports where our tokenizer finds them"""
    model, out = tokenizer_export(place, "symbols", "--user-defined-symbols", *SYMBOLS)
    auto = transformers.AutoTokenizer.from_pretrained(out)
    for text in SYMBOL_TEXTS + TEXTS:
        ids = encode(model, text)
        assert auto(text)["input_ids"] == ids, (text, ids, auto(text)["input_ids"])
    used = {i for text in SYMBOL_TEXTS for i in encode(model, text)}
    assert {3, 4, 5, 6} <= used, used


if __name__ == "__main__":
    main([exported_logits, exported_shards, greedy_text, text_past_the_window, dynamic_text, tokenizers, user_symbols])
