"""Tokenizers of the styles that models have: converted from published vocabularies, or trained here."""
import base64
import json
import sysconfig
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

from oracle_text import texts

PACKAGES = Path(sysconfig.get_paths()["purelib"])
LLAMA3 = PACKAGES / "llama_models/llama3/tokenizer.model"
LLAMA4 = PACKAGES / "llama_models/llama4/tokenizer.model"
QWEN = PACKAGES / "dashscope/resources/qwen.tiktoken"
TEKKEN = PACKAGES / "mistral_common/data/tekken_240911.json"

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL
QWEN2 = CL100K.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN_PATTERN = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER +
                  r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL)
O200K = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" +
         CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL)
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
            "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]

# Letters with case, as llama.cpp lists them.
BICAMERAL = (
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377"
    "\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556"
    "\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15"
    "\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE"
    "\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113"
    "\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184"
    "\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    "\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\U00010400-\U0001044F\U000104B0-\U000104D3"
    "\U000104D8-\U000104FB\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943"
)
# The tokenizer.json of DeepSeek LLM and DeepSeek V2; then come Digits and ByteLevel.
DEEPSEEK_LLM = ["[\r\n]", r"\s?[" + BICAMERAL + "]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥ࠀ-一가-퟿]+"]
WITHOUT_HAN = r"&&[^\p{Han}]]"
# tokenization_kimi.py of Kimi K2.
KIMI = r"[\p{Han}]+|" + (O200K.replace("[\\r\\n/]*", "[\\r\\n]*").replace(UPPER, UPPER[:-1] + WITHOUT_HAN)
                         .replace(LOWER, LOWER[:-1] + WITHOUT_HAN))


def byte_characters():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + i) for i, b in enumerate(others)}}


CHARACTERS = byte_characters()


def mapped(piece):
    return "".join(CHARACTERS[b] for b in piece)


def read_ranks(path, most=None):
    lines = path.read_bytes().splitlines()[:most]
    return {base64.b64decode(piece): int(rank) for piece, rank in (line.split() for line in lines if line)}


def tekken_ranks(most=None):
    vocab = json.loads(TEKKEN.read_bytes())["vocab"][: most or 131072 - 1000]
    return {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in vocab}


def merges_of(ranks):
    """Every way to cut a piece into two, as transformers' TikTokenConverter does."""
    merges = []
    for piece, rank in ranks.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ranks and right in ranks:
                merges.append((rank, ranks[left], ranks[right], left, right))
    return [[mapped(left), mapped(right)] for _, _, _, left, right in sorted(merges)]


def added(content, number, special=True, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special, **flags}


def from_ranks(ranks, pattern, specials, offset=0, nfc=False):
    """A tokenizer.json as a value."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    vocab = {mapped(piece): rank + offset for piece, rank in ranks.items()}
    if offset:
        vocab.update({content: number for number, content in enumerate(specials)})
    first = 0 if offset else len(ranks)
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(content, first + i) for i, content in enumerate(specials)],
            "normalizer": {"type": "NFC"} if nfc else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": None, "decoder": {**level, "add_prefix_space": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": True, "vocab": vocab, "merges": merges_of(ranks)}}


FLAGGED = [AddedToken("<mask>", lstrip=True, special=True), AddedToken("<r>", rstrip=True), AddedToken("<lr>", lstrip=True, rstrip=True),
           AddedToken("word", single_word=True), AddedToken("éa", normalized=True), AddedToken("<n>", normalized=False),
           AddedToken("<|end|>", special=True), AddedToken("<|end|>x", special=False), AddedToken("  ", normalized=False),
           AddedToken("    ", normalized=False), AddedToken("ilÖveyou"), AddedToken("\n<x>"), AddedToken("中文 w")]


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert=invert)


def trained(pre_tokenizer, decoder=None, normalizer=None, flagged=(), size=900, alphabet=True, corpus_seed=5, trainer=(), **model):
    tokenizer = tokenizers.Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    if normalizer:
        tokenizer.normalizer = normalizer
    options = dict(trainer)
    if alphabet:
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    special = options.pop("special_tokens", ["<|endoftext|>"])
    tokenizer.train_from_iterator(texts(1500, corpus_seed), trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **options))
    tokenizer.add_tokens(list(flagged))
    return tokenizer


def byte_level(**options):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, **options})


def trained_ranks(pattern):
    """The lines of a .tiktoken file."""
    vocab = trained(pre_tokenizers.Sequence([split(pattern), byte_level(use_regex=False)]), size=2500).get_vocab()
    byte_of = {character: byte for byte, character in CHARACTERS.items()}
    pieces = [piece for piece in sorted(vocab, key=vocab.get) if piece != "<|endoftext|>"]
    return [base64.b64encode(bytes(byte_of[c] for c in piece)) + b" %d" % rank for rank, piece in enumerate(pieces)]


BYTES = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]


def trained_styles():
    """name, tokenizer"""
    sequence, level = pre_tokenizers.Sequence, decoders.ByteLevel()
    plain = byte_level(use_regex=False)
    yield "gpt2", trained(byte_level(), level, flagged=FLAGGED)
    yield "roberta (prefix space)", trained(byte_level(add_prefix_space=True), level, flagged=FLAGGED[:5])
    yield "smollm", trained(sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]), level)
    yield "digits and prefix", trained(sequence([pre_tokenizers.Digits(), byte_level(add_prefix_space=True)]), level)
    yield "deepseek v3", trained(sequence([*map(split, DEEPSEEK), plain]), level, flagged=FLAGGED)
    yield "deepseek llm", trained(sequence([*map(split, DEEPSEEK_LLM), pre_tokenizers.Digits(individual_digits=True), plain]), level)
    yield "kimi", trained(sequence([split(KIMI), plain]), level, size=500)
    yield "o200k", trained(sequence([split(O200K), plain]), level, flagged=FLAGGED)
    yield "nfc and flags", trained(sequence([split(QWEN2), plain]), level, normalizers.NFC(), FLAGGED)
    yield "missing bytes", trained(byte_level(), level, alphabet=False, unk_token="<|endoftext|>", flagged=FLAGGED[:3])
    yield "missing bytes vanish", trained(byte_level(), level, alphabet=False)
    yield "metaspace", trained(pre_tokenizers.Metaspace(), decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()]), None, FLAGGED,
                               alphabet=False, trainer={"special_tokens": BYTES}, byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    yield "metaspace first", trained(pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoders.Metaspace(prepend_scheme="first"),
                                     normalizers.Strip(), FLAGGED, alphabet=False, unk_token="<|endoftext|>")
    replace = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    llama2 = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    yield "llama 2", without_pre_tokenizer(trained(pre_tokenizers.Metaspace(), replace, None, FLAGGED[:9], alphabet=False,
                                                   trainer={"special_tokens": BYTES}, byte_fallback=True, unk_token="<unk>", fuse_unk=True), llama2)
    yield "suffix", trained(pre_tokenizers.Whitespace(), decoders.BPEDecoder("</w>"), normalizers.NFKC(), FLAGGED[:5], alphabet=False,
                            trainer={"end_of_word_suffix": "</w>"}, unk_token="<|endoftext|>", end_of_word_suffix="</w>")
    yield "prefix", trained(sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next")]), None,
                            normalizers.Replace(Regex("[0-9]+"), "#"), FLAGGED[:5], alphabet=False,
                            trainer={"continuing_subword_prefix": "##"}, unk_token="<|endoftext|>", continuing_subword_prefix="##")
    for behavior in ("removed", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            yield f"split {behavior} {invert}", trained(sequence([split(r"\s+|-|\p{Lu}", behavior, invert), plain]), level, size=400)


def without_pre_tokenizer(tokenizer, normalizer):
    value = json.loads(tokenizer.to_str())
    value["pre_tokenizer"] = None
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(value))
    tokenizer.normalizer = normalizer
    return tokenizer
