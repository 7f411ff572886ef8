"""Jobs run by the `starling` program of this machine: `starling train` as a child, and the files of its output folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import NotSupported, StarlingError
from .models import JobInfo, Metric, Plan, read

POLL = 0.2  # seconds between looks at a file that another process writes

# What of an output folder is the model.
MODEL_FILES = ("*.safetensors", "*.gguf", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "README.md",
               "lineage.jsonl", "receipts.jsonl", "adapter/*.json", "adapter/*.safetensors")


class Local:
    """The runs below a folder, and the program that makes them."""

    def __init__(self, binary: str, folder: str):
        found = shutil.which(binary)
        if found is None:
            raise NotSupported(f"there is no program {binary!r}", code="NO_BINARY", fix="install starling, give binary=, or url= of a server")
        self.binary, self.folder = found, Path(folder)
        self.children: Dict[str, _Child] = {}

    def plan(self, config: str, overrides: List[str], base: Path) -> Plan:
        """What `starling train --dry-run` says of a job. Its data is found relative to the folder base."""
        file = _file(config, base)
        try:
            ended = subprocess.run(self._train(file, overrides) + ["--dry-run"], stdin=subprocess.DEVNULL, capture_output=True)
        finally:
            os.unlink(file)
        if ended.returncode:
            why = _reason(ended.stderr.decode(errors="replace"), ended.returncode)
            raise StarlingError(why["text"], code=why["code"], fix=why.get("next", ""))
        raw = json.loads(ended.stdout)
        return read(Plan, {"cost_uzen": raw.get("most_uzen"), **raw})

    def _train(self, file: str, overrides: List[str]) -> List[str]:
        """The command that trains a job file, as far as every one is the same."""
        arguments = [self.binary, "train", file, "--no-input", "-q", "-o", "json"]
        for o in overrides:
            arguments += ["--set", o]
        return arguments

    def submit(self, config: str, overrides: List[str], name: str, plan: str, key: str, base: Path) -> JobInfo:
        """Starts a job. Its data is found relative to the folder base. The same key gives the same job."""
        name = name or key or _name(config)
        if not re.fullmatch(r"[\w][\w.-]*", name):
            raise ValueError(f"{name!r} is no name of a folder")
        if (key or "") == name and (self.folder / name).exists():
            return self.info(name)
        stem, n = name, 1
        while (self.folder / name).exists():
            n += 1
            name = f"{stem}-{n}"
        self.folder.mkdir(parents=True, exist_ok=True)
        file = _file(config, base)
        arguments = self._train(file, overrides) + ["--dir", str(self.folder / name)]
        if plan:
            arguments += ["--plan", plan]
        try:
            self.children[name] = _Child(arguments, file)
        except OSError:
            os.unlink(file)
            raise
        return self.info(name)

    def jobs(self) -> List[JobInfo]:
        return [self.info(p.parent.name) for p in sorted(self.folder.glob("*/run.json"), key=lambda p: p.stat().st_mtime, reverse=True)]

    def info(self, id: str) -> JobInfo:
        folder = self.folder / id
        run, summary = _json(folder / "run.json"), _json(folder / "summary.json")
        metrics = self.metrics(id)
        fields: Dict[str, Any] = {"id": id, "job": run.get("id", ""), "name": summary.get("name", id)}
        for m in metrics:
            fields.update(step=m.step, round=m.round, tokens=m.tokens, workers=m.workers)
            if m.kind == "round" and m.round > 0:
                fields["loss"] = m.loss
            if m.eval_loss is not None:
                fields["eval_loss"] = m.eval_loss
                fields.setdefault("first_eval_loss", m.eval_loss)
            if m.paid_uzen:
                fields.update(paid_uzen=m.paid_uzen, coin=m.coin)
        for k in ("rounds", "steps", "tokens", "paid_uzen", "fee_uzen", "refunded_uzen", "budget_uzen", "coin", "state_root"):
            if k in summary:
                fields[k] = summary[k]
        fields["state"], fields["reason"] = self._state(id, folder, summary)
        return read(JobInfo, fields)

    def _state(self, id: str, folder: Path, summary: Dict[str, Any]) -> Tuple[str, Optional[Dict[str, str]]]:
        started = self.children.get(id)
        code = started.poll() if started else None
        if started and code is None:
            return ("running" if (folder / "run.json").exists() else "queued"), None
        if started and code:
            return "failed", started.reason(code)
        if summary:
            return "done", None
        if not started and not folder.exists():
            raise StarlingError(f"there is no run {id} in {self.folder}", code="NOT_FOUND", fix="jobs() lists those there are")
        return "stopped", {"code": "STOPPED", "text": "nobody goes on with the run", "next": f"starling train JOB.yaml --dir {folder} --resume"}

    def metrics(self, id: str) -> List[Metric]:
        return [read(Metric, m) for m in _lines(self.folder / id / "metrics.jsonl")]

    def updates(self, id: str, end: Optional[float] = None) -> Iterator[Tuple[JobInfo, List[Metric]]]:
        """What is new in a run, until it is over, or to a moment of time.monotonic."""
        seen = 0
        while True:
            job, metrics = self.info(id), self.metrics(id)
            if seen > len(metrics):  # a verdict took the run back
                seen = len(metrics)
            if job.over or len(metrics) > seen:
                yield job, metrics[seen:]
                seen = len(metrics)
            left = POLL if end is None else end - time.monotonic()
            if job.over or left <= 0:
                return
            time.sleep(min(POLL, left))

    def cancel(self, id: str) -> JobInfo:
        if id in self.children:
            self.children[id].stop()
        return self.info(id)

    def export(self, id: str, target: Path, files: Optional[List[str]]) -> List[Path]:
        """Copies the files of the model."""
        source, out = self.folder / id, []
        for pattern in MODEL_FILES:
            for path in sorted(source.glob(pattern)):
                name = path.relative_to(source).as_posix()
                if files is not None and name not in files:
                    continue
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                out.append(Path(shutil.copyfile(path, target / name)))
        if not out:
            raise NotSupported(f"{id} has left no model", code="NO_MODEL", fix="wait() for it to be done")
        return out


class _Child:
    """A process that trains, what it says on standard error, and the job file that was written for it."""

    def __init__(self, arguments: List[str], file: str):
        self.file, self.said = file, tempfile.TemporaryFile()
        self.text: Optional[str] = None  # what it said, once it has ended
        try:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said)
        except OSError:
            self.said.close()
            raise

    def poll(self) -> Optional[int]:
        """Its exit code, once it has ended; then nothing of it is left."""
        code = self.process.poll()
        if code is not None and self.text is None:
            self.said.seek(0)
            self.text = self.said.read().decode(errors="replace")
            self.said.close()
            os.unlink(self.file)
        return code

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.poll()

    def reason(self, code: int) -> Dict[str, str]:
        """Why it ended, as it said."""
        return _reason(self.text or "", code)


def _reason(said: str, code: int) -> Dict[str, str]:
    """Why starling ended with an exit code, by what it said on standard error."""
    for line in reversed(said.splitlines()):
        try:
            e = json.loads(line)["error"]
            return {"code": e["code"], "text": e["message"], "next": e.get("fix", "")}
        except (ValueError, KeyError, TypeError):
            continue
    return {"code": f"EXIT_{code}", "text": said.strip()[-2000:] or f"starling ended with code {code}"}


def _file(config: str, base: Path) -> str:
    """A job file for a command, in the folder that its paths are relative to."""
    with tempfile.NamedTemporaryFile("w", dir=base, prefix=".starling-", suffix=".yaml", delete=False) as f:
        f.write(config)
    return f.name


def _name(config: str) -> str:
    """The name that a job file gives, as far as a line tells."""
    found = re.search(r"""^\s*["']?name["']?\s*:\s*["']?([\w.-]+)""", config, re.M)
    return found.group(1) if found else "job"


def _json(path: Path) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as f:
            value = json.load(f)
    except (FileNotFoundError, ValueError):  # not there, or being written
        return {}
    return value if isinstance(value, dict) else {}


def _lines(path: Path) -> List[Dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    whole = text[: text.rfind("\n") + 1]  # the last line may be cut
    return [json.loads(line) for line in whole.splitlines()]
