"""A job's training step, as the worker sends it, and what a step is given."""

import base64
from typing import NamedTuple, Optional

import torch

from .operators import ATTENTION, DTYPES, PURE, SOURCES, Attention, iota
from .wire import Refused


class Batch(NamedTuple):
    """What one inner step is given: int32 tokens [batch, length+1], and scalars: the learning rate of the job's schedule, and
    AdamW's bias corrections 1/(1-beta^t), t counted from 1 within the unit; and, of a step that draws answers or noise, the key
    of its random numbers: int64 [3]."""

    tokens: torch.Tensor
    lr: torch.Tensor
    c1: torch.Tensor
    c2: torch.Tensor
    dice: Optional[torch.Tensor] = None


class Operator:
    """One operator of a program: a kind, the values it reads, the shape of the one it makes, and attributes."""

    def __init__(self, index, raw):
        self.index, self.kind, self.operands, self.ints = index, raw["kind"], tuple(raw["in"]), tuple(raw["ints"])
        self.dims, self.name, self.data = tuple(raw["dims"]), raw["name"], raw["data"]
        if self.kind not in PURE and self.kind not in ATTENTION and self.kind not in SOURCES + ("Grade",):
            raise Refused("UNSUPPORTED_OPERATOR", f"operator {index} is a {self.kind}, which this executor has no function for")
        if raw["dtype"] not in DTYPES and self.kind != "Random":  # whose words are held in int64
            raise Refused("UNSUPPORTED_TYPE", f"operator {index} ({self.kind}) makes {raw['dtype']}, which torch has not got")
        self.dtype = DTYPES.get(raw["dtype"], torch.int64)
        self.lse = 3 if self.kind == "CausalAttentionGradV" else 4  # which operand of a gradient of attention that is

    def constant(self, device):
        raw = torch.frombuffer(bytearray(base64.b64decode(self.data)), dtype=self.dtype)
        return raw.reshape(self.dims).to(device)


class Task:
    """The training step of a job.

    params: the names of the parameters. frozen: tensors that the step reads and does not train, by name. device: where tensors
    are. attributes of the model are in the step itself: what a module needs to know of it, it knows from its owner.
    """

    def __init__(self, program, params, frozen, device, grade=None):
        self.params, self.frozen, self.device, self._grade = list(params), frozen, device, grade
        self._ops = [Operator(i, raw) for i, raw in enumerate(program["ops"])]
        self._outputs = {o["name"]: o["value"] for o in program["outputs"]}
        self._constants = {op.index: op.constant(device) for op in self._ops if op.kind == "Constant"}
        self._state = [prefix + n for prefix in ("p/", "m/", "v/") for n in self.params]
        self._whole = self._plan(self._state + ["loss"], ())
        self._grads = {n: self._gradient(n) for n in self.params}
        self._rest = self._plan(self._state, set(self._grads.values()))

    def _gradient(self, name):
        """The value that is the gradient of the loss: what the first moment takes up, or what FedProx adds its pull to."""
        at = self._ops[self._outputs["m/" + name]].operands[1]
        pulled = any(op.name == "b/" + name for op in self._ops)
        return self._ops[at].operands[0] if pulled else at

    def step(self, state, batch):
        """Takes an inner step as the built-in engine does, operator by operator, and returns the loss and the state after it."""
        with torch.no_grad():
            out = self._evaluate(self._whole, self._state + ["loss"], {}, state, batch)
            return out.pop("loss"), out

    def update(self, state, batch, loss, grads):
        """Clips the gradients, applies AdamW as the job has it, and returns the loss and the state after that.

        grads: for every parameter the gradient of the loss, of its shape."""
        with torch.no_grad():
            given = {}
            for n, at in self._grads.items():
                want, got = state["p/" + n].shape, grads[n].shape
                if want != got:
                    raise ValueError(f"the gradient of {n} has the shape {list(got)}, the parameter {list(want)}")
                given[at] = grads[n].detach().to(torch.float32)
            return loss.detach(), self._evaluate(self._rest, self._state, given, state, batch)

    def _plan(self, outputs, given):
        """The operators that outputs need beyond the values given, in order, each with the values that are read last there."""
        needed, last = set(), {}
        stack = [self._outputs[n] for n in outputs]
        while stack:
            i = stack.pop()
            if i not in needed and i not in given:
                needed.add(i)
                stack.extend(self._ops[i].operands)
        order = sorted(needed)
        for i in order:
            for v in self._ops[i].operands:
                last[v] = i
        kept = {self._outputs[n] for n in outputs}
        return [(self._ops[i], [v for v in set(self._ops[i].operands) if last[v] == i and v not in kept]) for i in order]

    def _evaluate(self, plan, outputs, given, state, batch):
        values, attention = dict(given), Attention()
        for op, over in plan:
            operands = [values[v] for v in op.operands]
            if op.kind == "Input":
                values[op.index] = self._input(op.name, state, batch)
            elif op.kind == "Constant":
                values[op.index] = self._constants[op.index]
            elif op.kind == "Iota":
                values[op.index] = iota(op, self.device)
            elif op.kind == "Grade":  # the worker computes it
                values[op.index] = self._grade(op.index, *operands)
            elif op.kind in ATTENTION:
                values[op.index] = ATTENTION[op.kind](attention, op, *operands)
            else:
                values[op.index] = PURE[op.kind](op, *operands)
            del operands
            for v in over:
                del values[v]
        return {n: values[self._outputs[n]] for n in outputs}

    def _input(self, name, state, batch):
        if name in state:
            return state[name]
        if name in Batch._fields:
            return getattr(batch, name)
        return self.frozen[name[len("p/"):]]
