"""The front door: every public name, loaded when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.abc.allowlist import (
        Allowed,
        AllowlistDecision,
        AuthorizationContext,
        Denied,
        IdentityAllowlist,
        IdentityResolver,
        LinkRequired,
    )
    from frontdesk.abc.approvals import ApprovalStorage
    from frontdesk.abc.auth import HttpAuth, Principal
    from frontdesk.abc.channel import (
        Channel,
        ChannelCommand,
        ChannelCommandContext,
        ChannelContext,
        ChannelContribution,
        ChannelPush,
        ChannelPushCodec,
    )
    from frontdesk.abc.conversations import ShowsItems
    from frontdesk.abc.hooks import ChannelResponseContext, ResponseHook, RunHook, StreamTransformHook
    from frontdesk.abc.linker import IdentityLinker, SupportsLinkStorePath
    from frontdesk.abc.push import PushesParts, PushPart, PushTerms, SupportsPushLookup
    from frontdesk.abc.runner import DurableTaskRunner, RetryPolicy, TaskHandle
    from frontdesk.abc.store import HostStateStore, StateTransaction
    from frontdesk.abc.target import BindsRequestContext, TargetInfo
    from frontdesk.access.allowlists import AllowAll
    from frontdesk.data.approval import ApprovalAnswer, PendingApproval
    from frontdesk.data.codec import register, register_dataclass, register_model
    from frontdesk.data.conversation import Conversation, ConversationItem
    from frontdesk.data.delivery import Attempt, Delivery, InboxItem
    from frontdesk.data.expiry import Expiry
    from frontdesk.data.identity import Caller, ChannelIdentity
    from frontdesk.data.isolation import IsolationKeys
    from frontdesk.data.link import LinkChallenge
    from frontdesk.data.request import ChannelRequest, ChannelSession, ClientOutput, ClientTool
    from frontdesk.data.response_target import ResponseTarget
    from frontdesk.data.result import HostedRunResult, HostedStreamResult
    from frontdesk.data.run import ContinuationToken, RunEvent, RunFailure, RunRecord
    from frontdesk.data.task import TaskStatus
    from frontdesk.errors import (
        ChannelConfigurationError,
        CodecError,
        FrontdeskError,
        PushError,
        PushLimitedError,
        PushRefusedError,
        PushUnknownError,
        RequestError,
        StateDirectoryInUseError,
        StoreError,
    )
    from frontdesk.host.host import AgentFrameworkHost
    from frontdesk.host.state import HostStatePaths
    from frontdesk.kit.auth import ApiKeyAuth
    from frontdesk.runners.in_process import InProcessTaskRunner
    from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
    from frontdesk.stores.memory import InMemoryStateStore
    from frontdesk.stores.sql.postgres import PostgresStateStore
    from frontdesk.stores.sql.sqlite import SqliteStateStore

_HOME = {
    "AgentFrameworkHost": "frontdesk.host.host",
    "AllowAll": "frontdesk.access.allowlists",
    "Allowed": "frontdesk.abc.allowlist",
    "AllowlistDecision": "frontdesk.abc.allowlist",
    "ApiKeyAuth": "frontdesk.kit.auth",
    "ApprovalAnswer": "frontdesk.data.approval",
    "ApprovalStorage": "frontdesk.abc.approvals",
    "Attempt": "frontdesk.data.delivery",
    "AuthorizationContext": "frontdesk.abc.allowlist",
    "BindsRequestContext": "frontdesk.abc.target",
    "Caller": "frontdesk.data.identity",
    "Channel": "frontdesk.abc.channel",
    "ChannelCommand": "frontdesk.abc.channel",
    "ChannelCommandContext": "frontdesk.abc.channel",
    "ChannelConfigurationError": "frontdesk.errors",
    "ChannelContext": "frontdesk.abc.channel",
    "ChannelContribution": "frontdesk.abc.channel",
    "ChannelIdentity": "frontdesk.data.identity",
    "ChannelPush": "frontdesk.abc.channel",
    "ChannelPushCodec": "frontdesk.abc.channel",
    "ChannelRequest": "frontdesk.data.request",
    "ChannelResponseContext": "frontdesk.abc.hooks",
    "ChannelSession": "frontdesk.data.request",
    "ClientOutput": "frontdesk.data.request",
    "ClientTool": "frontdesk.data.request",
    "CodecError": "frontdesk.errors",
    "ContinuationToken": "frontdesk.data.run",
    "Conversation": "frontdesk.data.conversation",
    "ConversationItem": "frontdesk.data.conversation",
    "Delivery": "frontdesk.data.delivery",
    "Denied": "frontdesk.abc.allowlist",
    "DurableTaskRunner": "frontdesk.abc.runner",
    "Expiry": "frontdesk.data.expiry",
    "FrontdeskError": "frontdesk.errors",
    "HostStatePaths": "frontdesk.host.state",
    "HostStateStore": "frontdesk.abc.store",
    "HostedRunResult": "frontdesk.data.result",
    "HostedStreamResult": "frontdesk.data.result",
    "HttpAuth": "frontdesk.abc.auth",
    "IdentityAllowlist": "frontdesk.abc.allowlist",
    "IdentityLinker": "frontdesk.abc.linker",
    "IdentityResolver": "frontdesk.abc.allowlist",
    "InMemoryStateStore": "frontdesk.stores.memory",
    "InProcessTaskRunner": "frontdesk.runners.in_process",
    "InboxItem": "frontdesk.data.delivery",
    "IsolationKeys": "frontdesk.data.isolation",
    "LinkChallenge": "frontdesk.data.link",
    "LinkRequired": "frontdesk.abc.allowlist",
    "PendingApproval": "frontdesk.data.approval",
    "PostgresStateStore": "frontdesk.stores.sql.postgres",
    "Principal": "frontdesk.abc.auth",
    "ProcrastinateTaskRunner": "frontdesk.runners.procrastinate",
    "PushError": "frontdesk.errors",
    "PushLimitedError": "frontdesk.errors",
    "PushPart": "frontdesk.abc.push",
    "PushRefusedError": "frontdesk.errors",
    "PushTerms": "frontdesk.abc.push",
    "PushUnknownError": "frontdesk.errors",
    "PushesParts": "frontdesk.abc.push",
    "RequestError": "frontdesk.errors",
    "ResponseHook": "frontdesk.abc.hooks",
    "ResponseTarget": "frontdesk.data.response_target",
    "RetryPolicy": "frontdesk.abc.runner",
    "RunEvent": "frontdesk.data.run",
    "RunFailure": "frontdesk.data.run",
    "RunHook": "frontdesk.abc.hooks",
    "RunRecord": "frontdesk.data.run",
    "ShowsItems": "frontdesk.abc.conversations",
    "SqliteStateStore": "frontdesk.stores.sql.sqlite",
    "StateDirectoryInUseError": "frontdesk.errors",
    "StateTransaction": "frontdesk.abc.store",
    "StoreError": "frontdesk.errors",
    "StreamTransformHook": "frontdesk.abc.hooks",
    "SupportsLinkStorePath": "frontdesk.abc.linker",
    "SupportsPushLookup": "frontdesk.abc.push",
    "TargetInfo": "frontdesk.abc.target",
    "TaskHandle": "frontdesk.abc.runner",
    "TaskStatus": "frontdesk.data.task",
    "register": "frontdesk.data.codec",
    "register_dataclass": "frontdesk.data.codec",
    "register_model": "frontdesk.data.codec",
}

__all__ = [
    "AgentFrameworkHost",
    "AllowAll",
    "Allowed",
    "AllowlistDecision",
    "ApiKeyAuth",
    "ApprovalAnswer",
    "ApprovalStorage",
    "Attempt",
    "AuthorizationContext",
    "BindsRequestContext",
    "Caller",
    "Channel",
    "ChannelCommand",
    "ChannelCommandContext",
    "ChannelConfigurationError",
    "ChannelContext",
    "ChannelContribution",
    "ChannelIdentity",
    "ChannelPush",
    "ChannelPushCodec",
    "ChannelRequest",
    "ChannelResponseContext",
    "ChannelSession",
    "ClientOutput",
    "ClientTool",
    "CodecError",
    "ContinuationToken",
    "Conversation",
    "ConversationItem",
    "Delivery",
    "Denied",
    "DurableTaskRunner",
    "Expiry",
    "FrontdeskError",
    "HostStatePaths",
    "HostStateStore",
    "HostedRunResult",
    "HostedStreamResult",
    "HttpAuth",
    "IdentityAllowlist",
    "IdentityLinker",
    "IdentityResolver",
    "InMemoryStateStore",
    "InProcessTaskRunner",
    "InboxItem",
    "IsolationKeys",
    "LinkChallenge",
    "LinkRequired",
    "PendingApproval",
    "PostgresStateStore",
    "Principal",
    "ProcrastinateTaskRunner",
    "PushError",
    "PushLimitedError",
    "PushPart",
    "PushRefusedError",
    "PushTerms",
    "PushUnknownError",
    "PushesParts",
    "RequestError",
    "ResponseHook",
    "ResponseTarget",
    "RetryPolicy",
    "RunEvent",
    "RunFailure",
    "RunHook",
    "RunRecord",
    "ShowsItems",
    "SqliteStateStore",
    "StateDirectoryInUseError",
    "StateTransaction",
    "StoreError",
    "StreamTransformHook",
    "SupportsLinkStorePath",
    "SupportsPushLookup",
    "TargetInfo",
    "TaskHandle",
    "TaskStatus",
    "register",
    "register_dataclass",
    "register_model",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
