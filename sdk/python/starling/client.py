"""The client, and a job as it sees it."""

from __future__ import annotations

import atexit
import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Tuple, Union

from .errors import JobFailed, StarlingError
from .gateway import Gateway
from .local import Local
from .models import JobInfo, Metric, Plan
from .server import Server
from .watch import View, table

Config = Union[str, Path, Mapping[str, Any]]


class Backend(Protocol):
    """Who runs jobs: a server, or the program of this machine."""

    def plan(self, config: str, overrides: List[str], base: Path) -> Plan: ...
    def submit(self, config: str, overrides: List[str], name: str, plan: str, key: str, base: Path) -> JobInfo: ...
    def jobs(self) -> List[JobInfo]: ...
    def info(self, id: str) -> JobInfo: ...
    def cancel(self, id: str) -> JobInfo: ...
    def updates(self, id: str, end: Optional[float] = None) -> Iterator[Tuple[JobInfo, List[Metric]]]: ...
    def export(self, id: str, target: Path, files: Optional[List[str]]) -> List[Path]: ...


class Client:
    """A client of a server, of a network, or, without one, of the `starling` program of this machine.

    url: of the server; the environment's STARLING_URL unless given, and without either jobs run here. token: that the server
    wants; the environment's STARLING_TOKEN unless given. binary and folder: of jobs that run here. network: the HTTP interface of
    a validator; jobs are ordered there and paid by the account of the folder home, by a server that the client starts and `close`
    ends; data: folder of the data of jobs, that of the first job file unless given. timeout: seconds of a request. Configurations are job files by their path, YAML as text, or an object with the keys of one; keyword arguments
    change keys, with two underscores for a dot: training__max_steps=100.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, binary: str = "starling", folder: str = "out", network: Optional[str] = None,
                 home: Optional[str] = None, data: Optional[str] = None, timeout: float = 30.0):
        self._gateway: Optional[Gateway] = None
        if network:
            if url:
                raise ValueError("url and network are given: one of them says where jobs are ordered")
            self._gateway = Gateway(binary, network, home, folder, data, timeout)
            atexit.register(self._gateway.close)
            self._backend: Backend = self._gateway
            return
        url = url or os.environ.get("STARLING_URL")
        token = token or os.environ.get("STARLING_TOKEN")
        self._backend = Server(url, token, timeout) if url else Local(binary, folder)

    def close(self) -> None:
        """Ends the server of a client of a network. Jobs that are ordered continue there, and the next client with the same folder and
        home collects them. Other clients have nothing to end."""
        if self._gateway:
            self._gateway.close()
            atexit.unregister(self._gateway.close)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def plan(self, config: Config, max_budget: Optional[float] = None, **overrides: Any) -> Plan:
        """Says what a job would be, and cost at most, and starts nothing."""
        text, base, changes = _config(config, max_budget, overrides)
        return self._backend.plan(text, changes, base)

    def submit(self, config: Config, max_budget: Optional[float] = None, *, name: str = "", key: str = "", plan: Optional[Plan] = None, **overrides: Any) -> "Job":
        """Starts a job. The same key, if one is given, gives the same job. With a plan, a job that would be another by now is
        refused."""
        text, base, changes = _config(config, max_budget, overrides)
        return Job(self._backend, self._backend.submit(text, changes, name, plan.id if plan else "", key, base))

    def train(self, config: Config, max_budget: Optional[float] = None, *, timeout: Optional[float] = None, **overrides: Any) -> "Job":
        """Submits a job and waits for it. Raises JobFailed if it does not end with a model."""
        return self.submit(config, max_budget, **overrides).wait(timeout)

    def job(self, id: str) -> "Job":
        """A job by its identifier."""
        return Job(self._backend, self._backend.info(id))

    def jobs(self) -> List["Job"]:
        """All jobs, the latest first."""
        return [Job(self._backend, j) for j in self._backend.jobs()]


class Job:
    """A job. `info` is its latest known state; `refresh` asks for it anew."""

    def __init__(self, backend: Backend, info: JobInfo):
        self._backend, self.info = backend, info
        self._metrics: List[Metric] = []

    @property
    def id(self) -> str:
        return self.info.id

    def refresh(self) -> "Job":
        self.info = self._backend.info(self.id)
        return self

    def stream(self) -> Iterator[Metric]:
        """The metrics of the job from the first one on, as they come, until it is over."""
        self._metrics = []
        for info, metrics in self._backend.updates(self.id):
            self.info = info
            for m in metrics:
                self._metrics.append(m)
                yield m

    def wait(self, timeout: Optional[float] = None) -> "Job":
        """Waits until the job is over. Raises JobFailed if it did not end with a model, TimeoutError after timeout seconds, whether
        or not anything of the job was heard in them: it goes on, and may be waited for again."""
        end = None if timeout is None else time.monotonic() + timeout
        self._metrics = []
        for info, metrics in self._backend.updates(self.id, end):
            self.info = info
            self._metrics += metrics
        if not self.info.over:
            raise TimeoutError(f"{self.id} is {self.info.state} at step {self.info.step} after {timeout} seconds")
        return self._ended()

    def _ended(self) -> "Job":
        """The job, which is over: JobFailed if it did not end with a model."""
        if self.info.state != "done":
            why = self.info.reason or {}
            raise JobFailed(f"{self.id} is {self.info.state}: {why.get('text', 'no reason is known')}", job=self.info, code=why.get("code", ""), fix=why.get("next", ""))
        return self

    def watch(self, each: Optional[Callable[[Metric], None]] = None, view: Optional[View] = None) -> "Job":
        """As wait, and shows the job meanwhile: in a notebook a table with the curve of the loss and the cost, in a terminal a line.
        An interrupt (Ctrl-C, or the notebook's stop button) cancels the job. each: is called with every metric as it comes."""
        view = view or View()
        self._metrics = []
        try:
            for info, metrics in self._backend.updates(self.id):
                self.info = info
                for m in metrics:
                    self._metrics.append(m)
                    if each:
                        each(m)
                view.show(info, self._metrics)
        except KeyboardInterrupt:
            self.cancel()
            raise
        return self._ended()

    def metrics(self) -> List[Metric]:
        """The metrics that stream, wait or watch have seen; of a job that none of them has, all that there are."""
        if not self._metrics:
            for info, metrics in self._backend.updates(self.id):
                self.info, self._metrics = info, self._metrics + metrics
                break
        return list(self._metrics)

    def cancel(self) -> "Job":
        """Stops the job. What was attested stays."""
        self.info = self._backend.cancel(self.id)
        return self

    def export(self, target: Union[str, Path], files: Optional[List[str]] = None) -> List[Path]:
        """Puts the files of the model, or those named, into a folder, and returns their paths."""
        Path(target).mkdir(parents=True, exist_ok=True)
        return self._backend.export(self.id, Path(target), files)

    def __repr__(self) -> str:
        i = self.info
        loss = "" if i.eval_loss is None else f", eval loss {i.eval_loss:.4f}"
        return f"<Job {i.id} {i.state}, step {i.step} of {i.steps or '?'}{loss}>"

    def _repr_html_(self) -> str:
        """A table and the curve of the loss, for notebooks."""
        return table(self.info, self._metrics)


def _config(config: Config, max_budget: Optional[float], overrides: Dict[str, Any]) -> Tuple[str, Path, List[str]]:
    """The text of a configuration, the folder that its paths are relative to, and the changes to it."""
    base = Path.cwd()
    if isinstance(config, Mapping):
        text = json.dumps(config, indent=1)  # which is YAML
    elif isinstance(config, Path) or "\n" not in config:
        path = Path(config)
        if not path.is_file():
            raise StarlingError(f"there is no job file {path}", code="FILE_NOT_FOUND", fix="give the path of one, its text, or an object")
        text, base = path.read_text(encoding="utf-8"), path.resolve().parent
    else:
        text = config
    changes = [f"{k.replace('__', '.')}={json.dumps(v) if not isinstance(v, str) else v}" for k, v in overrides.items()]
    if max_budget is not None:
        changes.append(f"budget.max_cost={max_budget}")
    return text, base, changes
