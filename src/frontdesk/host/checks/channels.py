"""Finds mistakes in channels before the host runs."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from frontdesk.abc.channel import Channel, ChannelPush
from frontdesk.data.response_target import ORIGINATING_NAME
from frontdesk.host.checks.chats import chat_findings
from frontdesk.kit.auth.any_auth import rename_warnings

HOST_PATHS = ("/healthz", "/readyz", "/liveness", "/readiness")
_CALLS: dict[str, tuple[int, tuple[str, ...], str]] = {
    "run_hook": (1, ("target", "protocol_request"), "(request, *, target, protocol_request)"),
    "response_hook": (1, ("context",), "(result, *, context)"),
    "stream_transform_hook": (1, (), "(update)"),
}
"""For each hook: the number of its positional arguments, the names of the others, and its signature as text."""
_ALIKE = 0.9
"""The similarity from which on a name counts as a misspelt setting; `names` is not similar enough to `name`."""


def usable_channels(channels: Sequence[Any]) -> list[Channel]:
    """Return the channels that have enough attributes to be checked further."""
    return [channel for channel in channels if isinstance(channel, Channel) and not _lacks(channel)]


def channel_findings(channels: Sequence[Any]) -> list[str]:
    """List what is wrong with the channels, each by itself and all together."""
    wrong = [finding for channel in channels for finding in _shape_findings(channel)]
    usable = usable_channels(channels)
    if not channels:
        wrong.append("channels: a host needs at least one channel")
    for name, count in Counter(channel.name for channel in usable).items():
        if count > 1:
            wrong.append(f"channels: {count} channels are called {name!r}; give each its own name=")
    # Of those that share their path, each kind counts by itself.
    places = Counter((channel.path, type(channel) if channel.shares_path else Channel) for channel in usable)
    for (path, _), count in places.items():
        if count > 1:
            wrong.append(f"channels: {count} channels have the path {path!r}; give each its own path=")
    for channel in usable:
        own = [*_path_findings(channel), *_hook_findings(channel), *_push_findings(channel)]
        own += [
            *_spelling_findings(channel),
            *chat_findings(channel),
            *channel.push_terms.findings(),
            *channel.findings(),
        ]
        wrong.extend(f"channel {channel.name!r}: {finding}" for finding in own)
    return wrong


def channel_warnings(channels: Sequence[Channel], *, durable: bool) -> list[str]:
    """Return what the channels warn of; where the state lasts, also that callers may have had other names before."""
    warnings: list[str] = []
    for channel in channels:
        own = [*channel.warnings(), *(rename_warnings(channel.auth) if durable else ())]
        warnings += [f"channel {channel.name!r}: {warning}" for warning in own]
    return warnings


def _shape_findings(channel: Any) -> list[str]:
    """List what an object lacks to be a channel, a line each."""
    if inspect.isclass(given := channel):
        return [f"channels: {given.__name__} is a class; give an instance: {given.__name__}(...)"]
    kind = type(channel).__name__
    if not isinstance(channel, Channel) and not callable(getattr(channel, "contribute", None)):
        return [f"channels: {channel!r} is not a Channel"]
    wrong: list[str] = []
    if not isinstance(channel, Channel):
        wrong.append(f"channels: {kind} is not a Channel: make it one with `class {kind}(frontdesk.Channel)`")
    wrong += [f"channels: {kind} has no {name}; {how}" for name, how in _lacks(channel).items()]
    if not takes(channel.contribute, 1):
        wrong.append(f"channels: {kind}.contribute must take the context: `def contribute(self, context)`")
    if inspect.iscoroutinefunction(channel.contribute):
        wrong.append(f"channels: {kind}.contribute must not be async; what has to be awaited belongs into on_startup")
    return wrong


def _lacks(channel: Any) -> dict[str, str]:
    needed = {
        "name": 'add one such as `name = "mine"`',
        "path": 'add one such as `path = "/mine"`, or `path = ""` for the root',
    }
    return {name: how for name, how in needed.items() if not isinstance(getattr(channel, name, None), str)}


def _path_findings(channel: Channel) -> list[str]:
    wrong: list[str] = []
    if not channel.name:
        wrong.append("name must not be empty")
    if channel.name == ORIGINATING_NAME:
        wrong.append(f"name {channel.name!r} stands for where a request came from; choose another")
    if channel.path and (not channel.path.startswith("/") or channel.path.endswith("/")):
        wrong.append(f"path {channel.path!r} must begin with a slash and not end with one, or be empty")
    if channel.path in HOST_PATHS:
        wrong.append(f"path {channel.path!r} is the host's own")
    if channel.session_mode not in ("auto", "required", "disabled"):
        wrong.append(f"session_mode {channel.session_mode!r} is not 'auto', 'required' or 'disabled'")
    return wrong


def _hook_findings(channel: Channel) -> list[str]:
    wrong: list[str] = []
    for name, (places, names, written) in _CALLS.items():
        hook: Any = getattr(channel, name)
        if hook is None:
            continue
        if not callable(hook):
            wrong.append(f"{name} is not a function")
        elif not takes(hook, places, *names):
            wrong.append(f"{name} {inspect.signature(hook)} can't be called: it must take {written}")
    return wrong


def _push_findings(channel: Channel) -> list[str]:
    if not isinstance(channel, ChannelPush) or takes(channel.push, 2):
        return []
    return ["push must take the identity and the result: `async def push(self, identity, result)`"]


def _spelling_findings(channel: Channel) -> list[str]:
    """Find attributes of the channel's class that are misspelt settings, and would have no effect."""
    settings = Channel.__annotations__.keys()
    own = [kind for kind in type(channel).__mro__ if issubclass(kind, Channel) and kind is not Channel]
    names = {name for kind in own for name, value in vars(kind).items() if _is_plain(name, value)}
    meant = {name: get_close_matches(name, settings, 1, _ALIKE) for name in sorted(names - settings)}
    return [f"{name} is not a setting of a channel: did you mean {close[0]}?" for name, close in meant.items() if close]


def _is_plain(name: str, value: Any) -> bool:
    return not name.startswith("_") and not callable(value) and not hasattr(value, "__get__")


def takes(function: Callable[..., Any], places: int, *names: str) -> bool:
    """Tell whether a function can be called with these arguments; one without a signature counts as if it could."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*[None] * places, **dict.fromkeys(names))
    except TypeError:
        return False
    return True
