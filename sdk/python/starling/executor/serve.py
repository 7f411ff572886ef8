"""The loop of the child: open, then begin, step and state as often as the worker asks."""

import importlib.util
import math
import mmap
import os
import sys
import traceback

from .wire import VERSION, Refused, Wire

REQUESTS, REPLIES, MEMORY = 3, 4, 5  # inherited files


def main():
    with os.fdopen(REQUESTS, "rb") as requests, os.fdopen(REPLIES, "wb") as replies:
        wire = Wire(requests, replies)
        try:
            serve(wire)
        except Refused as e:
            wire.refuse(e)
            return 1
        except Exception as e:
            text = traceback.format_exc(limit=-4)
            memory = isinstance(e, MemoryError) or "allocate memory" in text or "out of memory" in text
            wire.refuse(Refused("MEMORY" if memory else "STEP", text))
            return 1
    return 0


def serve(wire):
    """Answers requests until there are no more of them."""
    machine = session = None
    while True:
        request = wire.receive()
        if request is None:
            return
        kind = request["type"]
        due = "hello" if machine is None else "open" if session is None else None
        if kind != due if due else kind in ("hello", "open"):
            raise Refused("PROTOCOL", f"a request {kind!r} is out of place: hello comes first, then open, and both once")
        if kind == "hello":
            machine = Machine(request)
            wire.send("ready", version=VERSION, torch=str(machine.torch.__version__), device=str(machine.device))
        elif kind == "open":
            session = Session(machine, request, wire)
            wire.send("opened")
        elif kind == "begin":
            session.begin()
            wire.send("begun")
        elif kind == "step":
            loss = session.advance(request["lr"], request["c1"], request["c2"], request.get("dice"))
            wire.send("stepped", loss=loss if math.isfinite(loss) else None)
        elif kind == "state":
            session.write()
            wire.send("written")
        else:
            raise Refused("PROTOCOL", f"there is no request {kind!r}")


class Machine:
    """What the owner of the worker chose: the torch that is here, a device, a module."""

    def __init__(self, request):
        if request["version"] != VERSION:
            raise Refused("PROTOCOL", f"the worker speaks version {request['version']} of the protocol, this executor version {VERSION}")
        try:
            import torch
        except ImportError as e:
            raise Refused("NO_TORCH", f"{sys.executable} cannot import torch: {e}") from None
        self.torch = torch
        torch.set_num_threads(max(1, request["threads"]))
        torch.use_deterministic_algorithms(True, warn_only=True)
        self.device = place(torch, request["device"])
        self.step = load(request["module"]) if request["module"] else None


class Session:
    """A job's step on the machine, and the state of the unit under way."""

    def __init__(self, machine, request, wire):
        from .operators import DTYPES
        from .task import Batch, Task

        self.torch, self.device, self.Batch, self.state = machine.torch, machine.device, Batch, None
        memory = mmap.mmap(MEMORY, request["bytes"])

        def view(place):
            dtype, count = DTYPES[place["dtype"]], math.prod(place["dims"])
            return self.torch.frombuffer(memory, dtype=dtype, count=count, offset=place["offset"]).reshape(place["dims"])

        self.shared = {place["name"]: view(place) for place in request["state"]}
        self.tokens = view(request["tokens"])
        frozen = {place["name"][len("p/"):]: view(place).clone().to(self.device) for place in request.get("frozen", [])}
        params = [n[len("p/"):] for n in self.shared if n.startswith("p/")]
        places = {g["op"]: [view(g[name]) for name in ("rows", "answers", "reward")] for g in request.get("grades", [])}

        def grade(op, rows, answers):
            """The rewards of answers to rows of examples, which the worker computes."""
            into_rows, into_answers, reward = places[op]
            into_rows.copy_(rows)
            into_answers.copy_(answers)
            wire.send("grade", op=op)
            if (wire.receive() or {}).get("type") != "graded":
                raise Refused("PROTOCOL", "the worker does not answer with a reward")
            return reward.clone().to(self.device)

        self.task = Task(request["program"], params, frozen, self.device, grade)
        self.step = machine.step or Task.step
        self.anchors = [op["name"] for op in request["program"]["ops"] if op["name"].startswith("b/")]

    def begin(self):
        """Takes the state that a unit starts from out of the shared memory."""
        self.state = {n: x.clone().to(self.device) for n, x in self.shared.items()}
        self.began = {n: self.state["p/" + n[len("b/"):]] for n in self.anchors}

    def advance(self, lr, c1, c2, dice=None):
        """Takes a step on the tokens in the shared memory and returns its loss."""
        if self.state is None:
            raise Refused("PROTOCOL", "a step before the state of a unit")
        scalars = (self.torch.tensor(x, dtype=self.torch.float32, device=self.device) for x in (lr, c1, c2))
        key = None if dice is None else self.torch.tensor(dice, dtype=self.torch.int64, device=self.device)
        batch = self.Batch(self.tokens.clone().to(self.device), *scalars, key)
        loss, after = self.step(self.task, {**self.state, **self.began}, batch)
        for n, x in self.shared.items():
            if n not in after or after[n].shape != x.shape or after[n].dtype != x.dtype:
                raise Refused("MODULE", f"the state after a step has no float32 tensor {n} of shape {list(x.shape)}")
        self.state = {n: after[n].detach() for n in self.shared}
        return float(loss)

    def write(self):
        """Writes the state reached into the shared memory."""
        if self.state is None:
            raise Refused("PROTOCOL", "there is no state yet")
        for n, x in self.shared.items():
            x.copy_(self.state[n])


def place(torch, name):
    """The device of that name; auto is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except Exception as e:
        raise Refused("DEVICE", f"torch cannot compute on {name!r}: {e}") from None
    if device.type == "cuda":  # float32 means float32
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    return device


def load(path):
    """The function step of the owner's module."""
    spec = importlib.util.spec_from_file_location("owner_step", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception:
        raise Refused("MODULE", f"the module fails: {traceback.format_exc(limit=-3)}") from None
    if not callable(getattr(module, "step", None)):
        raise Refused("MODULE", "the module has no function step(task, state, batch)")
    return module.step
