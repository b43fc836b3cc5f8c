"""Calls the platform, and classifies every failure for the next attempt."""

from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from frontdesk.chat.live_message import STREAM_EXPIRED
from frontdesk.errors import (
    PushError,
    PushNotEditableError,
    PushNotModifiedError,
    PushRefusedError,
    PushUnknownError,
)
from frontdesk.outbound.platform import PlatformResponse, push_error_from
from frontdesk_testing.messages.config import MessageConfig
from frontdesk_testing.messages.connections import Connections, NoAnswerError, UnreachableError
from frontdesk_testing.messages.wire import (
    AnswerClick,
    Commands,
    Delete,
    Edit,
    Events,
    Me,
    Numbered,
    Private,
    Refusal,
    Send,
    Sent,
    Typing,
    Webhook,
)

T = TypeVar("T")
_REFUSALS: dict[str, type[PushRefusedError]] = {
    "not_modified": PushNotModifiedError,
    "message_not_found": PushNotEditableError,
    "too_old": PushNotEditableError,
    STREAM_EXPIRED: PushNotEditableError,
}


class PlatformClient:
    """The client of the platform's bot API."""

    def __init__(self, config: MessageConfig) -> None:
        self._config = config
        token = "" if config.token is None else config.token.reveal()
        self._connections = Connections(config.platform_url, {"authorization": f"Bearer {token}"})
        self._encoder = msgspec.json.Encoder()

    async def me(self) -> Me:
        """Return the bot's own account."""
        return await self._get("me", Me)

    async def send(self, send: Send) -> Sent:
        """Send a new message."""
        return await self._post("send", send, Sent)

    async def edit(self, edit: Edit) -> Sent:
        """Edit a message of the bot."""
        return await self._post("edit", edit, Sent)

    async def delete(self, delete: Delete) -> None:
        """Delete a message of the bot."""
        await self._post("delete", delete, Any)

    async def set_typing(self, typing: Typing) -> None:
        """Show that the bot is writing, or that it is not."""
        await self._post("typing", typing, Any)

    async def answer(self, callback_id: str, text: str = "") -> None:
        """Show a text to the person who pressed a button."""
        await self._post("answer", AnswerClick(callback_id=callback_id, text=text), Any)

    async def show_privately(self, reply_token: str, text: str) -> None:
        """Show a text to the sender of an event only."""
        await self._post("private", Private(reply_token=reply_token, text=text), Any)

    async def publish(self, menu: Commands) -> None:
        """Publish a menu."""
        await self._post("commands", menu, Any)

    async def use_webhook(self, url: str, secret: str) -> None:
        """Set the webhook URL."""
        await self._post("webhook", Webhook(url=url, secret=secret), Any)

    async def events(self, offset: int, seconds: float) -> list[tuple[int, bytes]]:
        """Wait for events, and return them with their numbers. Confirm all below the offset."""
        query = {"offset": offset, "timeout": seconds}
        answer = await self._get("events", Events, query, self._config.call_timeout + seconds)
        return [(msgspec.json.decode(event, type=Numbered).number, bytes(event)) for event in answer.events]

    async def find_sent(self, key: str) -> Sent | None:
        """Return the messages accepted under a key."""
        try:
            return await self._get("sent", Sent, {"idempotency_key": key})
        except PushRefusedError as error:
            if error.code == "message_not_found":
                return None
            raise

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    async def _post(self, method: str, body: Any, kind: type[T] | Any) -> T:
        return await self._call("POST", method, kind, self._encoder.encode(body))

    async def _get(self, method: str, kind: type[T], query: Any = None, seconds: float | None = None) -> T:
        asked = method if query is None else f"{method}?{urlencode(query)}"
        return await self._call("GET", asked, kind, seconds=seconds)

    async def _call(self, verb: str, method: str, kind: Any, body: bytes = b"", seconds: float | None = None) -> Any:
        patience = self._config.call_timeout if seconds is None else seconds
        try:
            status, answer = await self._connections.request(verb, f"/bot/{method}", body, seconds=patience)
        except UnreachableError as error:
            raise PushError(f"The platform can't be reached: {error}.", code="unreachable") from None
        except NoAnswerError as error:
            raise PushUnknownError(f"The platform sent no response: {error}.") from None
        response = PlatformResponse(status, {}, answer)
        if not response.ok:
            raise failure(response)
        return response.json(kind)


def failure(response: PlatformResponse) -> PushError:
    """Return the error of an unsuccessful response."""
    try:
        problem = msgspec.json.decode(response.body, type=Refusal).error
    except msgspec.DecodeError:
        return push_error_from(response)
    if problem.code in _REFUSALS:
        return _REFUSALS[problem.code](f"The platform answered {response.status}, {problem.code}.", code=problem.code)
    return push_error_from(response, code=problem.code, everywhere=problem.scope == "bot")
