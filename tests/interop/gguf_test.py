"""GGUF exports, read by the gguf package: gguf_test.py [case]."""
import os

from reference import export  # first: enters the right Python
import gguf
import numpy as np
import safetensors.numpy
from model_families import FAMILIES
from harness import call, main, tokamak

LLAMA3 = ("{rope_type: llama3, factor: 4.0, low_freq_factor: 1.0, high_freq_factor: 4.0, "
          "original_max_position_embeddings: 32}")
MODELS = {  # name: what differs from harness.CONFIG
    "untied": (f"model.rope_scaling={LLAMA3}", "model.vocab_size=512"),
    "tied": ("model.tie_word_embeddings=true", "model.rope_scaling={rope_type: linear, factor: 2.0}"),
}
ARCHITECTURES = {"olmo3": "olmo2", "biases": "llama", "embedding-norm": "llama"}
POST_NORMS = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
BOTH_NORMS = {"ffn_norm": "pre_feedforward_layernorm"}  # where there is a post_ffw_norm beside it
LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
TOP = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
       "output.weight": "lm_head.weight"}
HEADS = {"attn_q": 4, "attn_k": 2}


def their_name(name, both):
    if name in TOP:
        return TOP[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{(LAYER | POST_NORMS | (BOTH_NORMS if both else {}))[part]}.{kind}"


def interleaved(matrix, heads):
    """As llama.cpp's converter orders the rows of q and k (conversion of LlamaForCausalLM)."""
    return matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:]).swapaxes(1, 2).reshape(matrix.shape)


def value(reader, key):
    return reader.get_field(key).contents()


def read_by_gguf(place):
    """header, keys, tokenizer and every tensor, in F32, F16 and BF16, are what the Hugging Face export has"""
    for name, overrides in MODELS.items():
        place.train(name, 1, "training.max_steps=2", "model.initializer_range=0.1", *overrides)
        reference = safetensors.numpy.load_file(export(place, name, "--dtype", "f32") + "/model.safetensors")
        for dtype, file_type in (("f32", 0), ("f16", 1), ("bf16", 32)):
            out = place.file(f"{name}-{dtype}.gguf")
            tokamak("checkpoint", "export", "--to", "gguf", "--dtype", dtype, place.run(name) + "/checkpoints", out)
            reader = gguf.GGUFReader(out)
            compare_keys(place, reader, name, file_type)
            compare_tensors(reader, reference, gguf.GGMLQuantizationType[dtype.upper()], HEADS)


def families(place):
    """other architectures have keys of their own, and Qwen's rows of q and k their own order"""
    for name, options in FAMILIES.items():
        place.train(name, 1, "training.max_steps=2", "model.initializer_range=0.1", *options)
        directory = export(place, name, "--dtype", "f32")
        out = place.file(name + ".gguf")
        tokamak("checkpoint", "export", "--to", "gguf", "--dtype", "f32", place.run(name) + "/checkpoints", out)
        reader = gguf.GGUFReader(out)
        architecture = ARCHITECTURES.get(name, name)
        assert value(reader, "general.architecture") == architecture
        assert value(reader, architecture + ".attention.head_count_kv") == 2
        if name == "olmo3":
            assert value(reader, "olmo2.attention.sliding_window") == 9
            assert value(reader, "olmo2.attention.sliding_window_pattern") == 2
            assert value(reader, "olmo2.rope.scaling.type") == "yarn"
        reference = safetensors.numpy.load_file(directory + "/model.safetensors")
        if architecture.startswith("gemma"):
            assert value(reader, architecture + ".attention.sliding_window") == 9
            assert value(reader, architecture + ".attention.sliding_window_pattern") == 2
            # llama.cpp multiplies by the weight alone.
            reference = {key: array + 1 if array.ndim == 1 else array for key, array in reference.items()}
        if name == "gemma2":
            assert value(reader, "gemma2.attn_logit_softcapping") == 50
            assert value(reader, "gemma2.final_logit_softcapping") == 30
        if name == "gemma3":
            assert value(reader, "gemma3.rope.freq_base_swa") == 500
            assert value(reader, "gemma3.rope.scaling.factor") == 2
        compare_tensors(reader, reference, gguf.GGMLQuantizationType.F32, HEADS if architecture in ("smollm3", "llama") else {})


def compare_keys(place, reader, name, file_type):
    rows = 512 if name == "untied" else 400
    expected = {"general.architecture": "llama", "general.name": "small", "general.file_type": file_type,
                "llama.vocab_size": rows, "llama.context_length": 64, "llama.embedding_length": 48,
                "llama.block_count": 3, "llama.feed_forward_length": 100, "llama.attention.head_count": 4,
                "llama.attention.head_count_kv": 2, "llama.attention.key_length": 12, "llama.rope.dimension_count": 12,
                "llama.rope.freq_base": 10000.0, "tokenizer.ggml.model": "llama", "tokenizer.ggml.bos_token_id": 1,
                "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
                "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_space_prefix": True}
    if name == "tied":
        expected.update({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0})
    for key, wanted in expected.items():
        assert value(reader, key) == wanted, (key, value(reader, key), wanted)
    assert abs(value(reader, "llama.attention.layer_norm_rms_epsilon") - 1e-5) < 1e-12

    pieces = [line.split("\t") for line in
              tokamak("tokenizer", "inspect", "--pieces", "--model", place.file("tokenizer.model")).splitlines()]
    kinds = {"normal": 1, "unknown": 2, "control": 3, "user_defined": 4, "byte": 6}
    tokens, types = value(reader, "tokenizer.ggml.tokens"), value(reader, "tokenizer.ggml.token_type")
    scores = value(reader, "tokenizer.ggml.scores")
    assert len(tokens) == len(types) == len(scores) == rows
    for i, (_, score, kind, *_text) in enumerate(pieces):
        assert types[i] == kinds[kind] and scores[i] == float(score), (i, tokens[i])
    assert tokens[10] == pieces[10][3] and tokens[399] == pieces[399][3]
    assert all(t == f"[PAD{i}]" and types[i] == 5 for i, t in enumerate(tokens) if i >= 400)


def compare_tensors(reader, reference, kind, heads):
    seen = set()
    both = any("pre_feedforward_layernorm" in name for name in reference)
    for tensor in reader.tensors:
        found = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if tensor.name == "rope_freqs.weight":
            check_rope_factors(found)
            continue
        expected = reference[their_name(tensor.name, both)]
        seen.add(their_name(tensor.name, both))
        part = tensor.name.split(".")[-2]
        if part in heads:
            expected = interleaved(expected, heads[part])
        assert tuple(found.shape) == expected.shape, (tensor.name, found.shape)
        assert tensor.tensor_type == (gguf.GGMLQuantizationType.F32 if expected.ndim == 1 else kind), tensor.name
        if tensor.tensor_type == gguf.GGMLQuantizationType.F16:
            expected = expected.astype(np.float16).astype(np.float32)
        if tensor.tensor_type == gguf.GGMLQuantizationType.BF16:
            expected = gguf.quants.dequantize(gguf.quants.quantize(expected, kind), kind)
        assert np.array_equal(found, expected), tensor.name
    assert seen == set(reference), seen ^ set(reference)


def check_rope_factors(found):
    """llama3's formula, as llama.cpp's converter writes it."""
    base = 10000.0 ** (-np.arange(0, 12, 2) / 12)
    wavelength = 2 * np.pi / base
    smooth = (32 / wavelength - 1) / 3
    expected = np.where(wavelength < 8, 1, np.where(wavelength > 32, 4, 1 / ((1 - smooth) / 4 + smooth)))
    assert np.allclose(found, expected, rtol=1e-6) and found.shape == (6,), (found, expected)


def refused(place):
    """what GGUF cannot express is refused by name, and leaves no file"""
    place.train("yarn", 1, "training.max_steps=1", "model.rope_scaling={rope_type: yarn, factor: 2, "
                "original_max_position_embeddings: 32, attention_factor: 1.5}")
    place.train("plain", 1, "training.max_steps=1")
    place.train("wide", 1, "training.max_steps=1", "model.qkv_bias=true", "model.head_dim=32")
    place.train("window", 1, "training.max_steps=1", "model.sliding_window=63")
    place.train("uneven", 1, "training.max_steps=1", "model.no_rope_layers=[1, 0]")
    place.train("thetas", 1, "training.max_steps=1", *FAMILIES["olmo3"], "model.rope_local_base_freq=500")
    place.train("scale", 1, "training.max_steps=1", *FAMILIES["gemma3"], "model.query_pre_attn_scalar=5")
    place.train("no-cap", 1, "training.max_steps=1", *FAMILIES["gemma2"], "model.final_logit_softcapping=0")
    place.train("cap", 1, "training.max_steps=1", *FAMILIES["gemma3"], "model.final_logit_softcapping=30")
    place.train("alternating", 1, "training.max_steps=1", *FAMILIES["gemma2"],
                "model.layer_types=[sliding_attention, sliding_attention, full_attention]")
    place.train("bias", 1, "training.max_steps=1", *FAMILIES["gemma3"], "model.qkv_bias=true", "model.o_bias=true")
    place.train("pattern", 1, "training.max_steps=1", *FAMILIES["olmo3"],
                "model.layer_types=[sliding_attention, full_attention, full_attention]")
    place.train("headless", 1, "training.max_steps=1", "model.norm_placement=post", "model.qk_norm=all",
                "model.tie_word_embeddings=true")
    for arguments, code, words in (
            ((place.run("yarn") + "/checkpoints", place.file("no.gguf")), 2, ["model.rope_scaling", "yarn"]),
            ((place.run("wide") + "/checkpoints", place.file("no.gguf")), 2, ["qwen2", "48 / 4", "head_dim is 32"]),
            ((place.run("window") + "/checkpoints", place.file("no.gguf")), 2,
             ["llama.cpp ignores the window of a MistralForCausalLM", "is 63", "lower max_position_embeddings to 63"]),
            ((place.run("headless") + "/checkpoints", place.file("no.gguf")), 2, ["olmo2 needs a head of its own"]),
            ((place.run("thetas") + "/checkpoints", place.file("no.gguf")), 2, ["olmo2 has one theta", "rope_local_base_freq 500"]),
            ((place.run("scale") + "/checkpoints", place.file("no.gguf")), 2,
             ["gemma3 divides by the root of 12", "query_pre_attn_scalar is 5"]),
            ((place.run("no-cap") + "/checkpoints", place.file("no.gguf")), 2, ["gemma2 has both caps", "softcapping 0"]),
            ((place.run("cap") + "/checkpoints", place.file("no.gguf")), 2, ["gemma3 has no caps", "softcapping 30"]),
            ((place.run("alternating") + "/checkpoints", place.file("no.gguf")), 2, ["gemma2 has a full layer after each"]),
            ((place.run("bias") + "/checkpoints", place.file("no.gguf")), 2, ["gemma3 has no biases", "model.o_bias is"]),
            ((place.run("pattern") + "/checkpoints", place.file("no.gguf")), 2, ["before each full one; layer 2 differs"]),
            ((place.run("uneven") + "/checkpoints", place.file("no.gguf")), 2, ["every 4th layer; layer 1 differs"]),
            (("--tokenizer", place.run("plain") + "/checkpoints", place.run("plain") + "/checkpoints",
              place.file("no.gguf")), 3, ["holds no tokenizer.json"]),
            ((place.run("plain") + "/checkpoints", place.file("tokenizer.model")), 2, ["tokenizer.model", "exists"])):
        before = sorted(os.listdir(place.path))
        done = call([os.environ["TOKAMAK"], "checkpoint", "export", "--to", "gguf", *arguments])
        assert done.returncode == code and all(word in done.stdout for word in words), done.stdout
        assert sorted(os.listdir(place.path)) == before


main([read_by_gguf, families, refused])
