"""Calls the Bot API. The token is part of every URL, and is kept out of logs and errors."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from frontdesk.channels.telegram.wire import ALLOWED_UPDATES, Answer, RemoteFile, SentMessage, User
from frontdesk.concurrency.offload import run_sized
from frontdesk.errors import (
    PushError,
    PushLimitedError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
    PushUnknownError,
)
from frontdesk.outbound.platform import (
    MAX_WAIT_SECONDS,
    FormFile,
    PlatformHttp,
    PlatformResponse,
    encode_form,
    push_error_from,
)
from frontdesk.secret import Secret

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
_TOKEN_WAIT_SECONDS = 60.0
"""The seconds until the token is tried again: an operator has to act, and nothing that waits is lost meanwhile."""
_DEFAULT_WAIT_SECONDS = 1.0
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
        super().__init__("The group was converted to a supergroup.")
        self.chat_id = chat_id


def read_answer(response: PlatformResponse) -> msgspec.Raw:
    try:
        answer = _answer.decode(response.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        if response.ok:
            raise PushUnknownError("The Bot API sent an invalid response.", code="unreadable_response") from None
        raise push_error_from(response) from None
    if answer.ok and response.ok:
        return answer.result
    raise build_error(response, answer)


def build_error(response: PlatformResponse, answer: Answer) -> PushError:
    """Return the error of a refused call. Its text contains the code and no foreign text."""
    status = answer.error_code or response.status
    if answer.parameters.migrate_to_chat_id is not None:
        return ChatMigratedError(answer.parameters.migrate_to_chat_id)
    if status == 429:
        asked = answer.parameters.retry_after
        wait = _DEFAULT_WAIT_SECONDS if asked is None or asked < 0 else min(asked, MAX_WAIT_SECONDS)
        return PushLimitedError(_text(status, "flood"), code="flood", retry_after=wait)
    said = answer.description.partition(": ")[2].lower()
    if status == 401 or (status == 404 and not said):
        return PushError(
            f"{_text(status, UNAUTHORIZED)} It does not know bot_token: copy the token that @BotFather shows.",
            code=UNAUTHORIZED,
            retry_after=_TOKEN_WAIT_SECONDS,
            everywhere=True,
        )
    if status == 409:
        code = WEBHOOK_ACTIVE if said.startswith("can't use getupdates method while webhook") else CONFLICT
        return PushError(_text(status, code), code=code)
    if status < 500:
        return _refusal(status, said)
    return push_error_from(PlatformResponse(status, response.headers, response.body))


def refuses_content(error: PushRefusedError) -> bool:
    """Return True if a refusal may concern the kind of content rather than the destination or the message."""
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


T = TypeVar("T")
API_URL = "https://api.telegram.org"
UPLOAD_SECONDS = 40.0
_MAX_UPDATES = 100
_MAX_UPDATE_BYTES = 32 * 1024 * 1024


class BotClient:
    """A client of the Bot API. All calls raise a `PushError` that determines how to continue."""

    def __init__(
        self, token: Secret, *, api_url: str = API_URL, timeout: float = 10.0, allow_private: bool = False
    ) -> None:
        root = api_url.rstrip("/")
        self._http = PlatformHttp(Secret(f"{root}/bot{token.reveal()}"), timeout=timeout, allow_private=allow_private)
        self._files = Secret(f"{root}/file/bot{token.reveal()}")
        self._timeout = timeout
        self._floods = FloodWaits()

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        kind: type[T] | Any = Any,
        *,
        files: Sequence[FormFile] = (),
        seconds: float | None = None,
        max_bytes: int | None = None,
    ) -> T:
        """Call a method. Parameters that are `None` are omitted."""
        given = {name: value for name, value in params.items() if value is not None}
        if files:
            fields = {name: _field(value) for name, value in given.items()}
            content_type, body = await run_sized(sum(len(file.data) for file in files), encode_form, fields, files)
            seconds = UPLOAD_SECONDS if seconds is None else seconds
        else:
            content_type, body = "application/json", msgspec.json.encode(given)
        response = await self._http.request(
            "POST",
            method,
            content=body,
            headers={"Content-Type": content_type},
            seconds=seconds,
            max_bytes=max_bytes,
        )
        try:
            result = await run_sized(len(response.body), read_answer, response)
        except PushLimitedError as error:
            raise self._floods.note(error, str(given.get("chat_id", ""))) from None
        return await run_sized(len(response.body), _decode, result, kind)

    async def get_me(self) -> User:
        return await self.call("getMe", {}, User)

    async def send(self, method: str, params: Mapping[str, Any], files: Sequence[FormFile] = ()) -> tuple[int, ...]:
        """Send a message or an album. Return the message ids."""
        if method == "sendMediaGroup":
            sent = await self.call(method, params, tuple[SentMessage, ...], files=files)
            return tuple(message.message_id for message in sent)
        return ((await self.call(method, params, SentMessage, files=files)).message_id,)

    async def get_updates(self, offset: int, seconds: float) -> list[tuple[int, bytes]]:
        """Wait for updates and return them with their numbers. This confirms all updates below the offset.

        A poll that is silent for longer than its timeout is aborted.
        """
        params = {
            "offset": offset or None,
            "limit": _MAX_UPDATES,
            "timeout": int(seconds),
            "allowed_updates": ALLOWED_UPDATES,
        }
        updates = await self.call(
            "getUpdates",
            params,
            list[msgspec.Raw],
            seconds=seconds + self._timeout,
            max_bytes=_MAX_UPDATE_BYTES,
        )
        size = sum(memoryview(update).nbytes for update in updates)
        return await run_sized(size, lambda: [(_decode(one, _Numbered).update_id, bytes(one)) for one in updates])

    async def set_webhook(self, url: str, secret: Secret, *, max_connections: int) -> None:
        """Register a webhook URL. The secret is sent in a header."""
        await self.call(
            "setWebhook",
            {
                "url": url,
                "secret_token": secret.reveal(),
                "allowed_updates": ALLOWED_UPDATES,
                "max_connections": max_connections,
            },
        )

    async def delete_webhook(self) -> None:
        """Remove the webhook. Pending updates are kept for polling."""
        await self.call("deleteWebhook", {"drop_pending_updates": False})

    async def download(self, file_id: str, *, max_bytes: int, seconds: float = UPLOAD_SECONDS) -> bytes:
        file = await self.call("getFile", {"file_id": file_id}, RemoteFile)
        if file.file_size is not None and file.file_size > max_bytes:
            raise PushRefusedError("The file is too large.", code="too_large")
        # Whatever the platform names, it is a path below the files of this bot.
        if not file.file_path or ".." in file.file_path.split("/"):
            raise PushRefusedError("The file has no valid download path.", code="no_file_path")
        url = f"{self._files.reveal()}/{quote(file.file_path.lstrip('/'))}"
        try:
            response = await self._http.request("GET", url, seconds=seconds, max_bytes=max_bytes)
        except PushUnknownError as error:
            if error.code == "unreadable_response":
                raise PushRefusedError("The file is too large.", code="too_large") from None
            # To read a file once more does no harm.
            raise PushError("The file download failed.", code="unreachable") from None
        if not response.ok:
            raise push_error_from(response)
        return response.body

    async def close(self) -> None:
        await self._http.close()


class _Numbered(msgspec.Struct):
    update_id: int


class FloodWaits:
    """Distinguishes a rate limit of one chat from one of the whole bot, which the Bot API does not report.

    If a second chat is limited while the first one still is, the limit applies to the bot.
    """

    def __init__(self) -> None:
        self._chat: str = ""
        self._until = 0.0

    def note(self, error: PushLimitedError, chat_id: str) -> PushLimitedError:
        """Record a wait and return it. It is marked if it applies to all chats."""
        now = asyncio.get_running_loop().time()
        error.everywhere = not chat_id or (now < self._until and chat_id != self._chat)
        self._chat, self._until = chat_id, now + (error.retry_after or 0.0)
        return error


def _decode(result: msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(result, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise PushUnknownError("The Bot API sent an invalid response.", code="unreadable_response") from None


def _field(value: Any) -> str:
    """Encode a form parameter: strings unchanged, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
