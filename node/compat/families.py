"""Fills model folders with small random weights, and writes the logits that plain PyTorch gives for them.

    python3 families.py FOLDER...      writes model.safetensors and expected.json beside each config.json
    python3 families.py --check FOLDER...  computes the logits anew and prints the largest difference of each folder, and whether
                                           the greedy text is the stored one
    python3 families.py --continue FOLDER N ID...  prints the N ids that follow greedily

Every model is written from its paper and the layouts of Hugging Face, with nothing but PyTorch. It shares no code with the
programs that are held against it.
"""
import json
import math
import os
import struct
import sys

import torch
import torch.nn.functional as F

TOKENS = 24
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def activation(name):
    tanh = lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return {"silu": F.silu, "gelu": F.gelu, "relu": F.relu, "gelu_new": tanh, "gelu_pytorch_tanh": tanh}[name]


class Weights:
    """Random tensors by name while a folder is made, and those of the file afterwards."""

    def __init__(self, stored=None, dtype=torch.float32, seed=0):
        self.tensors, self.stored, self.dtype = {}, stored, dtype
        self.random = torch.Generator().manual_seed(seed)

    def get(self, name, *shape, mean=0.0, std=None):
        if name not in self.tensors:
            if self.stored is not None:
                self.tensors[name] = self.stored[name]
            else:
                std = std if std is not None else 0.8 / math.sqrt(shape[-1])
                value = mean + std * torch.randn(*shape, generator=self.random)
                self.tensors[name] = value.to(self.dtype).float()
        assert tuple(self.tensors[name].shape) == shape, (name, self.tensors[name].shape, shape)
        return self.tensors[name]

    def linear(self, x, name, out, bias=False):
        b = self.get(name + ".bias", out, std=0.2) if bias else None
        return F.linear(x, self.get(name + ".weight", out, x.shape[-1]), b)

    def conv1d(self, x, name, out):
        return x @ self.get(name + ".weight", x.shape[-1], out, std=0.8 / math.sqrt(x.shape[-1])) + self.get(name + ".bias", out, std=0.2)

    def layer_norm(self, x, name, eps):
        n = x.shape[-1]
        return F.layer_norm(x, (n,), self.get(name + ".weight", n, mean=1, std=0.2), self.get(name + ".bias", n, std=0.2), eps)

    def rms_norm(self, x, name, eps, plus=0.0):
        gain = self.get(name + ".weight", x.shape[-1], mean=1 - plus, std=0.2)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (plus + gain)


def frequencies(c, dim, theta, scaling):
    """The angles of a step, and the factor of the rotated vectors."""
    inverse = 1.0 / theta ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim)
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind in ("default", "dynamic"):
        return inverse, 1.0
    factor = scaling["factor"]
    if kind == "linear":
        return inverse / factor, 1.0
    old = scaling.get("original_max_position_embeddings", c["max_position_embeddings"])
    if kind == "llama3":
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        wavelength = 2 * math.pi / inverse
        smooth = (old / wavelength - low) / (high - low)
        between = (1 - smooth) * inverse / factor + smooth * inverse
        slow = torch.where(wavelength > old / low, inverse / factor, inverse)
        is_between = ~(wavelength < old / high) & ~(wavelength > old / low)
        return torch.where(is_between, between, slow), 1.0
    assert kind == "yarn", kind
    pair = lambda turns: dim * math.log(old / (turns * 2 * math.pi)) / (2 * math.log(theta))
    low = max(math.floor(pair(scaling.get("beta_fast", 32))), 0)
    high = min(math.ceil(pair(scaling.get("beta_slow", 1))), dim - 1)
    ramp = ((torch.arange(dim // 2).float() - low) / (max(high - low, 0.001))).clamp(0, 1)
    attention = scaling.get("attention_factor") or 0.1 * math.log(factor) + 1
    return inverse / factor * ramp + inverse * (1 - ramp), attention


def rotate(x, angles, factor):
    """Turns the first elements of heads x [heads, length, dim]."""
    dim = 2 * angles.shape[-1]
    turned, rest = x[..., :dim], x[..., dim:]
    both = torch.cat((angles, angles), -1)
    half = torch.cat((-turned[..., dim // 2:], turned[..., :dim // 2]), -1)
    return torch.cat((turned * both.cos() * factor + half * both.sin() * factor, rest), -1)


def attention(q, k, v, scale, window=None, cap=None):
    """Causal attention of heads [heads, length, dim]; k and v may have fewer."""
    k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], 0) for x in (k, v))
    scores = q @ k.transpose(1, 2) * scale
    if cap:
        scores = torch.tanh(scores / cap) * cap
    at = torch.arange(q.shape[1])
    seen = at[None, :] <= at[:, None]
    if window:
        seen &= at[:, None] - at[None, :] < window
    scores = scores.masked_fill(~seen, float("-inf"))
    return (torch.softmax(scores, -1) @ v).transpose(0, 1).reshape(q.shape[1], -1)


def heads(x, n):
    return x.view(x.shape[0], n, -1).transpose(0, 1)


def gpt2(c, w, tokens):
    d, act = c["n_embd"], activation(c.get("activation_function", "gelu_new"))
    eps = c.get("layer_norm_epsilon", 1e-5)
    embed = w.get("transformer.wte.weight", c["vocab_size"], d, std=0.5)
    x = embed[tokens] + w.get("transformer.wpe.weight", c["n_positions"], d, std=0.5)[:len(tokens)]
    for i in range(c["n_layer"]):
        h = f"transformer.h.{i}."
        y = w.conv1d(w.layer_norm(x, h + "ln_1", eps), h + "attn.c_attn", 3 * d)
        q, k, v = (heads(part, c["n_head"]) for part in y.split(d, -1))
        scale = 1 / math.sqrt(d // c["n_head"]) if c.get("scale_attn_weights", True) else 1.0
        if c.get("scale_attn_by_inverse_layer_idx"):
            scale /= i + 1
        x = x + w.conv1d(attention(q, k, v, scale), h + "attn.c_proj", d)
        y = act(w.conv1d(w.layer_norm(x, h + "ln_2", eps), h + "mlp.c_fc", c.get("n_inner") or 4 * d))
        x = x + w.conv1d(y, h + "mlp.c_proj", d)
    x = w.layer_norm(x, "transformer.ln_f", eps)
    return F.linear(x, embed if c.get("tie_word_embeddings", True) else w.get("lm_head.weight", c["vocab_size"], d))


def sliding(c, i):
    """The window of a layer, if it has one."""
    kind, window = c["model_type"], c.get("sliding_window")
    if kind in ("mistral", "phi3"):
        return window
    if kind in ("qwen2", "qwen3"):
        return window if c.get("use_sliding_window") and i >= c["max_window_layers"] else None
    if kind == "gemma2":
        return window if i % 2 == 0 else None
    if kind == "gemma3_text":
        return window if (i + 1) % c["sliding_window_pattern"] != 0 else None
    return None


def llama(c, w, tokens):
    """Llama, Mistral, Qwen 2 and 3, Phi 3, and Gemma 1 to 3."""
    kind, d, eps, gemma = c["model_type"], c["hidden_size"], c["rms_norm_eps"], c["model_type"].startswith("gemma")
    n, kv = c["num_attention_heads"], c.get("num_key_value_heads") or c["num_attention_heads"]
    size = c.get("head_dim") or d // n
    plus = 1.0 if gemma else 0.0
    norm = lambda x, name: w.rms_norm(x, name, eps, plus)
    act = activation((c.get("hidden_activation") or "gelu_pytorch_tanh") if gemma else c["hidden_act"])
    bias = kind == "qwen2" or c.get("attention_bias", False)
    out_bias = bias and kind != "qwen2"
    mlp_bias = c.get("mlp_bias", False)
    embed = w.get("model.embed_tokens.weight", c["vocab_size"], d, std=0.5)
    x = embed[tokens]
    if gemma:
        x = x * torch.tensor(d ** 0.5)
    at = torch.arange(len(tokens)).float()
    dim = int(size * c.get("partial_rotary_factor", 1.0))
    step, factor = frequencies(c, dim, c.get("rope_theta", 10000.0), c.get("rope_scaling"))
    for i in range(c["num_hidden_layers"]):
        h, window = f"model.layers.{i}.", sliding(c, i)
        y = norm(x, h + "input_layernorm")
        if kind == "phi3":
            q, k, v = w.linear(y, h + "self_attn.qkv_proj", (n + 2 * kv) * size).split([n * size, kv * size, kv * size], -1)
        else:
            q = w.linear(y, h + "self_attn.q_proj", n * size, bias)
            k = w.linear(y, h + "self_attn.k_proj", kv * size, bias)
            v = w.linear(y, h + "self_attn.v_proj", kv * size, bias)
        q, k, v = heads(q, n), heads(k, kv), heads(v, kv)
        if kind in ("qwen3", "gemma3_text"):
            q, k = norm(q, h + "self_attn.q_norm"), norm(k, h + "self_attn.k_norm")
        own, own_factor = step, factor
        if kind == "gemma3_text" and window:
            own, own_factor = frequencies(c, size, c["rope_local_base_freq"], None)
        angles = at[:, None] * own[None, :]
        q, k = rotate(q, angles, own_factor), rotate(k, angles, own_factor)
        scale = 1 / math.sqrt(c["query_pre_attn_scalar"] if "query_pre_attn_scalar" in c else size)
        y = attention(q, k, v, scale, window, c.get("attn_logit_softcapping"))
        y = w.linear(y, h + "self_attn.o_proj", d, out_bias)
        if kind in ("gemma2", "gemma3_text"):
            y = norm(y, h + "post_attention_layernorm")
        x = x + y
        sandwich = kind in ("gemma2", "gemma3_text")
        y = norm(x, h + ("pre_feedforward_layernorm" if sandwich else "post_attention_layernorm"))
        inner = c["intermediate_size"]
        if kind == "phi3":
            gate, up = w.linear(y, h + "mlp.gate_up_proj", 2 * inner).chunk(2, -1)
        else:
            gate, up = w.linear(y, h + "mlp.gate_proj", inner, mlp_bias), w.linear(y, h + "mlp.up_proj", inner, mlp_bias)
        y = w.linear(act(gate) * up, h + "mlp.down_proj", d, mlp_bias)
        if sandwich:
            y = norm(y, h + "post_feedforward_layernorm")
        x = x + y
    x = norm(x, "model.norm")
    tied = c.get("tie_word_embeddings", gemma)
    logits = F.linear(x, embed if tied else w.get("lm_head.weight", c["vocab_size"], d))
    cap = c.get("final_logit_softcapping")
    return torch.tanh(logits / cap) * cap if cap else logits


def phi(c, w, tokens):
    d, n, eps, act = c["hidden_size"], c["num_attention_heads"], c["layer_norm_eps"], activation(c["hidden_act"])
    size = d // n
    x = w.get("model.embed_tokens.weight", c["vocab_size"], d, std=0.5)[tokens]
    step, _ = frequencies(c, int(size * c["partial_rotary_factor"]), c["rope_theta"], c.get("rope_scaling"))
    angles = torch.arange(len(tokens)).float()[:, None] * step[None, :]
    for i in range(c["num_hidden_layers"]):
        h = f"model.layers.{i}."
        y = w.layer_norm(x, h + "input_layernorm", eps)
        q, k, v = (heads(w.linear(y, h + f"self_attn.{p}_proj", d, True), n) for p in "qkv")
        a = attention(rotate(q, angles, 1), rotate(k, angles, 1), v, 1 / math.sqrt(size))
        m = w.linear(act(w.linear(y, h + "mlp.fc1", c["intermediate_size"], True)), h + "mlp.fc2", d, True)
        x = w.linear(a, h + "self_attn.dense", d, True) + m + x
    return w.linear(w.layer_norm(x, "model.final_layernorm", eps), "lm_head", c["vocab_size"], True)


def neox(c, w, tokens):
    d, n, eps, act = c["hidden_size"], c["num_attention_heads"], c["layer_norm_eps"], activation(c["hidden_act"])
    size = d // n
    x = w.get("gpt_neox.embed_in.weight", c["vocab_size"], d, std=0.5)[tokens]
    step, _ = frequencies(c, int(size * c["rotary_pct"]), c["rotary_emb_base"], None)
    angles = torch.arange(len(tokens)).float()[:, None] * step[None, :]
    for i in range(c["num_hidden_layers"]):
        h = f"gpt_neox.layers.{i}."
        y = w.linear(w.layer_norm(x, h + "input_layernorm", eps), h + "attention.query_key_value", 3 * d, True)
        q, k, v = y.view(len(tokens), n, 3 * size).permute(1, 0, 2).chunk(3, -1)
        a = attention(rotate(q, angles, 1), rotate(k, angles, 1), v, 1 / math.sqrt(size))
        a = w.linear(a, h + "attention.dense", d, True)
        feed = lambda y: w.linear(act(w.linear(y, h + "mlp.dense_h_to_4h", c["intermediate_size"], True)), h + "mlp.dense_4h_to_h", d, True)
        if c["use_parallel_residual"]:
            x = x + a + feed(w.layer_norm(x, h + "post_attention_layernorm", eps))
        else:
            x = x + a
            x = x + feed(w.layer_norm(x, h + "post_attention_layernorm", eps))
    x = w.layer_norm(x, "gpt_neox.final_layer_norm", eps)
    return w.linear(x, "embed_out", c["vocab_size"])


def opt(c, w, tokens):
    d, n, act = c["hidden_size"], c["num_attention_heads"], activation(c["activation_function"])
    narrow, before = c["word_embed_proj_dim"], c["do_layer_norm_before"]
    embed = w.get("model.decoder.embed_tokens.weight", c["vocab_size"], narrow, std=0.5)
    x = embed[tokens]
    if narrow != d:
        x = w.linear(x, "model.decoder.project_in", d)
    x = x + w.get("model.decoder.embed_positions.weight", c["max_position_embeddings"] + 2, d, std=0.5)[2:2 + len(tokens)]
    for i in range(c["num_hidden_layers"]):
        h = f"model.decoder.layers.{i}."
        norm = lambda x, name: w.layer_norm(x, h + name, 1e-5)
        y = norm(x, "self_attn_layer_norm") if before else x
        q, k, v = (heads(w.linear(y, h + f"self_attn.{p}_proj", d, True), n) for p in "qkv")
        x = x + w.linear(attention(q, k, v, 1 / math.sqrt(d // n)), h + "self_attn.out_proj", d, True)
        x = x if before else norm(x, "self_attn_layer_norm")
        y = norm(x, "final_layer_norm") if before else x
        x = x + w.linear(act(w.linear(y, h + "fc1", c["ffn_dim"], True)), h + "fc2", d, True)
        x = x if before else norm(x, "final_layer_norm")
    if before and not c.get("_remove_final_layer_norm"):
        x = w.layer_norm(x, "model.decoder.final_layer_norm", 1e-5)
    if narrow != d:
        x = w.linear(x, "model.decoder.project_out", narrow)
    return F.linear(x, embed)


MODELS = {"gpt2": gpt2, "phi": phi, "gpt_neox": neox, "opt": opt}


def save(path, tensors, dtype):
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors):
        raw = tensors[name].to(DTYPES[dtype]).contiguous()
        data = raw.view(torch.int16 if raw.element_size() == 2 else torch.int32).numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(raw.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, e in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__":
            lo, hi = e["data_offsets"]
            data = torch.frombuffer(bytearray(raw[8 + n + lo:8 + n + hi]), dtype=DTYPES[e["dtype"]])
            out[name] = data.view(e["shape"]).float()
    return out


def greedy(forward, c, w, ids, n):
    """The n ids that follow, each the most likely one."""
    ids = list(ids)
    for _ in range(n):
        ids.append(int(forward(c, w, torch.tensor(ids))[-1].argmax()))
    return ids[-n:]


def follow(folder, n, *ids):
    c = json.load(open(os.path.join(folder, "config.json")))
    w = Weights(load(os.path.join(folder, "model.safetensors")))
    print(json.dumps(greedy(MODELS.get(c["model_type"], llama), c, w, map(int, ids), int(n))))


GREEDY = 40  # ids, after the first BEGIN
BEGIN = 8


def main():
    check = sys.argv[1] == "--check"
    torch.set_num_threads(1)
    if sys.argv[1] == "--continue":
        return follow(*sys.argv[2:])
    for number, folder in enumerate(sys.argv[1 + check:]):
        c = json.load(open(os.path.join(folder, "config.json")))
        forward = MODELS.get(c["model_type"], llama)
        expected = os.path.join(folder, "expected.json")
        if check:
            was = json.load(open(expected))
            w = Weights(load(os.path.join(folder, "model.safetensors")))
            logits = forward(c, w, torch.tensor(was["tokens"]))
            print(json.dumps({"folder": os.path.basename(folder), "difference": (logits - torch.tensor(was["logits"])).abs().max().item(),
                              "greedy": greedy(forward, c, w, was["tokens"][:BEGIN], GREEDY) == was["greedy"]}))
            continue
        dtype = ["F32", "BF16", "F16"][number % 3]
        w = Weights(dtype=DTYPES[dtype], seed=number)
        tokens = torch.randint(0, c["vocab_size"], (TOKENS,), generator=w.random)
        logits = forward(c, w, tokens)
        save(os.path.join(folder, "model.safetensors"), w.tensors, dtype)
        text = greedy(forward, c, w, tokens[:BEGIN].tolist(), GREEDY)
        with open(expected, "w") as f:
            rows = ",\n".join("[" + ",".join("%.7g" % x for x in row) + "]" for row in logits.tolist())
            f.write('{"tokens": %s, "greedy": %s, "logits": [\n%s\n]}\n' % (json.dumps(tokens.tolist()), json.dumps(text), rows))


if __name__ == "__main__":
    main()
