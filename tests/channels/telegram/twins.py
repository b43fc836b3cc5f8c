"""Intents as the channel carries them out, and how a call of any client is compared with them."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from frontdesk import ChannelCommand
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.telegram.render import draft_call
from frontdesk.chat.commands import Menu
from frontdesk.chat.messages import Button, Destination, OutboundFile, OutboundMessage
from frontdesk.markdown import Entity, parse, to_blocks
from frontdesk_testing.telegram import FakeTelegram, fake_telegram

CHAT = 42
PLACE = Destination(chat_id=str(CHAT))
STYLES = (Entity("bold", 0, 4), Entity("text_link", 5, 4, url="https://a.example/b"))
KEYS = (Button(text="Yes", data="ok:1"), Button(text="No", data="no:1"))
REPORT = "# Report\n\n| a | b |\n| - | -: |\n| 1 | **2** |\n\n1. one\n2. two\n\n> said\n\n---\n\n```py\nx\n```"
Call = tuple[str, Any, list[str]]
Ours = Callable[[TelegramChannel, int], Awaitable[Any]]
Theirs = Callable[[Any, int], Awaitable[Any]]
"""Carries an intent out with a bot of another client; the number is that of a message which was sent before."""


def file(media_type: str, data: bytes, name: str) -> OutboundFile:
    return OutboundFile(media_type=media_type, data=base64.b64encode(data).decode(), name=name)


def build_message(**fields: Any) -> OutboundMessage:
    return OutboundMessage(**{"text": "bold link", "entities": STYLES, **fields})


def rich() -> OutboundMessage:
    return OutboundMessage(text="Report", blocks=tuple(to_blocks(parse(REPORT)) or ()))


def draft(channel: TelegramChannel, message: OutboundMessage) -> Awaitable[Any]:
    call = draft_call(message, PLACE)
    return channel.client.call(call.method, call.params)


MENU = Menu("direct", "de", [ChannelCommand("new", "Neu", handler=lambda _: None)])
ALBUM = (file("image/png", b"1", "a.png"), file("image/png", b"2", "b.png"))
OURS: dict[str, Ours] = {
    "a text": lambda channel, sent: channel.send(build_message(), PLACE, "k"),
    "a reply with buttons": lambda channel, sent: channel.send(
        build_message(buttons=KEYS, reply_to=str(sent)), PLACE, "k"
    ),
    "an edit": lambda channel, sent: channel.edit(str(sent), build_message(buttons=KEYS), PLACE),
    "buttons off": lambda channel, sent: channel.remove_buttons(str(sent), PLACE),
    "a removal": lambda channel, sent: channel.delete(str(sent), PLACE),
    "a photo with a caption": lambda channel, sent: channel.send(
        build_message(media=(file("image/png", b"1", "a.png"),)), PLACE, "k"
    ),
    "a document": lambda channel, sent: channel.send(
        OutboundMessage(media=(file("text/csv", b"1", "a.csv"),)), PLACE, "k"
    ),
    "an album": lambda channel, sent: channel.send(OutboundMessage(media=ALBUM), PLACE, "k"),
    "typing": lambda channel, sent: channel.typing(PLACE, on=True),
    "a menu": lambda channel, sent: channel.publish(MENU),
}
NEWER: dict[str, Ours] = {
    "a draft": lambda channel, sent: draft(channel, build_message()),
    "a rich message": lambda channel, sent: channel.send(rich(), PLACE, "k"),
    "a rich draft": lambda channel, sent: draft(channel, rich()),
    "an edit to a rich message": lambda channel, sent: channel.edit(str(sent), rich(), PLACE),
    "a webhook": lambda channel, sent: channel.register("http://127.0.0.1:8443/telegram/events"),
}
"""The intents with methods that only a client of the newest Bot API has, or that it takes a setting for."""


async def our_call(name: str) -> Call:
    """Return the call with which the channel carries an intent out."""
    async with fake_telegram() as fake:
        channel, sent = await _open(fake, name)
        try:
            return await record_call(fake, {**OURS, **NEWER}[name](channel, sent))
        finally:
            await channel.close()


async def their_call(name: str, carry_out: Callable[[FakeTelegram, int], Awaitable[Any]]) -> Call:
    """Return the call with which another client does."""
    async with fake_telegram() as fake:
        channel, sent = await _open(fake, name)
        await channel.close()
        return await record_call(fake, carry_out(fake, sent))


async def _open(fake: FakeTelegram, name: str) -> tuple[TelegramChannel, int]:
    """Return a channel of the fake, and the number of a message that it has sent."""
    fake.private(fake.user("Ada", user_id=CHAT))
    channel = TelegramChannel(bot_token=fake.token, secret_token="a-secret-of-the-webhook", api_url=fake.url)
    sent = int(await channel.send(OutboundMessage(text="before"), PLACE, "k") or 0)
    if name == "buttons off":
        await channel.edit(str(sent), OutboundMessage(text="before", buttons=KEYS), PLACE)
    return channel, sent


async def record_call(fake: FakeTelegram, call: Awaitable[Any]) -> Call:
    """Return the last call that reached the platform: its method, its parameters and the names of its files."""
    await call
    last = fake.calls[-1]
    assert last.error is None, last.error
    return last.method, _drop_names(last.parameters), sorted(last.files.values())


def _drop_names(value: Any) -> Any:
    """Leave out the names of uploaded parts, which clients choose, and fields that are left empty."""
    if isinstance(value, dict):
        parts = {name: _drop_names(part) for name, part in value.items() if name != "draft_id"}
        return {name: part for name, part in parts.items() if part not in ([], {})}
    if isinstance(value, list | tuple):
        return [_drop_names(part) for part in value]
    return "attach://" if isinstance(value, str) and value.startswith("attach://") else value
