"""Decisions whose hosts have died while they took them up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk import ApprovalOptions, SqliteStateStore
from frontdesk.approvals.decisions import Decisions
from frontdesk.approvals.records import NoApprovalMessages, Voter
from frontdesk.clock import SystemClock
from frontdesk.inbox import retry
from frontdesk.models.approval import ApprovalAnswer
from frontdesk.models.delivery import InboxItem
from frontdesk_testing import FakeClock
from frontdesk_testing.internals import get_components
from frontdesk_testing.telegram import fake_telegram
from tests.scenarios.approvers.test_asking import Team, ask_all, on_telegram
from tests.scenarios.desk import until
from tests.scenarios.telegram.bot import TelegramHost, open_bot


@asynccontextmanager
async def open_team_bot(team: Team, agent: Any, state: Path, clock: FakeClock) -> AsyncIterator[TelegramHost]:
    options = ApprovalOptions(default=team.rule(team.bob))
    async with open_bot(agent, fake=team.fake, approvals=options, store=SqliteStateStore(state), clock=clock) as bot:
        yield bot


async def _approve_and_die(state: Path, team: Team, clock: FakeClock, deaths: int) -> None:
    """Bob approves, and so many processes end that have taken up the event of his decision."""
    store = SqliteStateStore(state)
    await store.open()
    try:
        (question,) = await store.approvals.expired(9e12)
        decisions = Decisions(store, clock, None, NoApprovalMessages(), sees_tools=False)
        events: list[InboxItem] = []

        async def keep(event: InboxItem) -> None:
            events.append(event)

        bob = Voter(identity=on_telegram(team.bob), key="bob")
        answer = ApprovalAnswer(approval_id=question.approval_id, approved=True)
        await decisions.decide(bob, answer, None, lambda channel: "run_decided", keep)
        (event,) = events
        for number in range(deaths):
            assert await store.inbox.claim(event.channel, event.conversation_id, f"host{number}", kind="resume")
    finally:
        await store.close()


@pytest.mark.parametrize("deaths", [10, 49])
async def test_a_yes_is_not_lost_because_hosts_die(
    tmp_path: Path, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The runner wakes up by the time that really passes.
    monkeypatch.setattr(retry, "_MAX_DELAY_SECONDS", 0.3)
    team, clock = Team(), FakeClock(SystemClock().now())
    agent = team.agent()
    async with fake_telegram(team.fake):
        async with open_team_bot(team, agent, tmp_path / "state.db", clock) as bot:
            await ask_all(bot, team, team.bob)
        await _approve_and_die(tmp_path / "state.db", team, clock, deaths)
        async with open_team_bot(team, agent, tmp_path / "state.db", clock) as bot:
            # It may be what ends the hosts, and rests before the next of them takes it up.
            paused = get_components(bot.host).events.worker._paused

            async def rests() -> bool:
                return bool(paused.names())

            await until(rests)
            assert team.bank.paid == []
            clock.advance(0.3)
            assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
    assert team.bank.paid == [5]


async def test_a_decision_that_ends_every_host_is_given_up_and_both_sides_are_told(tmp_path: Path) -> None:
    team, clock = Team(), FakeClock(SystemClock().now())
    agent = team.agent()
    async with fake_telegram(team.fake):
        async with open_team_bot(team, agent, tmp_path / "state.db", clock) as bot:
            await ask_all(bot, team, team.bob)
        await _approve_and_die(tmp_path / "state.db", team, clock, 50)
        async with open_team_bot(team, agent, tmp_path / "state.db", clock) as bot:
            said = await bot.answers(team.chat(team.ada), 2)
            assert said[1]
            assert "pay was approved, and did not run" in (await bot.answers(team.chat(team.bob), 2))[1]
            lines = [(line.action, line.reason) for line in await get_components(bot.host).store.audit.lines()]
            assert lines[1:] == [("approved", None), ("failed", "given_up")]
    assert team.bank.paid == []
