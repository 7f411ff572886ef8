"""A trainer in the shape of Hugging Face's, whose jobs Starling trains."""

from __future__ import annotations

import json
import math
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import arguments
from .client import Client, Job
from .errors import NotSupported, StarlingError
from .gateway import Gateway
from .models import Metric, Plan
from .server import Server

DATA = ".trainer"  # folder of datasets below that of the client; no pattern of a job file finds it

# Tasks by the fields of an example, the most particular first.
_TASKS = [("dpo", ("chosen", "rejected")), ("sft", ("prompt", "completion")), ("sft", ("messages",)), ("language", ("text",))]


class TrainOutput(NamedTuple):
    """As Hugging Face's: steps that were trained, the mean loss of their batches, and totals."""

    global_step: int
    training_loss: float
    metrics: Dict[str, float]


class Trainer:
    """Trains a model on examples of the program, as a job.

    model: the folder of a model to go on from; the fields of a config.json, or a configuration object of transformers, for one that
    begins at random; or a model with save_pretrained. args: a TrainingArguments, SFTConfig or DPOConfig, or a mapping with such
    names. train_dataset: texts, or rows with "text", "messages", "prompt" and "completion", or "prompt", "chosen" and "rejected": a
    list, a Dataset of datasets, or anything with a length and numbered rows. tokenizer: the folder of one, or one with
    save_pretrained; that of the model unless given. peft_config: a LoraConfig, or a mapping with its names. client: who trains; Client() unless given.
    max_budget: in ZEN. workers: machines of a round, each with the batch of a device. val_set_size: part of the examples that is held
    out. callbacks: objects with on_log(args, state, control, logs=...), which ends the job by control.should_training_stop. Other keywords
    are keys of the job, with two underscores for a dot.
    """

    def __init__(self, model: Any, args: Any = None, train_dataset: Optional[Iterable[Any]] = None, *, tokenizer: Any = None, peft_config: Any = None,
                 client: Optional[Client] = None, max_budget: Optional[float] = None, workers: int = 2, val_set_size: float = 0.1,
                 callbacks: Iterable[Any] = (), **changes: Any):
        if train_dataset is None:
            raise ValueError("train_dataset is missing: a job trains on examples")
        self.client = client or Client()
        self.args = args
        self.callbacks = list(callbacks)
        self.state = SimpleNamespace(global_step=0, max_steps=0, log_history=[])
        self.control = SimpleNamespace(should_training_stop=False)
        self.job: Optional[Job] = None
        given = arguments.plain(args) if args is not None else {}
        self._base = self._folder()
        task, path = self._examples(train_dataset)
        job: Dict[str, Any] = {"apiVersion": "starling/v1", "kind": "TrainingJob", "name": _name(given), "task": task,
                               "datasets": [{"path": path}], "val_set_size": val_set_size}
        for key, value in {**arguments.keys(given, workers), "strategy.workers": workers}.items():
            _set(job, key, value)
        job["model"] = self._model(model)
        if tokenizer is not None:
            job["model"]["tokenizer"] = self._saved(tokenizer, "tokenizer.json")
        elif "base_model" not in job["model"]:
            job["model"]["tokenizer"] = "byte-level"
        if peft_config is not None:
            job["model"]["adapter"] = arguments.adapter(arguments.plain(peft_config) if not hasattr(peft_config, "peft_type") else vars(peft_config))
        for key, value in changes.items():
            _set(job, key.replace("__", "."), value)
        if max_budget is not None:
            _set(job, "budget.max_cost", max_budget)
        self.config = job

    def plan(self) -> Plan:
        """Says what the job would be, and cost at most, and starts nothing."""
        return self.client._backend.plan(self._text(), [], self._base)

    def train(self, key: str = "") -> TrainOutput:
        """Trains, and shows the progress. The same key gives the same job, and continues one that stopped. Raises JobFailed if the
        job does not end with a model."""
        self.state.log_history, self.state.global_step = [], 0
        self.control.should_training_stop = False
        self.job = Job(self.client._backend, self.client._backend.submit(self._text(), [], "", "", key, self._base))
        self.job.watch(self._log)
        steps = [m for m in self.job.metrics() if m.kind == "step" and m.step > 0]
        info = self.job.info
        loss = sum(m.loss for m in steps) / len(steps) if steps else math.nan
        totals = {"train_loss": loss, "train_tokens": info.tokens, "cost": info.cost}
        if info.eval_loss is not None:
            totals["eval_loss"] = info.eval_loss
        return TrainOutput(info.step, loss, totals)

    def evaluate(self) -> Dict[str, float]:
        """The latest measures of the held-out examples."""
        for entry in reversed(self.state.log_history):
            if "eval_loss" in entry:
                return {k: v for k, v in entry.items() if k.startswith("eval_")}
        raise StarlingError("nothing was evaluated yet", code="NO_MODEL", fix="train() first")

    def save_model(self, output_dir: Union[str, Path, None] = None) -> List[Path]:
        """Puts the files of the trained model into a folder, by default args.output_dir: transformers loads it."""
        if self.job is None:
            raise StarlingError("there is no model yet", code="NO_MODEL", fix="train() first")
        target = output_dir or arguments.plain(self.args or {}).get("output_dir")
        if not target:
            raise ValueError("output_dir is missing: args name none either")
        return self.job.export(target)

    def _text(self) -> str:
        return json.dumps(self.config, indent=1)  # which is YAML

    def _log(self, m: Metric) -> None:
        """Adds a metric to the history and tells the callbacks."""
        if m.kind == "step" and m.step > 0:
            logs = {"loss": m.loss, "learning_rate": m.learning_rate}
            if m.grad_norm is not None:
                logs["grad_norm"] = m.grad_norm
        elif m.eval_loss is not None:
            logs = {"eval_loss": m.eval_loss}
        else:
            return
        self.state.global_step = m.step
        self.state.log_history.append({**logs, "step": m.step})
        for c in self.callbacks:
            c.on_log(self.args, self.state, self.control, logs=logs)
        if self.control.should_training_stop and self.job and not self.job.info.over:
            self.control.should_training_stop = False
            self.job.cancel()

    def _folder(self) -> Path:
        """Where files of the program are found by whoever trains: a server that others run has none."""
        backend = self.client._backend
        if isinstance(backend, Gateway):
            return Path(backend.data or Path.cwd())
        return Path.cwd()

    def _remote(self) -> Optional[Server]:
        backend = self.client._backend
        return backend if isinstance(backend, Server) and not isinstance(backend, Gateway) else None

    def _examples(self, rows: Iterable[Any]) -> Tuple[str, str]:
        """Stores the examples as lines of JSON: the task that their fields stand for, and the path of the file."""
        task, written, digest = "", 0, sha256()
        folder = Path(tempfile.gettempdir()) if self._remote() else self._base / DATA
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=folder, suffix=".part", delete=False) as f:
            try:
                for i, row in enumerate(_rows(rows)):
                    kind, fields = _example(i, row)
                    if self._remote():
                        fields = _conversation(kind, fields)
                    if task and kind != task:
                        raise ValueError(f"row {i} is an example of {kind}, and the rows before are of {task}")
                    task = kind
                    line = json.dumps(fields, ensure_ascii=False).encode() + b"\n"
                    digest.update(line)
                    f.write(line)
                    written += 1
                if not written:
                    raise ValueError("train_dataset has no rows")
                f.close()
                if remote := self._remote():
                    return task, remote.upload(Path(f.name))
                path = folder / f"{digest.hexdigest()[:24]}.jsonl"
                os.replace(f.name, path)
                return task, path.relative_to(self._base).as_posix()
            finally:
                f.close()
                Path(f.name).unlink(missing_ok=True)

    def _model(self, model: Any) -> Dict[str, Any]:
        if isinstance(model, (str, os.PathLike)):
            return {"base_model": os.fspath(model)}
        if hasattr(model, "save_pretrained") and hasattr(model, "state_dict"):
            return {"base_model": self._saved(model, "")}
        return arguments.architecture(arguments.plain(model))

    def _saved(self, value: Any, file: str) -> str:
        """The path of what save_pretrained writes, or the path that is given."""
        if isinstance(value, (str, os.PathLike)):
            return os.fspath(value)
        if self._remote():
            raise NotSupported("the server looks for models and tokenizers in its own folder of data", code="NO_UPLOAD",
                               fix="put it there, and give its path below that folder")
        folder = tempfile.mkdtemp(dir=self._base / DATA)
        value.save_pretrained(folder)
        return (Path(folder) / file).relative_to(self._base).as_posix()


def _conversation(task: str, fields: Dict[str, Any]) -> Dict[str, Any]:
    """An example in the form of the files that servers take."""
    if task == "sft":
        return fields
    if task == "dpo" and all(isinstance(fields.get(k), list) for k in ("prompt", "chosen", "rejected")):
        return {"input": {"messages": fields["prompt"]}, "preferred_output": fields["chosen"], "non_preferred_output": fields["rejected"]}
    raise NotSupported("a server takes conversations from programs, and these rows are texts", code="NO_UPLOAD",
                       fix="give rows with messages, or put a file into the server's folder of data and submit a job file")


def _name(given: Mapping[str, Any]) -> str:
    name = given.get("run_name") or Path(given.get("output_dir") or "trainer").name
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-.") or "trainer"


def _set(job: Dict[str, Any], key: str, value: Any) -> None:
    at = job
    *sections, last = key.split(".")
    for s in sections:
        at = at.setdefault(s, {})
    at[last] = value


def _rows(rows: Iterable[Any]) -> Iterator[Any]:
    """The rows of a list, of anything that can be iterated, or of what has a length and numbered rows alone."""
    if hasattr(rows, "iterrows"):  # of pandas, which iterates over columns
        return iter(rows.to_dict("records"))  # type: ignore[attr-defined]
    if hasattr(rows, "__iter__"):
        return iter(rows)
    return (rows[i] for i in range(len(rows)))  # type: ignore[index,arg-type]


def _example(i: int, row: Any) -> Tuple[str, Dict[str, Any]]:
    """The task that a row is an example of, and the fields that the task reads."""
    if isinstance(row, str):
        return "language", {"text": row}
    for task, fields in _TASKS:
        if all(f in row for f in fields):
            more = ("prompt",) if task == "dpo" and "prompt" in row else ()
            return task, {f: row[f] for f in more + fields}
    if "input_ids" in row:
        raise ValueError(f"row {i} has input_ids: give its text, which the workers encode with the tokenizer of the job")
    raise ValueError(f"row {i} has the fields {sorted(row)}: there are text; messages; prompt and completion; prompt, chosen and rejected")
