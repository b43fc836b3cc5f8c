"""A channel for Letterbox, a platform that sends letters to a webhook and takes answers over HTTP."""

import hmac
from typing import Any

import msgspec

from frontdesk import InvalidRequestError, UnauthenticatedError
from frontdesk.chat import (
    BotIdentity,
    ChatChannel,
    ChatConfig,
    Destination,
    Headers,
    InboundMessage,
    OutboundMessage,
    PlatformHttp,
    Sender,
    push_error_from,
)


class Letter(msgspec.Struct):
    id: str
    at: float
    sender: str
    text: str


class LetterboxChannel(ChatChannel):
    has_buttons = False
    push_is_idempotent = True
    signature_headers = (b"letterbox-secret",)

    def __init__(self, *, url: str, secret: str, allow_private: bool = False, **settings: Any) -> None:
        super().__init__(ChatConfig(**settings), name="letterbox", path="/letterbox")
        self._secret = secret.encode()
        self._http = PlatformHttp(url, allow_private=allow_private)

    async def connect(self) -> BotIdentity:
        (await self._http.request("GET", "me")).json(dict)
        return BotIdentity(id="porter", name="porter")

    async def verify(self, headers: Headers, body: bytes, now: float) -> None:
        if not hmac.compare_digest(headers.get(b"letterbox-secret", b""), self._secret):
            raise UnauthenticatedError("The secret is wrong.")

    def read(self, event: bytes, bot: BotIdentity, proof: object) -> InboundMessage | None:
        try:
            letter = msgspec.json.decode(event, type=Letter)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequestError(f"The letter is not valid: {error}.") from None
        sender, place = Sender(id=letter.sender, name=letter.sender), Destination(chat_id=letter.sender)
        return InboundMessage(event_id=letter.id, at=letter.at, sender=sender, place=place, text=letter.text)

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        body = msgspec.json.encode({"to": destination.chat_id, "text": message.text, "key": key})
        response = await self._http.request("POST", "letters", content=body)
        if not response.ok:
            raise push_error_from(response)
        return str(response.json(dict)["id"])

    async def direct(self, user_id: str) -> Destination:
        return Destination(chat_id=user_id)

    async def close(self) -> None:
        await self._http.close()
