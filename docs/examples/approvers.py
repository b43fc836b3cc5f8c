"""Asks whoever is on duty before a tool runs: `/duty` on the page makes its visitor the one who is asked."""

import json

from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, ApprovalOptions, ApproverRole, ApproverRule, ChannelCommand, ChannelIdentity
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.scripted import ScriptedChatClient

on_duty: list[ChannelIdentity] = []


@tool(approval_mode="always_require")
def refund(amount: int, guest: str) -> str:
    """Pays money back."""
    return f"Refunded {amount} euros to {guest}."


def reply(messages):
    last = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    if results:
        return results[0]
    if "refund" in last.text:
        arguments = json.dumps({"amount": 120, "guest": "Ada"})
        return [Content.from_function_call("call-1", "refund", arguments=arguments)]
    return "Say “refund” if something went wrong."


async def take_duty(context):
    on_duty[:] = [context.caller.identity]
    await context.reply("You are on duty. You are asked here when money goes out.")


manager = ApproverRole(name="the manager on duty", people=lambda question: on_duty)
rule = ApproverRule(approvers=[manager], exclude_requester=True)
agent = Agent(client=ScriptedChatClient(reply), name="Cashier", tools=[refund])
page = WebChatChannel(title="Duty", commands=[ChannelCommand("duty", "Be the one who is asked.", take_duty)])
host = AgentFrameworkHost(
    target=agent,
    channels=[InvocationsChannel(), page],
    approvals=ApprovalOptions(tools={"refund": rule}, seconds=3600),
)
