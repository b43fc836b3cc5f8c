"""A strict fake of Telegram's Bot API, for tests of bots and for trying them without an account.

Its parts are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk_testing.telegram.clock import MovableClock as MovableClock
    from frontdesk_testing.telegram.files import Upload as Upload
    from frontdesk_testing.telegram.flood import FloodLimits as FloodLimits
    from frontdesk_testing.telegram.server import FakeTelegram as FakeTelegram
    from frontdesk_testing.telegram.server import fake_telegram as fake_telegram

_HOME = {
    "FakeTelegram": "server",
    "FloodLimits": "flood",
    "MovableClock": "clock",
    "Upload": "files",
    "fake_telegram": "server",
}

__all__ = ["FakeTelegram", "FloodLimits", "MovableClock", "Upload", "fake_telegram"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk_testing.telegram' has no attribute {name!r}")
    value = getattr(import_module(f"frontdesk_testing.telegram.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
