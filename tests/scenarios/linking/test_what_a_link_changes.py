"""What becomes of approvals, restarts and those who must link first."""

from pathlib import Path

import pytest

from frontdesk import AuthPolicy, OneTimeCodeIdentityLinker, SqliteStateStore
from frontdesk_testing import EchoAgent
from tests.cards import outcome_in
from tests.scenarios.cast import call
from tests.scenarios.linking.pair import Side, code_in, open_pair, two_accounts
from tests.scenarios.messages.chat import open_chat
from tests.scenarios.messages.test_buttons import Bank


async def test_a_question_of_before_the_link_is_cancelled_and_runs_nothing() -> None:
    bank = Bank()
    async with open_pair(bank.agent([call("pay", amount=5)], ["done"])) as pair:
        blue = pair.blue
        await blue.says("pay 5")
        question = (await blue.platform.wait_for_answers(blue.person.chat_id, 1))[0]
        await pair.link()
        click = (await blue.platform.click(blue.person, question, "Approve")).click
        assert click is not None

        async def answered() -> bool:
            return (await blue.platform.state()).clicks[click.callback_id] != ""

        await blue.platform.until(answered)
        assert (await blue.platform.state()).clicks[click.callback_id].startswith("This question is not yours")
    assert bank.paid == []


@pytest.mark.parametrize("leaver", ["red", "blue"])
async def test_the_messages_of_questions_that_a_link_or_an_unlink_cancels_are_settled(leaver: str) -> None:
    bank = Bank()
    async with open_pair(bank.agent([call("pay", amount=5)], [call("pay", amount=6)], ["done"])) as pair:
        blue, sides = pair.blue, {"red": pair.red, "blue": pair.blue}
        await blue.says("pay 5")
        await pair.link()
        await _is_settled(blue, 0, "pay: The account was linked to another one.")
        asked = len(await blue.all())
        await blue.says("pay 6")
        await sides[leaver].says("/unlink")
        await _is_settled(blue, asked, "pay: An account that shared this conversation was unlinked.")
    assert bank.paid == []


async def _is_settled(side: Side, number: int, text: str) -> None:
    """Wait until a message has a text and no buttons."""

    async def same() -> bool:
        shown = (await side.platform.answers(side.person.chat_id))[number]
        return (outcome_in(shown.text), shown.buttons) == (text, ())

    await side.platform.until(same)


async def test_a_ceremony_goes_on_after_a_restart(tmp_path: Path) -> None:
    def store() -> SqliteStateStore:
        return SqliteStateStore(tmp_path / "frontdesk.db")

    async with two_accounts() as accounts:
        async with open_pair(EchoAgent(), store=store(), accounts=accounts) as pair:
            code = code_in(await pair.red.says("/link"))
        async with open_pair(EchoAgent(), store=store(), accounts=accounts) as pair:
            await pair.blue.says(f"/link {code}")
        async with open_pair(EchoAgent(), store=store(), accounts=accounts) as pair:
            await pair.blue.says("/link confirm")
            assert "has entered your code" in await pair.red.next(2)
        async with open_pair(EchoAgent(), store=store(), accounts=accounts) as pair:
            assert (await pair.red.says("/link confirm")).startswith("Done")
            assert (await pair.blue.next(3)).startswith("This account is now linked")
            assert (await pair.blue.says("/whoami")).endswith("Linked with red.")


async def test_who_must_link_is_answered_even_when_no_more_codes_are_given() -> None:
    agent = EchoAgent()
    linker = OneTimeCodeIdentityLinker(max_attempts_per_identity=2)
    async with open_chat(agent, linker=linker, allowlist=AuthPolicy.require_link()) as chat:
        ada = await chat.platform.user("Ada")
        for number in range(1, 4):
            await chat.platform.say(ada, "hello?")
            heard = await chat.wait_for_answers(ada.chat_id, number)
        assert [text.startswith("Your code is ") for text in heard] == [True, True, False]
        assert heard[-1] == "Link your account first. Too many attempts. Try again later."
    assert agent.seen == []
