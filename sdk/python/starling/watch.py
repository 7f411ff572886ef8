"""A job while it trains: a table with its curve in a notebook, a line in a terminal."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Callable, List, Optional, TextIO, Tuple

from .models import JobInfo, Metric

EVERY = 0.25  # seconds between two drawings


def table(info: JobInfo, metrics: List[Metric]) -> str:
    """HTML with the state, the cost and the curve of the loss."""
    rows = {"state": info.state, "step": f"{info.step} of {info.steps or '?'}", "tokens": f"{info.tokens:,}", "cost": f"{info.cost:.6f} {info.currency}"}
    if info.eval_loss is not None:
        rows["eval loss"] = f"{info.eval_loss:.4f}"
    if info.reason:
        rows["why"] = info.reason.get("text", "")
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
    return f"<div><b>{html.escape(info.name or info.id)}</b><table>{cells}</table>{_curve([(m.step, m.loss) for m in metrics if m.kind == 'step'])}</div>"


def _curve(points: List[Tuple[int, float]], width: int = 360, height: int = 80) -> str:
    """A line through at most as many points as there are pixels."""
    points = points[:: max(1, len(points) // width)]
    if len(points) < 2:
        return ""
    low, high = min(y for _, y in points), max(y for _, y in points)
    left, right = points[0][0], points[-1][0]
    at = " ".join(f"{(x - left) / max(1, right - left) * width:.1f},{(high - y) / max(1e-12, high - low) * height:.1f}" for x, y in points)
    return (f'<svg width="{width}" height="{height}" role="img" aria-label="loss from {points[0][1]:.4f} to {points[-1][1]:.4f}">'
            f'<polyline fill="none" stroke="currentColor" points="{at}"/></svg>')


def line(info: JobInfo, metrics: List[Metric]) -> str:
    """The same in one line."""
    loss = next((f", loss {m.loss:.4f}" for m in reversed(metrics) if m.kind == "step"), "")
    held_out = "" if info.eval_loss is None else f", eval loss {info.eval_loss:.4f}"
    return f"{info.name or info.id}: {info.state}, step {info.step} of {info.steps or '?'}{loss}{held_out}, {info.cost:.6f} {info.currency}"


class View:
    """Shows a job again and again at the same place: in a notebook, or in a terminal; elsewhere a line each time."""

    def __init__(self, out: Optional[TextIO] = None, clock: Callable[[], float] = time.monotonic):
        self.out, self.clock = out or sys.stderr, clock
        self.handle = None if out else _notebook()
        self.last = -EVERY
        self.width = 0

    def show(self, info: JobInfo, metrics: List[Metric]) -> None:
        """Draws the job, unless it was just drawn and is not over."""
        now = self.clock()
        if now - self.last < EVERY and not info.over:
            return
        self.last = now
        if self.handle:
            self.handle(table(info, metrics))
            return
        text = line(info, metrics)
        if not self.out.isatty():
            self.out.write(text + "\n")
        else:
            self.out.write("\r" + text.ljust(self.width) + ("\n" if info.over else ""))
            self.width = len(text)
        self.out.flush()


def _notebook() -> Optional[Callable[[str], None]]:
    """What shows HTML in the cell of a notebook that runs, always at one place: None outside of notebooks."""
    ipython = sys.modules.get("IPython")  # a notebook has loaded it
    shell: Any = ipython.get_ipython() if ipython else None  # type: ignore[attr-defined]
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display  # type: ignore[import-not-found]

    handle = display(HTML(""), display_id=True)
    return lambda text: handle.update(HTML(text))
