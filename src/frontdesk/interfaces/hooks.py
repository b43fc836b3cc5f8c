"""The types of the operator's hooks that the pipeline calls. Hooks may be sync or async."""

from collections.abc import Awaitable
from typing import Any, Literal, Protocol

from frontdesk.models.base import FrozenStruct
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.request import ChannelRequest
from frontdesk.models.result import HostedRunResult


class RunHook(Protocol):
    """Adapts a request before it is admitted. An error in it is a 422."""

    def __call__(
        self, request: ChannelRequest, *, target: Any, protocol_request: Any
    ) -> ChannelRequest | Awaitable[ChannelRequest]: ...


class ChannelResponseContext(FrozenStruct, frozen=True, kw_only=True):
    """The destination for which a response hook is called."""

    request: ChannelRequest
    channel_name: str
    destination_identity: ChannelIdentity
    originating: bool
    is_echo: bool = False


class ResponseHook(Protocol):
    """Adapts a result for one destination. It receives a copy."""

    def __call__(
        self, result: HostedRunResult[Any], *, context: ChannelResponseContext
    ) -> HostedRunResult[Any] | Awaitable[HostedRunResult[Any]]: ...


class StreamTransformHook(Protocol):
    """Adapts one update of a stream. None drops it."""

    def __call__(self, update: Any) -> Any | Awaitable[Any]: ...


class Feedback(FrozenStruct, frozen=True, kw_only=True):
    """A person's opinion of an answer, given by a button or a reaction of the platform."""

    run_id: str
    identity: ChannelIdentity
    value: Literal["up", "down"]
    reason: str = ""
    """What the person has written about it."""
    channel: str
    at: float


class FeedbackHook(Protocol):
    """Receives feedback. An error in it is logged."""

    def __call__(self, feedback: Feedback) -> Awaitable[None] | None: ...


# The names that the design gives them.
ChannelRunHook = RunHook
ChannelResponseHook = ResponseHook
ChannelStreamTransformHook = StreamTransformHook
