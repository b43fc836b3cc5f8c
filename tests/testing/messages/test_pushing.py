"""Pushes: part by part, to a conversation or to a person, and looked for when nobody knows what became of them."""

from typing import Any

import pytest
from agent_framework import AgentResponse, Message

from frontdesk.errors import PushNotEditableError, PushNotModifiedError, PushRefusedError, PushUnknownError
from frontdesk.interfaces.chat import PushPart
from frontdesk.models.identity import ChannelIdentity
from frontdesk.models.result import HostedRunResult
from frontdesk.models.run import RunRecord
from frontdesk_testing.messages import LookupMessageChannel, MessagePlatform, Person
from tests.testing.messages.starting import new_platform


def channel_on(platform: MessagePlatform) -> LookupMessageChannel:
    return LookupMessageChannel(platform_url=platform.url, token=platform.token, intake="polling", text_limit=24)


def result(text: str, **details: Any) -> HostedRunResult[Any]:
    run = RunRecord(run_id="r", owner="o", channel="messages", status="completed", created_at=1.0, details=details)
    return HostedRunResult(result=AgentResponse(messages=[Message("assistant", [text])]), run=run)


def part(who: Person, content: Any, key: str, conversation_id: str | None = None, **fields: Any) -> PushPart:
    identity = ChannelIdentity(channel="messages", native_id=who.user_id)
    return PushPart(identity=identity, conversation_id=conversation_id, content=content, idempotency_key=key, **fields)


async def test_parts_go_to_the_person_or_to_the_conversation() -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        group = await platform.group("Friends", ada)
        event = await platform.say(ada, "@desk hello", chat_id=group.chat_id)
        assert event.message is not None
        asked = {"chat_id": group.chat_id, "reply_to": event.message.message_id}
        parts = channel.parts(result("a text of two parts. The second one.", **asked))
        assert len(parts) == 2
        for number, one in enumerate(parts):
            await channel.push_part(part(ada, one, f"a{number}", group.chat_id))
            await channel.push_part(part(ada, one, f"b{number}"))
        # A reply is one only where it was asked.
        shown = [(one.text, one.reply_to) for one in await platform.answers(group.chat_id)]
        assert shown == [("a text of two parts. ", event.message.message_id), ("The second one.", "")]
        assert [one.reply_to for one in await platform.answers(ada.chat_id)] == ["", ""]


async def test_a_part_that_was_sent_twice_is_one_message() -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        (content,) = channel.parts(result("hello"))
        receipts = {await channel.push_part(part(ada, content, "k")) for _ in range(3)}
        assert len(receipts) == len(platform.log_on_disk()) == 1


@pytest.mark.parametrize(("kind", "arrived"), [("cut_after", True), ("cut_before", False)])
async def test_what_became_of_a_part(kind: Any, arrived: bool) -> None:
    async with new_platform("--no-dedupe") as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        (content,) = channel.parts(result("hello"))
        await platform.fail(kind, times=1)
        sent = part(ada, content, "k")
        with pytest.raises(PushUnknownError):
            await channel.push_part(sent)
        found = await channel.find_push(sent)
        assert (found is not None) == arrived
        assert [one.message_id for one in platform.log_on_disk()] == ([found] if arrived else [])


async def test_a_push_to_a_person() -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        ids = ChannelIdentity(channel="messages", native_id=ada.user_id)
        receipt = await channel.push(ids, result("a text of two parts. The second one."))
        first, second = await platform.answers(ada.chat_id)
        assert (first.text, second.text, second.message_id) == ("a text of two parts. ", "The second one.", receipt)
        nobody = ChannelIdentity(channel="messages", native_id="nobody")
        with pytest.raises(PushRefusedError, match="user_not_found"):
            await channel.push(nobody, "hello")


@pytest.mark.parametrize("in_chat", [True, False])
async def test_a_message_is_replaced_settled_and_removed(in_chat: bool) -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        there = ada.chat_id if in_chat else None
        asked = {"text": "May I?", "buttons": [{"text": "Yes", "data": "y"}]}
        receipt = await channel.push_part(part(ada, asked, "a", there))
        assert await channel.push_part(part(ada, {"text": "Hi"}, "b", there, replaces=receipt)) == receipt
        with pytest.raises(PushNotModifiedError):
            await channel.push_part(part(ada, {"text": "Hi"}, "b", there, replaces=receipt))
        await channel.push_part(part(ada, asked, "c", there, replaces=receipt))
        assert await channel.push_part(part(ada, None, "d", there, replaces=receipt, action="settle")) == receipt
        (shown,) = await platform.answers(ada.chat_id)
        assert (shown.text, shown.buttons, shown.edits) == ("May I?", (), 3)
        decided = {"text": "Yes, by Ada", "buttons": asked["buttons"]}
        await channel.push_part(part(ada, decided, "e", there, replaces=receipt, action="settle"))
        (shown,) = await platform.answers(ada.chat_id)
        assert (shown.text, shown.buttons) == ("Yes, by Ada", ())
        assert await channel.push_part(part(ada, None, "f", there, replaces=receipt, action="retract")) == receipt
        assert await platform.answers(ada.chat_id) == []
        assert [entry.method for entry in platform.log_on_disk()] == ["send", "edit", "edit", "edit", "edit", "delete"]
        with pytest.raises(PushNotEditableError, match="message_not_found"):
            await channel.push_part(part(ada, None, "f", there, replaces=receipt, action="retract"))


async def test_a_message_that_is_too_old_is_not_changed() -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        receipt = await channel.push_part(part(ada, {"text": "old"}, "a"))
        await platform.set(edit_seconds=0.0)
        for action in ("send", "settle", "retract"):
            with pytest.raises(PushNotEditableError, match="too_old"):
                await channel.push_part(part(ada, {"text": "new"}, "b", replaces=receipt, action=action))
        assert [message.text for message in await platform.answers(ada.chat_id)] == ["old"]


async def test_a_text_that_becomes_a_picture_goes() -> None:
    async with new_platform() as platform:
        channel, ada = channel_on(platform), await platform.user("Ada")
        receipt = await channel.push_part(part(ada, {"text": "soon"}, "a"))
        picture = {"media": [{"media_type": "image/png", "data": "aGk="}]}
        for _ in range(2):
            with pytest.raises(PushNotEditableError):
                await channel.push_part(part(ada, picture, "b", replaces=receipt))
        assert await platform.answers(ada.chat_id) == []
