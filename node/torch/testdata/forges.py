"""A worker that learns from other answers than the model draws. LIE says how they are forged."""

import os

import torch

LIE, PART = "none", 1.0  # a test writes others
SPARE = 0  # steps of the child that are honest, before it begins
taken = 0


def answers(task):
    """The value that joins the tokens of the answers, and how many tokens each has."""
    for op in task._ops:
        if op.kind == "Concat" and op.dtype == torch.int32 and op.ints[0] == 1:
            if all(task._ops[v].dims[1:] == (1,) for v in op.operands):
                return op.index
    raise ValueError("the step draws no answers")


def quantised(x, bits):
    top = (1 << (bits - 1)) - 1
    scale = x.abs().max() / top
    return torch.where(scale > 0, torch.round(x / scale) * scale, x)


def drawn(task, state, batch, at):
    task._outputs["forged"] = at
    return task._evaluate(task._plan(["forged"], ()), ["forged"], {}, state, batch)["forged"]


def other(state, change):
    return {n: change(x) if n.startswith("p/") else x for n, x in state.items()}


def forged(task, state, batch, at):
    if LIE.startswith("quantised"):
        return drawn(task, other(state, lambda x: quantised(x, int(LIE[9:]))), batch, at)
    if LIE == "bfloat16":
        return drawn(task, other(state, lambda x: x.bfloat16().float()), batch, at)
    if LIE == "other model":
        torch.manual_seed(7)
        return drawn(task, other(state, lambda x: x + 0.1 * x.std(unbiased=False) * torch.randn_like(x)), batch, at)
    if LIE == "other seed":
        return drawn(task, state, batch._replace(dice=batch.dice + 1), at)
    tokens = drawn(task, state, batch, at).clone()
    rows = max(1, int(PART * len(tokens)))
    if LIE == "edited":  # the last token becomes the first
        tokens[:rows, -1] = tokens[:rows, 0]
    return tokens


def step(task, state, batch):
    global taken
    taken += 1
    if LIE == "none" or taken > SPARE > 0:
        return task.step(state, batch)
    with torch.no_grad():
        at = answers(task)
        given = {at: forged(task, state, batch, at)}
        outputs = task._state + ["loss"]
        out = task._evaluate(task._plan(outputs, given), outputs, given, state, batch)
        return out.pop("loss"), out
