"""The testing kit for hosts, channels and stores; each part is imported when it is first used.

`frontdesk.testing.strategies` needs Hypothesis; the contracts need pytest and pytest-asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.testing.agents import EchoAgent as EchoAgent
    from frontdesk.testing.agents import FailingAgent as FailingAgent
    from frontdesk.testing.agents import GatedAgent as GatedAgent
    from frontdesk.testing.agents import ScriptedChatClient as ScriptedChatClient
    from frontdesk.testing.auth_contract import AuthContract as AuthContract
    from frontdesk.testing.channel_contract import ChannelContract as ChannelContract
    from frontdesk.testing.chat_contract import ChatContract as ChatContract
    from frontdesk.testing.chat_platform import ChatFile as ChatFile
    from frontdesk.testing.chat_platform import ChatPerson as ChatPerson
    from frontdesk.testing.chat_platform import FakePlatform as FakePlatform
    from frontdesk.testing.chat_platform import MembershipPlatform as MembershipPlatform
    from frontdesk.testing.chat_platform import ShownMessage as ShownMessage
    from frontdesk.testing.clock import FakeClock as FakeClock
    from frontdesk.testing.crash import CRASH_POINTS as CRASH_POINTS
    from frontdesk.testing.crash import CrashPlan as CrashPlan
    from frontdesk.testing.crash import crashing as crashing
    from frontdesk.testing.ids import FakeIds as FakeIds
    from frontdesk.testing.proxy import TcpProxy as TcpProxy
    from frontdesk.testing.runner_contract import RunnerContract as RunnerContract
    from frontdesk.testing.server import HostClient as HostClient
    from frontdesk.testing.server import serving as serving
    from frontdesk.testing.server import serving_app as serving_app
    from frontdesk.testing.sse import ServerSentEvent as ServerSentEvent
    from frontdesk.testing.sse import parse_sse as parse_sse
    from frontdesk.testing.store_contract import StoreContract as StoreContract
    from frontdesk.testing.telemetry import RecordedSpan as RecordedSpan
    from frontdesk.testing.telemetry import RecordingTelemetry as RecordingTelemetry

_HOME = {
    "AuthContract": "auth_contract",
    "CRASH_POINTS": "crash",
    "ChannelContract": "channel_contract",
    "ChatContract": "chat_contract",
    "ChatFile": "chat_platform",
    "ChatPerson": "chat_platform",
    "CrashPlan": "crash",
    "EchoAgent": "agents",
    "FailingAgent": "agents",
    "FakeClock": "clock",
    "FakeIds": "ids",
    "FakePlatform": "chat_platform",
    "GatedAgent": "agents",
    "HostClient": "server",
    "MembershipPlatform": "chat_platform",
    "RecordedSpan": "telemetry",
    "RecordingTelemetry": "telemetry",
    "RunnerContract": "runner_contract",
    "ScriptedChatClient": "agents",
    "ServerSentEvent": "sse",
    "ShownMessage": "chat_platform",
    "StoreContract": "store_contract",
    "TcpProxy": "proxy",
    "crashing": "crash",
    "parse_sse": "sse",
    "serving": "server",
    "serving_app": "server",
}

__all__ = [
    "AuthContract",
    "CRASH_POINTS",
    "ChannelContract",
    "ChatContract",
    "ChatFile",
    "ChatPerson",
    "CrashPlan",
    "EchoAgent",
    "FailingAgent",
    "FakeClock",
    "FakeIds",
    "FakePlatform",
    "GatedAgent",
    "HostClient",
    "MembershipPlatform",
    "RecordedSpan",
    "RecordingTelemetry",
    "RunnerContract",
    "ScriptedChatClient",
    "ServerSentEvent",
    "ShownMessage",
    "StoreContract",
    "TcpProxy",
    "crashing",
    "parse_sse",
    "serving",
    "serving_app",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk.testing' has no attribute {name!r}")
    value = getattr(import_module(f"frontdesk.testing.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
