"""The names of people on the cards of approvals, in a real browser."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontdesk import ApprovalOptions, ApproverRole, ApproverRule
from frontdesk.channels.web import WebChatChannel
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing.internals import get_store
from tests.browser import chromium, need_chromium
from tests.channels.web.browsing import open_page, say
from tests.scenarios.approvers.test_asking import Team
from tests.scenarios.approvers.test_names import answer, by_id, introduce
from tests.scenarios.cast import build_scripted
from tests.scenarios.telegram.bot import open_bot

CHROMIUM = need_chromium("the names on cards")


@pytest.fixture
async def new_tab() -> AsyncIterator[Any]:
    async with chromium(CHROMIUM) as tab:
        yield tab


async def test_cards_of_the_page_showed_ids_and_lost_their_arguments(new_tab: Any) -> None:
    team, visitors = Team(), list[ChannelIdentity]()
    role = ApproverRole(name="visitors", people=lambda question: [by_id(team.bob), *visitors])
    options = ApprovalOptions(default=ApproverRule(approvers=[by_id(team.bob), role]))
    agent = build_scripted(answer, tools=[team.bank.tool()])
    async with open_bot(agent, fake=team.fake, approvals=options, channels=[WebChatChannel()]) as bot:
        await introduce(bot, team.bob)
        tab = await open_page(await new_tab(), bot.base_url)
        await say(tab, "pay 5")
        bob, ada = (f"“{one.first_name}” (unverified, id {one.id}) on telegram" for one in (team.bob, team.ada))
        card = tab.page.locator(".card")
        await card.get_by_text(f"It waits for an approval by {bob}, visitors.").wait_for()
        (waiting,) = await get_store(bot.host).approvals.expired(9e12)
        assert waiting.requester is not None
        visitors.append(waiting.requester.identity)
        await bot.answers(team.chat(team.bob), 2)
        (message,) = [one for one in team.chat(team.bob).messages.values() if one.markup]
        bot.fake.press(team.bob, message, "Reject")
        card = tab.page.locator(".card.rejected")
        await card.get_by_text(bob).wait_for()
        assert await card.locator("dd").all_inner_texts() == ["5", "for the flowers"]
        # Now the visitor is asked, by Ada.
        team.fake.say(team.ada, "pay 5")
        await tab.page.locator(".card").get_by_text(f"{ada} needs your approval.").wait_for()
        await tab.page.click(".card button.primary")
        card = tab.page.locator(".card.approved")
        await card.get_by_text(f"Asked for by {ada}.").wait_for()
        assert await card.locator("dd").all_inner_texts() == ["5", "for the flowers"]
        assert await tab.fits()
        assert tab.complaints == []
    assert team.bank.paid == [5]
