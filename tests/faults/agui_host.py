"""A host with the AG-UI channel in a process of its own. Its tool writes what it has paid into a file.

Its settings are JSON: `root`, `port`, and with a `dsn` the state is in Postgres. People of finance approve what others
ask, if `approver` is set. `slow` makes the tool wait forever.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRole, ApproverRule, ChannelIdentity
from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.interfaces.auth import Principal
from frontdesk.scripted import ScriptedChatClient
from frontdesk.stores.sql.postgres.engine import PostgresStateStore
from frontdesk_testing.messages import MessageChannel


class Badges:
    """Credentials that prove a name and the groups of a person: `ada`, or `bob.finance`."""

    name = "badges"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        name, *groups = headers.get(b"x-badge", b"").decode().split(".")
        return Principal(id=name, claims={"groups": groups}) if name else None


def approved_by_finance() -> dict[str, Any]:
    """Return the settings with which the tool `pay` is approved by people of finance only, on any channel."""
    bob = ChannelIdentity(channel="messages", native_id="bob")
    role = ApproverRole(name="finance", people=[bob], claim="groups", values=["finance"])
    return {"approvals": ApprovalOptions(tools={"pay": ApproverRule(approvers=[role], exclude_requester=True)})}


def build_chat() -> MessageChannel:
    """Return the chat of an approver, whose platform is away."""
    return MessageChannel(platform_url="http://127.0.0.1:1", token="a-token", secret="the-secret-of-the-platform")


def build_agent(root: Path, *, slow: bool) -> Any:
    @tool(approval_mode="always_require")
    async def pay(amount: int) -> str:
        """Pays."""
        note(amount)
        if slow:
            await asyncio.Event().wait()
        return f"paid {amount}"

    def note(amount: int) -> None:
        with (root / "paid").open("a") as paid:
            paid.write(f"{amount}\n")

    def reply(messages: Any) -> Any:
        last = messages[-1]
        results = [str(content.result) for content in last.contents if content.type == "function_result"]
        if results:
            return " and ".join(results)
        return [
            Content.from_function_call(f"c{amount}-{len(messages)}", "pay", arguments=json.dumps({"amount": amount}))
            for amount in map(int, last.text.split())
        ]

    return Agent(client=ScriptedChatClient(reply), name="Bank", tools=[pay])


def main(settings: str) -> None:
    """Serve until the process is killed."""
    given: dict[str, Any] = json.loads(settings)
    root = Path(given["root"])
    place: dict[str, Any] = {"state_dir": root / "state"}
    if "dsn" in given:
        timeouts: dict[str, Any] = {"lease_seconds": 5.0, "statement_timeout": 3.0, "connect_timeout": 1.5}
        place = {"store": PostgresStateStore(given["dsn"], **timeouts)}
    if given.get("approver"):
        place |= approved_by_finance()
    host = AgentFrameworkHost(
        build_agent(root, slow=bool(given.get("slow"))),
        channels=[AGUIChannel(auth=Badges()), InvocationsChannel(auth=Badges()), build_chat()],
        **place,
    )
    host.serve(port=given["port"], log_level="critical")
