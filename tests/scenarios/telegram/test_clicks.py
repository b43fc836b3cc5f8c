"""Every click is answered once, whatever becomes of it, and to the person who clicked alone."""

import pytest

from frontdesk.access.allowlists import NativeIdAllowlist
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.models.operations import EventLimits, RateLimit
from frontdesk_testing import GatedAgent
from frontdesk_testing.telegram import Upload
from frontdesk_testing.telegram.bots import Callback
from frontdesk_testing.telegram.records import Message, User
from tests.cards import outcome_in
from tests.scenarios.cast import call
from tests.scenarios.messages.chat import IN_GROUPS
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.messages.test_questions import NOT_OPEN, flow
from tests.scenarios.telegram.bot import TelegramHost, open_bot

STOP = "⏹"


async def wait_for_click_answers(bot: TelegramHost, *clicks: Callback) -> list[list[str]]:
    """Return how clicks were answered, once all of them were and nothing is on its way."""
    await bot.until(lambda: all(click.answered for click in clicks))
    await bot.wait_for_ends()
    calls = [call.parameters for call in bot.fake.calls if call.method == "answerCallbackQuery"]
    return [[c.get("text", "") for c in calls if c["callback_query_id"] == click.id] for click in clicks]


def press_again(bot: TelegramHost, user: User, message: Message, data: str) -> Callback:
    """Press a button that was there a moment ago."""
    message.markup = {"inline_keyboard": [[{"text": "again", "callback_data": data}]]}
    return bot.fake.press(user, message, "again")


async def test_an_approval_is_answered_once_to_the_right_person_a_stranger_and_late() -> None:
    bank = Bank()
    async with open_bot(bank.agent([call("pay", amount=5)], ["done"]), approvals=IN_GROUPS) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        await bot.ask(ada, "@frontdesk_bot pay 5", group)
        question = bot.last(group)
        clicks = [bot.fake.press(user, question, "Approve") for user in (bob, ada, ada)]
        await bot.answers(group, 2)
        late = press_again(bot, ada, question, clicks[0].data)
        texts = await wait_for_click_answers(bot, *clicks, late)
        told = [[outcome_in(text) for text in shown] for shown in texts]
        assert told == [[NOT_OPEN], ["pay: approved by “Ada”"], [NOT_OPEN], [NOT_OPEN]]
        assert len(bot.fake.shown(group).answers) == 2
    assert bank.paid == [5]


async def test_a_choice_is_answered_once_and_a_foreign_or_late_one_with_the_reason() -> None:
    async with open_bot(flow) as bot:
        ada, bob = bot.fake.user("Ada"), bot.fake.user("Bob")
        group = bot.fake.supergroup("Team", ada, bob)
        await bot.ask(ada, "@frontdesk_bot colour", group)
        question = bot.last(group)
        foreign = bot.fake.press(bob, question, "red")
        await bot.until(lambda: foreign.answered)
        own = bot.fake.press(ada, question, "red")
        await bot.answers(group, 2)
        late = press_again(bot, ada, question, own.data)
        assert await wait_for_click_answers(bot, foreign, own, late) == [[NOT_OPEN], [""], [NOT_OPEN]]
        assert bot.fake.shown(group).answers == ["Your colour?", "colour RED"]


@pytest.mark.parametrize("admitted", [True, False])
async def test_the_button_that_stops_an_answer_is_answered_once(admitted: bool) -> None:
    agent, bob_id = GatedAgent(), 78
    allowed = NativeIdAllowlist(["77", *([str(bob_id)] if admitted else [])])
    async with open_bot(agent, live="auto", allowlist=allowed) as bot:
        ada, bob = bot.fake.user("Ada", user_id=77), bot.fake.user("Bob", user_id=bob_id)
        group = bot.fake.supergroup("Team", ada, bob)
        bot.fake.say(ada, "@frontdesk_bot one two", group)
        await bot.answers(group)
        foreign = bot.fake.press(bob, bot.last(group), STOP)
        await bot.until(lambda: foreign.answered)
        own = bot.fake.press(ada, bot.last(group), STOP)
        (stranger, stopped) = await wait_for_click_answers(bot, foreign, own)
        assert stranger == ["There is nothing to stop." if admitted else "You can't use this assistant."]
        assert stopped == ["I have stopped."]
        assert bot.fake.shown(group).answers == ["one"]


@pytest.mark.parametrize("data", ["nonsense", "ok:", "choose:x:0", "choose:x:no", ":" * 60])
async def test_a_button_that_nobody_knows_is_answered_once(data: str) -> None:
    async with open_bot(flow) as bot:
        ada = bot.fake.user("Ada")
        await bot.ask(ada, "hello")
        click = press_again(bot, ada, bot.last(bot.fake.private(ada)), data)
        assert await wait_for_click_answers(bot, click) == [[NOT_OPEN]]


async def test_clicks_beyond_the_limits_of_a_person_are_answered() -> None:
    async with open_bot(flow, event_limits=EventLimits(per_caller=RateLimit(2, 3600.0))) as bot:
        ada = bot.fake.user("Ada")
        await bot.ask(ada, "colour")
        question = bot.last(bot.fake.private(ada))
        clicks: list[Callback] = [bot.fake.press(ada, question, "red") for _ in range(4)]
        texts = await wait_for_click_answers(bot, *clicks)
        assert [len(one) for one in texts] == [1] * 4
        assert texts[1:] == [[""]] * 3


async def test_a_click_that_waits_long_is_acknowledged_in_time_and_counts_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TelegramChannel, "acknowledge_clicks_after", 0.01)
    bank = Bank()
    agent = bank.agent([call("pay", amount=5)], ["done"], ["done again"])
    async with open_bot(agent, conversation_scope="per_conversation") as bot:
        ada = bot.fake.user("Ada")
        chat = bot.fake.private(ada)
        await bot.ask(ada, "pay 5")
        hold = bot.fake.hold_next("getFile")
        bot.fake.say(ada, "look", media=("document", Upload(b"x", "a.txt", "text/plain")))
        await hold.reached.wait()
        click = bot.fake.press(ada, bot.last(chat), "Approve")
        await bot.until(lambda: click.answered)
        assert bank.paid == []
        hold.release()
        await bot.until(lambda: bank.paid == [5])
        texts = await wait_for_click_answers(bot, click)
        assert len(texts[0]) == 1
        assert texts[0][0].startswith("I have your answer")
