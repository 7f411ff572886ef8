"""Trains the network of the test by FedAvg and by SCAFFOLD (Karimireddy et al. 2020, algorithm 1, option II), and prints the accuracies."""
import json
import sys

import torch

torch.set_num_threads(1)


def pixels(images):
    return torch.tensor(images, dtype=torch.float32) / 127.5 - 1


def scores(w, x):
    return torch.relu(x @ w[0].T + w[1]) @ w[2].T + w[3]


def train(job):
    w = [torch.tensor(v, dtype=torch.float32).reshape(s) for v, s in zip(job["weights"], job["shapes"])]
    owners = [(pixels(o["x"]), torch.tensor(o["y"])) for o in job["owners"]]
    server = [torch.zeros_like(t) for t in w]
    clients = [[torch.zeros_like(t) for t in w] for _ in owners]
    for r in range(job["rounds"]):
        moved, changed = [torch.zeros_like(t) for t in w], [torch.zeros_like(t) for t in w]
        for i, (x, y) in enumerate(owners):
            own = [t.clone().requires_grad_(True) for t in w]
            for k in range(job["steps"]):
                first = (r * job["steps"] + k) * job["batch"]
                at = [(first + j) % len(y) for j in range(job["batch"])]
                loss = torch.nn.functional.cross_entropy(scores(own, x[at]), y[at])
                gradients = torch.autograd.grad(loss, own)
                with torch.no_grad():
                    for t, g, c, s in zip(own, gradients, clients[i], server):
                        t -= job["rate"] * (g - c + s if job["scaffold"] else g)
            with torch.no_grad():
                for n, t in enumerate(own):
                    moved[n] += (t - w[n]) / len(owners)
                    new = clients[i][n] - server[n] + (w[n] - t) / (job["steps"] * job["rate"])
                    changed[n] += (new - clients[i][n]) / len(owners)
                    clients[i][n] = new
        for n in range(len(w)):
            w[n], server[n] = w[n] + moved[n], server[n] + changed[n]
    x, y = pixels(job["test"]["x"]), torch.tensor(job["test"]["y"])
    return (scores(w, x).argmax(1) == y).float().mean().item()


json.dump([train(job) for job in json.load(sys.stdin)], sys.stdout)
