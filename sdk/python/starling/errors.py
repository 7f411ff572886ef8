"""What can go wrong. Every error says what happened, its stable code, and what to do."""

from __future__ import annotations


class StarlingError(Exception):
    """An error with the parts that Starling gives: `code` for programs, `fix` for people, `request_id` for the server's log."""

    def __init__(self, message: str, *, code: str = "", fix: str = "", status: int = 0, request_id: str = "", retryable: bool = False):
        super().__init__(message)
        self.code, self.fix, self.status, self.request_id, self.retryable = code, fix, status, request_id, retryable

    def __str__(self) -> str:
        text = super().__str__()
        if self.code:
            text += f" [{self.code}]"
        if self.fix:
            text += f"; {self.fix}"
        if self.request_id:
            text += f" (request {self.request_id})"
        return text


class Unreachable(StarlingError):
    """The server cannot be reached, or stopped to answer."""


class NotSupported(StarlingError):
    """What was asked for is not offered here."""


class JobFailed(StarlingError):
    """The job came to an end that is none of a trained model. `job` is its last state."""

    def __init__(self, message: str, *, job: object = None, code: str = "", fix: str = ""):
        super().__init__(message, code=code, fix=fix)
        self.job = job
