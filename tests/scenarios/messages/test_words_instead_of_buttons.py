"""Approvals on a platform without buttons: people answer with words, and everyday words are no answers."""

import re

import pytest

from frontdesk_testing.messages import MessageChannel
from tests.cards import outcome_in
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import MessagesHost, open_chat
from tests.scenarios.messages.test_buttons import Bank


@pytest.fixture(autouse=True)
def _no_buttons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageChannel, "has_buttons", False)


async def _read_question(chat: MessagesHost, chat_id: str, count: int = 1) -> str:
    question = await chat.last(chat_id, count)
    assert question.buttons == ()
    name = re.search(r"yes (apr_\w+)", question.text)
    assert name is not None, question.text
    return name[1]


@pytest.mark.parametrize(
    ("word", "paid", "told"), [("Yes", [5], "pay: approved by “Ada”"), ("no", [], "pay: rejected by “Ada”")]
)
async def test_words_answer_the_question(word: str, paid: list[int], told: str) -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, "pay 5")
        name = await _read_question(chat, ada.chat_id)
        await chat.platform.say(ada, f"{word} {name}")
        assert set(map(outcome_in, (await chat.wait_for_answers(ada.chat_id, 3))[1:])) == {told, "done"}
    assert bank.paid == paid


async def test_somebody_elses_words_run_nothing() -> None:
    bank = Bank()
    async with open_chat(bank.agent([call("pay", amount=5)], ["done"])) as chat:
        ada, bob = await chat.platform.user("Ada"), await chat.platform.user("Bob")
        await chat.platform.say(ada, "pay 5")
        name = await _read_question(chat, ada.chat_id)
        await chat.platform.say(bob, f"yes {name}")
        assert await chat.wait_for_answers(bob.chat_id) == ["This question is not yours, or it was answered before."]
    assert bank.paid == []


@pytest.mark.parametrize("text", ["no problem", "ok thanks", "Yes please", "no", "approve everything"])
async def test_everyday_words_were_taken_for_answers(text: str) -> None:
    async with open_chat(Bank().agent(["you are welcome"])) as chat:
        ada = await chat.platform.user("Ada")
        await chat.platform.say(ada, text)
        assert await chat.wait_for_answers(ada.chat_id) == ["you are welcome"]
