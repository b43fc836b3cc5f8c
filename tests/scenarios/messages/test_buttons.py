"""Approvals by button: what was shown is what runs, once, for the person who was asked."""

import asyncio
from typing import Any

import pytest
from agent_framework import tool

from frontdesk import AgentFrameworkHost, InMemoryStateStore
from frontdesk.identifiers import digest
from frontdesk_testing import serving
from frontdesk_testing.messages import MessageChannel
from tests.cards import outcome_in
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import until
from tests.scenarios.messages.chat import IN_GROUPS, MessagesHost, open_chat
from tests.scenarios.stores import new_store
from tests.testing.messages.starting import new_platform


class Bank:
    """A tool that wants to be asked about first."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def agent(self, *turns: Any) -> Any:
        return build_scripted(list(turns), tools=[self.tool()])

    def tool(self) -> Any:
        @tool(approval_mode="always_require")
        def pay(amount: int, note: str = "") -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        return pay


async def toast(chat: MessagesHost, event: Any) -> str:
    """What somebody who has pressed a button is told."""
    callback = event.click.callback_id

    async def answered() -> bool:
        return (await chat.platform.state()).clicks[callback] != ""

    await chat.platform.until(answered)
    return (await chat.platform.state()).clicks[callback]


@pytest.mark.parametrize(("word", "paid", "text"), [("Approve", [5], "pay: approved by “Ada”"), ("Reject", [], "")])
async def test_a_button_answers_the_question(word: str, paid: list[int], text: str) -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        assert "pay" in question.text
        assert '"amount": 5' in question.text or '"amount":5' in question.text
        assert [one.text for one in question.buttons] == ["Approve", "Reject"]
        event = await chat.platform.click(ada, question, word)
        assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "done"
        assert outcome_in(await toast(chat, event)) == text or not text
        shown = (await chat.platform.answers(ada.chat_id))[0]
        # Nobody can press what was decided.
        assert (shown.buttons, shown.edits) == ((), 1)
    assert bank.paid == paid


async def test_a_click_by_somebody_else_runs_nothing() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), approvals=IN_GROUPS) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Ada")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "@desk pay 5", chat_id=group.chat_id)
        question = await chat.last(group.chat_id, 1)
        stranger = await chat.platform.click(bob, question, "Approve", chat_id=group.chat_id)
        assert "not yours" in await toast(chat, stranger)
        assert bank.paid == []
        await chat.platform.click(ada, question, "Approve", chat_id=group.chat_id)
        assert (await chat.wait_for_answers(group.chat_id, 2))[1] == "done"
    assert bank.paid == [5]


async def test_a_click_by_somebody_else_in_a_shared_conversation_runs_nothing() -> None:
    bank = Bank()
    agent = bank.agent([call("pay", amount=5)], ["done"])
    async with open_chat(agent, conversation_scope="per_conversation", approvals=IN_GROUPS) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "@desk pay 5", chat_id=group.chat_id)
        question = await chat.last(group.chat_id, 1)
        stranger = await chat.platform.click(bob, question, "Approve", chat_id=group.chat_id)
        assert "not yours" in await toast(chat, stranger)
        await chat.platform.click(ada, question, "Approve", chat_id=group.chat_id)
        assert (await chat.wait_for_answers(group.chat_id, 2))[1] == "done"
    assert bank.paid == [5]


async def test_pressing_twice_pays_once() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        _, second = await asyncio.gather(
            chat.platform.click(ada, question, "Approve"), chat.platform.click(ada, question, "Approve")
        )
        await chat.wait_for_answers(ada.chat_id, 2)
        assert await toast(chat, second)
        await chat.platform.wait_for_acknowledged(*[one.event for one in await chat.platform.events()])
        late = await chat.platform.click(ada, question, question.buttons[1].data)
        assert "answered before" in await toast(chat, late)
    assert bank.paid == [5]


async def test_a_made_up_button_runs_nothing() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        for data in ("approve:", "approve:" + "0" * 32, "nonsense", "approve", "::", "APPROVE:x"):
            event = await chat.platform.click(ada, question, data)
            assert "not yours" in await toast(chat, event), data
    assert bank.paid == []


async def test_two_questions_are_answered_apart() -> None:
    bank = Bank()
    turns = [call("pay", call_id="one", amount=5), call("pay", call_id="two", amount=7)]
    async with open_chat(bank.agent(turns, ["one is done"], ["both are done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay both")
        first, second = await chat.platform.wait_for_answers(ada.chat_id, 2)
        await chat.platform.click(ada, second, "Reject")
        await chat.wait_for_answers(ada.chat_id, 3)
        await chat.platform.click(ada, first, "Approve")
        await chat.wait_for_answers(ada.chat_id, 4)
    assert bank.paid == [5]


async def test_the_whole_call_is_shown_however_long() -> None:
    bank = Bank()
    note = "word " * 100
    async with open_chat(bank.agent([call("pay", amount=5, note=note)], ["done"]), text_limit=120) as chat:
        await chat.platform.set(text_limit=120)
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")

        async def asked() -> bool:
            return any(one.buttons for one in await chat.platform.answers(ada.chat_id))

        await chat.platform.until(asked)
        parts = await chat.platform.answers(ada.chat_id)
        assert note in "".join(one.text for one in parts)
        assert [bool(one.buttons) for one in parts] == [False] * (len(parts) - 1) + [True]
        await chat.platform.click(ada, parts[-1], "Approve")
        await chat.wait_for_answers(ada.chat_id, len(parts) + 1)
    assert bank.paid == [5]


async def test_a_question_survives_a_restart(tmp_path: Any) -> None:
    bank = Bank()
    async with new_platform() as platform:
        async with open_chat(bank.agent([call("pay", amount=5)]), platform=platform, state_dir=tmp_path) as chat:
            ada = await platform.user("Ada")
            await platform.say(ada, "pay 5")
            question = await chat.last(ada.chat_id, 1)
        async with open_chat(bank.agent(["done"]), platform=platform, state_dir=tmp_path) as chat:
            await platform.click(ada, question, "Approve")
            assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "done"
    assert bank.paid == [5]


async def test_a_question_of_an_earlier_version_is_settled_where_its_button_was_pressed() -> None:
    bank, store = Bank(), InMemoryStateStore()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), store=store) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        question = await chat.last(ada.chat_id, 1)
        ((_, asked),) = store.approvals.records.items()
        before = asked.replace(approval_id=asked.target_id, target_request_id=None, requester=None, resume=None)
        async with store.transaction() as transaction:
            transaction.decide_approval(asked.owner, asked.approval_id, "cancelled", at=1.0)
            transaction.add_approval(before)
        event = await chat.platform.click(ada, question, f"approve:{digest(asked.target_id)[:32]}")
        assert outcome_in(await toast(chat, event)) == "pay: approved by “Ada”"

        async def is_settled() -> bool:
            shown = (await chat.platform.answers(ada.chat_id))[0]
            return (outcome_in(shown.text), shown.buttons) == ("pay: approved by “Ada”", ())

        await chat.platform.until(is_settled)
        assert (await chat.wait_for_answers(ada.chat_id, 2))[1] == "done"
    assert bank.paid == [5]


class Slow(MessageChannel):
    """Tells what became of a question only when somebody has read and answered it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.answered = asyncio.Event()

    async def push_part(self, part: Any) -> str | None:
        receipt = await super().push_part(part)
        if part.action == "send" and self.question_in(part.content) is not None:
            await self.answered.wait()
        return receipt


async def test_a_question_that_is_decided_before_it_is_known_where_it_is_shown_is_settled_there() -> None:
    bank = Bank()
    async with new_platform() as platform:
        channel = Slow(platform_url=platform.url, token=platform.token, intake="polling")
        host = AgentFrameworkHost(bank.agent([call("pay", amount=5)], ["done"]), channels=[channel], store=new_store())
        async with serving(host):
            ada = await platform.user("Ada")
            await platform.say(ada, "pay 5")
            (question,) = await platform.wait_for_answers(ada.chat_id)
            await platform.click(ada, question, "Approve")
            await until(lambda: bank.paid == [5])
            channel.answered.set()

            async def is_settled() -> bool:
                shown = (await platform.answers(ada.chat_id))[0]
                return (outcome_in(shown.text), shown.buttons, shown.edits) == ("pay: approved by “Ada”", (), 1)

            await platform.until(is_settled)
            assert (await platform.wait_for_answers(ada.chat_id, 2))[1].text == "done"
