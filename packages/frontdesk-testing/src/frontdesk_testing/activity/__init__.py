"""A strict fake of Azure Bot Service: its connector, the issuer of its tokens, and the login server of bots.

`python -m frontdesk_testing.activity` serves it with a person to talk as. Its parts are imported when they are first
used. What it does not cover is listed in `frontdesk_testing.activity.connector`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk_testing.activity.server import APP_ID as APP_ID
    from frontdesk_testing.activity.server import APP_SECRET as APP_SECRET
    from frontdesk_testing.activity.server import FakeActivity as FakeActivity
    from frontdesk_testing.activity.server import fake_activity as fake_activity
    from frontdesk_testing.activity.world import Conversation as Conversation
    from frontdesk_testing.activity.world import Person as Person

_HOME = {
    "APP_ID": "server",
    "APP_SECRET": "server",
    "Conversation": "world",
    "FakeActivity": "server",
    "Person": "world",
    "fake_activity": "server",
}

__all__ = ["APP_ID", "APP_SECRET", "Conversation", "FakeActivity", "Person", "fake_activity"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk_testing.activity' has no attribute {name!r}")
    value = getattr(import_module(f"frontdesk_testing.activity.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
