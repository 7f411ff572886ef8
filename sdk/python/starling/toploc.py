"""Proofs of the activations of an answer (TOPLOC), for a stack of your own, such as PyTorch:

    from starling import toploc
    hidden = ...          # the input of the output layer (after the last norm), one row for the last token of the prompt
                          # and one for every token of the answer: a tensor, an array, or a list of lists
    line = {"prompt": prompt_ids, "answer": answer_ids, "proofs": toploc.prove(hidden)}

`starling model check MODEL FILE` checks a file of such lines, as JSON, with the exact engine. It needs nothing but the
standard library; a tensor of torch is sorted by torch.
"""

import base64
import struct

TOKENS, TOP, PRIME = 32, 128, 65497


def prove(hidden):
    """Returns the proofs of the rows, one for each 32 of them, in base64."""
    return [base64.b64encode(proof(hidden[i : i + TOKENS])).decode() for i in range(0, len(hidden), TOKENS)]


def proof(rows):
    """Returns the proof of up to 32 rows: 258 bytes."""
    top = largest(rows)
    for modulus in range(PRIME, 1 << 15, -1):
        places = [i % modulus for i, _ in top]
        if len(set(places)) == TOP:
            return struct.pack(f">{TOP + 1}H", modulus, *interpolate(places, [bits for _, bits in top]))
    raise ValueError("no modulus tells the places of the activations apart")


def largest(rows):
    """The places of the largest activations, and their bits in bfloat16."""
    if hasattr(rows, "detach"):  # of torch
        flat = rows.detach().reshape(-1).float().cpu()
        flat = flat[flat.abs().topk(min(TOP, len(flat))).indices], flat.abs().topk(min(TOP, len(flat))).indices
        pairs = [(int(i), bfloat16(float(x))) for x, i in zip(*flat)]
    else:
        flat = [bfloat16(float(x)) for row in rows for x in row]
        order = sorted(range(len(flat)), key=lambda i: -(flat[i] & 0x7FFF))[:TOP]
        pairs = [(i, flat[i]) for i in order]
    if len(pairs) < TOP or any(bits & 0x7F80 == 0x7F80 for _, bits in pairs):
        raise ValueError(f"a proof needs {TOP} activations, all of them finite")
    return pairs


def bfloat16(x):
    """The bits of a number in bfloat16, rounded to the nearest."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def interpolate(x, y):
    """The coefficients of the polynomial through the points, the constant one first."""
    n, d = len(x), list(y)
    for k in range(1, n):
        for i in range(n - 1, k - 1, -1):
            d[i] = (d[i] - d[i - 1]) * pow(x[i] - x[i - k], -1, PRIME) % PRIME
    out = [0] * n
    for k in range(n - 1, -1, -1):
        out = [(d[k] - x[k] * out[0]) % PRIME] + [(out[i - 1] - x[k] * out[i]) % PRIME for i in range(1, n)]
    return out
