"""Training on data that stay with their owners, from Python.

    >>> from starling import federated
    >>> me = federated.Owner("owner-1")                                           # doctest: +SKIP
    >>> part = me.join("https://fed.example.org:8443", rows={"notes.jsonl": rows},
    ...                budget=federated.Budget(8, unit="example"))                 # doctest: +SKIP
    >>> part.wait().sent                                                          # doctest: +SKIP

Both sides are processes of the `starling` program: `starling job federated`. docs/security.md lists which observer learns
something, and which does not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Generic, Iterable, List, Mapping, Optional, Type, TypeVar, Union

from .errors import NotSupported, StarlingError
from .local import _reason
from .models import read

Rows = Mapping[str, Iterable[Mapping[str, Any]]]
T = TypeVar("T")


@dataclass(frozen=True)
class Budget:
    """The largest epsilon of all jobs together, of all data of the owner or of one example. A job that would exceed it is refused."""

    epsilon: float
    delta: float = 1e-5
    unit: str = "owner"  # or "example"


@dataclass(frozen=True)
class Part:
    """What an owner did for a job. An epsilon is None where a job had no noise for it."""

    job: str = ""
    name: str = ""
    owner: str = ""
    examples: int = 0
    sent: int = 0
    lost: int = 0
    epsilon: Optional[float] = None
    example_epsilon: Optional[float] = None
    delta: float = 0.0


@dataclass(frozen=True)
class Ledger:
    """The key of an owner, and what its data were used for."""

    owner: str = ""
    epsilon: Optional[float] = None
    example_epsilon: Optional[float] = None
    delta: float = 0.0
    jobs: List[Dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What a coordinator says of a job that is over. `assumptions` are those under which the figures hold."""

    job: str = ""
    name: str = ""
    dir: str = ""
    rounds: int = 0
    void: int = 0
    owners: int = 0
    min_cohort: int = 0
    dropouts: Dict[str, int] = field(default_factory=dict)
    faults: int = 0
    epsilon: Optional[float] = None
    delta: float = 0.0
    example: Optional[Dict[str, Any]] = None
    first_loss: Optional[float] = None
    final_loss: Optional[float] = None
    measured: Dict[str, float] = field(default_factory=dict)
    assumptions: List[str] = field(default_factory=list)


class Process(Generic[T]):
    """A side of a job, as a process. It ends with `stop`, or at the end of a `with`."""

    def __init__(self, command: List[str], result: Type[T], remove: Optional[str] = None):
        self._result, self._remove, self._lines = result, remove, []  # type: ignore[var-annotated]
        self._said = threading.Condition()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        except OSError:
            self._clean()
            raise
        self._out = ""
        self._readers = [threading.Thread(target=self._listen, daemon=True), threading.Thread(target=self._collect, daemon=True)]
        for r in self._readers:
            r.start()

    def _listen(self) -> None:
        for line in self.process.stderr:  # type: ignore[union-attr]
            with self._said:
                self._lines.append(line.rstrip("\n"))
                self._said.notify_all()
        with self._said:
            self._lines.append("")
            self._said.notify_all()

    def _collect(self) -> None:
        self._out = self.process.stdout.read()  # type: ignore[union-attr]

    def _close(self) -> None:
        for r in self._readers:
            r.join()
        self.process.stdout.close()  # type: ignore[union-attr]
        self.process.stderr.close()  # type: ignore[union-attr]
        self._clean()

    def _clean(self) -> None:
        if self._remove:
            shutil.rmtree(self._remove, ignore_errors=True)

    @property
    def log(self) -> List[str]:
        """What the process has said so far, line by line."""
        with self._said:
            return [line for line in self._lines if line]

    def wait(self, timeout: Optional[float] = None) -> T:
        """Waits until the job is over. Raises StarlingError with the reason, or subprocess.TimeoutExpired."""
        code = self.process.wait(timeout)
        self._close()
        if code:
            why = _reason("\n".join(self.log), code)
            raise StarlingError(why["text"], code=why["code"], fix=why.get("next", ""))
        return read(self._result, json.loads(self._out))

    def stop(self) -> None:
        """Ends the process: an owner has left the job, and may join it again."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self._close()

    def __enter__(self) -> "Process[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Owner:
    """An owner of data. The folder `home` holds its key and its ledger."""

    def __init__(self, home: Union[str, Path], binary: str = "starling"):
        self.home, self._binary = Path(home), _program(binary)

    def ledger(self, delta: float = 1e-5) -> Ledger:
        """The key of the owner, which is made if there is none, and what its data were used for."""
        return read(Ledger, _run([self._binary, "job", "federated", "ledger", "--home", str(self.home), "--delta", repr(delta), "-o", "json"]))

    def join(self, url: str, data: Union[str, Path, None] = None, *, rows: Optional[Rows] = None, budget: Optional[Budget] = None,
             base: Union[str, Path, None] = None, known: Union[str, Path, None] = None, ca: Union[str, Path, None] = None, threads: int = 0) -> "Process[Part]":
        """Takes part in the job of a coordinator with the files of a folder, or with rows: for each path that the patterns of the job name, such
        as notes.jsonl, its objects. Rows are written to a folder that only this user reads, and that `wait` and `stop` remove. `base` is the folder of
        the base model, of a job that starts from one."""
        if (data is None) == (rows is None):
            raise ValueError("give a folder of data, or rows")
        command, remove = [self._binary, "job", "federated", "join", url, "--home", str(self.home), "-o", "json"], None
        if budget:
            command += ["--epsilon", repr(float(budget.epsilon)), "--delta", repr(float(budget.delta)), "--unit", budget.unit]
        for flag, value in (("--base", base), ("--known", known), ("--ca", ca), ("--threads", threads or None)):
            if value is not None:
                command += [flag, str(value)]
        if rows is not None:
            remove = tempfile.mkdtemp(prefix="starling-rows-")
            try:
                _write(Path(remove), rows)
            except BaseException:
                shutil.rmtree(remove, ignore_errors=True)
                raise
        return Process(command + ["--data", remove or str(data)], Part, remove)


class Coordinator(Process[Report]):
    """A coordinator on this machine, for the job file `config`. It answers at `url`."""

    def __init__(self, config: Union[str, Path], dir: Union[str, Path], *, listen: str = "127.0.0.1:0", cert: Union[str, Path, None] = None,
                 key: Union[str, Path, None] = None, owners: Union[str, Path, None] = None, binary: str = "starling", **overrides: Any):
        command = [_program(binary), "job", "federated", "serve", str(config), "--dir", str(dir), "--listen", listen, "-o", "json"]
        for flag, value in (("--tls-cert", cert), ("--tls-key", key), ("--owners", owners)):
            if value is not None:
                command += [flag, str(value)]
        for name, value in overrides.items():
            command += ["--set", f"{name.replace('__', '.')}={json.dumps(value)}"]
        super().__init__(command, Report)
        self.url = self._address()

    def _address(self) -> str:
        with self._said:
            while True:
                for line in self._lines:
                    found = re.search(r"job [0-9a-f]+ at (https?://\S+)", line)
                    if found:
                        return found.group(1)
                if self._lines and self._lines[-1] == "":
                    break
                self._said.wait()
        self.wait()  # which says why it has ended
        raise StarlingError("the coordinator has ended", code="ENDED")


def _program(binary: str) -> str:
    found = shutil.which(binary)
    if found is None:
        raise NotSupported(f"there is no program {binary!r}", code="NO_BINARY", fix="install starling, or give binary=")
    return found


def _run(command: List[str]) -> Dict[str, Any]:
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if ended.returncode:
        why = _reason(ended.stderr.decode(errors="replace"), ended.returncode)
        raise StarlingError(why["text"], code=why["code"], fix=why.get("next", ""))
    return json.loads(ended.stdout)


def _write(folder: Path, rows: Rows) -> None:
    for name, objects in rows.items():
        path = folder / name
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise ValueError(f"{name!r} is no path below the data")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            for o in objects:
                f.write(json.dumps(o, ensure_ascii=False) + "\n")
