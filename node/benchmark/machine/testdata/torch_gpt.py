#!/usr/bin/env python3
"""The measurements of `starling bench` in PyTorch, on the CPU.

  torch_gpt.py matmul [--transposed]      GFLOP/s of float32 matrix products
  torch_gpt.py train --preset gpt2-10m    tokens/s, processor time and peak memory of forward + backward + AdamW
  torch_gpt.py losses --model DIR --batches FILE --steps N
      losses of N training steps from the weights of a Hugging Face GPT-2 folder (model.safetensors),
      batches as little-endian int32 [steps, batch, context+1]

Prints one JSON object. Needs PyTorch 1.13 or newer with OpenBLAS.
"""
import argparse, json, math, resource, struct, time
import torch
import torch.nn as nn
import torch.nn.functional as F

PRESETS = {  # layers, width, heads, context, batch, vocabulary
    "gpt2-10m": (6, 384, 6, 256, 8, 256),
    "gpt2-124m": (12, 768, 12, 512, 1, 50257),
    "llama-10m": (6, 384, 6, 256, 8, 256),
}
LLAMA_KV_HEADS, LLAMA_INNER = 2, 1024
SHAPES = [("sq512", 1, 512, 512, 512), ("sq1024", 1, 1024, 1024, 1024), ("sq2048", 1, 2048, 2048, 2048),
          ("fc", 1, 2048, 384, 1536), ("proj", 1, 2048, 1536, 384), ("qkv", 1, 2048, 384, 1152),
          ("att_qk", 48, 256, 64, 256), ("att_av", 48, 256, 256, 64)]
TRANSPOSED = [("fc_dx", 1, 2048, 1536, 384), ("fc_dw", 1, 384, 2048, 1536), ("proj_dx", 1, 2048, 384, 1536),
              ("proj_dw", 1, 1536, 2048, 384), ("att_qkt", 48, 256, 64, 256), ("att_dv", 48, 256, 256, 64)]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.attn_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.c_fc, self.mlp_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = (u.view(b, t, self.heads, d // self.heads).transpose(1, 2) for u in self.c_attn(self.ln_1(x)).split(d, 2))
        a = (q @ k.transpose(-2, -1)) / math.sqrt(d // self.heads)
        a = a.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.attn_proj((a @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, d, heads, t, vocab, tied=True):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(t, d)
        self.h = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d)
        self.register_buffer("mask", torch.ones(t, t, dtype=torch.bool).triu(1))

    def forward(self, x, y):
        t = x.shape[1]
        h = self.wte(x) + self.wpe.weight[:t]
        for blk in self.h:
            h = blk(h, self.mask[:t, :t])
        return F.cross_entropy((self.ln_f(h) @ self.wte.weight.T).flatten(0, 1), y.flatten())


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, d, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, d // heads
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.q, self.k, self.v = linear(d, d), linear(d, kv_heads * self.dim), linear(d, kv_heads * self.dim)
        self.o, self.gate, self.up, self.down = linear(d, d), linear(d, inner), linear(d, inner), linear(inner, d)
        self.norm_1, self.norm_2 = RMSNorm(d), RMSNorm(d)

    def forward(self, x, mask, cos, sin):
        b, t, d = x.shape
        y = self.norm_1(x)
        q, k, v = (f(y).view(b, t, -1, self.dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = (u * cos + torch.cat((-u.chunk(2, -1)[1], u.chunk(2, -1)[0]), -1) * sin for u in (q, k))
        k, v = (u.repeat_interleave(self.heads // self.kv_heads, 1) for u in (k, v))
        a = (q @ k.transpose(-2, -1)) / math.sqrt(self.dim)
        a = a.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.o((a @ v).transpose(1, 2).reshape(b, t, d))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, d, heads, t, vocab):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab, bias=False)
        self.h = nn.ModuleList(LlamaBlock(d, heads, LLAMA_KV_HEADS, LLAMA_INNER) for _ in range(layers))
        self.norm = RMSNorm(d)
        angle = torch.outer(torch.arange(t).float(), 10000.0 ** (-torch.arange(0, d // heads, 2) / (d // heads)))
        self.register_buffer("cos", torch.cat((angle, angle), -1).cos())
        self.register_buffer("sin", torch.cat((angle, angle), -1).sin())
        self.register_buffer("mask", torch.ones(t, t, dtype=torch.bool).triu(1))

    def forward(self, x, y):
        h = self.embed(x)
        for blk in self.h:
            h = blk(h, self.mask, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


def safetensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        data = f.read()
    return {k: torch.frombuffer(bytearray(data[v["data_offsets"][0]:v["data_offsets"][1]]), dtype=torch.float32).reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__"}


def load_gpt2(folder):
    cfg = json.load(open(folder + "/config.json"))
    m = GPT(cfg["n_layer"], cfg["n_embd"], cfg["n_head"], cfg["n_positions"], cfg["vocab_size"])
    w = {k.removeprefix("transformer."): v for k, v in safetensors(folder + "/model.safetensors").items()}
    names = {"attn.c_attn": "c_attn", "attn.c_proj": "attn_proj", "mlp.c_fc": "c_fc", "mlp.c_proj": "mlp_proj"}
    state = m.state_dict()
    for k, v in w.items():
        for a, b in names.items():
            if f".{a}." in k:
                k = k.replace(a, b)
                v = v.T.contiguous() if k.endswith("weight") else v  # Conv1D stores [in, out]
        if k in state:
            state[k].copy_(v)
    return m, cfg


def adamw(m, a):
    return torch.optim.AdamW(m.parameters(), lr=a.lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=a.wd)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["matmul", "train", "losses"])
    p.add_argument("--preset", default="gpt2-10m", choices=PRESETS)
    p.add_argument("--transposed", action="store_true")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--model"), p.add_argument("--batches"), p.add_argument("--batch", type=int, default=8)
    p.add_argument("--lr", type=float, default=3e-4), p.add_argument("--wd", type=float, default=0.1)
    p.add_argument("--clip", type=float, default=0.0)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    if a.what == "matmul":
        out, cpu = {}, {}
        for name, b, m, k, n in SHAPES + (TRANSPOSED if a.transposed else []):
            x = torch.randn(b, k, m).transpose(1, 2) if name.endswith(("_dw", "_dv")) else torch.randn(b, m, k)
            y = torch.randn(b, n, k).transpose(1, 2) if name.endswith(("_dx", "_qkt")) else torch.randn(b, k, n)
            if b == 1:
                x, y = x[0], y[0]
            flops, best, cheapest = 2 * b * m * k * n, 1e9, 1e9
            for _ in range(max(5, int(2e10 / flops))):
                c, t = time.process_time(), time.perf_counter()
                x @ y
                best, cheapest = min(best, time.perf_counter() - t), min(cheapest, time.process_time() - c)
            out[name], cpu[name] = round(flops / best / 1e9, 1), round(flops / cheapest / 1e9, 1)
        print(json.dumps({"gflops": out, "gflops_cpu": cpu, "threads": a.threads}))
    elif a.what == "train":
        layers, d, heads, t, batch, vocab = PRESETS[a.preset]
        m = (Llama if a.preset.startswith("llama") else GPT)(layers, d, heads, t, vocab)
        opt, times, cpu = adamw(m, a), [], []
        for _ in range(a.steps + 1):
            x = torch.randint(0, vocab, (batch, t + 1))
            s, c = time.perf_counter(), time.process_time()
            loss = m(x[:, :-1], x[:, 1:])
            opt.zero_grad(); loss.backward(); opt.step(); loss.item()
            times.append(time.perf_counter() - s), cpu.append(time.process_time() - c)
        times = sorted(times[1:])
        print(json.dumps({"preset": a.preset, "threads": a.threads, "tokens_per_second": round(batch * t / times[len(times) // 2], 1),
                          "cpu_seconds": round(min(cpu[1:]), 3), "parameters": sum(q.numel() for q in m.parameters()),
                          "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
    else:
        m, cfg = load_gpt2(a.model)
        opt, t = adamw(m, a), cfg["n_positions"]
        raw = torch.frombuffer(bytearray(open(a.batches, "rb").read()), dtype=torch.int32).long().reshape(-1, a.batch, t + 1)
        losses = []
        for x in raw[: a.steps]:
            loss = m(x[:, :-1], x[:, 1:])
            opt.zero_grad(); loss.backward()
            if a.clip:
                nn.utils.clip_grad_norm_(m.parameters(), a.clip)
            opt.step(); losses.append(loss.item())
        print(json.dumps({"losses": losses}))


if __name__ == "__main__":
    main()
