"""The contract of chat channels for membership: groups that add and remove the bot, people who block it."""

from typing import cast

import pytest

from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk_testing.chat_driver import Chat, ChatDriver
from frontdesk_testing.chat_platform import MembershipPlatform

_HOUR = 3600.0


class Membership(ChatDriver):
    """Deliveries to a closed conversation, and greetings in a new one."""

    async def test_what_waits_for_a_person_who_blocks_the_bot_ends_at_once(self) -> None:
        self._require_membership()
        async with self.chat() as chat:
            platform = cast("MembershipPlatform", chat.platform)
            ada = await platform.person("Ada")
            await platform.say(ada, "hello")
            await chat.until_shown(ada.chat_id, "hello")
            await _add_waiting(chat)
            await platform.shut(ada)
            await chat.until(lambda: _is_dead(chat))
            await platform.readmit(ada)
            assert await chat.say_last_and_list(ada) == ["hello", "the last word"]

    async def test_what_waits_for_a_group_that_removes_the_bot_ends_at_once(self) -> None:
        self._require_membership()
        async with self.chat() as chat:
            platform = cast("MembershipPlatform", chat.platform)
            ada = await platform.person("Ada")
            group = await platform.group(ada)
            await platform.say(ada, f"{platform.mention} hello", chat_id=group, thread_id=self._thread)
            await chat.until_shown(group, "hello")
            await _add_waiting(chat)
            await platform.shut(ada, chat_id=group)
            await chat.until(lambda: _is_dead(chat))
            await platform.readmit(ada, chat_id=group)
            await platform.say(ada, f"{platform.mention} again", chat_id=group)
            await chat.until_shown(group, "hello", "again")

    @pytest.mark.parametrize("greets", [True, False])
    async def test_a_group_is_greeted_only_where_that_is_set(self, greets: bool) -> None:
        self._require_membership()
        async with self.chat(greet_groups=greets) as chat:
            platform = cast("MembershipPlatform", chat.platform)
            ada = await platform.person("Ada")
            group = await platform.group(ada)
            await platform.shut(ada, chat_id=group)
            await platform.readmit(ada, chat_id=group)
            await platform.say(ada, f"{platform.mention} hello", chat_id=group)
            # The group is new at first, and again when the bot has come back.
            texts = await chat.texts(group, 3 if greets else 1)
            assert sum("/help" in text for text in texts) == (2 if greets else 0)

    async def test_a_person_who_may_not_come_in_makes_the_bot_greet_nobody(self) -> None:
        self._require_membership()
        async with self.chat(greet_groups=True, allowlist=NativeIdAllowlist(["nobody"])) as chat:
            platform = cast("MembershipPlatform", chat.platform)
            ada = await platform.person("Ada")
            group = await platform.group(ada)
            await platform.say(ada, f"{platform.mention} hello", chat_id=group)
            (refusal,) = await chat.messages(group, 1)
            assert "/help" not in refusal.text

    @property
    def _thread(self) -> str:
        return "t-1" if self.has_threads else ""

    def _require_membership(self) -> None:
        if not self.tells_membership:
            pytest.skip("the platform does not say that the bot comes or goes")


async def _add_waiting(chat: Chat) -> None:
    """Add a delivery to the last destination, due in an hour."""
    (last, *_) = await chat.store.outbox.find(limit=1)
    waiting = last.replace(
        delivery_id="dlv_waiting",
        answer_id="waiting",
        status="pending",
        due_at=last.created_at + _HOUR,
        ended_at=None,
        receipt=None,
        held_for=0.0,
        fence=0,
    )
    async with chat.store.transaction() as transaction:
        transaction.add_delivery(waiting)


async def _is_dead(chat: Chat) -> bool:
    return [bool(row.error) for row in await chat.deliveries("dead")] == [True]
