"""HTTP, WebSocket and server-sent events."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.http.channel import (
        HttpChannel,
        HttpConfig,
        HttpSettings,
        StreamingConfig,
        StreamingSettings,
        takes_settings,
    )

__all__ = ["HttpChannel", "HttpConfig", "HttpSettings", "StreamingConfig", "StreamingSettings", "takes_settings"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("frontdesk.http.channel"), name)
