"""Calls the operator's hooks, and turns their failures into errors that a channel can show."""

import copy
from collections.abc import Awaitable, Callable, Mapping
from types import NoneType
from typing import Any, TypeVar, cast, get_args

from frontdesk.abc.channel import Channel, ChannelCommand, ChannelCommandContext
from frontdesk.abc.hooks import ChannelResponseContext, RunHook, StreamTransformHook
from frontdesk.data.identity import ChannelIdentity
from frontdesk.data.request import ChannelRequest, ChannelSession, SessionMode
from frontdesk.data.response_target import ResponseTarget
from frontdesk.data.result import HostedRunResult
from frontdesk.errors import FrontdeskError, HookError, NobodyToAskError, RequestError, UnavailableError
from frontdesk.kit.aio.calls import maybe_await
from frontdesk.loggers import access as access_log
from frontdesk.loggers import runs as log

T = TypeVar("T")

_TYPES: dict[str, tuple[type, ...]] = {
    "response_target": (ResponseTarget,),
    "identity": (ChannelIdentity, NoneType),
    "session": (ChannelSession, NoneType),
    "options": (Mapping,),
    "metadata": (Mapping,),
    "attributes": (Mapping,),
    "reference": (Mapping,),
}
"""Fields that a hook may set and that later steps read, with the types that they must have."""


async def call_run_hook(
    hook: RunHook, request: ChannelRequest, *, target: Any, protocol_request: Any
) -> ChannelRequest:
    """Return the request as the hook wants it."""
    try:
        changed: Any = await maybe_await(hook(request, target=target, protocol_request=protocol_request))
    except RequestError:
        raise
    except Exception as error:
        raise _failed("run_hook", request.channel, error) from error
    if not isinstance(changed, ChannelRequest):
        raise _failed("run_hook", request.channel, _returned(changed, "request"))
    _need_types(changed)
    return changed


def _need_types(request: ChannelRequest) -> None:
    """Refuse a request in which a hook has set a field to a type that later steps do not understand."""
    for name, kind in _TYPES.items():
        value: Any = getattr(request, name)
        if not isinstance(value, kind):
            expected = " or ".join(option.__name__ for option in kind if option is not NoneType)
            wrong = TypeError(f"it set {name} to {value!r}, which is no {expected}")
            raise _failed("run_hook", request.channel, wrong)
    if request.session_mode not in get_args(SessionMode):
        raise _failed("run_hook", request.channel, ValueError(f"it set session_mode to {request.session_mode!r}"))


async def show_result(
    channel: Channel,
    result: HostedRunResult[Any],
    request: ChannelRequest,
    identity: ChannelIdentity,
    *,
    originating: bool = True,
    is_echo: bool = False,
) -> HostedRunResult[Any]:
    """Return a result as the response hook of a channel wants it for one destination; the recorded one stays as it is.

    This is the only place that applies the hook: to an answer on a wire, to one that is pushed or echoed elsewhere, to
    a run that is fetched later, and to the items of a conversation.
    """
    hook = channel.response_hook
    if hook is None:
        return result
    context = ChannelResponseContext(
        request=request,
        channel_name=channel.name,
        destination_identity=identity,
        originating=originating,
        is_echo=is_echo,
    )
    try:
        own = result.replace(result=copy.deepcopy(result.result))
        changed: Any = await maybe_await(hook(own, context=context))
    except RequestError:
        raise
    except Exception as error:
        raise _failed("response_hook", context.channel_name, error) from error
    if not isinstance(changed, HostedRunResult):
        raise _failed("response_hook", context.channel_name, _returned(changed, "result"))
    return cast("HostedRunResult[Any]", changed)


async def call_stream_hook(hook: StreamTransformHook, update: Any, channel: str) -> Any:
    """Return the update as the hook wants it; `None` drops it."""
    try:
        return await maybe_await(hook(copy.deepcopy(update)))
    except RequestError:
        raise
    except Exception as error:
        raise _failed("stream_transform_hook", channel, error) from error


async def call_command(command: ChannelCommand, context: ChannelCommandContext) -> None:
    """Run a command; an error that it raises on purpose goes through as it is."""
    try:
        await maybe_await(command.handler(context))
    except FrontdeskError:
        raise
    except Exception as error:
        raise _failed(f"command /{command.name}", context.request.channel, error, "The command failed.") from error


async def call_access(name: str, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
    """Ask a function that decides who comes in; if it fails, nobody comes in until it works again."""
    try:
        return await maybe_await(function(*arguments))
    except RequestError:
        raise
    except Exception as error:
        access_log.error("%s failed", name, exc_info=error)
        raise UnavailableError("Who may come in can't be found out at the moment.", retry_after=1.0) from error


async def call_approvers(tool: str, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
    """Ask a function who approves a call; if it fails there is nobody to ask, and nothing runs."""
    try:
        return await maybe_await(function(*arguments))
    except Exception as error:
        log.error("the approvers of %s could not be found", tool, exc_info=error)
        raise NobodyToAskError from error


def _returned(value: object, needed: str) -> TypeError:
    return TypeError(f"it returned {type(value).__name__}, and has to return the {needed}")


def _failed(name: str, channel: str, error: Exception, message: str | None = None) -> HookError:
    log.error("%s of channel %s failed", name, channel, exc_info=error)
    return HookError(message, param=name)
