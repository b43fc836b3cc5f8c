"""Operators who name somebody that nobody knows, or who may not come in, are told so in words for them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, Content, tool

from frontdesk import (
    AgentFrameworkHost,
    ChannelIdentity,
    NativeIdAllowlist,
    OneTimeCodeIdentityLinker,
    OperatorClient,
    OperatorError,
)
from frontdesk.channels.telegram import TelegramChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.errors import ForbiddenError, LinkRequiredError, NotFoundError
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import EchoAgent, serving
from tests.channels.web.visiting import open_visitor
from tests.cli.processes import frontdesk
from tests.scenarios.telegram.bot import open_bot

NOBODY = ChannelIdentity("web", "vis_nobody")


async def test_deliver_to_nobody_made_a_person(tmp_path: Path) -> None:
    state = tmp_path / "state"
    host = AgentFrameworkHost(EchoAgent(), channels=[WebChatChannel()], state_dir=state)
    async with serving(host) as client, open_visitor(client.base_url) as visitor:
        words = ("--to", "web", "vis_nobody", "--state", str(state))
        for command in ("deliver", "run"):
            done = await asyncio.to_thread(frontdesk, command, "hello", *words)
            assert (done.returncode, done.stdout) == (1, "")
            assert "No person with id 'vis_nobody' on channel 'web'" in done.stderr
            assert "frontdesk people list --channel web" in done.stderr
        with pytest.raises(NotFoundError) as caught:
            await host.deliver(NOBODY, "hello")
        assert caught.value.code == "unknown_recipient"

        def people() -> list[str]:
            with OperatorClient(state) as operator:
                return [row["id"] for row in operator.call("page", {"kind": "people"})["items"]]

        assert await asyncio.to_thread(people) == []
        # Somebody who has written is known.
        await visitor.say("hello")
        await visitor.wait_for_messages(2)
        (known,) = await asyncio.to_thread(people)
        sent = await asyncio.to_thread(frontdesk, "deliver", "hi", "--to", "web", known, "--state", str(state))
        assert (sent.returncode, sent.stderr) == (0, "")
        assert (await visitor.wait_for_messages(3))[2]["text"] == "hi"


@pytest.mark.parametrize("nobody", ["1", "@ada", "-1001"])
async def test_telegram_is_asked_about_somebody_whom_the_host_has_never_met(nobody: str) -> None:
    async with open_bot(EchoAgent()) as bot:
        ada = bot.fake.user("Ada")
        with pytest.raises(NotFoundError, match="No person with id"):
            await bot.host.deliver(ChannelIdentity("telegram", nobody), "hello")
        bot.fake.private(ada)
        await bot.host.deliver(ChannelIdentity("telegram", str(ada.id)), "hello")
        await bot.says(bot.fake.private(ada), "hello")
        # Met by now: the platform is not asked again.
        before = len(bot.fake.list_calls("getChat"))
        await bot.host.deliver(ChannelIdentity("telegram", str(ada.id)), "again")
        assert len(bot.fake.list_calls("getChat")) == before


async def test_a_platform_that_is_away_refuses_nobody() -> None:
    channel = TelegramChannel(
        bot_token="1:" + "a" * 35, secret_token="the-secret-of-the-webhook", api_url="http://127.0.0.1:1"
    )
    host = AgentFrameworkHost(EchoAgent(), channels=[channel])
    async with serving(host):
        assert len(await host.deliver(ChannelIdentity("telegram", "42"), "hello")) == 1


async def test_the_operator_read_the_text_for_the_guest() -> None:
    async with open_bot(EchoAgent(), allowlist=NativeIdAllowlist({"7"})) as bot:
        with pytest.raises(ForbiddenError) as caught:
            await bot.host.deliver(ChannelIdentity("telegram", "42"), "hello")
        assert "'42' on 'telegram' may not come in" in caught.value.message
        assert "allowlist" in caught.value.message


async def test_who_has_to_link_first_is_named_too(tmp_path: Path) -> None:
    linker = OneTimeCodeIdentityLinker()
    async with open_bot(EchoAgent(), require_link=True, linker=linker, state_dir=tmp_path / "state") as bot:
        ada = bot.fake.user("Ada")
        with pytest.raises(LinkRequiredError, match=f"'{ada.id}' on 'telegram' has to link an account first"):
            await bot.host.deliver(ChannelIdentity("telegram", str(ada.id)), "hello")


async def test_run_for_somebody_who_may_not_come_in_is_refused_in_these_words(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with open_bot(EchoAgent(), allowlist=NativeIdAllowlist({"7"}), state_dir=state) as bot:
        ada = bot.fake.user("Ada")
        bot.fake.private(ada)

        def run() -> None:
            with OperatorClient(state) as operator:
                operator.run(ChannelIdentity("telegram", str(ada.id)), "hello")

        with pytest.raises(OperatorError, match="may not come in"):
            await asyncio.to_thread(run)


async def test_run_that_waits_for_an_approval_looked_as_if_it_was_done(tmp_path: Path) -> None:
    @tool(approval_mode="always_require")
    def refund(amount: int) -> str:
        """Refund."""
        return f"refunded {amount}"

    asked = Content.from_function_call("c1", "refund", arguments='{"amount": 5}')
    turns: Any = iter([["hello"], [asked]])
    agent = Agent(ScriptedChatClient(lambda _: next(turns)), name="Desk", tools=[refund])
    state = tmp_path / "state"
    host = AgentFrameworkHost(agent, channels=[WebChatChannel()], state_dir=state)
    async with serving(host) as client, open_visitor(client.base_url) as visitor:
        await visitor.say("hello")
        await visitor.wait_for_messages(2)

        def known() -> str:
            with OperatorClient(state) as operator:
                return operator.call("page", {"kind": "people"})["items"][0]["id"]

        words = ("--to", "web", await asyncio.to_thread(known), "--state", str(state), "--wait", "60")
        done = await asyncio.to_thread(frontdesk, "run", "refund it", *words)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "must be answered first" in done.stderr
        assert "frontdesk approvals list" in done.stderr
