"""A host in a process of its own whose tool calls two people approve; the file `paid` of its root has what was paid."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from agent_framework import Agent, tool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.interfaces.channel import Channel, ChannelContext, ChannelContribution
from frontdesk.interfaces.chat import AsksApprovers, PushesParts, PushPart
from frontdesk.models.approval import PendingApproval, QuestionView
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.result import HostedRunResult
from frontdesk.scripted import ScriptedChatClient
from tests.databases import short_lease
from tests.scenarios.cast import call

PEOPLE = ("bob", "kim")


def person(name: str) -> ChannelIdentity:
    return ChannelIdentity(channel="pager", native_id=name)


class Pager(Channel, PushesParts, AsksApprovers):
    """Shows questions to nobody, and takes the votes of approvers over HTTP."""

    name = "pager"
    path = "/pager"
    requires_auth_when_public: ClassVar[bool] = False

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        self._context = context
        return ChannelContribution(routes=[Route("/vote/{approval_id}/{who}/{word}", self._vote, methods=["POST"])])

    async def _vote(self, request: Request) -> JSONResponse:
        given = request.path_params
        caller = Caller(identity=person(given["who"]))
        decision = await self._context.approvals.decide(caller, given["approval_id"], given["word"] == "yes")
        return JSONResponse({"outcome": decision.outcome})

    def parts(self, result: HostedRunResult[Any]) -> Sequence[Any]:
        return ["an answer"]

    async def push_part(self, part: PushPart) -> str:
        return part.idempotency_key

    def approver_question(self, view: QuestionView) -> Sequence[Any]:
        return [view.approval.approval_id]

    def question_in(self, content: Any) -> str | None:
        return content if str(content).startswith("apr_") else None

    def settled_question(self, approval: PendingApproval, by: ChannelIdentity | None) -> Any:
        return approval.status


def _answer(messages: Any) -> Any:
    results = [one for message in messages for one in message.contents if one.type == "function_result"]
    return "done" if results else [call("pay", f"c{messages[-1].text}", number=int(messages[-1].text))]


def main(settings: str) -> None:
    """Serve until the process is killed."""
    given: dict[str, Any] = json.loads(settings)
    paid = Path(given["root"]) / "paid"

    @tool(approval_mode="always_require")
    def pay(number: int) -> str:
        """Pays."""
        with paid.open("a") as file:
            file.write(f"{number}\n")
        return f"paid {number}"

    host = AgentFrameworkHost(
        Agent(ScriptedChatClient(_answer), name="payer", tools=[pay]),
        channels=[InvocationsChannel(), Pager()],
        store=short_lease(given["dsn"], 5.0),
        approvals=ApprovalOptions(default=ApproverRule(approvers=[person(name) for name in PEOPLE], votes=2)),
    )
    host.serve(port=given["port"], log_level="critical")
