"""A strict parser of server-sent events."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

_FIELDS = frozenset({"event", "data", "id", "retry"})


@dataclass(frozen=True, kw_only=True)
class ServerSentEvent:
    """A received event."""

    event: str = "message"
    data: str = ""
    id: str | None = None

    def json(self) -> Any:
        """Decode the data, which must be JSON."""
        return msgspec.json.decode(self.data)


def parse_sse(body: bytes) -> list[ServerSentEvent]:
    """Return the events of a whole response, without comments. Raise a `ValueError` if it is malformed or cut off."""
    events: list[ServerSentEvent] = []
    lines: list[str] = []
    *whole, rest = _split_lines(body)
    for line in whole:
        if line:
            lines.append(line)
        elif lines:
            events += _event(lines)
            lines = []
    if lines or rest:
        raise ValueError(f"the stream ends within an event: {rest or lines[-1]!r}")
    return events


async def read_sse(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a response as soon as they are complete."""
    rest: list[bytes] = []
    async for chunk in chunks:
        rest.append(chunk)
        # A long line in small pieces is put together once.
        if b"\n" not in chunk:
            continue
        *whole, last = b"".join(rest).replace(b"\r\n", b"\n").split(b"\n\n")
        rest = [last]
        for block in whole:
            for event in parse_sse(block + b"\n\n"):
                yield event
    for event in parse_sse(b"".join(rest)):
        yield event


def _split_lines(body: bytes) -> list[str]:
    # Only these three end a line: str.splitlines knows more, and JSON may hold them.
    return body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _event(lines: Iterable[str]) -> list[ServerSentEvent]:
    event = ServerSentEvent()
    data: list[str] = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            event = replace(event, event=value)
        elif name == "id":
            event = replace(event, id=value)
        elif name and name not in _FIELDS:
            raise ValueError(f"no event has a field {name!r}")
    return [replace(event, data="\n".join(data))] if data else []
