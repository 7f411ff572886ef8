"""Plain data, by the names of the REST API (client/api in Go). Amounts are in uzen, losses in nats a token."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

T = TypeVar("T")

UZEN = 1_000_000  # uzen of a ZEN


def grains(coin: Optional[Dict[str, Any]]) -> int:
    """How many grains are one coin. Amounts are in grains of their coin, in uzen if there is none."""
    return 10 ** min(9, coin.get("decimals", 0)) if coin else UZEN


def read(cls: Type[T], raw: Mapping[str, Any]) -> T:
    """Makes a dataclass of what it knows in an object; fields that are new to this version are left out."""
    names = {f.name for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{k: v for k, v in raw.items() if k in names and v is not None})


@dataclass(frozen=True)
class Metric:
    """The mean over the workers of an inner step, or, with kind "round", a round."""

    kind: str = "step"
    round: int = 0
    step: int = 0
    loss: float = 0.0
    eval_loss: Optional[float] = None
    bits_per_byte: Optional[float] = None
    learning_rate: float = 0.0
    tokens: int = 0
    tokens_per_second: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    workers: int = 0
    seconds: float = 0.0
    paid_uzen: int = 0
    coin: Optional[Dict[str, Any]] = None
    """The coin of paid_uzen, if it is not ZEN: see `JobInfo.coin`."""
    time: str = ""
    """When the checkpoint of a round was recorded: RFC 3339."""
    grad_norm: Optional[float] = None
    """Of the gradient before clipping, the mean over the workers that tell it."""
    agreement: Optional[float] = None
    """Of a round: the mean cosine of the workers' updates with what they were combined to."""


@dataclass(frozen=True)
class Plan:
    """What a job would be, and cost at most."""

    id: str = ""
    name: str = ""
    steps: int = 0
    rounds: int = 0
    workers: int = 0
    tokens: int = 0
    flops: int = 0
    parameters: int = 0
    disk_bytes: int = 0
    round_bytes: int = 0
    cost_uzen: int = 0
    budget_uzen: int = 0
    facts: List[Dict[str, str]] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)
    step_seconds: float = 0.0
    seconds: float = 0.0
    memory_bytes: int = 0
    placement: Dict[str, Any] = field(default_factory=dict)
    rejections: List[Dict[str, str]] = field(default_factory=list)
    coin: Optional[Dict[str, Any]] = None
    """The coin of cost and budget, if it is not ZEN: see `JobInfo.coin`."""

    @property
    def cost(self) -> float:
        """In ZEN, or in the coin of the plan."""
        return self.cost_uzen / grains(self.coin)

    @property
    def fits(self) -> Optional[bool]:
        """Whether the server has the memory to train it, or None if that is not known."""
        return {"yes": True, "no": False}.get(self.placement.get("fits", ""))


@dataclass(frozen=True)
class JobInfo:
    """A job and its totals so far."""

    id: str = ""
    job: str = ""
    name: str = ""
    state: str = "queued"  # queued, running, stopped, done, halted or failed
    reason: Optional[Dict[str, str]] = None
    phase: str = ""
    step: int = 0
    steps: int = 0
    round: int = 0
    rounds: int = 0
    workers: int = 0
    tokens: int = 0
    loss: Optional[float] = None
    eval_loss: Optional[float] = None
    first_eval_loss: Optional[float] = None
    bits_per_byte: Optional[float] = None
    paid_uzen: int = 0
    fee_uzen: int = 0
    refunded_uzen: int = 0
    budget_uzen: int = 0
    coin: Optional[Dict[str, Any]] = None
    """The coin of these amounts, if it is not ZEN: denom, symbol and decimals. They are then in its grains: its base
    units, or 10^-9 of a coin with more than nine decimals."""
    state_root: str = ""
    pushes: List[Dict[str, Any]] = field(default_factory=list)
    """Copies of the model in stores: to, state, bytes, sent_bytes, address and reason of each."""

    @property
    def over(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("done", "halted", "failed", "stopped")

    @property
    def cost(self) -> float:
        """Paid so far, in ZEN, or in the coin of the job."""
        return (self.paid_uzen + self.fee_uzen) / grains(self.coin)

    @property
    def currency(self) -> str:
        """The name of the coin of the job: ZEN, if it names none."""
        return str(self.coin.get("symbol", "")).upper() if self.coin else "ZEN"
