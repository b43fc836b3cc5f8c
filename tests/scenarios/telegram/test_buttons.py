"""Approvals by buttons, choices, answers that grow, and what stops them."""

from collections.abc import AsyncIterator

import pytest
from agent_framework import AgentResponseUpdate

from frontdesk_testing import GatedAgent
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import IN_GROUPS
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.messages.test_questions import flow
from tests.scenarios.telegram.bot import open_bot


@pytest.mark.parametrize(("word", "paid"), [("Approve", [5]), ("Reject", [])])
async def test_an_approval_in_a_private_chat(word: str, paid: list[int]) -> None:
    bank = Bank()
    async with open_bot(bank.agent([call("pay", amount=5)], ["done"])) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        assert "May I use pay?" in await bot.ask(ada, "pay 5")
        question = bot.last(chat)
        assert bot.fake.shown(chat).messages[-1].buttons == (("Approve", "Reject"),)
        click = bot.fake.press(ada, question, word)
        assert (await bot.answers(chat, 2))[1] == "done"
        await bot.until(lambda: click.answered)
        await bot.until(lambda: bot.fake.shown(chat).messages[1].buttons == ())
        assert bot.fake.shown(chat).messages[1].text.startswith("pay: ")
    assert bank.paid == paid


async def test_a_stranger_decides_nothing() -> None:
    bank = Bank()
    async with open_bot(bank.agent([call("pay", amount=5)], ["done"]), approvals=IN_GROUPS) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        await bot.ask(ada, "@frontdesk_bot pay 5", group)
        question = bot.last(group)
        click = bot.fake.press(bob, question, "Approve")
        await bot.until(lambda: click.answered)
        assert "not yours" in click.text
        assert bank.paid == []
        bot.fake.press(ada, question, "Approve")
        assert (await bot.answers(group, 2))[1] == "done"
    assert bank.paid == [5]


async def test_the_choice_of_a_workflow_is_a_button_that_stops_waiting() -> None:
    async with open_bot(flow) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        assert await bot.ask(ada, "colour") == "Your colour?"
        assert bot.fake.shown(chat).messages[-1].buttons == (("red", "sky blue"),)
        click = bot.fake.press(ada, bot.last(chat), "sky blue")
        assert (await bot.answers(chat, 2))[1] == "colour BLUE"
        await bot.until(lambda: click.answered)
        assert click.text == ""


async def test_an_answer_grows_in_one_message_and_its_end_is_the_answer() -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto") as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one two three")
        await bot.says(chat, "one")
        assert bot.fake.shown(chat).messages[-1].buttons == (("⏹",),)
        agent.release.set()
        await bot.says(chat, "one two three")
        await bot.wait_for_ends()
        assert bot.fake.shown(chat).messages[-1].buttons == ()
        assert len(bot.fake.list_calls("sendMessage")) == 1


async def test_what_does_not_fit_goes_on_in_a_new_message_and_is_not_sent_again() -> None:
    class Lecturer(GatedAgent):
        async def speak(self, words: list[str]) -> AsyncIterator[AgentResponseUpdate]:
            async for update in super().speak([f"{number} {'word ' * 50}\n\n" for number in range(40)]):
                yield update

    agent = Lecturer()
    async with open_bot(agent, live="auto") as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "tell")
        await bot.answers(chat, 1)
        agent.release.set()
        await bot.until(lambda: "39 word" in bot.fake.shown(chat).answers[-1])
        await bot.wait_for_ends(3)
        answers = bot.fake.shown(chat).answers
        assert [answers[number].split(" ")[0] for number in range(3)] == ["0", answers[1][:2], answers[2][:2]]
        assert " ".join(answers).split() == " ".join(f"{number} {'word ' * 50}" for number in range(40)).split()
        assert len(bot.fake.list_calls("sendMessage")) == len(answers) == 3
        assert all(shown.buttons == () for shown in bot.fake.shown(chat).messages)


@pytest.mark.parametrize("way", ["/cancel", "button"])
async def test_an_answer_is_stopped_while_it_is_written(way: str) -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto") as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one two three")
        await bot.says(chat, "one")
        if way == "button":
            click = bot.fake.press(ada, bot.last(chat), "⏹")
            await bot.until(lambda: click.answered)
            assert click.text == "I have stopped."
        else:
            bot.fake.say(ada, "/cancel")
            await bot.says(chat, "one", "I have stopped.")
        await agent.cancelled.wait()
        await bot.until(lambda: all(shown.buttons == () for shown in bot.fake.shown(chat).messages))
        assert bot.fake.shown(chat).answers[0] == "one"


@pytest.mark.parametrize("rich", [False, True])
async def test_a_draft_shows_an_answer_and_the_answer_is_sent_once(rich: bool) -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto", drafts=True, rich_messages=rich) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one two three")
        await bot.until(lambda: bot.fake.shown(chat).drafts == ("one",))
        agent.release.set()
        await bot.says(chat, "one two three")
        await bot.wait_for_ends()
        assert bot.fake.shown(chat).drafts == ()
        assert not bot.fake.list_calls("editMessageText")
        assert bool(bot.fake.list_calls("sendRichMessageDraft")) == rich
        # Groups have no drafts.
        group = bot.fake.supergroup("Team", ada)
        assert await bot.ask(ada, "@frontdesk_bot four", group) == "four"


async def test_a_draft_that_is_stopped_cancels_the_answer() -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto", drafts=True) as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one two three")
        await bot.until(lambda: bot.fake.shown(chat).drafts == ("one",))
        bot.fake.stop(ada)
        await bot.says(chat, "I have stopped.")
        await agent.cancelled.wait()


async def test_nobody_stops_the_answer_of_somebody_else() -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto") as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        bot.fake.say(ada, "@frontdesk_bot one two", group)
        await bot.says(group, "one")
        click = bot.fake.press(bob, bot.last(group), "⏹")
        await bot.until(lambda: click.answered)
        assert click.text == "There is nothing to stop."
        agent.release.set()
        await bot.says(group, "one two")


async def test_new_in_the_middle_of_an_answer_starts_anew() -> None:
    agent = GatedAgent()
    async with open_bot(agent, live="auto") as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        bot.fake.say(ada, "one two")
        await bot.says(chat, "one")
        bot.fake.say(ada, "/new")
        await bot.says(chat, "one", "We start anew.")
        agent.release.set()
        assert await bot.ask(ada, "three") == "three"
        assert [message.text for message in agent.seen[-1]] == ["three"]
