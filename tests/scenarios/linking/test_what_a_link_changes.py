"""What becomes of approvals, restarts and those who must link first."""

from pathlib import Path

from frontdesk import AuthPolicy, OneTimeCodeIdentityLinker, SqliteStateStore
from frontdesk.testing import EchoAgent
from tests.scenarios.cast import call
from tests.scenarios.linking.pair import code_in, open_pair, two_accounts
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
            heard = await chat.heard(ada.chat_id, number)
        assert [text.startswith("Your code is ") for text in heard] == [True, True, False]
        assert heard[-1] == "Link your account first. Too many attempts. Try again later."
    assert agent.seen == []
