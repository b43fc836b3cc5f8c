"""Calls the Bot API. The token is part of every URL, and in no log and no error."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from frontdesk.channels.telegram.errors import read_answer
from frontdesk.channels.telegram.wire import ALLOWED_UPDATES, RemoteFile, SentMessage, User
from frontdesk.errors import PushError, PushLimitedError, PushRefusedError, PushUnknownError
from frontdesk.kit.aio.large import run_sized
from frontdesk.kit.auth.secrets import Secret
from frontdesk.kit.outbound.multipart import FormFile, encode_form
from frontdesk.kit.outbound.platform import PlatformHttp
from frontdesk.kit.outbound.push_errors import push_error_from

T = TypeVar("T")
API_URL = "https://api.telegram.org"
UPLOAD_SECONDS = 40.0
_MOST_UPDATES = 100
_MOST_UPDATE_BYTES = 32 * 1024 * 1024


class BotClient:
    """The bot's side of the Bot API. Each call raises a `PushError` that says what to do next."""

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
        """Call a method; parameters that are `None` are left out."""
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
            raise self._floods.noted(error, str(given.get("chat_id", ""))) from None
        return await run_sized(len(response.body), _decoded, result, kind)

    async def get_me(self) -> User:
        """Return the bot's own account."""
        return await self.call("getMe", {}, User)

    async def send(self, method: str, params: Mapping[str, Any], files: Sequence[FormFile] = ()) -> tuple[int, ...]:
        """Send a message, or an album; return the ids of what was sent."""
        if method == "sendMediaGroup":
            sent = await self.call(method, params, tuple[SentMessage, ...], files=files)
            return tuple(message.message_id for message in sent)
        return ((await self.call(method, params, SentMessage, files=files)).message_id,)

    async def get_updates(self, offset: int, seconds: float) -> list[tuple[int, bytes]]:
        """Wait for updates; return them with their numbers. This confirms all below the offset.

        A poll that is silent for longer than it was asked to wait is dead, and given up.
        """
        params = {
            "offset": offset or None,
            "limit": _MOST_UPDATES,
            "timeout": int(seconds),
            "allowed_updates": ALLOWED_UPDATES,
        }
        updates = await self.call(
            "getUpdates",
            params,
            list[msgspec.Raw],
            seconds=seconds + self._timeout,
            max_bytes=_MOST_UPDATE_BYTES,
        )
        size = sum(memoryview(update).nbytes for update in updates)
        return await run_sized(size, lambda: [(_decoded(one, _Numbered).update_id, bytes(one)) for one in updates])

    async def set_webhook(self, url: str, secret: Secret, *, max_connections: int) -> None:
        """Have updates sent to a URL, with the secret in a header."""
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
        """Have no more updates sent; those that wait stay there to be fetched."""
        await self.call("deleteWebhook", {"drop_pending_updates": False})

    async def download(self, file_id: str, *, max_bytes: int, seconds: float = UPLOAD_SECONDS) -> bytes:
        """Return the content of a file, if it is not larger than `max_bytes`."""
        file = await self.call("getFile", {"file_id": file_id}, RemoteFile)
        if file.file_size is not None and file.file_size > max_bytes:
            raise PushRefusedError("The file is too large.", code="too_large")
        # Whatever the platform names, it is a path below the files of this bot.
        if not file.file_path or ".." in file.file_path.split("/"):
            raise PushRefusedError("The file can't be downloaded.", code="no_file_path")
        url = f"{self._files.reveal()}/{quote(file.file_path.lstrip('/'))}"
        try:
            response = await self._http.request("GET", url, seconds=seconds, max_bytes=max_bytes)
        except PushUnknownError as error:
            if error.code == "unreadable_response":
                raise PushRefusedError("The file is too large.", code="too_large") from None
            # To read a file once more does no harm.
            raise PushError("The file did not come.", code="unreachable") from None
        if not response.ok:
            raise push_error_from(response)
        return response.body

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()


class _Numbered(msgspec.Struct):
    update_id: int


class FloodWaits:
    """Tells a wait of one chat from a wait of the whole bot, which the Bot API does not name.

    Where a second chat is told to wait while the first one still has to, the limit is that of the bot.
    """

    def __init__(self) -> None:
        self._chat: str = ""
        self._until = 0.0

    def noted(self, error: PushLimitedError, chat_id: str) -> PushLimitedError:
        """Take note of a wait; return it, with whether it is for all chats."""
        now = asyncio.get_running_loop().time()
        error.everywhere = not chat_id or (now < self._until and chat_id != self._chat)
        self._chat, self._until = chat_id, now + (error.retry_after or 0.0)
        return error


def _decoded(result: msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(result, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise PushUnknownError("The Bot API's response can't be read.", code="unreadable_response") from None


def _field(value: Any) -> str:
    """Return a parameter as a form has it: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
