"""Adds proofs to lines of answers on standard input, computed in PyTorch by a GPT-2 in plain torch.

prove.py MODEL float32|bfloat16|int8|int4 SDK
"""

import json
import struct
import sys

import torch
import torch.nn.functional as F

model, precision = sys.argv[1:3]
sys.path.insert(0, sys.argv[3])
from starling import toploc  # noqa: E402

config = json.load(open(model + "/config.json"))
data = open(model + "/model.safetensors", "rb").read()
(size,) = struct.unpack("<Q", data[:8])
head = json.loads(data[8 : 8 + size])
p = {}
for name, t in head.items():
    if name != "__metadata__":
        lo, hi = t["data_offsets"]
        x = torch.frombuffer(bytearray(data[8 + size + lo : 8 + size + hi]), dtype=torch.float32).reshape(t["shape"])
        if precision.startswith("int") and x.dim() == 2:
            scale = x.abs().amax(0, keepdim=True) / (2 ** (int(precision[3:]) - 1) - 1)
            x = (x / scale.clamp(min=1e-12)).round() * scale
        p[name] = x.bfloat16() if precision == "bfloat16" else x


def hidden(tokens):
    x = torch.tensor(tokens)
    h = p["transformer.wte.weight"][x] + p["transformer.wpe.weight"][: len(x)]
    mask = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    for i in range(config["n_layer"]):
        at = f"transformer.h.{i}."
        norm = lambda z, n: F.layer_norm(z, z.shape[-1:], p[at + n + ".weight"], p[at + n + ".bias"])
        linear = lambda z, n: z @ p[at + n + ".weight"] + p[at + n + ".bias"]
        q, k, v = (u.unflatten(-1, (config["n_head"], -1)).transpose(0, 1) for u in linear(norm(h, "ln_1"), "attn.c_attn").chunk(3, -1))
        a = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf")).softmax(-1)
        h = h + linear((a @ v).transpose(0, 1).flatten(-2), "attn.c_proj")
        h = h + linear(F.gelu(linear(norm(h, "ln_2"), "mlp.c_fc").float(), approximate="tanh").to(h.dtype), "mlp.c_proj")
    return F.layer_norm(h, h.shape[-1:], p["transformer.ln_f.weight"], p["transformer.ln_f.bias"])


for line in sys.stdin:
    answer = json.loads(line)
    rows = hidden(answer["prompt"] + answer["answer"])[len(answer["prompt"]) - 1 :]
    answer["proofs"] = toploc.prove(rows)
    print(json.dumps(answer))
