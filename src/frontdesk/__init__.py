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
    from frontdesk.abc.linker import (
        IdentityLinker,
        LinkDesk,
        ReadsClaims,
        SupportsLinkQuestions,
        SupportsLinkReturn,
        SupportsLinkRoutes,
        SupportsLinkStorePath,
    )
    from frontdesk.abc.live import (
        Citation,
        LivePlace,
        LiveTerms,
        LiveView,
        ShowsNotes,
        ShowsTyping,
        StreamsReplies,
        SupportsLiveLookup,
        ToolUse,
    )
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
    from frontdesk.approvals.policy import ApprovalOptions, ApproverRole, ApproverRule
    from frontdesk.data.approval import ApprovalAnswer, Decision, PendingApproval
    from frontdesk.data.codec import register, register_dataclass, register_model
    from frontdesk.data.conversation import Conversation, ConversationItem
    from frontdesk.data.delivery import Attempt, Delivery, InboxItem
    from frontdesk.data.expiry import Expiry
    from frontdesk.data.file import FileLimits, StoredFile
    from frontdesk.data.identity import Caller, ChannelIdentity
    from frontdesk.data.isolation import ISOLATION_HEADER_CHAT, ISOLATION_HEADER_USER, IsolationKeys
    from frontdesk.data.limits import EventLimits, RateLimit
    from frontdesk.data.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord, LinkStatus, Whoami
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
        OperatorError,
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
    from frontdesk.host.operator_client import OperatorClient
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

_MODULES = {
    "frontdesk.abc.allowlist": (
        "AccessRule Allowed AllowlistDecision AuthorizationContext Denied IdentityAllowlist IdentityResolver "
        "LinkRequired"
    ),
    "frontdesk.abc.auth": "HttpAuth Principal RequestAuth",
    "frontdesk.abc.channel": (
        "Channel ChannelCommand ChannelCommandContext ChannelContext ChannelContribution ChannelPush ChannelPushCodec"
    ),
    "frontdesk.abc.commands": "CommandLocale",
    "frontdesk.abc.conversations": "ConversationsContext ShowsItems",
    "frontdesk.abc.hooks": "ChannelResponseContext ResponseHook RunHook StreamTransformHook",
    "frontdesk.abc.host": "HostContribution",
    "frontdesk.abc.link_policy": "LinkPolicy LinkPolicyContext",
    "frontdesk.abc.linker": (
        "IdentityLinker LinkDesk ReadsClaims SupportsLinkQuestions SupportsLinkReturn SupportsLinkRoutes "
        "SupportsLinkStorePath"
    ),
    "frontdesk.abc.live": (
        "Citation LivePlace LiveTerms LiveView ShowsNotes ShowsTyping StreamsReplies SupportsLiveLookup ToolUse"
    ),
    "frontdesk.abc.push": "PushPart PushTerms PushesParts ShowsQuestions SupportsPushLookup",
    "frontdesk.abc.runner": "DurableTaskRunner RetryPolicy TaskHandle",
    "frontdesk.abc.store": "HostStateStore StateTransaction",
    "frontdesk.abc.target": "BindsRequestContext TargetInfo",
    "frontdesk.abc.telemetry": "Span Telemetry",
    "frontdesk.access.allowlists": (
        "AllOfAllowlists AllowAll AnyOfAllowlists CallableAllowlist LinkedClaimAllowlist NativeIdAllowlist"
    ),
    "frontdesk.access.link_policy": "AllowAllLinks DenyAllLinks ExplicitAllowList SameConfidentialityTierOnly",
    "frontdesk.access.policy": "AuthPolicy",
    "frontdesk.approvals.policy": "ApprovalOptions ApproverRole ApproverRule",
    "frontdesk.data.approval": "ApprovalAnswer Decision PendingApproval",
    "frontdesk.data.codec": "register register_dataclass register_model",
    "frontdesk.data.conversation": "Conversation ConversationItem",
    "frontdesk.data.delivery": "Attempt Delivery InboxItem",
    "frontdesk.data.expiry": "Expiry",
    "frontdesk.data.file": "FileLimits StoredFile",
    "frontdesk.data.identity": "Caller ChannelIdentity",
    "frontdesk.data.isolation": "ISOLATION_HEADER_CHAT ISOLATION_HEADER_USER IsolationKeys",
    "frontdesk.data.limits": "EventLimits RateLimit",
    "frontdesk.data.link": "Grant LinkChallenge LinkProof LinkQuestion LinkRecord LinkStatus Whoami",
    "frontdesk.data.reply": "Reply ReplyButton",
    "frontdesk.data.request": "ChannelRequest ChannelSession ClientOutput ClientTool",
    "frontdesk.data.response_target": "ResponseTarget",
    "frontdesk.data.result": "HostedRunResult HostedStreamResult",
    "frontdesk.data.run": "ContinuationToken RunEvent RunFailure RunRecord",
    "frontdesk.data.task": "TaskStatus",
    "frontdesk.errors.base": (
        "ChannelConfigurationError CodecError FrontdeskError LeadershipLostError OperatorError SealError "
        "StateDirectoryInUseError TaskError"
    ),
    "frontdesk.errors.push": (
        "PushError PushLimitedError PushNotEditableError PushNotModifiedError PushRefusedError PushUnknownError"
    ),
    "frontdesk.errors.requests": (
        "BodyTooLargeError ConflictError FileTooLargeError FilesFullError ForbiddenError InvalidRequestError "
        "NotFoundError RequestError TooManyRequestsError UnauthenticatedError UnsupportedMediaError"
    ),
    "frontdesk.errors.service": "StoreUnavailableError UnavailableError UnsupportedError",
    "frontdesk.errors.store": "StoreError",
    "frontdesk.history.foundry.provider": "FoundryHostedAgentHistoryProvider",
    "frontdesk.host.host": "AgentFrameworkHost",
    "frontdesk.host.operator_client": "OperatorClient",
    "frontdesk.host.state.state": "HostStatePaths",
    "frontdesk.kit.auth.any_auth": "AnyAuth",
    "frontdesk.kit.auth.api_keys": "ApiKeyAuth",
    "frontdesk.kit.auth.bearer": "BearerAuth",
    "frontdesk.kit.auth.hmac_auth": "HmacAuth HmacHeaders",
    "frontdesk.kit.auth.platform_auth": "PlatformAuth TrustedEnvironment TrustedPeers TrustedSecret",
    "frontdesk.kit.auth.provider": "ProviderHttp",
    "frontdesk.kit.auth.secrets": "Secret",
    "frontdesk.kit.foundry.ids": "foundry_response_id",
    "frontdesk.kit.framework.isolation": (
        "get_current_isolation_keys reset_current_isolation_keys set_current_isolation_keys"
    ),
    "frontdesk.kit.http.limits": "Limits",
    "frontdesk.kit.http.server_limits": "ServerLimits",
    "frontdesk.linkers.oauth.linker": "OAuthIdentityLinker",
    "frontdesk.linkers.oauth.presets": "Entra GitHub Google Oidc",
    "frontdesk.linkers.one_time_code": "OneTimeCodeIdentityLinker",
    "frontdesk.runners.in_process": "InProcessTaskRunner",
    "frontdesk.runners.procrastinate": "ProcrastinateTaskRunner",
    "frontdesk.stores.memory": "InMemoryStateStore",
    "frontdesk.stores.sql.postgres": "PostgresStateStore",
    "frontdesk.stores.sql.sqlite": "SqliteStateStore",
}
"""The names of each module, separated by spaces."""
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

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
    "ApprovalOptions",
    "ApproverRole",
    "ApproverRule",
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
    "Citation",
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
    "LinkQuestion",
    "LinkRecord",
    "LinkRequired",
    "LinkStatus",
    "LinkedClaimAllowlist",
    "LivePlace",
    "LiveTerms",
    "LiveView",
    "NativeIdAllowlist",
    "NotFoundError",
    "OAuthIdentityLinker",
    "Oidc",
    "OneTimeCodeIdentityLinker",
    "OperatorClient",
    "OperatorError",
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
    "ShowsNotes",
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
    "SupportsLinkQuestions",
    "SupportsLinkReturn",
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
    "ToolUse",
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
