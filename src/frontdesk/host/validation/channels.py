"""Validates the channels when the host is built."""

import inspect
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from frontdesk.auth.any_auth import rename_warnings
from frontdesk.delivery.watchers import WATCHERS
from frontdesk.hooks import takes
from frontdesk.host.validation.abilities import channel_ability_findings
from frontdesk.interfaces.argument_types import FINDINGS
from frontdesk.interfaces.channel import Channel
from frontdesk.interfaces.chat import ShowsTyping, StreamsReplies
from frontdesk.interfaces.policies import ChatPolicy
from frontdesk.models.reply import ORIGINATING_NAME


def chat_findings(channel: Channel) -> list[str]:
    """Find settings of a channel that are wrong or have no effect, one line each."""
    values = {field.name: getattr(channel, field.name) for field in fields(ChatPolicy)}
    wrong = ChatPolicy(**values).findings()
    if channel.session_family != "host_tracked":
        without_effect = ["on_busy='interrupt'"] if channel.on_busy == "interrupt" else []
        without_effect += [name for name in ("gather_seconds", "album_seconds", "event_limits") if values[name]]
        wrong += [f"{name} has no effect: only message channels accept events" for name in without_effect]
    if channel.live == "always" and not isinstance(channel, StreamsReplies):
        wrong.append("live='always' has no effect: the channel can't show an answer while it is written")
    # An ability whose attribute is not set has a finding of its own.
    if isinstance(channel, StreamsReplies) and hasattr(channel, "live_terms"):
        wrong += channel.live_terms.findings()
    interval = getattr(channel, "typing_interval", None) if isinstance(channel, ShowsTyping) else None
    if interval is not None and not interval > 0:
        wrong.append(f"typing_interval must be above 0, and is {interval!r}")
    return wrong


HOST_PATHS = ("/healthz", "/readyz", "/liveness", "/readiness")
_CALLS: dict[str, tuple[int, tuple[str, ...], str]] = {
    "run_hook": (1, ("target", "protocol_request"), "(request, *, target, protocol_request)"),
    "response_hook": (1, ("context",), "(result, *, context)"),
    "stream_transform_hook": (1, (), "(update)"),
}
"""For each hook: the number of its positional arguments, the names of the others, and its signature as text."""
_MIN_SIMILARITY = 0.9
"""The similarity from which on a name counts as a misspelt setting; `names` is not similar enough to `name`."""


def usable_channels(channels: Sequence[Any]) -> list[Channel]:
    """Return the channels that have enough attributes for further validation."""
    return [channel for channel in channels if isinstance(channel, Channel) and not _lacks(channel)]


def channel_findings(channels: Sequence[Any]) -> list[str]:
    """Return the findings for each channel and for all of them together."""
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
        own = [*_path_findings(channel), *_hook_findings(channel), *channel_ability_findings(channel)]
        own += [
            *getattr(channel, FINDINGS, ()),
            *_list_spelling_findings(channel),
            *chat_findings(channel),
            *channel.push_terms.findings(),
            *channel.findings(),
        ]
        wrong.extend(f"channel {channel.name!r}: {finding}" for finding in own)
    return wrong


def channel_warnings(channels: Sequence[Channel], *, durable: bool) -> list[str]:
    """Return the warnings of the channels. With durable state, warn that callers may have had other names before."""
    warnings: list[str] = []
    for channel in channels:
        own = [*channel.warnings(), *(rename_warnings(channel.auth) if durable else ())]
        warnings += [f"channel {channel.name!r}: {warning}" for warning in own]
    return warnings


def _shape_findings(channel: Any) -> list[str]:
    if inspect.isclass(given := channel):
        return [f"channels: {given.__name__} is a class; give an instance: {given.__name__}(...)"]
    kind = type(channel).__name__
    if not isinstance(channel, Channel) and not callable(getattr(channel, "contribute", None)):
        return [f"channels: {kind} is not a Channel"]
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
    if channel.name == WATCHERS:
        wrong.append(f"name {channel.name!r} is that of the host's own notifications; choose another")
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


def _list_spelling_findings(channel: Channel) -> list[str]:
    """Find class attributes that are misspelt settings and would have no effect."""
    settings = Channel.__annotations__.keys()
    own = [kind for kind in type(channel).__mro__ if issubclass(kind, Channel) and kind is not Channel]
    names = {name for kind in own for name, value in vars(kind).items() if _is_plain(name, value)}
    meant = {name: get_close_matches(name, settings, 1, _MIN_SIMILARITY) for name in sorted(names - settings)}
    return [f"{name} is not a setting of a channel: did you mean {close[0]}?" for name, close in meant.items() if close]


def _is_plain(name: str, value: Any) -> bool:
    return not name.startswith("_") and not callable(value) and not hasattr(value, "__get__")
