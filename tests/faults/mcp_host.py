"""A host in a process of its own whose MCP tool waits for a colleague. The file `paid` has what was paid."""

import json
from pathlib import Path
from typing import Any

from agent_framework import Agent, tool

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRule
from frontdesk.channels.mcp import MCPChannel
from frontdesk.scripted import ScriptedChatClient
from tests.databases import short_lease
from tests.faults.approving_host import Pager, person
from tests.scenarios.cast import call


def _answer(messages: Any) -> Any:
    results = [one for message in messages for one in message.contents if one.type == "function_result"]
    return "done" if results else [call("pay", "c1", number=5)]


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
        channels=[MCPChannel(task_after_seconds=0.2), Pager()],
        store=short_lease(given["dsn"], 5.0),
        approvals=ApprovalOptions(default=ApproverRule(approvers=[person("bob")], exclude_requester=True)),
    )
    host.serve(port=given["port"], log_level="critical")
