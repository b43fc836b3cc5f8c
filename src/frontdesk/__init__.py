"""The public API of Frontdesk. Each name is imported on first access."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.access.allowlists import (
        AllOfAllowlists,
        AllowAll,
        AnyOfAllowlists,
        CallableAllowlist,
        LinkedClaimAllowlist,
        NativeIdAllowlist,
    )
    from frontdesk.access.policy import (
        AllowAllLinks,
        AuthPolicy,
        DenyAllLinks,
        ExplicitAllowList,
        SameConfidentialityTierOnly,
    )
    from frontdesk.admin.client import OperatorClient
    from frontdesk.approvals.policy import ApprovalOptions, ApproverRole, ApproverRule
    from frontdesk.auth.any_auth import AnyAuth
    from frontdesk.auth.api_keys import ApiKeyAuth
    from frontdesk.auth.bearer import BearerAuth
    from frontdesk.auth.hmac_auth import HmacAuth, HmacHeaders
    from frontdesk.auth.oidc import ProviderHttp
    from frontdesk.auth.platform_auth import PlatformAuth, TrustedEnvironment, TrustedPeers, TrustedSecret
    from frontdesk.delivery.watchers import WatcherOptions
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
    from frontdesk.errors.service import (
        PushError,
        PushLimitedError,
        PushNotEditableError,
        PushNotModifiedError,
        PushRefusedError,
        PushStoppedError,
        PushUnknownError,
        StoreError,
        StoreUnavailableError,
        UnavailableError,
        UnsupportedError,
    )
    from frontdesk.foundry.conventions import foundry_response_id
    from frontdesk.history.foundry.provider import FoundryHostedAgentHistoryProvider
    from frontdesk.hooks import apply_response_hook, apply_run_hook
    from frontdesk.host.config import RuntimeMode
    from frontdesk.host.host import AgentFrameworkHost
    from frontdesk.http.limits import HttpLimits
    from frontdesk.http.server_limits import ServerLimits
    from frontdesk.interfaces.access import (
        AccessRule,
        Allowed,
        AllowlistDecision,
        AuthorizationContext,
        AuthorizationOutcome,
        Denied,
        IdentityAllowlist,
        IdentityResolver,
        LinkPolicy,
        LinkPolicyContext,
        LinkRequired,
    )
    from frontdesk.interfaces.auth import HttpAuth, Principal, RequestAuth
    from frontdesk.interfaces.channel import (
        Channel,
        ChannelCommand,
        ChannelCommandContext,
        ChannelContext,
        ChannelContribution,
        ChannelPush,
        ChannelPushCodec,
        CommandHandler,
    )
    from frontdesk.interfaces.chat import (
        ChecksRecipients,
        Citation,
        LivePlace,
        LiveTerms,
        LiveView,
        PushesParts,
        PushPart,
        PushTerms,
        ShowsNotes,
        ShowsQuestions,
        ShowsTyping,
        StreamsReplies,
        SupportsLiveLookup,
        SupportsPushLookup,
        TimesPushes,
        ToolUse,
        WatchesRuns,
    )
    from frontdesk.interfaces.context import CommandLocale, ShowsItems
    from frontdesk.interfaces.context_groups import ConversationsContext
    from frontdesk.interfaces.hooks import (
        ChannelResponseContext,
        ChannelResponseHook,
        ChannelRunHook,
        ChannelStreamTransformHook,
        Feedback,
        FeedbackHook,
        ResponseHook,
        RunHook,
        StreamTransformHook,
    )
    from frontdesk.interfaces.host import HostContribution
    from frontdesk.interfaces.linker import (
        IdentityLinker,
        LinkerContext,
        ReadsClaims,
        SupportsLinkQuestions,
        SupportsLinkReturn,
        SupportsLinkRoutes,
        SupportsLinkStorePath,
    )
    from frontdesk.interfaces.runner import DurableTaskRunner, RetryPolicy, TaskHandle
    from frontdesk.interfaces.store import HostStateStore, StateTransaction
    from frontdesk.interfaces.target import BindsRequestContext, TargetInfo
    from frontdesk.interfaces.telemetry import Span, Telemetry
    from frontdesk.linkers.oauth.linker import OAuthIdentityLinker
    from frontdesk.linkers.oauth.presets import Entra, GitHub, Google, Oidc
    from frontdesk.linkers.one_time_code import OneTimeCodeIdentityLinker
    from frontdesk.models.approval import ApprovalAnswer, Decision, PendingApproval
    from frontdesk.models.conversation import Conversation, ConversationItem
    from frontdesk.models.delivery import Attempt, Delivery, InboxItem
    from frontdesk.models.file import FileLimits, StoredFile
    from frontdesk.models.identity import (
        ISOLATION_HEADER_CHAT,
        ISOLATION_HEADER_USER,
        Caller,
        ChannelIdentity,
        IsolationKeys,
    )
    from frontdesk.models.link import Grant, LinkChallenge, LinkProof, LinkQuestion, LinkRecord, LinkStatus, Whoami
    from frontdesk.models.operations import EventLimits, Expiry, RateLimit, TaskStatus
    from frontdesk.models.reply import Reply, ReplyButton, ResponseTarget, ResponseTargetKind
    from frontdesk.models.request import ChannelRequest, ChannelSession, ClientOutput, ClientTool
    from frontdesk.models.result import HostedRunResult, HostedStreamResult
    from frontdesk.models.run import ContinuationToken, RunEvent, RunFailure, RunRecord
    from frontdesk.models.watcher import RunNotice, RunWatcher
    from frontdesk.runners.base import InProcessTaskRunner
    from frontdesk.runners.procrastinate import ProcrastinateTaskRunner
    from frontdesk.secret import Secret
    from frontdesk.serialization.codec import register, register_dataclass, register_model
    from frontdesk.sessions.shared_state import SharedState
    from frontdesk.state_dir.paths import HostStatePaths
    from frontdesk.stores.memory.store import InMemoryHostStateStore, InMemoryStateStore
    from frontdesk.stores.sql.postgres.engine import PostgresStateStore
    from frontdesk.stores.sql.sqlite.engine import SqliteStateStore
    from frontdesk.targets.binding import (
        get_current_client_state,
        get_current_forwarded_props,
        get_current_isolation_keys,
        reset_current_isolation_keys,
        set_current_isolation_keys,
    )

_MODULES = {
    "frontdesk.interfaces.access": (
        "AccessRule Allowed AllowlistDecision AuthorizationContext AuthorizationOutcome Denied IdentityAllowlist "
        "IdentityResolver LinkPolicy LinkPolicyContext LinkRequired"
    ),
    "frontdesk.interfaces.auth": "HttpAuth Principal RequestAuth",
    "frontdesk.interfaces.channel": (
        "Channel ChannelCommand ChannelCommandContext ChannelContext ChannelContribution ChannelPush "
        "ChannelPushCodec CommandHandler"
    ),
    "frontdesk.interfaces.context": "CommandLocale ShowsItems",
    "frontdesk.interfaces.context_groups": "ConversationsContext",
    "frontdesk.interfaces.hooks": (
        "ChannelResponseContext ChannelResponseHook ChannelRunHook ChannelStreamTransformHook Feedback "
        "FeedbackHook ResponseHook RunHook StreamTransformHook"
    ),
    "frontdesk.interfaces.host": "HostContribution",
    "frontdesk.interfaces.linker": (
        "IdentityLinker LinkerContext ReadsClaims SupportsLinkQuestions SupportsLinkReturn SupportsLinkRoutes "
        "SupportsLinkStorePath"
    ),
    "frontdesk.interfaces.chat": (
        "ChecksRecipients Citation LivePlace LiveTerms LiveView PushPart PushTerms PushesParts ShowsNotes "
        "ShowsQuestions ShowsTyping StreamsReplies SupportsLiveLookup SupportsPushLookup TimesPushes ToolUse "
        "WatchesRuns"
    ),
    "frontdesk.interfaces.runner": "DurableTaskRunner RetryPolicy TaskHandle",
    "frontdesk.interfaces.store": "HostStateStore StateTransaction",
    "frontdesk.interfaces.target": "BindsRequestContext TargetInfo",
    "frontdesk.interfaces.telemetry": "Span Telemetry",
    "frontdesk.access.allowlists": (
        "AllOfAllowlists AllowAll AnyOfAllowlists CallableAllowlist LinkedClaimAllowlist NativeIdAllowlist"
    ),
    "frontdesk.access.policy": "AllowAllLinks AuthPolicy DenyAllLinks ExplicitAllowList SameConfidentialityTierOnly",
    "frontdesk.delivery.watchers": "WatcherOptions",
    "frontdesk.models.watcher": "RunNotice RunWatcher",
    "frontdesk.approvals.policy": "ApprovalOptions ApproverRole ApproverRule",
    "frontdesk.models.approval": "ApprovalAnswer Decision PendingApproval",
    "frontdesk.serialization.codec": "register register_dataclass register_model",
    "frontdesk.models.conversation": "Conversation ConversationItem",
    "frontdesk.models.delivery": "Attempt Delivery InboxItem",
    "frontdesk.models.operations": "EventLimits Expiry RateLimit TaskStatus",
    "frontdesk.models.file": "FileLimits StoredFile",
    "frontdesk.models.identity": "Caller ChannelIdentity ISOLATION_HEADER_CHAT ISOLATION_HEADER_USER IsolationKeys",
    "frontdesk.models.link": "Grant LinkChallenge LinkProof LinkQuestion LinkRecord LinkStatus Whoami",
    "frontdesk.models.reply": "Reply ReplyButton ResponseTarget ResponseTargetKind",
    "frontdesk.models.request": "ChannelRequest ChannelSession ClientOutput ClientTool",
    "frontdesk.models.result": "HostedRunResult HostedStreamResult",
    "frontdesk.models.run": "ContinuationToken RunEvent RunFailure RunRecord",
    "frontdesk.errors.base": (
        "ChannelConfigurationError CodecError FrontdeskError LeadershipLostError OperatorError SealError "
        "StateDirectoryInUseError TaskError"
    ),
    "frontdesk.errors.service": (
        "PushError PushLimitedError PushNotEditableError PushNotModifiedError PushRefusedError PushStoppedError "
        "PushUnknownError StoreError StoreUnavailableError UnavailableError UnsupportedError"
    ),
    "frontdesk.errors.requests": (
        "BodyTooLargeError ConflictError FileTooLargeError FilesFullError ForbiddenError InvalidRequestError "
        "NotFoundError RequestError TooManyRequestsError UnauthenticatedError UnsupportedMediaError"
    ),
    "frontdesk.history.foundry.provider": "FoundryHostedAgentHistoryProvider",
    "frontdesk.host.config": "RuntimeMode",
    "frontdesk.host.host": "AgentFrameworkHost",
    "frontdesk.admin.client": "OperatorClient",
    "frontdesk.state_dir.paths": "HostStatePaths",
    "frontdesk.auth.any_auth": "AnyAuth",
    "frontdesk.auth.api_keys": "ApiKeyAuth",
    "frontdesk.auth.bearer": "BearerAuth",
    "frontdesk.auth.hmac_auth": "HmacAuth HmacHeaders",
    "frontdesk.auth.platform_auth": "PlatformAuth TrustedEnvironment TrustedPeers TrustedSecret",
    "frontdesk.auth.oidc": "ProviderHttp",
    "frontdesk.secret": "Secret",
    "frontdesk.foundry.conventions": "foundry_response_id",
    "frontdesk.sessions.shared_state": "SharedState",
    "frontdesk.targets.binding": "get_current_client_state get_current_forwarded_props "
    "get_current_isolation_keys reset_current_isolation_keys set_current_isolation_keys",
    "frontdesk.hooks": "apply_response_hook apply_run_hook",
    "frontdesk.http.limits": "HttpLimits",
    "frontdesk.http.server_limits": "ServerLimits",
    "frontdesk.linkers.oauth.linker": "OAuthIdentityLinker",
    "frontdesk.linkers.oauth.presets": "Entra GitHub Google Oidc",
    "frontdesk.linkers.one_time_code": "OneTimeCodeIdentityLinker",
    "frontdesk.runners.base": "InProcessTaskRunner",
    "frontdesk.runners.procrastinate": "ProcrastinateTaskRunner",
    "frontdesk.stores.memory.store": "InMemoryHostStateStore InMemoryStateStore",
    "frontdesk.stores.sql.postgres.engine": "PostgresStateStore",
    "frontdesk.stores.sql.sqlite.engine": "SqliteStateStore",
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
    "AuthorizationOutcome",
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
    "ChannelResponseHook",
    "ChannelRunHook",
    "ChannelSession",
    "ChannelStreamTransformHook",
    "ChecksRecipients",
    "Citation",
    "ClientOutput",
    "ClientTool",
    "CodecError",
    "CommandHandler",
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
    "Feedback",
    "FeedbackHook",
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
    "HttpLimits",
    "ISOLATION_HEADER_CHAT",
    "ISOLATION_HEADER_USER",
    "IdentityAllowlist",
    "IdentityLinker",
    "IdentityResolver",
    "InMemoryHostStateStore",
    "InMemoryStateStore",
    "InProcessTaskRunner",
    "InboxItem",
    "InvalidRequestError",
    "IsolationKeys",
    "LeadershipLostError",
    "LinkChallenge",
    "LinkPolicy",
    "LinkPolicyContext",
    "LinkProof",
    "LinkQuestion",
    "LinkRecord",
    "LinkRequired",
    "LinkStatus",
    "LinkedClaimAllowlist",
    "LinkerContext",
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
    "PushStoppedError",
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
    "ResponseTargetKind",
    "RetryPolicy",
    "RunEvent",
    "RunFailure",
    "RunHook",
    "RunNotice",
    "RunRecord",
    "RunWatcher",
    "RuntimeMode",
    "SameConfidentialityTierOnly",
    "SealError",
    "Secret",
    "ServerLimits",
    "SharedState",
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
    "TimesPushes",
    "TooManyRequestsError",
    "ToolUse",
    "TrustedEnvironment",
    "TrustedPeers",
    "TrustedSecret",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "UnsupportedMediaError",
    "WatcherOptions",
    "WatchesRuns",
    "Whoami",
    "apply_response_hook",
    "apply_run_hook",
    "foundry_response_id",
    "get_current_client_state",
    "get_current_forwarded_props",
    "get_current_isolation_keys",
    "register",
    "register_dataclass",
    "register_model",
    "reset_current_isolation_keys",
    "set_current_isolation_keys",
]


# Old names that still work. Version 0.3 removes them.
_RENAMED = {"Limits": "HttpLimits", "LinkDesk": "LinkerContext"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(
            f"frontdesk.{name} is deprecated. Use frontdesk.{_RENAMED[name]}.", DeprecationWarning, stacklevel=2
        )
        name = _RENAMED[name]
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
