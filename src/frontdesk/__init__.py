"""The front door: every public name, loaded when it is first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.abc.allowlist import (
        AccessRule,
        Allowed,
        AllowlistDecision,
        AuthorizationContext,
        Denied,
        IdentityAllowlist,
        IdentityResolver,
        LinkRequired,
    )
    from frontdesk.abc.approvals import ApprovalStorage
    from frontdesk.abc.auth import HttpAuth, Principal, RequestAuth
    from frontdesk.abc.channel import (
        Channel,
        ChannelCommand,
        ChannelCommandContext,
        ChannelContext,
        ChannelContribution,
        ChannelPush,
        ChannelPushCodec,
    )
    from frontdesk.abc.commands import CommandLocale
    from frontdesk.abc.conversations import ConversationsContext, ShowsItems
    from frontdesk.abc.hooks import ChannelResponseContext, ResponseHook, RunHook, StreamTransformHook
    from frontdesk.abc.host import HostContribution
    from frontdesk.abc.link_policy import LinkPolicy, LinkPolicyContext
    from frontdesk.abc.linker import IdentityLinker, LinkDesk, ReadsClaims, SupportsLinkRoutes, SupportsLinkStorePath
    from frontdesk.abc.live import LivePlace, LiveTerms, LiveView, ShowsTyping, StreamsReplies, SupportsLiveLookup
    from frontdesk.abc.push import PushesParts, PushPart, PushTerms, ShowsQuestions, SupportsPushLookup
    from frontdesk.abc.runner import DurableTaskRunner, RetryPolicy, TaskHandle
    from frontdesk.abc.store import HostStateStore, StateTransaction
    from frontdesk.abc.target import BindsRequestContext, TargetInfo
    from frontdesk.abc.telemetry import Span, Telemetry
    from frontdesk.access.allowlists import (
        AllOfAllowlists,
        AllowAll,
        AnyOfAllowlists,
        CallableAllowlist,
        LinkedClaimAllowlist,
        NativeIdAllowlist,
    )
    from frontdesk.access.link_policy import AllowAllLinks, DenyAllLinks, ExplicitAllowList, SameConfidentialityTierOnly
    from frontdesk.access.policy import AuthPolicy
    from frontdesk.data.approval import ApprovalAnswer, Decision, PendingApproval
    from frontdesk.data.codec import register, register_dataclass, register_model
    from frontdesk.data.conversation import Conversation, ConversationItem
    from frontdesk.data.delivery import Attempt, Delivery, InboxItem
    from frontdesk.data.expiry import Expiry
    from frontdesk.data.file import FileLimits, StoredFile
    from frontdesk.data.identity import Caller, ChannelIdentity
    from frontdesk.data.isolation import ISOLATION_HEADER_CHAT, ISOLATION_HEADER_USER, IsolationKeys
    from frontdesk.data.limits import EventLimits, RateLimit
    from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkRecord, Whoami
    from frontdesk.data.reply import Reply, ReplyButton
    from frontdesk.data.request import ChannelRequest, ChannelSession, ClientOutput, ClientTool
    from frontdesk.data.response_target import ResponseTarget
    from frontdesk.data.result import HostedRunResult, HostedStreamResult
    from frontdesk.data.run import ContinuationToken, RunEvent, RunFailure, RunRecord
    from frontdesk.data.task import TaskStatus
    from frontdesk.errors.base import (
        ChannelConfigurationError,
        CodecError,
        FrontdeskError,
        LeadershipLostError,
        SealError,
        StateDirectoryInUseError,
        TaskError,
    )
    from frontdesk.errors.push import (
        PushError,
        PushLimitedError,
        PushNotEditableError,
        PushNotModifiedError,
        PushRefusedError,
        PushUnknownError,
    )
    from frontdesk.errors.requests import (
        BodyTooLargeError,
        ConflictError,
        FilesFullError,
        FileTooLargeError,
        ForbiddenError,
        InvalidRequestError,
        NotFoundError,
        RequestError,
        TooManyRequestsError,
        UnauthenticatedError,
        UnsupportedMediaError,
    )
    from frontdesk.errors.service import StoreUnavailableError, UnavailableError, UnsupportedError
    from frontdesk.errors.store import StoreError
    from frontdesk.history.foundry.provider import FoundryHostedAgentHistoryProvider
    from frontdesk.host.host import AgentFrameworkHost
    from frontdesk.host.state.state import HostStatePaths
    from frontdesk.kit.auth.any_auth import AnyAuth
    from frontdesk.kit.auth.api_keys import ApiKeyAuth
    from frontdesk.kit.auth.bearer import BearerAuth
    from frontdesk.kit.auth.hmac_auth import HmacAuth, HmacHeaders
    from frontdesk.kit.auth.platform_auth import PlatformAuth, TrustedEnvironment, TrustedPeers, TrustedSecret
    from frontdesk.kit.auth.provider import ProviderHttp
    from frontdesk.kit.auth.secrets import Secret
    from frontdesk.kit.foundry.ids import foundry_response_id
    from frontdesk.kit.framework.isolation import (
        get_current_isolation_keys,
        reset_current_isolation_keys,
        set_current_isolation_keys,
    )
    from frontdesk.kit.http.limits import Limits
    from frontdesk.kit.http.server_limits import ServerLimits
    from frontdesk.linkers.oauth.linker import OAuthIdentityLinker
    from frontdesk.linkers.oauth.presets import Entra, GitHub, Google, Oidc
    from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
    from frontdesk.runners.in_process import InProcessTaskRunner
    from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
    from frontdesk.stores.memory import InMemoryStateStore
    from frontdesk.stores.sql.postgres import PostgresStateStore
    from frontdesk.stores.sql.sqlite import SqliteStateStore

_HOME = {
    "AccessRule": "frontdesk.abc.allowlist",
    "AgentFrameworkHost": "frontdesk.host.host",
    "AllOfAllowlists": "frontdesk.access.allowlists",
    "AllowAll": "frontdesk.access.allowlists",
    "AllowAllLinks": "frontdesk.access.link_policy",
    "Allowed": "frontdesk.abc.allowlist",
    "AllowlistDecision": "frontdesk.abc.allowlist",
    "AnyAuth": "frontdesk.kit.auth.any_auth",
    "AnyOfAllowlists": "frontdesk.access.allowlists",
    "ApiKeyAuth": "frontdesk.kit.auth.api_keys",
    "ApprovalAnswer": "frontdesk.data.approval",
    "ApprovalStorage": "frontdesk.abc.approvals",
    "Attempt": "frontdesk.data.delivery",
    "AuthPolicy": "frontdesk.access.policy",
    "AuthorizationContext": "frontdesk.abc.allowlist",
    "BearerAuth": "frontdesk.kit.auth.bearer",
    "BindsRequestContext": "frontdesk.abc.target",
    "BodyTooLargeError": "frontdesk.errors.requests",
    "CallableAllowlist": "frontdesk.access.allowlists",
    "Caller": "frontdesk.data.identity",
    "Channel": "frontdesk.abc.channel",
    "ChannelCommand": "frontdesk.abc.channel",
    "ChannelCommandContext": "frontdesk.abc.channel",
    "ChannelConfigurationError": "frontdesk.errors.base",
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
    "CodecError": "frontdesk.errors.base",
    "CommandLocale": "frontdesk.abc.commands",
    "ConflictError": "frontdesk.errors.requests",
    "ContinuationToken": "frontdesk.data.run",
    "Conversation": "frontdesk.data.conversation",
    "ConversationItem": "frontdesk.data.conversation",
    "ConversationsContext": "frontdesk.abc.conversations",
    "Decision": "frontdesk.data.approval",
    "Delivery": "frontdesk.data.delivery",
    "Denied": "frontdesk.abc.allowlist",
    "DenyAllLinks": "frontdesk.access.link_policy",
    "DurableTaskRunner": "frontdesk.abc.runner",
    "Entra": "frontdesk.linkers.oauth.presets",
    "EventLimits": "frontdesk.data.limits",
    "Expiry": "frontdesk.data.expiry",
    "ExplicitAllowList": "frontdesk.access.link_policy",
    "FileLimits": "frontdesk.data.file",
    "FileTooLargeError": "frontdesk.errors.requests",
    "FilesFullError": "frontdesk.errors.requests",
    "ForbiddenError": "frontdesk.errors.requests",
    "FoundryHostedAgentHistoryProvider": "frontdesk.history.foundry.provider",
    "FrontdeskError": "frontdesk.errors.base",
    "GitHub": "frontdesk.linkers.oauth.presets",
    "Google": "frontdesk.linkers.oauth.presets",
    "Grant": "frontdesk.data.link",
    "HmacAuth": "frontdesk.kit.auth.hmac_auth",
    "HmacHeaders": "frontdesk.kit.auth.hmac_auth",
    "HostContribution": "frontdesk.abc.host",
    "HostStatePaths": "frontdesk.host.state.state",
    "HostStateStore": "frontdesk.abc.store",
    "HostedRunResult": "frontdesk.data.result",
    "HostedStreamResult": "frontdesk.data.result",
    "HttpAuth": "frontdesk.abc.auth",
    "ISOLATION_HEADER_CHAT": "frontdesk.data.isolation",
    "ISOLATION_HEADER_USER": "frontdesk.data.isolation",
    "IdentityAllowlist": "frontdesk.abc.allowlist",
    "IdentityLinker": "frontdesk.abc.linker",
    "IdentityResolver": "frontdesk.abc.allowlist",
    "InMemoryStateStore": "frontdesk.stores.memory",
    "InProcessTaskRunner": "frontdesk.runners.in_process",
    "InboxItem": "frontdesk.data.delivery",
    "InvalidRequestError": "frontdesk.errors.requests",
    "IsolationKeys": "frontdesk.data.isolation",
    "LeadershipLostError": "frontdesk.errors.base",
    "Limits": "frontdesk.kit.http.limits",
    "LinkChallenge": "frontdesk.data.link",
    "LinkDesk": "frontdesk.abc.linker",
    "LinkPolicy": "frontdesk.abc.link_policy",
    "LinkPolicyContext": "frontdesk.abc.link_policy",
    "LinkProof": "frontdesk.data.link",
    "LinkRecord": "frontdesk.data.link",
    "LinkRequired": "frontdesk.abc.allowlist",
    "LinkedClaimAllowlist": "frontdesk.access.allowlists",
    "LivePlace": "frontdesk.abc.live",
    "LiveTerms": "frontdesk.abc.live",
    "LiveView": "frontdesk.abc.live",
    "NativeIdAllowlist": "frontdesk.access.allowlists",
    "NotFoundError": "frontdesk.errors.requests",
    "OAuthIdentityLinker": "frontdesk.linkers.oauth.linker",
    "Oidc": "frontdesk.linkers.oauth.presets",
    "OneTimeCodeIdentityLinker": "frontdesk.linkers.one_time_code",
    "PendingApproval": "frontdesk.data.approval",
    "PlatformAuth": "frontdesk.kit.auth.platform_auth",
    "PostgresStateStore": "frontdesk.stores.sql.postgres",
    "Principal": "frontdesk.abc.auth",
    "ProcrastinateTaskRunner": "frontdesk.runners.procrastinate",
    "ProviderHttp": "frontdesk.kit.auth.provider",
    "PushError": "frontdesk.errors.push",
    "PushLimitedError": "frontdesk.errors.push",
    "PushNotEditableError": "frontdesk.errors.push",
    "PushNotModifiedError": "frontdesk.errors.push",
    "PushPart": "frontdesk.abc.push",
    "PushRefusedError": "frontdesk.errors.push",
    "PushTerms": "frontdesk.abc.push",
    "PushUnknownError": "frontdesk.errors.push",
    "PushesParts": "frontdesk.abc.push",
    "RateLimit": "frontdesk.data.limits",
    "ReadsClaims": "frontdesk.abc.linker",
    "Reply": "frontdesk.data.reply",
    "ReplyButton": "frontdesk.data.reply",
    "RequestAuth": "frontdesk.abc.auth",
    "RequestError": "frontdesk.errors.requests",
    "ResponseHook": "frontdesk.abc.hooks",
    "ResponseTarget": "frontdesk.data.response_target",
    "RetryPolicy": "frontdesk.abc.runner",
    "RunEvent": "frontdesk.data.run",
    "RunFailure": "frontdesk.data.run",
    "RunHook": "frontdesk.abc.hooks",
    "RunRecord": "frontdesk.data.run",
    "SameConfidentialityTierOnly": "frontdesk.access.link_policy",
    "SealError": "frontdesk.errors.base",
    "Secret": "frontdesk.kit.auth.secrets",
    "ServerLimits": "frontdesk.kit.http.server_limits",
    "ShowsItems": "frontdesk.abc.conversations",
    "ShowsQuestions": "frontdesk.abc.push",
    "ShowsTyping": "frontdesk.abc.live",
    "Span": "frontdesk.abc.telemetry",
    "SqliteStateStore": "frontdesk.stores.sql.sqlite",
    "StateDirectoryInUseError": "frontdesk.errors.base",
    "StateTransaction": "frontdesk.abc.store",
    "StoreError": "frontdesk.errors.store",
    "StoreUnavailableError": "frontdesk.errors.service",
    "StoredFile": "frontdesk.data.file",
    "StreamTransformHook": "frontdesk.abc.hooks",
    "StreamsReplies": "frontdesk.abc.live",
    "SupportsLinkRoutes": "frontdesk.abc.linker",
    "SupportsLinkStorePath": "frontdesk.abc.linker",
    "SupportsLiveLookup": "frontdesk.abc.live",
    "SupportsPushLookup": "frontdesk.abc.push",
    "TargetInfo": "frontdesk.abc.target",
    "TaskError": "frontdesk.errors.base",
    "TaskHandle": "frontdesk.abc.runner",
    "TaskStatus": "frontdesk.data.task",
    "Telemetry": "frontdesk.abc.telemetry",
    "TooManyRequestsError": "frontdesk.errors.requests",
    "TrustedEnvironment": "frontdesk.kit.auth.platform_auth",
    "TrustedPeers": "frontdesk.kit.auth.platform_auth",
    "TrustedSecret": "frontdesk.kit.auth.platform_auth",
    "UnauthenticatedError": "frontdesk.errors.requests",
    "UnavailableError": "frontdesk.errors.service",
    "UnsupportedError": "frontdesk.errors.service",
    "UnsupportedMediaError": "frontdesk.errors.requests",
    "Whoami": "frontdesk.data.link",
    "foundry_response_id": "frontdesk.kit.foundry.ids",
    "get_current_isolation_keys": "frontdesk.kit.framework.isolation",
    "register": "frontdesk.data.codec",
    "register_dataclass": "frontdesk.data.codec",
    "register_model": "frontdesk.data.codec",
    "reset_current_isolation_keys": "frontdesk.kit.framework.isolation",
    "set_current_isolation_keys": "frontdesk.kit.framework.isolation",
}

__all__ = [
    "AccessRule",
    "AgentFrameworkHost",
    "AllOfAllowlists",
    "AllowAll",
    "AllowAllLinks",
    "Allowed",
    "AllowlistDecision",
    "AnyAuth",
    "AnyOfAllowlists",
    "ApiKeyAuth",
    "ApprovalAnswer",
    "ApprovalStorage",
    "Attempt",
    "AuthPolicy",
    "AuthorizationContext",
    "BearerAuth",
    "BindsRequestContext",
    "BodyTooLargeError",
    "CallableAllowlist",
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
    "CommandLocale",
    "ConflictError",
    "ContinuationToken",
    "Conversation",
    "ConversationItem",
    "ConversationsContext",
    "Decision",
    "Delivery",
    "Denied",
    "DenyAllLinks",
    "DurableTaskRunner",
    "Entra",
    "EventLimits",
    "Expiry",
    "ExplicitAllowList",
    "FileLimits",
    "FileTooLargeError",
    "FilesFullError",
    "ForbiddenError",
    "FoundryHostedAgentHistoryProvider",
    "FrontdeskError",
    "GitHub",
    "Google",
    "Grant",
    "HmacAuth",
    "HmacHeaders",
    "HostContribution",
    "HostStatePaths",
    "HostStateStore",
    "HostedRunResult",
    "HostedStreamResult",
    "HttpAuth",
    "ISOLATION_HEADER_CHAT",
    "ISOLATION_HEADER_USER",
    "IdentityAllowlist",
    "IdentityLinker",
    "IdentityResolver",
    "InMemoryStateStore",
    "InProcessTaskRunner",
    "InboxItem",
    "InvalidRequestError",
    "IsolationKeys",
    "LeadershipLostError",
    "Limits",
    "LinkChallenge",
    "LinkDesk",
    "LinkPolicy",
    "LinkPolicyContext",
    "LinkProof",
    "LinkRecord",
    "LinkRequired",
    "LinkedClaimAllowlist",
    "LivePlace",
    "LiveTerms",
    "LiveView",
    "NativeIdAllowlist",
    "NotFoundError",
    "OAuthIdentityLinker",
    "Oidc",
    "OneTimeCodeIdentityLinker",
    "PendingApproval",
    "PlatformAuth",
    "PostgresStateStore",
    "Principal",
    "ProcrastinateTaskRunner",
    "ProviderHttp",
    "PushError",
    "PushLimitedError",
    "PushNotEditableError",
    "PushNotModifiedError",
    "PushPart",
    "PushRefusedError",
    "PushTerms",
    "PushUnknownError",
    "PushesParts",
    "RateLimit",
    "ReadsClaims",
    "Reply",
    "ReplyButton",
    "RequestAuth",
    "RequestError",
    "ResponseHook",
    "ResponseTarget",
    "RetryPolicy",
    "RunEvent",
    "RunFailure",
    "RunHook",
    "RunRecord",
    "SameConfidentialityTierOnly",
    "SealError",
    "Secret",
    "ServerLimits",
    "ShowsItems",
    "ShowsQuestions",
    "ShowsTyping",
    "Span",
    "SqliteStateStore",
    "StateDirectoryInUseError",
    "StateTransaction",
    "StoreError",
    "StoreUnavailableError",
    "StoredFile",
    "StreamTransformHook",
    "StreamsReplies",
    "SupportsLinkRoutes",
    "SupportsLinkStorePath",
    "SupportsLiveLookup",
    "SupportsPushLookup",
    "TargetInfo",
    "TaskError",
    "TaskHandle",
    "TaskStatus",
    "Telemetry",
    "TooManyRequestsError",
    "TrustedEnvironment",
    "TrustedPeers",
    "TrustedSecret",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "UnsupportedMediaError",
    "Whoami",
    "foundry_response_id",
    "get_current_isolation_keys",
    "register",
    "register_dataclass",
    "register_model",
    "reset_current_isolation_keys",
    "set_current_isolation_keys",
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
