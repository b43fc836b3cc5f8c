"""A host without `approvals=`: the defaults are those of `ApprovalOptions()`."""

from typing import Any

import pytest

from frontdesk import ApprovalOptions
from frontdesk.approvals.policy import DAY_SECONDS
from frontdesk.clock import SystemClock
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_store
from tests.scenarios.approvers.test_asking import Team, press
from tests.scenarios.telegram.bot import open_bot

GIVEN = pytest.mark.parametrize("given", [{}, {"approvals": None}, {"approvals": ApprovalOptions()}])


@GIVEN
async def test_a_group_read_the_arguments_without_approvals(given: dict[str, Any]) -> None:
    team = Team()
    async with open_bot(team.agent(), fake=team.fake, **given) as bot:
        group = bot.fake.supergroup("Team", team.ada, team.bob)
        await bot.ask(team.ada, "@frontdesk_bot pay 5", group)
        await bot.answers(team.chat(team.ada))
        assert "for the flowers" in bot.fake.shown(team.chat(team.ada)).messages[0].text
        await press(bot, team.ada, "Approve")
        await bot.answers(group, 2)
        assert not any("for the flowers" in message.text for message in bot.fake.shown(group).messages)
    assert team.bank.paid == [5]


@GIVEN
async def test_a_question_never_expired_without_approvals(given: dict[str, Any]) -> None:
    team, clock = Team(), FakeClock(SystemClock().now())
    async with open_bot(team.agent(), fake=team.fake, clock=clock, **given) as bot:
        await bot.ask(team.ada, "pay 5")
        page = await get_store(bot.host).approvals.expired(clock.now() + DAY_SECONDS + 1, limit=10)
        assert [question.expires_at for question in page] == [clock.now() + DAY_SECONDS]
        clock.advance(DAY_SECONDS + 1)
        chat = team.chat(team.ada)
        await bot.until(lambda: any("pay: expired" in message.text for message in bot.fake.shown(chat).messages))
    assert team.bank.paid == []
