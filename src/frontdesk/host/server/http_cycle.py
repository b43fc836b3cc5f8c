"""One request and its answer on a connection, where a short answer leaves in one write.

Uvicorn writes the head of an answer before its body is known, and checks each header by itself. Here the head of an
answer with a length is written together with its body. Anything unusual is left to uvicorn.
"""

import re
from typing import Any

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

# Capitals too, which uvicorn turns into lower case.
_NOT_PLAIN = re.compile(HEADER_RE.pattern + rb"|[A-Z]")
# Called for every request: `super()` would look them up each time.
_send = RequestResponseCycle.send
_receive = RequestResponseCycle.receive


class HttpCycle(RequestResponseCycle):
    """Uvicorn's own, with a shortcut for what most requests are."""

    _head: Any = None
    """The first message of an answer with a length, until the second comes."""
    _length = b""
    _read = False
    """Whether the app has received the whole body."""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and self._is_held(message):
            # If one is held already, the app has failed since, and this one is the error.
            self._head = message
        elif self._head is None:
            await _send(self, message)
        elif not self._send_whole(self._head, message):
            head, self._head = self._head, None
            await _send(self, head)
            await _send(self, message)

    def _is_held(self, head: Any) -> bool:
        if self.response_started or self.access_log or not self.keep_alive or self.scope["method"] == "HEAD":
            return False
        for name, value in head.get("headers", ()):
            if name == b"content-length":
                self._length = value
                return True
        return False

    def _send_whole(self, head: Any, message: Any) -> bool:
        """Send an answer, if the message has all of its body and nothing about it is unusual."""
        body = message.get("body", b"")
        if message.get("more_body") or self.flow.write_paused or self.disconnected or self._length != b"%d" % len(body):
            return False
        parts = [STATUS_LINE[head["status"]]]
        names, values = b"", b""
        for name, value in (*self.default_headers, *head["headers"]):
            names += name
            values += value
            parts += (name, b": ", value, b"\r\n")
        if _NOT_PLAIN.search(names) or HEADER_VALUE_RE.search(values) or b"connection" in names:
            return False
        parts += (b"\r\n", body)
        self._head = None
        self.transport.write(b"".join(parts))
        self.response_started = self.response_complete = True
        self.message_event.set()
        self.on_response()
        return True

    async def receive(self) -> Any:
        if self.more_body or self._read or self.waiting_for_100_continue or self.disconnected or self.response_complete:
            return await _receive(self)
        # The whole body is here; after it, the only message is that the client has left.
        self._read = True
        self.flow.resume_reading()
        self.message_event.clear()
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": False}
