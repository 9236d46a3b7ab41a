#!/usr/bin/env python3
"""A plain PyTorch implementation of a training step of one of our configs: race.py's baseline for `tokamak bench`.

It is the same step as ours: a Llama of the same shapes on the same micro-batches of random tokens. GEMMs are in bf16,
master weights and moments in fp32, the gradient is clipped to norm 1. QKV and gate + up are one GEMM each, as in ours.
Attention is PyTorch's scaled_dot_product_attention, the optimizer its fused AdamW.

PyTorch's alternatives are options; race.py tries them on the machine and uses the fastest:

    weights    bf16: bf16 weights and gradient sums (ours are fp32), fp32 masters for the optimizer only
               autocast: fp32 weights under torch.autocast, the usual recipe
    compile    whole: torch.compile of the model with its loss; layers: of each layer (torchtitan's way); none: eager
               max-autotune: whole, with the autotuner (GPU)
    head       whole: materialised logits, loss compiled with the model; chunked: F.linear_cross_entropy in chunks
    attention  auto: PyTorch's choice; cudnn, flash: only this one (GPU)

The environment sets the C library's allocator; race.py tries that, too. The last line printed is JSON. Exit codes: 0,
3 (out of memory), others as in Python."""
import argparse
import json
import os
import platform
import resource
import sys
import time

from printed_config import read_config

OUT_OF_MEMORY = 3
# The first value of each option is the default.
CHOICES = {"weights": ["bf16", "autocast"], "compile": ["whole", "layers", "max-autotune", "none"],
           "head": ["whole", "chunked"], "attention": ["auto", "cudnn", "flash"]}


def arguments():
    parser = argparse.ArgumentParser(description="Measures a training step of a config in PyTorch.")
    parser.add_argument("config")
    parser.add_argument("overrides", nargs="*", help="KEY=VALUE over the file")
    parser.add_argument("--tokamak", default="tokamak", help="the program, which resolves the config (tokamak)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--micro-batch", type=int, default=0, help="sequences; 0: as the config says")
    parser.add_argument("--micro-batches", type=int, default=2, help="micro-batches per step (2)")
    parser.add_argument("--warmup", type=int, default=2, help="steps before the first that counts (2)")
    parser.add_argument("--steps", type=int, default=3, help="steps measured; the median counts (3)")
    for name, values in CHOICES.items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    return parser.parse_intermixed_args()


def build(model, options, torch):
    """(the module, its loss as a function of ids and targets, compiled as the options say)."""
    from torch import nn
    from torch.nn import functional as F
    hidden, inner, eps = model["hidden_size"], model["intermediate_size"], model["rms_norm_eps"]
    q_heads = model["num_attention_heads"]
    kv_heads = model["num_key_value_heads"] or q_heads
    size = model["head_dim"] or hidden // q_heads

    def norm(x, weight):
        return F.rms_norm(x, (hidden,), weight.to(x.dtype), eps).to(x.dtype)

    def rotated(x, cos, sin):
        first, second = x.chunk(2, -1)
        return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_attention = nn.Parameter(torch.ones(hidden))
            self.norm_mlp = nn.Parameter(torch.ones(hidden))
            self.qkv = nn.Linear(hidden, (q_heads + 2 * kv_heads) * size, bias=False)
            self.out = nn.Linear(q_heads * size, hidden, bias=False)
            self.gate_up = nn.Linear(hidden, 2 * inner, bias=False)
            self.down = nn.Linear(inner, hidden, bias=False)

        def forward(self, x, cos, sin):
            batch, length, _ = x.shape
            qkv = self.qkv(norm(x, self.norm_attention)).view(batch, length, -1, size).transpose(1, 2)
            q, k, v = qkv.split((q_heads, kv_heads, kv_heads), 1)
            heads = F.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, is_causal=True,
                                                   enable_gqa=q_heads != kv_heads)
            x = x + self.out(heads.transpose(1, 2).reshape(batch, length, -1))
            gate, up = self.gate_up(norm(x, self.norm_mlp)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(model["vocab_size"], hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(model["num_hidden_layers"]))
            self.norm = nn.Parameter(torch.ones(hidden))
            self.head = nn.Linear(hidden, model["vocab_size"], bias=False)
            if model["tie_word_embeddings"]:
                self.head.weight = self.embedding.weight
            for parameter in self.parameters():
                if parameter.dim() > 1:
                    nn.init.normal_(parameter, std=model["initializer_range"])

        def forward(self, ids, cos, sin):
            x = self.embedding(ids).to(torch.bfloat16)
            for layer in self.layers:
                x = layer(x, cos, sin)
            return norm(x, self.norm)

    llama = Llama().to(options.device)
    if options.weights == "bf16":
        llama = llama.to(torch.bfloat16)

    def whole(hidden_states, targets):
        return F.cross_entropy(llama.head(hidden_states).flatten(0, 1).float(), targets.flatten())

    def chunked(hidden_states, targets):
        return F.linear_cross_entropy(hidden_states.flatten(0, 1), llama.head.weight.to(hidden_states.dtype),
                                      targets.flatten(), options=nn.LinearCrossEntropyOptions())

    how = {"dynamic": False}
    if options.compile == "max-autotune":
        how["mode"] = "max-autotune-no-cudagraphs"
    body, head = llama, whole if options.head == "whole" else chunked
    if options.compile == "layers":
        for layer in llama.layers:
            layer.compile(**how)
        if options.head == "whole":
            head = torch.compile(head, **how)
    elif options.compile != "none" and options.head == "chunked":  # torch.compile does not support it
        body = torch.compile(llama, **how)

    def loss(ids, targets, cos, sin):
        return head(body(ids, cos, sin), targets)

    if options.compile in ("whole", "max-autotune") and options.head == "whole":
        loss = torch.compile(loss, **how)
    return llama, loss


class Optimizer:
    """Fused AdamW on fp32 masters, with the gradient's norm clipped; the masters may be the weights themselves."""

    def __init__(self, llama, config, options, torch):
        self.torch = torch
        self.weights = list(llama.parameters())
        self.separate = options.weights == "bf16"
        self.masters = [w.detach().float() for w in self.weights] if self.separate else self.weights
        self.max_norm = config["training"]["max_grad_norm"]
        if self.separate:
            for master in self.masters:
                master.grad = torch.zeros_like(master)
        options = config["optimizer"]
        self.adamw = torch.optim.AdamW([
            {"params": [m for m in self.masters if m.dim() > 1], "weight_decay": options["weight_decay"]},
            {"params": [m for m in self.masters if m.dim() == 1], "weight_decay": 0.0}],
            lr=options["lr"], betas=tuple(options["betas"]), eps=options["eps"], fused=True)

    def step(self):
        if self.separate:
            self.torch._foreach_copy_([m.grad for m in self.masters], [w.grad for w in self.weights])
        if self.max_norm > 0:
            self.torch.nn.utils.clip_grad_norm_(self.masters, self.max_norm, foreach=True)
        self.adamw.step()
        if self.separate:
            with self.torch.no_grad():
                self.torch._foreach_copy_(self.weights, self.masters)
        for weight in self.weights:
            weight.grad = None


def rope_tables(model, length, device, torch):
    """Cosines and sines of the rotary embedding, half against half: two times (T, D) f32."""
    size = model["head_dim"] or model["hidden_size"] // model["num_attention_heads"]
    frequencies = model["rope_theta"] ** (-torch.arange(0, size, 2).float() / size)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    angles = torch.cat((angles, angles), -1).to(device)
    return angles.cos(), angles.sin()


def choose_attention(torch, attention):
    if attention != "auto":
        kinds = torch.backends.cuda
        kinds.enable_cudnn_sdp(attention == "cudnn")
        kinds.enable_flash_sdp(attention == "flash")
        kinds.enable_mem_efficient_sdp(False)
        kinds.enable_math_sdp(False)


def measure(config, options, torch):
    model, length = config["model"], config["data"]["sequence_length"]
    micro_batch = options.micro_batch or config["training"]["micro_batch_size"]
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    torch.set_float32_matmul_precision("high")
    choose_attention(torch, options.attention)
    llama, loss = build(model, options, torch)
    optimizer = Optimizer(llama, config, options, torch)
    ids = torch.randint(model["vocab_size"], (micro_batch, length), device=options.device)
    targets = ids.roll(-1, 1)
    cos, sin = rope_tables(model, length, options.device, torch)
    on_gpu = options.device == "cuda"

    def step():
        begin = time.perf_counter()
        for _ in range(options.micro_batches):
            with torch.autocast(options.device, torch.bfloat16, enabled=options.weights == "autocast"):
                value = loss(ids, targets, cos, sin)
            (value / options.micro_batches).backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - begin, value

    first, value = step()
    at_first = value.item()
    for _ in range(options.warmup - 1):
        step()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds = sorted(step()[0] for _ in range(options.steps))
    middle = (seconds[(options.steps - 1) // 2] + seconds[options.steps // 2]) / 2
    tokens = options.micro_batches * micro_batch * length
    peak = torch.cuda.max_memory_reserved() if on_gpu else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"tokens_per_second": tokens / middle, "step_seconds": middle, "all_step_seconds": seconds,
            "first_step_seconds": first, "tokens_per_step": tokens, "micro_batch": micro_batch,
            "first_loss": at_first, "parameters": sum(w.numel() for w in llama.parameters()),
            "memory_peak_bytes": peak, "options": {name: getattr(options, name) for name in CHOICES},
            "threads": options.threads,
            "versions": {"torch": torch.__version__, "python": platform.python_version(),
                         "cuda": torch.version.cuda if on_gpu else None,
                         "cudnn": torch.backends.cudnn.version() if on_gpu else None},
            "device": torch.cuda.get_device_name() if on_gpu else f"CPU, {options.threads} threads"}


def main():
    options = arguments()
    config = read_config(options.tokamak, options.config, options.overrides)
    if config["precision"]["compute"] != "bf16":
        sys.exit("torch_baseline: error: the race is in bf16; precision.compute is " + config["precision"]["compute"])
    if config["model"]["vocab_size"] == 0:
        sys.exit("torch_baseline: error: model.vocab_size is 0, taken from the data; name it as an override")
    import torch
    try:
        result = measure(config, options, torch)
    except torch.OutOfMemoryError as error:
        print(f"torch_baseline: out of memory: {str(error).splitlines()[0]}", file=sys.stderr)
        sys.exit(OUT_OF_MEMORY)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
