"""The channel of the fake platform."""

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import msgspec

from frontdesk.asgi.messages import Headers
from frontdesk.chat.abilities import (
    AnswersClicks,
    PollsEvents,
    PublishesMenus,
    RegistersWebhooks,
    RemovesButtons,
    RepliesSynchronously,
    SendsEphemeral,
)
from frontdesk.chat.commands import Menu
from frontdesk.chat.config import Transport
from frontdesk.chat.live_mixin import FindsMessages, LiveAnswers, TypingNotices
from frontdesk.chat.messages import BotIdentity, Card, Destination, Inbound, OutboundMessage, Proof
from frontdesk.interfaces.argument_types import takes_settings
from frontdesk.markdown import Dialect
from frontdesk.secret import Secret
from frontdesk_testing.messages.client import PlatformClient
from frontdesk_testing.messages.config import MessageConfig, MessageSettings
from frontdesk_testing.messages.parse import challenge_in, decode, parse_inbound, slim
from frontdesk_testing.messages.render import build_shown, build_typing, delete_call, edit_call, menu_call, send_call
from frontdesk_testing.messages.verify import SIGNATURE, TIMESTAMP, verify
from frontdesk_testing.messages.wire import Replied


class MessageChannel(
    LiveAnswers,
    RemovesButtons,
    AnswersClicks,
    SendsEphemeral,
    PublishesMenus,
    RegistersWebhooks,
    PollsEvents,
    RepliesSynchronously,
):
    """Answers people on the platform: in direct chats and groups, to messages, commands and buttons."""

    # The platform shows text as it is.
    dialect: ClassVar[Dialect | None] = None
    signature_headers = (SIGNATURE, TIMESTAMP)

    @takes_settings(MessageConfig)
    def __init__(
        self,
        *,
        platform_url: str,
        token: str | Secret,
        secret: str | Secret = "",
        name: str = "messages",
        path: str = "/messages",
        intake: Transport | None = None,
        idempotent: bool = True,
        **settings: Unpack[MessageSettings],
    ) -> None:
        """Make a channel for a platform that drops a repeated key if it is `idempotent`.

        `intake` is another name for `transport`.
        """
        if intake is not None:
            settings["transport"] = intake
        self._config = MessageConfig(
            platform_url=platform_url, token=_as_secret(token), secret=_as_secret(secret), **settings
        )
        super().__init__(self._config, name=name, path=path)
        self.text_limit, self.push_is_idempotent = self._config.text_limit, idempotent
        self.client = PlatformClient(self._config)

    async def connect(self) -> BotIdentity:
        me = await self.client.me()
        return BotIdentity(id=me.user_id, name=me.handle)

    async def verify(self, headers: Headers, body: bytes, now: float) -> None:
        verify(
            headers,
            body,
            secret=self.list_secrets(self._config.secret),
            now=now,
            window=self._config.signature_seconds,
        )

    def challenge(self, body: bytes) -> bytes | None:
        challenge = challenge_in(body)
        return None if challenge is None else msgspec.json.encode(challenge)

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> Inbound | None:
        return parse_inbound(decode(event), bot)

    def payload(self, event: bytes) -> Any:
        return slim(decode(event))

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        return (await self.client.send(send_call(message, destination, key))).message_id

    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        await self.client.edit(edit_call(message_id, message, destination))

    async def remove_buttons(self, message_id: str, destination: Destination) -> None:
        await self.client.edit(edit_call(message_id, OutboundMessage(), destination))

    async def delete(self, message_id: str, destination: Destination) -> None:
        await self.client.delete(delete_call(message_id, destination))

    async def direct(self, user_id: str) -> Destination:
        return Destination(user_id=user_id)

    async def answer_click(self, callback_id: str, text: str) -> None:
        await self.client.answer(callback_id, text)

    async def whisper(self, token: str, text: str) -> None:
        await self.client.show_privately(token, text)

    async def publish(self, menu: Menu) -> None:
        await self.client.publish(menu_call(menu))

    async def register(self, url: str) -> None:
        await self.client.use_webhook(url, "" if self._config.secret is None else self._config.secret.reveal())

    async def poll(self, offset: int) -> Sequence[tuple[int, bytes]]:
        return await self.client.events(offset, self._config.poll_seconds)

    def response(self, messages: Sequence[tuple[OutboundMessage, Destination, str]]) -> bytes:
        return msgspec.json.encode(Replied(messages=tuple(send_call(*message) for message in messages)))

    def card_response(self, card: Card) -> bytes:
        return msgspec.json.encode(build_shown(card))

    async def close(self) -> None:
        self.client.close()


class LookupMessageChannel(FindsMessages, MessageChannel):
    """A channel whose platform can look up the status of a message."""

    async def find(self, key: str, destination: Destination) -> str | None:
        sent = await self.client.find_sent(key)
        return None if sent is None else sent.message_id


class TypingMessageChannel(TypingNotices, MessageChannel):
    """A channel that shows typing notices."""

    async def typing(self, destination: Destination, *, on: bool) -> None:
        await self.client.set_typing(build_typing(destination, on=on))


def _as_secret(given: str | Secret) -> Secret | None:
    return Secret(given) if given else None
