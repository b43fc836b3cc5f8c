"""Refusals of the Bot API as push errors. Pure."""

import re

import msgspec

from frontdesk.channels.telegram.wire import Answer
from frontdesk.errors import (
    PushError,
    PushLimitedError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
    PushUnknownError,
)
from frontdesk.kit.outbound.platform import PlatformResponse
from frontdesk.kit.outbound.push_errors import LONGEST_WAIT, push_error_from

UNAUTHORIZED = "unauthorized"
CONFLICT = "conflict"
WEBHOOK_ACTIVE = "webhook_active"
REPLY_NOT_FOUND = "reply_not_found"
MEDIA_REFUSED = "media_refused"
BLOCKED = "blocked"
KICKED = "kicked"
NO_METHOD = "status_404"
_CONTENT_REFUSED = ("status_400", NO_METHOD, "too_large", MEDIA_REFUSED)
"""The codes of a refusal that may be about the kind of content: another kind may be taken."""
_TOKEN_WAIT = 60.0
"""The seconds until the token is tried again: an operator has to act, and nothing that waits is lost meanwhile."""
_DEFAULT_WAIT = 1.0
_answer = msgspec.json.Decoder(Answer)

# The texts of the Bot API are its only codes. Each pattern is tried at the beginning of a text in lower case.
_NOT_EDITABLE = {
    "message_not_found": re.compile(r"message to (?:edit|delete) not found|message_id_invalid|message identifier is"),
    "not_editable": re.compile(r"message can't be (?:edited|deleted)|there is no text in the message to edit"),
}
_REFUSED = {
    BLOCKED: re.compile(r"bot was blocked by the user"),
    "user_deactivated": re.compile(r"user is deactivated"),
    "not_started": re.compile(r"bot can't initiate conversation"),
    KICKED: re.compile(r"bot was kicked from|bot is not a member of|the group chat was deleted"),
    "is_bot": re.compile(r"bot can't send messages to (?:bots|the bot)"),
    "chat_not_found": re.compile(r"chat not found|peer_id_invalid|chat_id_invalid"),
    "no_rights": re.compile(
        r"not enough rights|have no rights|need administrator rights|chat_write_forbidden|chat_restricted"
        r"|chat_admin_required|chat_send_|voice_messages_forbidden"
    ),
    "thread_not_found": re.compile(r"message thread not found|topic_deleted|message_thread_id_invalid"),
    "topic_closed": re.compile(r"topic_closed"),
    "query_too_old": re.compile(r"query is too old|query_id_invalid"),
    REPLY_NOT_FOUND: re.compile(r"message to be replied not found|replied message not found|reply message not found"),
    "too_large": re.compile(r"message is too long|message caption is too long|file is too big|request entity too"),
    MEDIA_REFUSED: re.compile(
        r"photo_invalid_dimensions|image_process_failed|wrong type of the web page content|wrong file identifier"
        r"|failed to get http url content|photo_|media_|wrong remote file"
    ),
    "button_invalid": re.compile(r"button_data_invalid|button_url_invalid"),
}


class ChatMigratedError(PushError):
    """The group has become a supergroup with another id."""

    code = "migrated"

    def __init__(self, chat_id: int) -> None:
        super().__init__("The group has become a supergroup.")
        self.chat_id = chat_id


def read_answer(response: PlatformResponse) -> msgspec.Raw:
    """Return the result of a call, or raise the error that follows from its response."""
    try:
        answer = _answer.decode(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if response.ok:
            raise PushUnknownError("The Bot API's response can't be read.", code="unreadable_response") from None
        raise push_error_from(response) from None
    if answer.ok and response.ok:
        return answer.result
    raise error_of(response, answer)


def error_of(response: PlatformResponse, answer: Answer) -> PushError:
    """Return the error of a refused call; its text names the code, and nothing that somebody else wrote."""
    status = answer.error_code or response.status
    if answer.parameters.migrate_to_chat_id is not None:
        return ChatMigratedError(answer.parameters.migrate_to_chat_id)
    if status == 429:
        asked = answer.parameters.retry_after
        wait = _DEFAULT_WAIT if asked is None or asked < 0 else min(asked, LONGEST_WAIT)
        return PushLimitedError(_text(status, "flood"), code="flood", retry_after=wait)
    said = answer.description.partition(": ")[2].lower()
    if status == 401 or (status == 404 and not said):
        return PushError(_text(status, UNAUTHORIZED), code=UNAUTHORIZED, retry_after=_TOKEN_WAIT, everywhere=True)
    if status == 409:
        code = WEBHOOK_ACTIVE if said.startswith("can't use getupdates method while webhook") else CONFLICT
        return PushError(_text(status, code), code=code)
    if status < 500:
        return _refusal(status, said)
    return push_error_from(PlatformResponse(status, response.headers, response.body))


def refuses_content(error: PushRefusedError) -> bool:
    """Tell whether a refusal may be about the kind of content, and not about the place or the message."""
    return error.code in _CONTENT_REFUSED


def _refusal(status: int, said: str) -> PushRefusedError:
    if said.startswith("message is not modified"):
        return PushNotModifiedError(_text(status, PushNotModifiedError.code))
    for code, pattern in _NOT_EDITABLE.items():
        if pattern.match(said):
            return PushNotEditableError(_text(status, code), code=code)
    code = next((code for code, pattern in _REFUSED.items() if pattern.match(said)), f"status_{status}")
    return PushRefusedError(_text(status, code), code=code)


def _text(status: int, code: str) -> str:
    return f"The Bot API answered {status}, {code}."
