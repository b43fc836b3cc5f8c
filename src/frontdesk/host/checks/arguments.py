"""Finds arguments of a host that are of the wrong kind, before anything else looks at them."""

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from frontdesk.abc.channel import Channel
from frontdesk.errors import ChannelConfigurationError

_NO_STORE = (
    "store: a text or a path is no store; give state_dir= for a directory with a SQLite file, or "
    "store=PostgresStateStore(...) with the address of a database"
)


def as_list(channels: Any) -> list[Any]:
    """Return the channels of a host as a list; refuse what is none."""
    if isinstance(channels, Iterable) and not isinstance(channels, (str, bytes, Mapping)):
        return list(cast("Iterable[Any]", channels))
    raise ChannelConfigurationError(f"channels: {_wrong_list(channels)}")


def need_instances(**given: object) -> None:
    """Refuse classes, and the address of a store, where a host needs objects."""
    classes = {name: kind for name, kind in given.items() if inspect.isclass(kind)}
    if classes:
        raise ChannelConfigurationError([class_finding(name, kind) for name, kind in classes.items()])
    if isinstance(given.get("store"), (str, Path)):
        # Not shown: an address may have a password in it.
        raise ChannelConfigurationError(_NO_STORE)


def class_finding(name: str, kind: type) -> str:
    """Say that an argument is a class, and what to give instead."""
    return f"{name}: {kind.__name__} is a class; give an instance: {kind.__name__}(...)"


def _wrong_list(channels: Any) -> str:
    if inspect.isclass(channels):
        return f"{channels.__name__} is a class; give a list of instances: channels=[{channels.__name__}(...)]"
    kind = type(channels).__name__
    if isinstance(channels, Channel):
        return f"{kind} is one channel; put it into a list: channels=[{kind}(...)]"
    return f"{kind} is not a list of channels"
