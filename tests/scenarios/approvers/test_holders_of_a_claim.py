"""Approvers whom nobody has listed: people who are asked because a link has proved a claim of theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ApprovalOptions,
    ApproverRole,
    ApproverRule,
    AuthPolicy,
    ChannelConfigurationError,
    OneTimeCodeIdentityLinker,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.models.link import LinkProof
from frontdesk_testing import EchoAgent
from frontdesk_testing.internals import get_components
from tests.scenarios.approvers.test_asking import Team, on_telegram, press
from tests.scenarios.telegram.bot import TelegramHost, open_bot

FINANCE = ApproverRole(name="finance", claim="groups", values=["finance"])


async def link(bot: TelegramHost, person: Any, *groups: str) -> None:
    """Let a provider prove the groups of a person."""
    links = get_components(bot.host).links
    assert links is not None
    proof = LinkProof(
        linker="code", identity=on_telegram(person), subject=f"s|{person.id}", claims={"groups": list(groups)}
    )
    await links.join(proof)


@asynccontextmanager
async def open_linked_bot(team: Team, options: ApprovalOptions, **more: Any) -> AsyncIterator[TelegramHost]:
    linker = OneTimeCodeIdentityLinker()
    async with open_bot(team.agent(), fake=team.fake, approvals=options, linker=linker, **more) as bot:
        for person, groups in ((team.bob, ["finance"]), (team.eve, ["sales"]), (team.kim, ["hr", "finance"])):
            await link(bot, person, *groups)
        yield bot


async def test_people_with_the_claim_of_a_role_are_asked_and_may_answer() -> None:
    team = Team()
    options = ApprovalOptions(default=ApproverRule(approvers=[FINANCE]))
    async with open_linked_bot(team, options) as bot:
        team.fake.say(team.ada, "pay 5")
        for person in (team.bob, team.kim):
            asked = (await bot.answers(team.chat(person)))[0]
            assert f"“Ada” (unverified, id {team.ada.id}) on telegram needs an approval" in asked
        assert "approved by “Kim”" in await press(bot, team.kim, "Approve")
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
        await bot.until(lambda: "approved by “Kim”" in bot.fake.shown(team.chat(team.bob)).messages[0].text)
        assert bot.fake.shown(team.chat(team.eve)).answers == []
        lines = await get_components(bot.host).store.audit.lines()
        (asked,) = [line for line in lines if line.action == "asked"]
        assert asked.reason == f"{team.bob.id} on telegram, {team.kim.id} on telegram"
    assert team.bank.paid == [5]


async def test_no_more_people_are_asked_by_a_claim_than_the_operator_says() -> None:
    team = Team()
    options = ApprovalOptions(default=ApproverRule(approvers=[FINANCE]), max_holders=1)
    async with open_linked_bot(team, options) as bot:
        team.fake.say(team.ada, "pay 5")
        await bot.answers(team.chat(team.bob))
        await bot.wait_for_ends(2)
        assert bot.fake.shown(team.chat(team.kim)).answers == []


async def test_holders_to_whom_a_question_escalates_are_asked_and_count_only_then() -> None:
    team = Team()
    rule = ApproverRule(approvers=[on_telegram(team.eve)], escalate_after=60, escalate_to=[FINANCE])
    async with open_linked_bot(team, ApprovalOptions(default=rule)) as bot:
        team.fake.say(team.ada, "pay 5")
        await bot.answers(team.chat(team.eve))
        (question,) = await get_components(bot.host).store.approvals.expired(9e12)
        assert question.requester is not None
        assert question.terms is not None
        context = bot.host._get_context("telegram")
        bob = question.requester.replace(identity=on_telegram(team.bob))
        assert (await context.approvals.decide(bob, question.approval_id, True)).outcome == "not_yours"
        assert bot.fake.shown(team.chat(team.bob)).answers == []
        assert [person.native_id for person in question.terms.escalate_asked] == [str(team.bob.id), str(team.kim.id)]
    assert team.bank.paid == []


async def test_a_role_of_whose_claim_nobody_is_known_lets_nothing_run() -> None:
    team = Team()
    nobody = ApproverRole(name="the board", claim="groups", values=["board"])
    async with open_linked_bot(team, ApprovalOptions(default=ApproverRule(approvers=[nobody]))) as bot:
        assert "no approver can be asked" in await bot.ask(team.ada, "pay 5")
    assert team.bank.paid == []


def test_a_claim_alone_needs_a_linker_which_is_found_when_the_host_is_built() -> None:
    options = ApprovalOptions(default=ApproverRule(approvers=[FINANCE]))
    with pytest.raises(ChannelConfigurationError, match="nobody is known to have the claim of the role 'finance'"):
        AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel()], approvals=options)


async def test_who_is_unlinked_and_may_not_answer_any_more_has_no_buttons() -> None:
    team = Team()
    options = ApprovalOptions(default=ApproverRule(approvers=[FINANCE]))
    async with open_linked_bot(team, options) as bot:
        team.fake.say(team.ada, "pay 5")
        for person in (team.bob, team.kim):
            await bot.answers(team.chat(person))
        await bot.wait_for_ends(3)
        (question,) = [message for message in team.chat(team.bob).messages.values() if message.markup]
        buttons = question.markup
        team.fake.say(team.bob, "/unlink")
        closed = "pay: You are not asked any more."
        await bot.until(lambda: bot.fake.shown(team.chat(team.bob)).messages[0].text.startswith(closed))
        assert question.markup is None
        # An app that has not heard of the change yet.
        question.markup = buttons
        click = bot.fake.press(team.bob, question, "Approve")
        await bot.until(lambda: click.answered)
        assert "not yours" in click.text
        await press(bot, team.kim, "Approve")
        assert (await bot.answers(team.chat(team.ada), 2))[1] == "done"
        assert bot.fake.shown(team.chat(team.bob)).messages[0].text.startswith(closed)
    assert team.bank.paid == [5]


async def test_a_listed_approver_who_may_not_come_in_without_a_link_has_no_buttons_after_an_unlink() -> None:
    team = Team()
    options = ApprovalOptions(default=team.rule(team.bob, team.kim))
    async with open_linked_bot(team, options, allowlist=AuthPolicy.require_link()) as bot:
        await link(bot, team.ada)
        team.fake.say(team.ada, "pay 5")
        for person in (team.bob, team.kim):
            await bot.answers(team.chat(person))
        await bot.wait_for_ends(3)
        team.fake.say(team.bob, "/unlink")
        await bot.until(lambda: not bot.fake.shown(team.chat(team.bob)).messages[0].buttons)
        assert bot.fake.shown(team.chat(team.kim)).messages[0].buttons
