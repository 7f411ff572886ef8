"""Trains the network of the test with the optimizers of PyTorch, or as their papers have them, and prints the losses."""
import json
import sys

import torch

class Lion(torch.optim.Optimizer):
    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            one, two = group["betas"]
            for t in group["params"]:
                m = self.state[t].setdefault("m", torch.zeros_like(t))
                toward = m * one + t.grad * (1 - one)
                t.mul_(1 - group["lr"] * group["weight_decay"]).sub_(group["lr"] * toward.sign())
                m.mul_(two).add_(t.grad * (1 - two))


class Adafactor(torch.optim.Optimizer):
    def __init__(self, groups, lr, betas):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0})
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            one, two = group["betas"]
            for t in group["params"]:
                g, s = t.grad.double(), self.state[t]
                square = g * g + 1e-30

                def average(key, x, beta=two):
                    s[key] = s.get(key, 0) * beta + x * (1 - beta)
                    return s[key]

                if t.dim() == 2:
                    r, c = average("r", square.mean(1)), average("c", square.mean(0))
                    second = torch.outer(r, c) / r.mean()
                else:
                    second = average("v", square)
                u = g / (second / (1 - two**self.t)).sqrt()
                u = u / max(1, u.pow(2).mean().sqrt())
                if one > 0:
                    u = average("m", u, one)
                t.sub_(group["lr"] * (u + group["weight_decay"] * t))


def train(job):
    x, y = torch.tensor(job["x"]).reshape(-1, 16), torch.tensor(job["y"])
    p = [torch.tensor(job["w"]).reshape(8, 16), torch.tensor(job["b"]), torch.tensor(job["v"]).reshape(4, 8)]
    for t in p:
        t.requires_grad_(True)
    o, decay = job["optimizer"], job["decay"]
    groups = [{"params": [p[0], p[2]], "weight_decay": decay}, {"params": [p[1]], "weight_decay": 0}]
    if o == "sgd":
        optimizer = torch.optim.SGD(groups, lr=job["lr"], momentum=job["momentum"], nesterov=job["nesterov"])
    else:
        optimizer = {"lion": Lion, "adafactor": Adafactor}[o](groups, job["lr"], job["betas"])
    losses = []
    for _ in range(job["steps"]):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(torch.tanh(x @ p[0].T + p[1]) @ p[2].T, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p, job["clip"])
        optimizer.step()
        losses.append(loss.item())
    return losses


json.dump([train(job) for job in json.load(sys.stdin)], sys.stdout)
