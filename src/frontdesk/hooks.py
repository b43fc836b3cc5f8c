"""Calls the operator's hooks, and converts their failures into errors that channels can render."""

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar, cast, get_args

from frontdesk.concurrency.begun import await_begun, collect_begun
from frontdesk.concurrency.tasks import maybe_await
from frontdesk.errors import FrontdeskError, HookError, NobodyToAskError, RequestError, UnavailableError
from frontdesk.framework.outputs import as_result
from frontdesk.interfaces.channel import Channel, ChannelCommand, ChannelCommandContext
from frontdesk.interfaces.hooks import (
    ChannelResponseContext,
    Feedback,
    FeedbackHook,
    ResponseHook,
    RunHook,
    StreamTransformHook,
)
from frontdesk.loggers import access as access_log
from frontdesk.loggers import runs as log
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import ChannelRequest, ChannelSession, SessionMode
from frontdesk.models.result import HostedRunResult

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
_MAPPINGS = ("options", "metadata", "attributes", "reference", "forwarded_props", "details")
_SEQUENCES = ("approvals", "client_tools", "client_outputs")
_list_collections = attrgetter(*_MAPPINGS, *_SEQUENCES)
CHECKPOINT_ATTRIBUTE = "workflow.checkpoint_id"
"""The attribute with which a hook names the checkpoint to resume from."""


async def call_run_hook(
    hook: RunHook, request: ChannelRequest, *, target: Any, protocol_request: Any
) -> ChannelRequest:
    if CHECKPOINT_ATTRIBUTE in request.attributes:
        # Only the hook may set it. A caller names a checkpoint where its protocol has a field for it.
        attributes = {name: value for name, value in request.attributes.items() if name != CHECKPOINT_ATTRIBUTE}
        request = request.replace(attributes=attributes)
    try:
        changed: Any = await maybe_await(hook(request, target=target, protocol_request=protocol_request))
    except RequestError:
        raise
    except Exception as error:
        raise _build_hook_error("run_hook", request.channel, error) from error
    if not isinstance(changed, ChannelRequest):
        raise _build_hook_error("run_hook", request.channel, _build_type_error(changed, "request"))
    changed = fill_empty(changed)
    _require_types(changed)
    if CHECKPOINT_ATTRIBUTE not in changed.attributes:
        return changed
    return _with_checkpoint(changed, request.checkpoint_id)


async def apply_run_hook(
    hook: RunHook | None, request: ChannelRequest, *, target: Any = None, protocol_request: Any = None
) -> ChannelRequest:
    """Apply a run hook as the host does, for tests of a hook. Without a hook, return the request unchanged."""
    if hook is None:
        return request
    return await call_run_hook(hook, request, target=target, protocol_request=protocol_request)


def fill_empty(request: ChannelRequest) -> ChannelRequest:
    """Replace None in collection fields with empty collections."""
    if None not in _list_collections(request):
        return request
    empty: dict[str, Any] = {name: {} for name in _MAPPINGS if getattr(request, name) is None}
    empty |= {name: () for name in _SEQUENCES if getattr(request, name) is None}
    return request.replace(**empty)


def _with_checkpoint(request: ChannelRequest, before: str | None) -> ChannelRequest:
    """Apply a checkpoint that a hook set in the attributes of the request."""
    named: Any = request.attributes[CHECKPOINT_ATTRIBUTE]
    if named is None:
        return request
    if not isinstance(named, str):
        wrong: Exception = TypeError(f"it set {CHECKPOINT_ATTRIBUTE} to {named!r}, which is not a string")
        raise _build_hook_error("run_hook", request.channel, wrong)
    if request.checkpoint_id not in (None, before, named):
        wrong = ValueError(f"it set checkpoint_id and {CHECKPOINT_ATTRIBUTE} to two checkpoints")
        raise _build_hook_error("run_hook", request.channel, wrong)
    return request.replace(checkpoint_id=named)


def _require_types(request: ChannelRequest) -> None:
    """Raise if a hook set a field to a type that later steps do not support."""
    for name, kind in _TYPES.items():
        value: Any = getattr(request, name)
        if not isinstance(value, kind):
            expected = " or ".join(option.__name__ for option in kind if option is not NoneType)
            wrong = TypeError(f"it set {name} to {value!r}, which is no {expected}")
            raise _build_hook_error("run_hook", request.channel, wrong)
    if request.session_mode not in get_args(SessionMode):
        raise _build_hook_error(
            "run_hook", request.channel, ValueError(f"it set session_mode to {request.session_mode!r}")
        )


async def show_result(
    channel: Channel,
    result: HostedRunResult[Any],
    request: ChannelRequest,
    identity: ChannelIdentity,
    *,
    originating: bool = True,
    is_echo: bool = False,
) -> HostedRunResult[Any]:
    """Apply the channel's response hook to a result for one destination. The recorded result is unchanged.

    This is the only function that applies the hook. It is used for direct, pushed and echoed answers, for runs that are
    fetched later, and for conversation items.
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
    shown = await apply_response_hook(hook, result, context=context)
    return shown.replace(result=as_result(shown.result))


async def apply_response_hook(
    hook: ResponseHook | None, result: HostedRunResult[Any], *, context: ChannelResponseContext
) -> HostedRunResult[Any]:
    """Apply a response hook to a copy of a result, as the host does. Without a hook, return the result unchanged."""
    if hook is None:
        return result
    try:
        own = result.replace(result=copy.deepcopy(result.result))
        changed: Any = await maybe_await(hook(own, context=context))
    except RequestError:
        raise
    except Exception as error:
        raise _build_hook_error("response_hook", context.channel_name, error) from error
    if not isinstance(changed, HostedRunResult):
        raise _build_hook_error("response_hook", context.channel_name, _build_type_error(changed, "result"))
    return cast("HostedRunResult[Any]", changed)


async def call_stream_hook(hook: StreamTransformHook, update: Any, channel: str) -> Any:
    """Apply a stream hook to an update. `None` drops the update."""
    try:
        return await maybe_await(hook(copy.deepcopy(update)))
    except RequestError:
        raise
    except Exception as error:
        raise _build_hook_error("stream_transform_hook", channel, error) from error


async def call_feedback_hook(hook: FeedbackHook, feedback: Feedback) -> None:
    """Call a feedback hook. An error in it is logged, and raised as a `HookError`."""
    try:
        await maybe_await(hook(feedback))
    except Exception as error:
        raise _build_hook_error("feedback_hook", feedback.channel, error) from error


async def call_command(command: ChannelCommand, context: ChannelCommandContext) -> None:
    """Run a command. Errors that it raises on purpose are propagated unchanged."""
    try:
        with collect_begun():
            await maybe_await(command.handler(context))
            await await_begun()
    except FrontdeskError:
        raise
    except Exception as error:
        raise _build_hook_error(
            f"command /{command.name}", context.request.channel, error, "The command failed."
        ) from error


async def call_access(name: str, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
    """Call an access function. If it fails, everyone is denied until it works again."""
    try:
        return await maybe_await(function(*arguments))
    except RequestError:
        raise
    except Exception as error:
        access_log.error("%s failed", name, exc_info=error)
        raise UnavailableError("Access can't be checked at the moment. Try again later.", retry_after=1.0) from error


async def call_approvers(tool: str, function: Callable[..., T | Awaitable[T]], *arguments: Any) -> T:
    """Call a function that returns approvers. If it fails, there is no approver and the call does not run."""
    try:
        return await maybe_await(function(*arguments))
    except Exception as error:
        log.error("approver lookup failed: tool=%s", tool, exc_info=error)
        raise NobodyToAskError from error


def _build_type_error(value: object, needed: str) -> TypeError:
    return TypeError(f"it returned {type(value).__name__}, and has to return the {needed}")


def _build_hook_error(name: str, channel: str, error: Exception, message: str | None = None) -> HookError:
    log.error("hook failed: hook=%s channel=%s", name, channel, exc_info=error)
    return HookError(message, param=name)


def takes(function: Callable[..., Any], places: int, *names: str) -> bool:
    """Return True if a function accepts these arguments, or has no signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * places, **dict.fromkeys(names))
    except TypeError:
        return False
    return True
