"""The steps of a unit of a Llama in PyTorch, eager, float32, on the CPU.

Arguments: hidden size, intermediate size, layers, heads, vocabulary, tokens of a sequence, sequences, steps.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

hidden, inter, layers, heads, vocabulary, length, sequences, steps = map(int, sys.argv[1:])


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Norm(), Norm()
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(hidden, inter, bias=False) for _ in range(2))
        self.down = nn.Linear(inter, hidden, bias=False)

    def forward(self, x, cos, sin, mask):
        y, shape = self.before(x), (sequences, length, heads, hidden // heads)
        q, k, v = (f(y).view(shape).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        scores = (q @ k.transpose(-2, -1) * (hidden // heads) ** -0.5 + mask).softmax(-1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(sequences, length, hidden))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = Norm()

    def forward(self, tokens):
        size = hidden // heads
        angles = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return self.norm(x) @ self.embed.weight.T


torch.manual_seed(1)
model = Llama()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
for _ in range(steps):
    tokens = torch.randint(vocabulary, (sequences, length + 1))
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
