"""Interrupts of the AG-UI channel: approvals, workflow questions, and what other people decide elsewhere."""

import json
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    Content,
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)

from frontdesk import AgentFrameworkHost
from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.scripted import ScriptedChatClient
from frontdesk_testing import serving
from frontdesk_testing.clock import FakeClock
from tests.channels.agui.agui_client import AGUIClient, checked, interrupts, kinds, open_page, resumed, text_of
from tests.faults.agui_host import Badges, approved_by_finance, build_chat


class Bank:
    """An agent with a tool that requires approval."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def agent(self, *replies: Any) -> Any:
        @tool(approval_mode="always_require")
        def pay(amount: int) -> str:
            """Pays."""
            self.paid.append(amount)
            return f"paid {amount}"

        return Agent(client=ScriptedChatClient(list(replies)), name="Desk", tools=[pay])


def pay(call_id: str, amount: int) -> Content:
    return Content.from_function_call(call_id, "pay", arguments=json.dumps({"amount": amount}))


async def test_an_approval_is_an_interrupt_with_expiry_and_schema() -> None:
    bank = Bank()
    async with open_page(bank.agent([pay("c1", 5)], "It is paid.")) as page:
        (asked,) = interrupts(await page.run("pay 5"))
        assert (asked["reason"], asked["toolCallId"]) == ("tool_call", "c1")
        assert asked["metadata"] == {"tool": "pay", "arguments": '{"amount": 5}'}
        assert asked["expiresAt"].endswith("Z")
        assert asked["responseSchema"]["required"] == ["approved"]
        assert (await page.thread())["interrupts"] == [asked]
        events = await page.resume((asked["id"], {"approved": True}))
        assert [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"] == ["paid 5"]
        assert (bank.paid, text_of(events), "TOOL_CALL_START" in kinds(events)) == ([5], "It is paid.", False)
        shown = await page.thread()
        assert (shown["interrupts"], [message["id"] for message in shown["messages"]]) == (
            [],
            [message["id"] for message in page.messages],
        )


async def test_a_rejection_runs_nothing_and_a_wrong_payload_is_refused() -> None:
    bank = Bank()
    async with open_page(bank.agent([pay("c1", 5)], "Not paid.")) as page:
        (asked,) = interrupts(await page.run("pay 5"))
        for payload in ("yes", {"approved": "yes"}, {"approved": True, "amount": 6}, 1):
            answer = await page.post(resume=resumed((asked["id"], payload)))
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "resume[0].payload")
        assert text_of(await page.resume((asked["id"], None))) == "Not paid."
        assert not bank.paid


async def test_an_answer_sent_again_is_replayed_and_counts_once() -> None:
    bank = Bank()
    async with open_page(bank.agent([pay("c1", 5)], "It is paid.")) as page:
        (asked,) = interrupts(await page.run("pay 5"))
        body = page.input(resume=resumed((asked["id"], True)))
        for _ in range(2):
            answer = await page.http.post("/agui", json=body)
            assert text_of(checked(answer.content)) == "It is paid."
        # Another tab answers the question that is decided.
        again = AGUIClient(page.http, page.thread_id)
        assert text_of(await again.resume((asked["id"], False))) == "It is paid."
        assert bank.paid == [5]


async def test_an_unknown_interrupt_and_one_of_another_thread() -> None:
    bank = Bank()
    async with open_page(bank.agent([pay("c1", 5)], "It is paid.")) as page:
        (asked,) = interrupts(await page.run("pay 5"))
        other = AGUIClient(page.http)
        for client, name in ((page, "apr_made_up"), (other, asked["id"])):
            answer = await client.post(resume=resumed((name, True)))
            assert answer.status_code == 404
        assert not bank.paid


class Asker(Executor):
    """A workflow that asks two questions of different forms at once."""

    @handler
    async def begin(self, messages: list[Message], context: WorkflowContext[Any, str]) -> None:
        await context.request_info("How many?", int, request_id="count")
        await context.request_info({"question": "Which one?"}, str, request_id="name")

    @response_handler
    async def hear_count(self, asked: str, answer: int, context: WorkflowContext[Any, str]) -> None:
        await context.yield_output(f"{answer} of them")

    @response_handler
    async def hear_name(self, asked: dict, answer: str, context: WorkflowContext[Any, str]) -> None:
        await context.yield_output(f"the {answer} one")


def build_asker() -> Any:
    return WorkflowBuilder(start_executor=Asker(id="asker"), name="asker").build()


async def test_the_questions_of_a_workflow_after_a_restart(tmp_path: Path) -> None:
    async with open_page(build_asker, state_dir=tmp_path) as page:
        asked = {one["message"]: one for one in interrupts(await page.run("begin"))}
        assert asked["How many?"]["responseSchema"] == {"type": "integer"}
        assert {one["reason"] for one in asked.values()} == {"input_required"}
    async with open_page(build_asker, state_dir=tmp_path) as again:
        again.thread_id, again.messages = page.thread_id, page.messages
        assert len((await again.thread())["interrupts"]) == 2
        answers = [(asked["How many?"]["id"], 3), (asked["Which one?"]["id"], "red")]
        events = await again.resume(*answers)
        assert {"3 of them", "the red one"} == {
            event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"
        }
        assert events[-1]["outcome"] == {"type": "success"}


async def test_cancelled_questions_of_a_workflow_end_its_run() -> None:
    async with open_page(build_asker) as page:
        asked = interrupts(await page.run("begin"))
        events = await page.resume(*((one["id"], None) for one in asked))
        assert events[-1]["outcome"] == {"type": "cancelled"}
        assert not (await page.thread())["interrupts"]


def _approved_by_finance(agent: Any) -> AgentFrameworkHost:
    channels = [AGUIChannel(auth=Badges()), InvocationsChannel(auth=Badges()), build_chat()]
    return AgentFrameworkHost(agent, channels=channels, **approved_by_finance())


async def _decide(page: AGUIClient, approval_id: str) -> None:
    answer = {"approval": {"id": approval_id, "approved": True}}
    (await page.http.post("/invocations", json=answer, headers={"x-badge": "bob.finance"})).raise_for_status()


async def test_a_question_for_others_says_so_and_finishes_later() -> None:
    bank = Bank()
    async with serving(_approved_by_finance(bank.agent([pay("c1", 5)], "It is paid.", "You are welcome."))) as client:
        page = AGUIClient(client.http, x_badge="ada")
        (asked,) = interrupts(await page.run("pay 5"))
        assert (asked["reason"], "responseSchema" in asked, bool(asked["metadata"]["waitsFor"])) == (
            "confirmation",
            False,
            True,
        )
        refused = await page.post(resume=resumed((asked["id"], True)))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "approval_not_yours")
        left = await page.post(resume=resumed((asked["id"], None)))
        assert (left.status_code, left.json()["error"]["code"]) == (409, "waits_for_others")
        received = b""
        path = f"/agui/threads/{page.thread_id}"
        async with page.http.stream("GET", path, params={"wait": "true"}, headers=page.headers) as answer:
            async for part in answer.aiter_bytes():
                received += part
                if b"RUN_FINISHED" in received and not bank.paid:
                    await _decide(page, asked["id"])
        followed = checked(received)
        assert kinds(followed).count("RUN_STARTED") == 2
        assert (text_of(followed), followed[-1]["outcome"]) == ("It is paid.", {"type": "success"})
        # A page that still shows the question sends any answer, and gets what came of it.
        assert text_of(await page.resume((asked["id"], True))) == "It is paid."
        assert text_of(await page.run("thanks")) == "You are welcome."
        assert bank.paid == [5]


async def test_an_expired_question_can_be_cancelled() -> None:
    bank, clock = Bank(), FakeClock()
    async with open_page(bank.agent([pay("c1", 5)], "Too late.", "Too late."), clock=clock) as page:
        (asked,) = interrupts(await page.run("pay 5"))
        clock.advance(8 * 24 * 3600)
        events = await page.resume((asked["id"], None))
        assert (bank.paid, events[-1]["type"]) == ([], "RUN_FINISHED")
