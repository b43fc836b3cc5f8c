"""The API for chat channels: the base class and all related names. Each name is imported on first access."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frontdesk.asgi.messages import Headers
    from frontdesk.chat.abilities import (
        AnswersAtOnce,
        AnswersClicks,
        AnswersHandshakes,
        EditsMessages,
        FetchesFiles,
        PollsEvents,
        PublishesMenus,
        RegistersWebhooks,
        RemovesButtons,
        RepliesSynchronously,
        SendsEphemeral,
        UsesGateway,
    )
    from frontdesk.chat.channel import ChatChannel
    from frontdesk.chat.commands import Menu
    from frontdesk.chat.config import ChatConfig, ChatSettings, Transport
    from frontdesk.chat.inbound import without_mentions
    from frontdesk.chat.live_mixin import FindsMessages, LiveAnswers, TypingNotices
    from frontdesk.chat.media import MediaLimits
    from frontdesk.chat.messages import (
        BotIdentity,
        Button,
        Card,
        Click,
        Command,
        ConversationMove,
        DeliveryReceipt,
        Destination,
        Inbound,
        InboundFeedback,
        InboundFile,
        InboundMessage,
        Invoke,
        InvokeAnswer,
        MembershipChange,
        OutboundFile,
        OutboundMessage,
        Proof,
        Quote,
        Sender,
        Whisper,
    )
    from frontdesk.chat.webhook import decode_event, verify_hmac, verify_time
    from frontdesk.interfaces.argument_types import takes_settings
    from frontdesk.markdown.dialect import Dialect, Entities, Mrkdwn, Plain
    from frontdesk.outbound.platform import FormFile, PlatformHttp, PlatformResponse, encode_form, push_error_from
    from frontdesk.secret import Secret

_MODULES = {
    "frontdesk.asgi.messages": "Headers",
    "frontdesk.chat.abilities": (
        "AnswersAtOnce AnswersClicks AnswersHandshakes EditsMessages FetchesFiles PollsEvents PublishesMenus "
        "RegistersWebhooks RemovesButtons RepliesSynchronously SendsEphemeral UsesGateway"
    ),
    "frontdesk.chat.channel": "ChatChannel",
    "frontdesk.chat.commands": "Menu",
    "frontdesk.chat.config": "ChatConfig ChatSettings Transport",
    "frontdesk.chat.inbound": "without_mentions",
    "frontdesk.chat.webhook": "decode_event verify_hmac verify_time",
    "frontdesk.chat.live_mixin": "FindsMessages LiveAnswers TypingNotices",
    "frontdesk.chat.media": "MediaLimits",
    "frontdesk.chat.messages": (
        "BotIdentity Button Card Click Command ConversationMove DeliveryReceipt Destination Inbound "
        "InboundFeedback InboundFile InboundMessage Invoke InvokeAnswer MembershipChange OutboundFile "
        "OutboundMessage Proof Quote Sender Whisper"
    ),
    "frontdesk.interfaces.argument_types": "takes_settings",
    "frontdesk.markdown.dialect": "Dialect Entities Mrkdwn Plain",
    "frontdesk.outbound.platform": "FormFile PlatformHttp PlatformResponse encode_form push_error_from",
    "frontdesk.secret": "Secret",
}
"""The names of each module, separated by spaces."""
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AnswersAtOnce",
    "AnswersClicks",
    "AnswersHandshakes",
    "BotIdentity",
    "Button",
    "Card",
    "ChatChannel",
    "ChatConfig",
    "ChatSettings",
    "Click",
    "Command",
    "ConversationMove",
    "DeliveryReceipt",
    "Destination",
    "Dialect",
    "EditsMessages",
    "Entities",
    "FetchesFiles",
    "FindsMessages",
    "FormFile",
    "Headers",
    "Inbound",
    "InboundFeedback",
    "InboundFile",
    "InboundMessage",
    "Invoke",
    "InvokeAnswer",
    "LiveAnswers",
    "MediaLimits",
    "MembershipChange",
    "Menu",
    "Mrkdwn",
    "OutboundFile",
    "OutboundMessage",
    "Plain",
    "PlatformHttp",
    "PlatformResponse",
    "PollsEvents",
    "Proof",
    "PublishesMenus",
    "Quote",
    "RegistersWebhooks",
    "RemovesButtons",
    "RepliesSynchronously",
    "Secret",
    "Sender",
    "SendsEphemeral",
    "Transport",
    "TypingNotices",
    "UsesGateway",
    "Whisper",
    "decode_event",
    "encode_form",
    "push_error_from",
    "takes_settings",
    "verify_hmac",
    "verify_time",
    "without_mentions",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'frontdesk.chat' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
