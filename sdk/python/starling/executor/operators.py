"""What each kind of operator computes, in torch. compute/program/kind.go specifies them; here they are computed with torch's
own kernels, so results agree to rounding and not to the bit."""

import math
import struct

import torch
import torch.nn.functional as F

DTYPES = {
    "float32": torch.float32, "int32": torch.int32, "int64": torch.int64, "bool": torch.bool, "int8": torch.int8,
    "uint8": torch.uint8, "float16": torch.float16, "bfloat16": torch.bfloat16,
}


def bits(value):
    """The float32 whose bits an attribute holds."""
    return struct.unpack("<f", struct.pack("<I", value))[0]


def truth(x):
    return x if x.dtype == torch.bool else x != 0


def convert(op, x):
    return truth(x) if op.dtype == torch.bool else x.to(op.dtype)


def divide(op, x, y):
    if x.dtype.is_floating_point:
        return x / y
    whole = torch.div(x, torch.where(y == 0, torch.ones_like(y), y), rounding_mode="trunc")
    return torch.where(y == 0, torch.zeros_like(whole), whole)


def iota(op, device):
    axis = op.ints[0]
    line = torch.arange(op.dims[axis], device=device).to(op.dtype)
    return line.reshape([-1 if i == axis else 1 for i in range(len(op.dims))]).expand(op.dims)


def broadcast(op, x):
    order = sorted(range(x.dim()), key=lambda i: op.ints[i])
    shape = [1] * len(op.dims)
    for i in order:
        shape[op.ints[i]] = x.shape[i]
    return x.permute(order).reshape(shape).expand(op.dims)


def cut(op, x):
    n = x.dim()
    return x[tuple(slice(op.ints[i], op.ints[n + i], op.ints[2 * n + i]) for i in range(n))]


def pad(op, x, fill):
    n, out = x.dim(), fill.expand(op.dims).clone()
    low, interior = op.ints[:n], op.ints[2 * n:]
    out[tuple(slice(a, a + (d - 1) * (i + 1) + 1, i + 1) for a, d, i in zip(low, x.shape, interior))] = x
    return out


def dot(op, x, y):
    c, b = op.ints[0], op.ints[1]
    parts, at = [], 2
    for n in (c, b, c, b):
        parts.append(list(op.ints[at:at + n]))
        at += n
    xc, xb, yc, yb = parts
    xf = [i for i in range(x.dim()) if i not in xc + xb]
    yf = [i for i in range(y.dim()) if i not in yc + yb]
    batch, inner = math.prod(x.shape[i] for i in xb), math.prod(x.shape[i] for i in xc)
    left = x.permute(xb + xf + xc).reshape(batch, -1, inner)
    right = y.permute(yb + yc + yf).reshape(batch, inner, -1)
    return torch.matmul(left, right).reshape(op.dims)


def reduce(function):
    def run(op, x):
        return function(x, dim=list(op.ints)).to(op.dtype) if op.ints else x
    return run


def add_rows(op, base, indices, updates):
    rows = indices.reshape(-1).long()
    return base.clone().index_add_(0, rows, updates.reshape([rows.numel()] + list(base.shape[1:])))


def adam_m(op, m, g, scale):
    beta = bits(op.ints[0])
    return beta * m + (1 - beta) * (g * scale)


def adam_v(op, v, g, scale):
    beta = bits(op.ints[0])
    return beta * v + (1 - beta) * (g * scale).square()


def adam_p(op, p, m, v, lr, c1, c2):
    eps, decay = bits(op.ints[0]), bits(op.ints[1])
    return p - lr * ((m * c1) / ((v * c2).sqrt() + eps) + decay * p)


def columns(logits, targets):
    """The targets as columns, and which of them are one."""
    known = (targets >= 0) & (targets < logits.shape[1])
    return torch.where(known, targets, torch.zeros_like(targets)).long().unsqueeze(1), known


def cross_entropy(op, logits, targets):
    at, known = columns(logits, targets)
    chosen = logits.gather(1, at).squeeze(1)
    top = logits.amax(1)
    return torch.logsumexp(logits, 1) - torch.where(known, chosen, top)


def cross_entropy_grad(op, logits, targets, d):
    at, known = columns(logits, targets)
    out = torch.softmax(logits, 1) * d.unsqueeze(1)
    return out.scatter_add_(1, at, -(d * known).unsqueeze(1))


SQRT_2_OVER_PI = 0.7978845608028654


def gelu_grad(op, x, d):
    square = x * x
    t = torch.tanh(SQRT_2_OVER_PI * x * (1 + 0.044715 * square))
    return d * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * square))


def silu_grad(op, x, d):
    s = torch.sigmoid(x)
    return d * s * (1 + x * (1 - s))


class Attention:
    """Causal attention and its gradients. The operators of one layer follow each other, so the weights of the last one are kept."""

    def __init__(self):
        self.key, self.kept = None, None

    def remember(self, key, make):
        if self.key != key:
            self.key, self.kept = None, None  # never two of them
            self.key, self.kept = key, make()
        return self.kept

    @staticmethod
    def grouped(x, groups):
        """[B, H, T, ...] as [B, G, H/G, T, ...]: the heads that share keys together."""
        return x.reshape([x.shape[0], groups, x.shape[1] // groups] + list(x.shape[2:]))

    def scores(self, op, q, k):
        """[B, G, H/G, T, S], and which keys each query sees."""
        s = self.grouped(q, k.shape[1]) @ k.unsqueeze(2).transpose(-2, -1)
        query = torch.arange(op.ints[0], op.ints[0] + q.shape[2], device=q.device).unsqueeze(1)
        key = torch.arange(op.ints[1], op.ints[1] + k.shape[2], device=q.device)
        return s, key <= query

    def forward(self, op, q, k):
        def make():
            s, seen = self.scores(op, q, k)
            s = s.masked_fill(~seen, -math.inf)
            return torch.softmax(s, -1), torch.logsumexp(s, -1)
        return self.remember(("forward", op.operands[:2], op.ints), make)

    def backward(self, op, q, k, lse):
        def make():
            s, seen = self.scores(op, q, k)
            return torch.where(seen, torch.exp(s - self.grouped(lse, k.shape[1]).unsqueeze(-1)), torch.zeros_like(s))
        return self.remember(("backward", op.operands[:2], op.operands[op.lse], op.ints), make)

    def attend(self, op, q, k, v):
        p, _ = self.forward(op, q, k)
        return (p @ v.unsqueeze(2)).reshape(op.dims)

    def lse(self, op, q, k):
        _, lse = self.forward(op, q, k)
        return lse.reshape(op.dims)

    def slope(self, op, q, k, v, do, lse, delta):
        p, groups = self.backward(op, q, k, lse), k.shape[1]
        return p * (self.grouped(do, groups) @ v.unsqueeze(2).transpose(-2, -1) - self.grouped(delta, groups).unsqueeze(-1))

    def grad_q(self, op, q, k, v, do, lse, delta):
        return (self.slope(op, q, k, v, do, lse, delta) @ k.unsqueeze(2)).reshape(op.dims)

    def grad_k(self, op, q, k, v, do, lse, delta):
        return self.over_queries(self.slope(op, q, k, v, do, lse, delta), q)

    def grad_v(self, op, q, k, do, lse):
        return self.over_queries(self.backward(op, q, k, lse), do)

    def over_queries(self, weights, x):
        groups = weights.shape[1]
        return weights.flatten(2, 3).transpose(-2, -1) @ self.grouped(x, groups).flatten(2, 3)


WORD = (1 << 32) - 1


def random_words(op, key):
    """The words of Philox4x32-10 that compute/philox specifies, in int64: exact integers, the same as those of the engine."""
    count = math.prod(op.dims)
    seed, stream, first = key.unbind()
    index = first + torch.arange((count + 3) // 4, device=key.device)
    c = [index & WORD, index >> 32 & WORD, (stream & WORD).expand_as(index), (stream >> 32 & WORD).expand_as(index)]
    k0, k1 = seed & WORD, seed >> 32 & WORD
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57  # of 64 bits, of which the sign is one
        c = [(b >> 32 & WORD) ^ c[1] ^ k0, b & WORD, (a >> 32 & WORD) ^ c[3] ^ k1, a & WORD]
        k0, k1 = k0 + 0x9E3779B9 & WORD, k1 + 0xBB67AE85 & WORD
    return torch.stack(c, 1).reshape(-1)[:count].reshape(op.dims)


def plain(function):
    """A function of the operands alone."""
    return lambda op, *operands: function(*operands)


PURE = {
    "Identity": plain(lambda x: x), "Neg": plain(torch.neg), "Abs": plain(torch.abs), "Sign": plain(torch.sign), "Exp": plain(torch.exp),
    "Log": plain(torch.log), "Tanh": plain(torch.tanh), "Erf": plain(torch.erf), "Logistic": plain(torch.sigmoid), "Sqrt": plain(torch.sqrt),
    "Rsqrt": plain(torch.rsqrt), "Sin": plain(torch.sin), "Cos": plain(torch.cos), "Floor": plain(torch.floor), "Ceil": plain(torch.ceil),
    "Round": plain(torch.round), "Not": plain(torch.logical_not), "Convert": convert,
    "Add": plain(torch.add), "Sub": plain(torch.sub), "Mul": plain(torch.mul), "Div": divide, "Max": plain(torch.maximum),
    "Min": plain(torch.minimum), "Pow": plain(torch.pow), "And": plain(torch.logical_and), "Or": plain(torch.logical_or),
    "Equal": plain(torch.eq), "NotEqual": plain(torch.ne), "Less": plain(torch.lt), "LessEqual": plain(torch.le),
    "Greater": plain(torch.gt), "GreaterEqual": plain(torch.ge), "Where": plain(torch.where),
    "Reshape": lambda op, x: x.reshape(op.dims), "Transpose": lambda op, x: x.permute(op.ints), "Broadcast": broadcast, "Slice": cut,
    "Pad": pad, "Concat": lambda op, *xs: torch.cat(xs, op.ints[0]), "Reverse": lambda op, x: x.flip(op.ints),
    "Dot": dot, "ReduceSum": reduce(torch.sum), "ReduceMax": reduce(torch.amax), "ReduceMin": reduce(torch.amin),
    "SumSquares": plain(lambda x: x.square().sum()),
    "TakeRows": plain(lambda table, indices: table[indices.long()]), "AddRows": add_rows,
    "AdamM": adam_m, "AdamV": adam_v, "AdamP": adam_p,
    "CrossEntropy": cross_entropy, "CrossEntropyGrad": cross_entropy_grad,
    "Gelu": plain(lambda x: F.gelu(x, approximate="tanh")), "GeluGrad": gelu_grad, "Silu": plain(F.silu), "SiluGrad": silu_grad,
    "Random": random_words,
    "Dequantize": plain(lambda codes, scale: codes.to(torch.float32) * scale),
}

ATTENTION = {
    "CausalAttention": Attention.attend, "CausalAttentionLSE": Attention.lse, "CausalAttentionGradQ": Attention.grad_q,
    "CausalAttentionGradK": Attention.grad_k, "CausalAttentionGradV": Attention.grad_v,
}

SOURCES = ("Input", "Constant", "Iota")
