"""Clicks whose HTTP reply shows what was decided."""

from typing import Any

import msgspec
import pytest

from frontdesk import InMemoryStateStore, NativeIdAllowlist
from frontdesk.chat.i18n.wording import ENGLISH_WORDING
from frontdesk.chat.messages import Card
from frontdesk.chat.questions import build_card
from frontdesk.models.approval import Decision, PendingApproval
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing import FakeClock
from frontdesk_testing.messages.platform.records import Said
from frontdesk_testing.store_samples import question
from tests.cards import outcome_in
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import IN_GROUPS, MessagesHost, open_chat
from tests.scenarios.messages.test_buttons import Bank

DECIDED = question("apr_1", tool="pay", status="approved")


async def _ask(chat: MessagesHost, *, group: bool = False) -> tuple[Any, Any, Said, str]:
    """Have Ada ask for a payment where clicks show cards; return her, Bob, the question and its chat."""
    await chat.platform.set(expects_cards=True, retry_seconds=0.05)
    ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
    chat_id = (await chat.platform.group("Friends", ada, bob)).chat_id if group else ada.chat_id
    await chat.platform.say(ada, "@desk pay 5", chat_id=chat_id)
    return ada, bob, await chat.last(chat_id, 1), chat_id


async def _notice(chat: MessagesHost, event: Any) -> str:
    await chat.platform.wait_for_acknowledged(event)
    return (await chat.platform.state()).clicks[event.click.callback_id]


@pytest.mark.parametrize(("word", "paid"), [("Approve", [5]), ("Reject", [])])
async def test_the_reply_to_a_click_shows_what_was_decided(word: str, paid: list[int]) -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada, _, asked, chat_id = await _ask(chat)
        # Whatever is shown is in the reply: the host's own edits are refused.
        await chat.platform.fail("bad_request", method="edit")
        event = await chat.platform.click(ada, asked, word)
        await chat.platform.wait_for_acknowledged(event)
        card, *_ = await chat.platform.answers(chat_id)
        assert (outcome_in(card.text), card.buttons) == (f"pay: {'approved' if paid else 'rejected'} by “Ada”", ())
        assert (await chat.wait_for_answers(chat_id, 2))[1] == "done"
    assert bank.paid == paid


async def test_a_reply_that_was_lost_is_given_again_and_pays_once() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada, _, asked, chat_id = await _ask(chat)
        await chat.platform.fail("bad_request", method="edit")
        await chat.platform.set(lose_replies=1)
        await chat.platform.wait_for_acknowledged(await chat.platform.click(ada, asked, "Approve"))
        assert outcome_in((await chat.platform.answers(chat_id))[0].text) == "pay: approved by “Ada”"
        await chat.wait_for_answers(chat_id, 2)
    assert bank.paid == [5]


async def test_a_late_click_shows_the_first_decision() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada, _, asked, chat_id = await _ask(chat)
        await chat.platform.wait_for_acknowledged(await chat.platform.click(ada, asked, "Approve"))
        await chat.wait_for_answers(chat_id, 2)
        late = await chat.platform.click(ada, asked, "Reject")
        await chat.platform.wait_for_acknowledged(late)
        assert outcome_in((await chat.platform.answers(chat_id))[0].text) == "pay: approved by “Ada”"
    assert bank.paid == [5]


async def test_a_click_after_the_time_shows_that_the_question_has_expired() -> None:
    bank, clock, store = Bank(), FakeClock(2000.0), InMemoryStateStore()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), store=store) as chat:
        ada, _, asked, chat_id = await _ask(chat)
        ((name, kept),) = store.approvals.records.items()
        store.approvals.records.put(name, kept.replace(expires_at=clock.now()))
        await chat.platform.wait_for_acknowledged(await chat.platform.click(ada, asked, "Approve"))
        assert outcome_in((await chat.platform.answers(chat_id))[0].text) == "pay: expired"
    assert bank.paid == []


async def test_a_click_of_somebody_else_leaves_the_question_as_it_is() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), approvals=IN_GROUPS) as chat:
        ada, bob, asked, chat_id = await _ask(chat, group=True)
        stranger = await chat.platform.click(bob, asked, "Approve", chat_id=chat_id)
        assert "not yours" in await _notice(chat, stranger)
        (left,) = await chat.platform.answers(chat_id)
        assert (left.text, left.buttons) == (asked.text, asked.buttons)
        await chat.platform.click(ada, asked, "Approve", chat_id=chat_id)
        assert (await chat.wait_for_answers(chat_id, 2))[1] == "done"
    assert bank.paid == [5]


async def test_a_call_that_has_changed_is_not_approved() -> None:
    bank, store = Bank(), InMemoryStateStore()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), store=store) as chat:
        ada, _, asked, chat_id = await _ask(chat)
        ((name, kept),) = store.approvals.records.items()
        store.approvals.records.put(name, kept.replace(schema_digest="another"))
        assert "no longer" in await _notice(chat, await chat.platform.click(ada, asked, "Approve"))
        assert (await chat.platform.answers(chat_id))[0].buttons == asked.buttons
        # A no runs nothing, and counts.
        await chat.platform.wait_for_acknowledged(await chat.platform.click(ada, asked, "Reject"))
        assert outcome_in((await chat.platform.answers(chat_id))[0].text) == "pay: rejected by “Ada”"
    assert bank.paid == []


async def test_who_may_not_come_in_is_told_so_in_the_reply() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"]), allowlist=NativeIdAllowlist(["u-ada"])) as chat:
        await chat.platform.set(expects_cards=True)
        ada, bob = await chat.platform.user("Ada", user_id="u-ada"), await chat.platform.user("Bob")
        group = await chat.platform.group("Friends", ada, bob)
        await chat.platform.say(ada, "@desk pay 5", chat_id=group.chat_id)
        asked = await chat.last(group.chat_id, 1)
        stranger = await chat.platform.click(bob, asked, "Approve", chat_id=group.chat_id)
        assert await _notice(chat, stranger)
        assert (await chat.platform.answers(group.chat_id))[0].buttons == asked.buttons
    assert bank.paid == []


@pytest.mark.parametrize(
    ("outcome", "approval", "expected"),
    [
        ("recorded", DECIDED, Card(card="pay: approved by “Ada” (unverified, id 42) on messages")),
        (
            "late",
            DECIDED.replace(status="rejected"),
            Card(card="pay: rejected by “Ada” (unverified, id 42) on messages"),
        ),
        ("late", DECIDED.replace(status="cancelled", reason="expired"), Card(card="pay: expired")),
        ("needs_more", DECIDED, Card(notice="Your vote was recorded. More approvers are required.")),
        ("not_yours", None, Card(notice="This question is not yours, or it was answered before.")),
    ],
)
def test_what_is_shown(outcome: Any, approval: PendingApproval | None, expected: Card) -> None:
    ada = ChannelIdentity("messages", "42", {"name": "Ada"})
    card = build_card(Decision(outcome=outcome, approval=approval), ada, ENGLISH_WORDING, 4_000)
    assert msgspec.structs.replace(card, card=card.card.partition("\n")[0]) == expected
