"""A contract that nothing can break promises nothing: here chat channels are broken, and it has to notice."""

from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec
import pytest

from frontdesk.asgi.messages import Headers
from frontdesk.chat.abilities import RemovesButtons
from frontdesk.chat.messages import (
    BotIdentity,
    Destination,
    InboundFile,
    InboundMessage,
    OutboundMessage,
    Proof,
    Sender,
)
from frontdesk.errors import PushError, PushRefusedError
from frontdesk_testing import ChatContract, FakePlatform, chat_driver
from tests.chat.postbox.channel import TIME, PostboxChannel
from tests.chat.postbox.platform import SECRET, TOKEN, Postbox


class TakesAnything(PostboxChannel):
    async def verify(self, headers: Headers, body: bytes, now: float) -> None:
        pass


class IgnoresTheTime(PostboxChannel):
    async def verify(self, headers: Headers, body: bytes, now: float) -> None:
        time = headers.get(TIME, b"")
        await super().verify(headers, body, int(time) if time.isdigit() else now)


class ForgetsEvents(PostboxChannel):
    count = 0

    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> InboundMessage | None:
        type(self).count += 1
        said = super().read(event, bot, proof)
        return None if said is None else msgspec.structs.replace(said, event_id=f"event {self.count}")


class KnowsOnePerson(PostboxChannel):
    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> InboundMessage | None:
        said = super().read(event, bot, proof)
        return None if said is None else msgspec.structs.replace(said, sender=Sender(id="anybody"))


class FeelsAddressed(PostboxChannel):
    def read(self, event: bytes, bot: BotIdentity, proof: Proof | None) -> InboundMessage | None:
        said = super().read(event, bot, proof)
        return None if said is None else msgspec.structs.replace(said, mentioned=True)


class KnowsNoThreads(PostboxChannel):
    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        return await super().send(message, msgspec.structs.replace(destination, thread_id=""), key)


class HasNoKeys(PostboxChannel):
    count = 0

    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        type(self).count += 1
        return await super().send(message, destination, f"key {self.count}")


class NeverGivesUp(PostboxChannel):
    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        try:
            return await super().send(message, destination, key)
        except PushRefusedError:
            raise PushError("Try again.") from None


class CutsTexts(PostboxChannel):
    async def send(self, message: OutboundMessage, destination: Destination, key: str) -> str:
        return await super().send(msgspec.structs.replace(message, text=message.text[:100]), destination, key)


class LosesFiles(PostboxChannel):
    async def fetch(self, file: InboundFile, max_bytes: int) -> bytes:
        return b""


class NeverEdits(PostboxChannel):
    async def edit(self, message_id: str, message: OutboundMessage, destination: Destination) -> None:
        pass


class TellsTheGroup(PostboxChannel):
    async def direct(self, user_id: str) -> Destination:
        return Destination(chat_id="g-1")


class BlanksTexts(PostboxChannel, RemovesButtons):
    async def remove_buttons(self, message_id: str, destination: Destination) -> None:
        await self.edit(message_id, OutboundMessage(), destination)


FAULTS: list[tuple[type[PostboxChannel], str, dict[str, Any]]] = [
    (TakesAnything, "test_only_what_the_platform_has_signed_is_taken", {}),
    (IgnoresTheTime, "test_only_what_the_platform_has_signed_is_taken", {}),
    (ForgetsEvents, "test_every_message_is_answered_once_and_in_order", {}),
    (KnowsOnePerson, "test_two_people_have_two_conversations", {}),
    (KnowsOnePerson, "test_a_button_of_somebody_else_decides_nothing", {}),
    (FeelsAddressed, "test_a_group_is_answered_by_its_rule", {"rule": "mention_only", "heard": ["to the bot"]}),
    (KnowsNoThreads, "test_an_answer_goes_back_into_its_thread", {}),
    (HasNoKeys, "test_an_answer_arrives_once_after_a_failure", {"failure": "lost"}),
    (NeverGivesUp, "test_an_answer_that_is_refused_is_given_up_and_keeps_nothing_back", {}),
    (CutsTexts, "test_a_long_text_is_split_and_nothing_of_it_is_lost", {}),
    (LosesFiles, "test_a_file_comes_in", {}),
    (NeverEdits, "test_an_answer_is_shown_while_it_is_written", {}),
    (BlanksTexts, "test_an_answer_that_broke_off_keeps_what_was_shown_of_it", {}),
    (TellsTheGroup, "test_a_stranger_is_refused_with_the_reason_in_the_direct_chat_alone", {}),
]


@pytest.mark.parametrize(("kind", "question", "given"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
async def test_a_broken_channel_is_noticed(
    kind: type[PostboxChannel], question: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What never comes is waited for; on a slow machine it comes even less.
    monkeypatch.setattr(chat_driver, "TIMEOUT_SECONDS", 1.0)

    class Broken(ChatContract):
        def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
            return Postbox()

        def channel(self, platform: FakePlatform, **settings: Any) -> PostboxChannel:
            url = cast(Postbox, platform).url
            return kind(url=url, token=TOKEN, secret=SECRET, allow_private=True, **settings)

    with pytest.raises((AssertionError, TimeoutError)):
        await getattr(Broken(), question)(**given)
