"""A real client asks, the host restarts, and another person approves: the tool runs once, and the answer comes back."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from openai import AsyncOpenAI

from frontdesk import ApiKeyAuth, ApprovalOptions, ApproverRole, ApproverRule
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.models.identity import ChannelIdentity
from frontdesk_testing.telegram import fake_telegram
from tests.channels.web.visiting import Visitor
from tests.scenarios.approvers.test_asking import Team, on_telegram, press
from tests.scenarios.cast import build_scripted, call
from tests.scenarios.desk import until
from tests.scenarios.telegram.bot import TelegramHost, open_bot

KEY = "the-key-of-ann-who-asks"


def script(messages: list[Any]) -> Any:
    results = [content for message in messages for content in message.contents if content.type == "function_result"]
    if not results:
        return [call("pay", amount=5, note="for the flowers")]
    return [f"{len(results)} paid, said {messages[-1].text}" if messages[-1].role == "user" else "It is paid."]


@pytest.fixture
async def team() -> AsyncIterator[Team]:
    """The platform stays when the host restarts."""
    team = Team()
    async with fake_telegram(team.fake):
        yield team


@asynccontextmanager
async def open_host(team: Team, state: Path, people: list[ChannelIdentity]) -> AsyncIterator[tuple[TelegramHost, Any]]:
    """A host with three doors, whose approver is one of some people; and the client of the caller."""
    role = ApproverRole(name="the treasurer", people=lambda question: people)
    options = ApprovalOptions(tools={"pay": ApproverRule(approvers=[role], exclude_requester=True)})
    doors = [ResponsesChannel(auth=ApiKeyAuth({"ann": KEY})), WebChatChannel()]
    agent = build_scripted(script, tools=[team.bank.tool()])
    async with AsyncExitStack() as stack:
        bot = await stack.enter_async_context(
            open_bot(agent, fake=team.fake, state_dir=state, channels=doors, approvals=options)
        )
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
        yield bot, AsyncOpenAI(api_key=KEY, base_url=f"{bot.base_url}/v1", max_retries=0, http_client=http)


async def ask(client: Any) -> tuple[Any, Any]:
    response = await client.responses.create(model="any", input="pay 5")
    (request,) = response.output
    assert (request.type, request.name) == ("mcp_approval_request", "pay")
    assert request.waits_for == ["the treasurer"]
    return response, request


async def wait_for_answer(team: Team, client: Any, first: Any) -> None:
    """The caller polls what was asked, and goes on with the chain."""
    later: list[Any] = []

    async def is_answered() -> bool:
        polled = await client.responses.retrieve(first.id)
        if "continued_by" not in (polled.model_extra or {}):
            return False
        try:
            later[:] = [await client.responses.retrieve(polled.model_extra["continued_by"])]
        except Exception:
            return False
        return later[0].status == "completed"

    await until(is_answered)
    assert later[0].output_text == "It is paid."
    assert team.bank.paid == [5]
    chained = await client.responses.create(model="any", input="so?", previous_response_id=first.id)
    assert chained.output_text == "1 paid, said so?"
    assert team.bank.paid == [5]


async def test_another_person_approves_from_telegram_after_a_restart(team: Team, tmp_path: Path) -> None:
    people = [on_telegram(team.bob)]
    async with open_host(team, tmp_path, people) as (_, client):
        first, request = await ask(client)
        answer = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
        with pytest.raises(Exception, match="You are not an approver"):
            await client.responses.create(model="any", input=[answer], previous_response_id=first.id)
    async with open_host(team, tmp_path, people) as (bot, client):
        await bot.answers(team.chat(team.bob))
        assert "ann on responses needs an approval" in bot.fake.shown(team.chat(team.bob)).messages[0].text
        await press(bot, team.bob, "Approve")
        await wait_for_answer(team, client, first)


async def test_another_person_approves_from_the_web_page_after_a_restart(team: Team, tmp_path: Path) -> None:
    people: list[ChannelIdentity] = []
    async with open_host(team, tmp_path, people) as (bot, client):
        async with httpx.AsyncClient(base_url=bot.base_url, trust_env=False) as http:
            await http.get("/chat")
            ((name, cookie),) = http.cookies.items()
        people.append(ChannelIdentity(channel="web", native_id=cookie.rpartition(".")[0]))
        first, _ = await ask(client)
    async with open_host(team, tmp_path, people) as (bot, client):
        headers = {"origin": bot.base_url}
        async with httpx.AsyncClient(base_url=bot.base_url, headers=headers, timeout=60, trust_env=False) as http:
            # The name of the cookie has the port in it, which is another one.
            await http.get("/chat")
            ((name, _),) = http.cookies.items()
            http.cookies.clear()
            http.cookies.set(name, cookie)
            bob = Visitor(bot.base_url, http)
            (card,) = await bob.wait_for_messages(1)
            approval_id = card["question"]["approval_id"]
            question = await bob.get(f"approvals/{approval_id}")
            assert (question["asker"], question["channel"], question["may_answer"]) == ("ann", "responses", True)
            assert "for the flowers" in question["arguments"]
            decided = await bob.post(f"approvals/{approval_id}", approved=True, digest=question["digest"])
            assert decided.json()["outcome"] == "recorded"
            await wait_for_answer(team, client, first)

            async def settled() -> Any:
                (shown,) = await bob.messages()
                return shown["question"].get("outcome") == "approved"

            await bob.until(settled)
