"""The testing kit for hosts, channels and stores. Each part is imported when it is first used.

`frontdesk_testing.strategies` needs Hypothesis. The contracts need pytest and pytest-asyncio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk_testing.agents import EchoAgent as EchoAgent
    from frontdesk_testing.agents import FailingAgent as FailingAgent
    from frontdesk_testing.agents import GatedAgent as GatedAgent
    from frontdesk_testing.auth_contract import AuthContract as AuthContract
    from frontdesk_testing.channel_contract import ChannelContract as ChannelContract
    from frontdesk_testing.channel_driver import ChannelDriver as ChannelDriver
    from frontdesk_testing.chat_contract import ChatContract as ChatContract
    from frontdesk_testing.chat_driver import ChatDriver as ChatDriver
    from frontdesk_testing.chat_platform import ChatFile as ChatFile
    from frontdesk_testing.chat_platform import ChatPerson as ChatPerson
    from frontdesk_testing.chat_platform import FakePlatform as FakePlatform
    from frontdesk_testing.chat_platform import InvokingPlatform as InvokingPlatform
    from frontdesk_testing.chat_platform import MembershipPlatform as MembershipPlatform
    from frontdesk_testing.chat_platform import OpeningPlatform as OpeningPlatform
    from frontdesk_testing.chat_platform import PushFailure as PushFailure
    from frontdesk_testing.chat_platform import RatingPlatform as RatingPlatform
    from frontdesk_testing.chat_platform import ShownMessage as ShownMessage
    from frontdesk_testing.chat_platform import StoppingPlatform as StoppingPlatform
    from frontdesk_testing.chat_platform_base import ChatPlatformBase as ChatPlatformBase
    from frontdesk_testing.chat_platform_base import PlatformCall as PlatformCall
    from frontdesk_testing.chat_platform_base import PlatformError as PlatformError
    from frontdesk_testing.chat_platform_base import PlatformEvent as PlatformEvent
    from frontdesk_testing.clock import FakeClock as FakeClock
    from frontdesk_testing.crash import CRASH_POINTS as CRASH_POINTS
    from frontdesk_testing.crash import CrashPlan as CrashPlan
    from frontdesk_testing.crash import crashing as crashing
    from frontdesk_testing.ids import FakeIds as FakeIds
    from frontdesk_testing.proxy import TcpProxy as TcpProxy
    from frontdesk_testing.runner_contract import RunnerContract as RunnerContract
    from frontdesk_testing.server import HostClient as HostClient
    from frontdesk_testing.server import serving as serving
    from frontdesk_testing.server import serving_app as serving_app
    from frontdesk_testing.sse import ServerSentEvent as ServerSentEvent
    from frontdesk_testing.sse import parse_sse as parse_sse
    from frontdesk_testing.store_contract import StoreContract as StoreContract
    from frontdesk_testing.telemetry import RecordedSpan as RecordedSpan
    from frontdesk_testing.telemetry import RecordingTelemetry as RecordingTelemetry

_HOME = {
    "AuthContract": "auth_contract",
    "CRASH_POINTS": "crash",
    "ChannelContract": "channel_contract",
    "ChannelDriver": "channel_driver",
    "ChatContract": "chat_contract",
    "ChatDriver": "chat_driver",
    "ChatFile": "chat_platform",
    "ChatPerson": "chat_platform",
    "ChatPlatformBase": "chat_platform_base",
    "CrashPlan": "crash",
    "EchoAgent": "agents",
    "FailingAgent": "agents",
    "FakeClock": "clock",
    "FakeIds": "ids",
    "FakePlatform": "chat_platform",
    "GatedAgent": "agents",
    "HostClient": "server",
    "InvokingPlatform": "chat_platform",
    "MembershipPlatform": "chat_platform",
    "OpeningPlatform": "chat_platform",
    "PlatformCall": "chat_platform_base",
    "PlatformError": "chat_platform_base",
    "PlatformEvent": "chat_platform_base",
    "PushFailure": "chat_platform",
    "RatingPlatform": "chat_platform",
    "RecordedSpan": "telemetry",
    "RecordingTelemetry": "telemetry",
    "RunnerContract": "runner_contract",
    "ServerSentEvent": "sse",
    "ShownMessage": "chat_platform",
    "StoppingPlatform": "chat_platform",
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
    "ChannelDriver",
    "ChatContract",
    "ChatDriver",
    "ChatFile",
    "ChatPerson",
    "ChatPlatformBase",
    "CrashPlan",
    "EchoAgent",
    "FailingAgent",
    "FakeClock",
    "FakeIds",
    "FakePlatform",
    "GatedAgent",
    "HostClient",
    "InvokingPlatform",
    "MembershipPlatform",
    "OpeningPlatform",
    "PlatformCall",
    "PlatformError",
    "PlatformEvent",
    "PushFailure",
    "RatingPlatform",
    "RecordedSpan",
    "RecordingTelemetry",
    "RunnerContract",
    "ServerSentEvent",
    "ShownMessage",
    "StoppingPlatform",
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
        raise AttributeError(f"module 'frontdesk_testing' has no attribute {name!r}")
    value = getattr(import_module(f"frontdesk_testing.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
