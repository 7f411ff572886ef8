"""The REST API of a server: requests that are tried again, and a stream of events that is picked up where it broke."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import NotSupported, StarlingError, Unreachable
from .models import JobInfo, Metric, Plan, read

ATTEMPTS = 4  # of a request that may be repeated
SLICE = 5.0  # seconds without a byte, of a stream that is waited for until some moment, before it is asked for anew
SLACK = 0.5  # seconds that it may take longer
RECONNECTS = 8  # in a row, of a stream, without an event between them
MAX_EVENT = 64 << 20  # bytes


class Server:
    """A server at a URL such as http://127.0.0.1:7300."""

    def __init__(self, url: str, token: Optional[str], timeout: float):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{url!r} is no URL of a server: give one such as http://127.0.0.1:7300")
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout

    def _request(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> urllib.request.Request:
        data = None if body is None else json.dumps(body).encode()
        r = urllib.request.Request(self.url + path, data=data, method=method, headers={"Accept": "application/json", **(headers or {})})
        if data is not None:
            r.add_header("Content-Type", "application/json")
        if self.token:
            r.add_header("Authorization", "Bearer " + self.token)
        return r

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> Any:
        """Sends a request and returns its JSON. It is tried again when the server is busy or does not answer: a POST has to
        carry an Idempotency-Key for that, or change nothing."""
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                with urllib.request.urlopen(self._request(method, path, body, headers), timeout=self.timeout) as r:
                    return json.load(r)
            except urllib.error.HTTPError as e:
                error, retry = _problem(e)
                if last or not error.retryable:
                    raise error from None
            except (urllib.error.URLError, http.client.HTTPException, socket.timeout, ConnectionError) as e:
                if last:
                    raise Unreachable(f"{self.url} does not answer: {e}", code="UNREACHABLE", fix="see whether `starling web` runs there", retryable=True) from None
                retry = 0.0
            time.sleep(max(retry, random.uniform(0, 0.2 * 2**attempt)))
        raise AssertionError("unreachable")

    def plan(self, config: str, overrides: List[str], base: Path) -> Plan:
        return read(Plan, self.ask("POST", "/v1/plans", {"config": config, "set": overrides}))

    def submit(self, config: str, overrides: List[str], name: str, plan: str, key: str, base: Path) -> JobInfo:
        body = {"config": config, "set": overrides, "name": name, "plan": plan}
        return read(JobInfo, self.ask("POST", "/v1/jobs", body, {"Idempotency-Key": key or uuid.uuid4().hex}))

    def jobs(self) -> List[JobInfo]:
        out: List[JobInfo] = []
        after = ""
        while True:
            page = self.ask("GET", "/v1/jobs?" + urllib.parse.urlencode({"limit": 1000, "after": after} if after else {"limit": 1000}))
            out += [read(JobInfo, j) for j in page["jobs"]]
            after = page.get("after") or ""
            if not page.get("has_more") or not after:
                return out

    def info(self, id: str) -> JobInfo:
        return read(JobInfo, self.ask("GET", "/v1/jobs/" + urllib.parse.quote(id, safe="")))

    def cancel(self, id: str) -> JobInfo:
        return read(JobInfo, self.ask("POST", f"/v1/jobs/{urllib.parse.quote(id, safe='')}/cancel"))

    def updates(self, id: str, end: Optional[float] = None) -> Iterator[Tuple[JobInfo, List[Metric]]]:
        """What is new in a job, from its beginning on, until it is over, or to a moment of time.monotonic. A connection that
        breaks is made anew, and the server told what it need not send again."""
        at, failures = "0.0.0.", 0
        while end is None or time.monotonic() < end:
            try:
                for event_id, event, data in self._events(f"/v1/jobs/{urllib.parse.quote(id, safe='')}/events", at, end):
                    at, failures = event_id or at, 0
                    if event not in ("update", "reset"):
                        continue
                    job = read(JobInfo, data["job"])
                    yield job, [read(Metric, m) for m in data.get("metrics") or []]
                    if job.over:
                        return
            except urllib.error.HTTPError as e:
                error, _ = _problem(e)
                if not error.retryable:
                    raise error from None
            except _OutOfTime:
                continue
            except (urllib.error.URLError, http.client.HTTPException, socket.timeout, ConnectionError):
                pass
            failures += 1
            if failures > RECONNECTS:
                raise Unreachable(f"{self.url} ended the stream of {id} {failures} times", code="UNREACHABLE", fix="see whether `starling web` runs there", retryable=True)
            pause = random.uniform(0, min(10.0, 0.1 * 2**failures))
            time.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))

    def _events(self, path: str, last: str, end: Optional[float]) -> Iterator[Tuple[str, str, Any]]:
        """One connection of server-sent events: identifier, kind and data of each. How long it may be silent is settled when it is
        made: one that could be silent beyond the end is left for one that cannot."""
        r = self._request("GET", path, headers={"Accept": "text/event-stream", "Last-Event-ID": last})
        patience = max(self.timeout, 45.0)  # a heartbeat comes every 15 seconds
        if end is not None:
            patience = min(SLICE, max(0.01, end - time.monotonic()))
        with urllib.request.urlopen(r, timeout=patience) as stream:
            fields: Dict[str, str] = {}
            while True:
                try:
                    raw = stream.readline(MAX_EVENT + 1)
                except socket.timeout:
                    if end is None:
                        raise
                    raise _OutOfTime from None
                if not raw or len(raw) > MAX_EVENT:
                    return
                line = raw.decode().rstrip("\r\n")
                if not line:
                    if "data" in fields:
                        yield fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"])
                    fields = {}
                    if end is not None and time.monotonic() + patience > end + SLACK:
                        raise _OutOfTime
                    continue
                name, _, value = line.partition(":")
                if name:
                    fields[name] = fields[name] + "\n" + value.lstrip(" ") if name == "data" and "data" in fields else value.lstrip(" ")

    def upload(self, path: Path) -> str:
        """Sends a file of conversations, or of preferred and other answers to them, and returns its path for job files. The server
        checks every line."""
        mark = uuid.uuid4().hex
        head = (f'--{mark}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nfine-tune\r\n--{mark}\r\n'
                f'Content-Disposition: form-data; name="file"; filename="{path.name}"\r\nContent-Type: application/jsonl\r\n\r\n').encode()
        tail = f"\r\n--{mark}--\r\n".encode()
        request = self._request("POST", "/v1/files", headers={"Content-Type": f"multipart/form-data; boundary={mark}"})
        with open(path, "rb") as f:
            request.data = itertools.chain([head], iter(lambda: f.read(1 << 20), b""), [tail])
            request.add_header("Content-Length", str(len(head) + path.stat().st_size + len(tail)))
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as r:
                    id = json.load(r)["id"]
            except urllib.error.HTTPError as e:
                raise _problem(e)[0] from None
            except (urllib.error.URLError, http.client.HTTPException, socket.timeout, ConnectionError) as e:
                raise Unreachable(f"{self.url} does not answer: {e}", code="UNREACHABLE", fix="see whether `starling web` runs there", retryable=True) from None
        return f".examples/{id}/examples.jsonl"

    def export(self, id: str, target: Path, files: Optional[List[str]]) -> List[Path]:
        """Downloads the files of the model, or those of the run that are named, each under its own name, and none that is half."""
        base = f"/v1/jobs/{urllib.parse.quote(id, safe='')}/files"
        listed = self.ask("GET", base)["files"]
        wanted = [f for f in listed if (f["kind"] == "model" if files is None else f["name"] in files)]
        if files is None and not wanted:
            raise NotSupported(f"{id} has left no model here", code="NO_MODEL", fix="wait() for it to be done")
        out: List[Path] = []
        for f in wanted:
            path = target / f["name"]
            if target.resolve() not in path.resolve().parents:
                raise StarlingError(f"the server names a file {f['name']!r}, outside of the folder", code="BAD_NAME")
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(path.name + ".part")
            url = f"{base}/{urllib.parse.quote(f['name'])}"
            try:
                with urllib.request.urlopen(self._request("GET", url), timeout=self.timeout) as r, open(part, "wb") as w:
                    shutil.copyfileobj(r, w)
            except urllib.error.HTTPError as e:
                part.unlink(missing_ok=True)
                error, _ = _problem(e)
                raise error from None
            part.replace(path)
            out.append(path)
        return out


class _OutOfTime(Exception):
    """A stream was left because of how long it is waited for, not because it broke."""


def _problem(e: urllib.error.HTTPError) -> Tuple[StarlingError, float]:
    """The error that an answer describes (RFC 9457), and the seconds after which to try again."""
    try:
        body = json.loads(e.read(1 << 20))
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    if isinstance(body.get("error"), dict):  # in OpenAI's form
        body = {"detail": body["error"].get("message"), "code": body["error"].get("code") or ""}
    try:
        retry = min(30.0, float(e.headers.get("Retry-After") or 0))
    except ValueError:
        retry = 0.0
    retryable = bool(body.get("retryable")) or e.code in (429, 502, 503, 504)
    kind = NotSupported if e.code == 501 else StarlingError
    detail = str(body.get("detail") or f"the server answered {e.code} {e.reason}")
    for p in body.get("problems") or []:
        detail += f"\n  {p.get('place', '')} {p.get('what', '')}: {p.get('why', '')}".rstrip(": ") + f"; {p.get('fix', '')}".rstrip("; ")
    return kind(detail, code=str(body.get("code", "")), fix=str(body.get("fix", "")), status=e.code,
                request_id=str(body.get("request_id", "")), retryable=retryable), retry
