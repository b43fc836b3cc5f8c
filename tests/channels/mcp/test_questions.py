"""Approvals and questions of workflows: asked by elicitation, answered elsewhere, and gone on with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from mcp_types import ElicitResult

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ApprovalOptions
from frontdesk.channels.mcp import MCPChannel
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing import serving
from frontdesk_testing.telegram import fake_telegram
from tests.channels.mcp.clients import ERAS, LEGACY, MODERN, Asked, answering, connect, modern, refusing, send
from tests.scenarios.approvers.test_asking import Team, press
from tests.scenarios.cast import call
from tests.scenarios.messages.test_buttons import Bank
from tests.scenarios.telegram.bot import TelegramHost, open_bot

PAY = [call("pay", amount=5, note="flowers")]
TWO = [call("pay", "c1", amount=5, note="a"), call("pay", "c2", amount=7, note="b")]


def paying(bank: Bank, *turns: Any, **settings: Any) -> AgentFrameworkHost:
    channel = MCPChannel(**settings.pop("channel", {}))
    return AgentFrameworkHost(bank.agent(*turns), channels=[channel], **settings)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("asked", "paid"),
    [(answering(approved=True), [5]), (answering(approved=False), []), (refusing(), [])],
    ids=["yes", "no", "declined"],
)
async def test_an_approval_is_asked_by_elicitation(era: str, asked: Asked, paid: list[int]) -> None:
    bank = Bank()
    asked.messages.clear()
    async with (
        serving(paying(bank, PAY, ["done"])) as served,
        connect(served.base_url, era, elicitation_callback=asked) as client,
    ):
        result = await client.call_tool("Concierge", {"message": "pay"})
    assert result.structured_content["text"] == "done"
    assert not result.is_error
    assert bank.paid == paid
    (text,) = asked.messages
    assert "pay" in text
    assert '"flowers"' in text
    assert asked.schemas[0]["required"] == ["approved"]


@pytest.mark.parametrize("era", ERAS)
async def test_several_approvals_of_a_turn_are_all_asked(era: str) -> None:
    bank = Bank()
    asked = Asked(lambda text, _: ElicitResult(action="accept", content={"approved": "7" in text}))
    async with (
        serving(paying(bank, TWO, ["done"])) as served,
        connect(served.base_url, era, elicitation_callback=asked) as client,
    ):
        result = await client.call_tool("Concierge", {"message": "pay"})
    assert result.structured_content["text"] == "done"
    assert bank.paid == [7]
    assert len(asked.messages) == 2


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("content", [{}, {"approved": "yes"}, None], ids=["empty", "text", "none"])
async def test_an_acceptance_that_does_not_say_yes_runs_nothing(era: str, content: Any) -> None:
    bank = Bank()
    answers = iter([ElicitResult(action="accept", content=content), ElicitResult(action="cancel")])
    asked = Asked(lambda _text, _schema: next(answers, ElicitResult(action="cancel")))
    async with (
        serving(paying(bank, PAY, ["done"])) as served,
        connect(served.base_url, era, elicitation_callback=asked) as client,
    ):
        result = await client.call_tool("Concierge", {"message": "pay"})
    assert bank.paid == []
    assert result.structured_content["status"] == "input_required"
    assert [one["tool"] for one in result.structured_content["questions"]] == ["pay"]


@pytest.mark.parametrize(
    ("era", "stateless"), [(MODERN, False), (LEGACY, False), (LEGACY, True)], ids=["modern", "stateful", "stateless"]
)
async def test_a_client_without_forms_is_told_where_to_answer_and_gets_the_result_later(
    era: str, stateless: bool
) -> None:
    bank = Bank()
    page = "https://desk.example/approvals"
    host = paying(bank, PAY, ["done"], channel={"stateless": stateless, "approval_url": page})
    async with serving(host) as served, connect(served.base_url, era) as client:
        result = await client.call_tool("Concierge", {"message": "pay"})
        assert not result.is_error
        assert result.structured_content["status"] == "input_required"
        (question,) = result.structured_content["questions"]
        assert (question["tool"], question["url"]) == ("pay", page)
        assert question["arguments"] == {"amount": 5, "note": "flowers"}
        text = result.content[-1].text
        session = result.structured_content["session"]
        assert page in text
        assert session in text
        assert bank.paid == []
        context, me = host._get_context("mcp"), host.channels[0].local_caller  # type: ignore[attr-defined]
        assert (await context.approvals.decide(me, question["id"], True)).outcome == "recorded"
        later = await client.call_tool("Concierge", {"message": "", "session": session})
        assert later.structured_content["text"] == "done"
        assert bank.paid == [5]


async def first_round(http: Any, **capabilities: Any) -> dict[str, Any]:
    params = {"name": "Concierge", "arguments": {"message": "pay"}}
    return (await send(http, modern("tools/call", params, **(capabilities or {"elicitation": {}})))).json()["result"]


async def second_round(http: Any, state: str, responses: Any) -> dict[str, Any]:
    params = {
        "name": "Concierge",
        "arguments": {"message": "pay"},
        "inputResponses": responses,
        "requestState": state,
    }
    return (await send(http, modern("tools/call", params, elicitation={}))).json()


async def test_a_state_that_was_altered_or_is_of_another_finds_nothing() -> None:
    bank = Bank()
    async with serving(paying(bank, PAY, ["done"])) as served:
        asked = await first_round(served.http)
        (name,) = asked["inputRequests"]
        yes = {name: {"action": "accept", "content": {"approved": True}}}
        for state in (asked["requestState"] + "x", "../..", "mcp_made_up", ""):
            assert (await second_round(served.http, state, yes))["error"]["code"] == -32602
        assert bank.paid == []
        again = (await second_round(served.http, asked["requestState"], {}))["result"]
        assert list(again["inputRequests"]) == [name]
        done = (await second_round(served.http, asked["requestState"], yes))["result"]
        assert done["structuredContent"]["text"] == "done"
        repeated = (await second_round(served.http, asked["requestState"], yes))["result"]
        assert repeated["structuredContent"]["text"] == "done"
    assert bank.paid == [5]


async def test_a_pause_outlives_the_process(tmp_path: Path) -> None:
    bank = Bank()
    async with serving(paying(bank, PAY, state_dir=tmp_path)) as served:
        asked = await first_round(served.http)
    (name,) = asked["inputRequests"]
    async with serving(paying(bank, ["done"], state_dir=tmp_path)) as served:
        yes = {name: {"action": "accept", "content": {"approved": True}}}
        done = (await second_round(served.http, asked["requestState"], yes))["result"]
        assert done["structuredContent"]["text"] == "done"
    assert bank.paid == [5]


KEYS = {"ada": "the-key-of-ada-is-long", "eve": "the-key-of-eve-is-long"}


@asynccontextmanager
async def replica(team: Team, dsn: str, *turns: Any) -> AsyncIterator[TelegramHost]:
    """One of several hosts on a database. Bob approves in his chat on Telegram."""
    rule = team.rule(team.bob, exclude_requester=True)
    async with open_bot(
        team.bank.agent(*turns),
        fake=team.fake,
        channels=[MCPChannel(auth=ApiKeyAuth(KEYS))],
        store=PostgresStateStore(dsn),
        approvals=ApprovalOptions(default=rule),
    ) as host:
        yield host


@pytest.mark.parametrize("era", ERAS)
async def test_another_person_approves_in_a_chat_of_another_replica_and_the_call_goes_on_there(
    era: str, postgres: str
) -> None:
    team, ada = Team(), {"x-api-key": KEYS["ada"]}
    async with fake_telegram(team.fake):
        async with replica(team, postgres, PAY) as first:
            url = str(first.http.base_url).rstrip("/")
            yes = answering(approved=True)
            async with connect(url, era, headers=ada, elicitation_callback=yes) as client:
                result = await client.call_tool("Concierge", {"message": "pay"})
            (question,) = result.structured_content["questions"]
            assert question["waits_for"] == ["Bob"]
            assert "Bob" in result.content[-1].text
            assert yes.messages == []
            session = result.structured_content["session"]
        # The first host is gone. Bob presses the button on the second one.
        async with replica(team, postgres, ["done"]) as second:
            url = str(second.http.base_url).rstrip("/")
            async with connect(url, era, headers={"x-api-key": KEYS["eve"]}) as stranger:
                nothing = await stranger.call_tool("Concierge", {"message": "", "session": session})
                assert nothing.is_error
            async with connect(url, era, headers=ada) as client:
                waiting = asyncio.create_task(client.call_tool("Concierge", {"message": "", "session": session}))
                await second.answers(team.chat(team.bob))
                await press(second, team.bob, "Approve")
                assert (await waiting).structured_content["text"] == "done"
    assert team.bank.paid == [5]


@dataclass
class Stay:
    nights: int
    room: Literal["attic", "suite"] = "attic"


@dataclass
class Offer:
    question: str


class Desk(Executor):
    @handler
    async def begin(self, guest: str, context: WorkflowContext[Any, str]) -> None:
        await context.request_info(Offer(f"How long, {guest}?"), Stay, request_id="stay")
        await context.request_info(Offer("Breakfast?"), bool, request_id="breakfast")

    @response_handler
    async def stay(self, offer: Offer, stay: Stay, context: WorkflowContext[Any, str]) -> None:
        await context.yield_output(f"{stay.nights} nights in the {stay.room}")

    @response_handler
    async def breakfast(self, offer: Offer, wanted: bool, context: WorkflowContext[Any, str]) -> None:
        await context.yield_output("with breakfast" if wanted else "without breakfast")


def desk_workflow() -> Any:
    return WorkflowBuilder(name="desk", start_executor=Desk(id="desk"), output_from="all").build()


@pytest.mark.parametrize("era", ERAS)
async def test_questions_of_a_workflow_are_forms_of_their_types(era: str) -> None:
    def fill(text: str, schema: Any) -> ElicitResult:
        stay = {"nights": 3, "room": "suite"}
        return ElicitResult(action="accept", content=stay if "long" in text else {"answer": True})

    asked = Asked(fill)
    host = AgentFrameworkHost(desk_workflow, channels=[MCPChannel()])
    async with serving(host) as served, connect(served.base_url, era, elicitation_callback=asked) as client:
        result = await client.call_tool("desk", {"message": "Ada"})
    assert result.structured_content["status"] == "completed"
    assert set(result.structured_content["outputs"]) == {"3 nights in the suite", "with breakfast"}
    assert set(asked.messages) == {"How long, Ada?", "Breakfast?"}
    (form,) = [schema for schema in asked.schemas if "nights" in schema["properties"]]
    assert form["required"] == ["nights"]
    assert form["properties"]["room"]["enum"] == ["attic", "suite"]


async def test_an_answer_of_the_wrong_type_is_an_error_and_the_question_stays() -> None:
    host = AgentFrameworkHost(desk_workflow, channels=[MCPChannel()])
    async with serving(host) as served:
        call_params: dict[str, Any] = {"name": "desk", "arguments": {"message": "Ada"}}
        asked = (await send(served.http, modern("tools/call", call_params, elicitation={}))).json()["result"]
        assert set(asked["inputRequests"]) == {"stay", "breakfast"}
        wrong = {
            "stay": {"action": "accept", "content": {"nights": "many"}},
            "breakfast": {"action": "accept", "content": {"answer": True}},
        }
        retry = {**call_params, "requestState": asked["requestState"], "inputResponses": wrong}
        answer = (await send(served.http, modern("tools/call", retry, elicitation={}))).json()
        assert answer["result"]["isError"]
        right = {**wrong, "stay": {"action": "accept", "content": {"nights": 2}}}
        done = await send(served.http, modern("tools/call", {**retry, "inputResponses": right}, elicitation={}))
        assert "2 nights in the attic" in done.json()["result"]["structuredContent"]["outputs"]


async def test_a_question_that_somebody_else_answered_first_counts_once() -> None:
    bank = Bank()
    host = paying(bank, PAY, ["done"])
    async with serving(host) as served:
        asked = await first_round(served.http)
        (name,) = asked["inputRequests"]
        context, me = host._get_context("mcp"), host.channels[0].local_caller  # type: ignore[attr-defined]
        await context.approvals.decide(me, name, True)
        no = {name: {"action": "decline"}}
        done = (await second_round(served.http, asked["requestState"], no))["result"]
        assert done["structuredContent"]["text"] == "done"
    assert bank.paid == [5]


async def test_unanswered_questions_of_the_older_era_end_the_call_after_a_time() -> None:
    bank = Bank()
    is_asked = asyncio.Event()

    async def never(context: Any, params: Any) -> ElicitResult:
        is_asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    host = paying(bank, PAY, ["done"], channel={"question_seconds": 0.2})
    async with serving(host) as served, connect(served.base_url, LEGACY, elicitation_callback=never) as client:
        result = await client.call_tool("Concierge", {"message": "pay"})
        assert is_asked.is_set()
        assert result.structured_content["status"] == "input_required"
    assert bank.paid == []
