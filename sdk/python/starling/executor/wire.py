"""Frames on pipes: four bytes of length, little-endian, then a JSON object of that length in UTF-8."""

import json
import struct

VERSION = 2
MAX_REQUEST = 1 << 30  # bytes; a program may hold constants
MAX_REPLY = 1 << 16
MAX_MESSAGE = 8192  # characters of the text of an error


class Refused(Exception):
    """What the worker is told in place of a reply: a stable code and a sentence."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Wire:
    """One request, one reply, in turn, on two binary files."""

    def __init__(self, requests, replies):
        self.requests, self.replies = requests, replies

    def receive(self):
        """Returns the next request, or None when the worker has closed the pipe."""
        head = self.requests.read(4)
        if not head:
            return None
        if len(head) < 4:
            raise Refused("PROTOCOL", "a request ends in its length")
        size = struct.unpack("<I", head)[0]
        if size > MAX_REQUEST:
            raise Refused("PROTOCOL", f"a request of {size} bytes, at most {MAX_REQUEST}")
        body = self.requests.read(size)
        if len(body) < size:
            raise Refused("PROTOCOL", "a request ends in the middle")
        try:
            request = json.loads(body)
        except ValueError as e:
            raise Refused("PROTOCOL", f"a request is not JSON: {e}") from None
        if not isinstance(request, dict) or not isinstance(request.get("type"), str):
            raise Refused("PROTOCOL", "a request is an object with a type")
        return request

    def send(self, kind, **fields):
        """Sends a reply."""
        body = json.dumps({"type": kind, **fields}, allow_nan=False).encode()
        if len(body) > MAX_REPLY:
            raise ValueError(f"a reply of {len(body)} bytes, at most {MAX_REPLY}")
        self.replies.write(struct.pack("<I", len(body)) + body)
        self.replies.flush()

    def refuse(self, error):
        """Sends an error."""
        self.send("error", code=error.code, message=str(error)[:MAX_MESSAGE])
