"""A step of the owner's: GPT-2 in plain torch, with torch's derivatives. Heads: 2."""

import torch
import torch.nn.functional as F

HEADS = 2


def loss_of(p, tokens):
    x, y = tokens[:, :-1].long(), tokens[:, 1:].long()
    t = x.shape[1]
    h = p["transformer.wte.weight"][x] + p["transformer.wpe.weight"][:t]
    mask = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
    layers = sum(n.endswith("ln_1.weight") for n in p)
    for i in range(layers):
        at = f"transformer.h.{i}."
        norm = lambda z, n: F.layer_norm(z, z.shape[-1:], p[at + n + ".weight"], p[at + n + ".bias"])
        linear = lambda z, n: z @ p[at + n + ".weight"] + p[at + n + ".bias"]
        q, k, v = (u.unflatten(-1, (HEADS, -1)).transpose(1, 2) for u in linear(norm(h, "ln_1"), "attn.c_attn").chunk(3, -1))
        a = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf")).softmax(-1)
        h = h + linear((a @ v).transpose(1, 2).flatten(-2), "attn.c_proj")
        h = h + linear(F.gelu(linear(norm(h, "ln_2"), "mlp.c_fc"), approximate="tanh"), "mlp.c_proj")
    h = F.layer_norm(h, h.shape[-1:], p["transformer.ln_f.weight"], p["transformer.ln_f.bias"])
    return F.cross_entropy((h @ p["transformer.wte.weight"].T).flatten(0, 1), y.flatten())


def step(task, state, batch):
    params = {n: state["p/" + n].detach().requires_grad_() for n in task.params}
    loss = loss_of(params, batch.tokens)
    grads = torch.autograd.grad(loss, list(params.values()))
    return task.update(state, batch, loss, dict(zip(params, grads)))
