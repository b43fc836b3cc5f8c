"""Functions of the operator's that the pipeline calls; each may be sync or async."""

from collections.abc import Awaitable
from typing import Any, Protocol

from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.noun import Value
from frontdesk.data.request import ChannelRequest
from frontdesk.data.result import HostedRunResult


class RunHook(Protocol):
    """Adapts a request before it is admitted; an error in it is a 422."""

    def __call__(
        self, request: ChannelRequest, *, target: Any, protocol_request: Any
    ) -> ChannelRequest | Awaitable[ChannelRequest]: ...


class ChannelResponseContext(Value, frozen=True, kw_only=True):
    """For which destination a response hook is asked."""

    request: ChannelRequest
    channel_name: str
    destination_identity: ChannelIdentity
    originating: bool
    is_echo: bool = False


class ResponseHook(Protocol):
    """Adapts a result for one destination; it gets a copy."""

    def __call__(
        self, result: HostedRunResult[Any], *, context: ChannelResponseContext
    ) -> HostedRunResult[Any] | Awaitable[HostedRunResult[Any]]: ...


class StreamTransformHook(Protocol):
    """Adapts one update of a stream; `None` drops it."""

    def __call__(self, update: Any) -> Any | Awaitable[Any]: ...
