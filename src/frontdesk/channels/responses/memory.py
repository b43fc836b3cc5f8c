"""The memory of one connection for responses that are kept nowhere else: enough to say it all again. Pure."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_framework import Content, Message

from frontdesk.channels.responses.parse import client_tools
from frontdesk.data.request import ChannelRequest, ClientOutput
from frontdesk.data.run import RunRecord
from frontdesk.errors import InvalidRequestError
from frontdesk.kit.framework.client_outputs import answered
from frontdesk.kit.framework.messages import as_messages
from frontdesk.kit.framework.types import is_response
from frontdesk.kit.openai.tool_names import merged

MOST_KEPT = 16


@dataclass(frozen=True)
class Kept:
    """A response that was not stored."""

    previous: str | None
    """The stored response at which it begins."""
    outputs: tuple[ClientOutput, ...]
    """The outputs of the client's functions for that one."""
    messages: tuple[Message, ...]
    """All that was said since then."""
    waiting: frozenset[str]
    """The calls of the client's functions that it has ended with."""
    size: int
    tools: tuple[dict[str, Any], ...] = ()
    """The tools of the client's that came as items, and that go on being offered."""

    @classmethod
    def of(cls, request: ChannelRequest, run: RunRecord, size: int) -> "Kept":
        """Make what is kept of a run; `request` as it was continued, `size` is about as many bytes as that has."""
        said = as_messages(request.input) or []
        answer: Sequence[Message] = run.result.messages if is_response(run.result) else ()
        calls = {_id(content) for message in answer for content in message.contents if content.type == "function_call"}
        results = {
            _id(content) for message in answer for content in message.contents if content.type == "function_result"
        }
        return cls(
            previous=request.previous_run_id,
            outputs=request.client_outputs,
            messages=(*said, *answer),
            waiting=frozenset(calls - results),
            size=size,
            tools=tuple(request.details.get("additional_tools") or ()),
        )

    def continued(self, request: ChannelRequest, *, hears: bool) -> ChannelRequest:
        """Return a request that says everything again before what is new; `hears`: the target listens to that."""
        if request.approvals:
            raise InvalidRequestError("No tool waits for an answer in a response that is not stored.", param="input")
        results = answered(self.waiting, request.client_outputs)
        said = [*self.messages, *results, *(as_messages(request.input) or ())]
        details = {**request.details, "previous_response_id": request.previous_run_id}
        request = request.replace(
            input=said if hears else request.input, previous_run_id=self.previous, client_outputs=self.outputs
        )
        return self._offered(request, details)

    def _offered(self, request: ChannelRequest, details: dict[str, Any]) -> ChannelRequest:
        """Return a request with the tools that earlier items have brought; their number has the bound of a request."""
        if not self.tools:
            return request.replace(details=details)
        added = merged(self.tools, details.get("additional_tools") or ())
        tools = client_tools(details.get("tools") or (), added)
        return request.replace(client_tools=tools, details={**details, "additional_tools": added})


def _id(call: Content) -> str:
    return str(call.call_id)


class _Share:
    """The memory of all connections of one caller, oldest first."""

    __slots__ = ("kept", "size")

    def __init__(self) -> None:
        self.kept: dict[tuple[Memory, str], int] = {}
        self.size = 0


class Space:
    """Bound what all connections remember together.

    When it is full, the oldest of the caller goes who has the most in it. So a caller can make another forget only
    while that other has more.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._size = 0
        self._shares: dict[Hashable, _Share] = {}

    def take(self, memory: "Memory", run_id: str, size: int) -> None:
        """Make space for a response."""
        share = self._shares.setdefault(memory.owner, _Share())
        share.kept[memory, run_id] = size
        share.size += size
        self._size += size
        while self._size > self._most_bytes:
            # No more are looked at than there are connections, and only when there is no space left.
            largest = max(self._shares.values(), key=_size)
            other, oldest = next(iter(largest.kept))
            other.forget(oldest)

    def give_back(self, memory: "Memory", run_id: str) -> None:
        """Free the space of a response that was forgotten."""
        share = self._shares[memory.owner]
        size = share.kept.pop((memory, run_id))
        share.size -= size
        self._size -= size
        if not share.kept:
            del self._shares[memory.owner]


def _size(share: _Share) -> int:
    return share.size


class Memory:
    """The responses of one connection, the last ones only."""

    def __init__(self, space: Space, most_bytes: int, *, owner: Hashable) -> None:
        """`most_bytes` is how large all of them together may be: as the body that would say it all again.

        `owner` is whose connection it is.
        """
        self._space = space
        self._most_bytes = most_bytes
        self.owner = owner
        self._kept: dict[str, Kept] = {}

    def get(self, run_id: str | None) -> Kept | None:
        """Return a response of this connection's."""
        return None if run_id is None else self._kept.get(run_id)

    def keep(self, run_id: str, kept: Kept) -> None:
        """Remember a response, and forget the oldest ones in its place."""
        self._kept[run_id] = kept
        self._space.take(self, run_id, kept.size)
        while len(self._kept) > MOST_KEPT or sum(kept.size for kept in self._kept.values()) > self._most_bytes:
            self.forget(next(iter(self._kept)))

    def forget(self, run_id: str | None) -> None:
        """Forget a response, which can't be continued any more."""
        if run_id is not None and self._kept.pop(run_id, None) is not None:
            self._space.give_back(self, run_id)

    def close(self) -> None:
        """Forget everything, since the connection has ended."""
        for run_id in list(self._kept):
            self.forget(run_id)
