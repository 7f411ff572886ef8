"""Jobs that are ordered on a network: `starling web` as a child, with the account of a folder, and its REST API."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional

from .errors import NotSupported, StarlingError
from .local import _reason
from .models import JobInfo, Plan
from .server import Server

ENDING = 30.0  # seconds that the child may take to end


class Gateway(Server):
    """A server that is started with the first call and ends with this process, however that ends. What is ordered goes on on the
    network; the next Gateway of the same folder and account collects it."""

    def __init__(self, binary: str, network: str, home: Optional[str], folder: str, data: Optional[str], timeout: float):
        found = shutil.which(binary)
        if found is None:
            raise NotSupported(f"there is no program {binary!r}", code="NO_BINARY", fix="install starling, give binary=, or url= of a server")
        if not home:
            raise StarlingError("an account pays for jobs on a network, and none is given", code="HOME_NEEDED",
                                fix="give home=, the folder of an account with coins; `starling worker identity --home DIR` makes one")
        super().__init__("http://127.0.0.1", secrets.token_hex(16), timeout)
        self.binary, self.network, self.home, self.folder = found, network, home, Path(folder)
        self.data = Path(data).resolve() if data is not None else None
        self.given = data is not None  # else it is the folder of the first job file
        self.process: Optional[subprocess.Popen[str]] = None
        self.said: List[str] = []  # on standard error
        self.starting = threading.Lock()

    def _start(self, data: Path) -> None:
        """Starts the server, which finds data below a folder, unless it runs."""
        with self.starting:
            if self.process and self.process.poll() is None:
                return
            self.data = self.data or data
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", prefix="starling-", delete=False) as f:  # others cannot read it
                f.write(f"{self.token} read,submit\n")
            try:
                self._await(f.name)
            finally:
                os.unlink(f.name)

    def _await(self, tokens: str) -> None:
        """Starts the server and waits until it answers."""
        self.said = []
        self.process = subprocess.Popen(
            [self.binary, "web", str(self.folder), "--network", self.network, "--home", self.home, "--data", str(self.data), "--listen", "127.0.0.1:0",
             "--token-file", tokens, "--until-stdin-ends", "-o", "json"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("dashboard: "):
                self.url = line[len("dashboard: "):].strip()
                threading.Thread(target=self._drain, args=(self.process,), daemon=True).start()
                return
        why = _reason("".join(self.said), self.process.wait())
        self._discard()
        raise StarlingError(why["text"], code=why["code"], fix=why.get("next", ""))

    def _drain(self, process: "subprocess.Popen[str]") -> None:
        """Keeps the latest of what the server says."""
        assert process.stderr is not None
        for line in process.stderr:
            self.said = self.said[-99:] + [line]

    def _discard(self) -> None:
        if self.process:
            for pipe in (self.process.stdin, self.process.stderr):
                if pipe:
                    pipe.close()
        self.process = None

    def close(self) -> None:
        """Ends the server. What is ordered goes on on the network."""
        with self.starting:
            if self.process is None:
                return
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(ENDING)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def ask(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> Any:
        self._start(Path.cwd())
        return super().ask(method, path, body, headers)

    def _of(self, base: Path) -> None:
        """Starts the server for a job whose data is relative to a folder."""
        self._start(base)
        if not self.given and base.resolve() != self.data:
            raise StarlingError(f"the data of the job is looked for in {base}, and the client looks below {self.data}", code="OTHER_DATA",
                                fix="give data=, the folder that the paths of all job files are relative to")

    def plan(self, config: str, overrides: List[str], base: Path) -> Plan:
        self._of(base)
        return super().plan(config, overrides, base)

    def submit(self, config: str, overrides: List[str], name: str, plan: str, key: str, base: Path) -> JobInfo:
        self._of(base)
        return super().submit(config, overrides, name, plan, key, base)
