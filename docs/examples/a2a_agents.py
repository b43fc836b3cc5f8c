"""Two agents: a concierge asks a cashier over A2A, a person approves on a page, and the answer comes back."""

import json
import os

import httpx
from agent_framework import Agent, Content, tool

from frontdesk import AgentFrameworkHost, ApiKeyAuth, ApprovalOptions, ApproverRole, ApproverRule, ChannelCommand
from frontdesk.channels.a2a import A2AChannel, AgentSkill
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.web import WebChatChannel
from frontdesk.scripted import ScriptedChatClient

KEY = "the-key-of-the-concierge"
on_duty = []


@tool(approval_mode="always_require")
def refund(amount: int) -> str:
    """Pays money back."""
    return f"Refunded {amount} euros."


def cashier_reply(messages):
    results = [str(content.result) for content in messages[-1].contents if content.type == "function_result"]
    if results:
        return results[0]
    return [Content.from_function_call("call-1", "refund", arguments=json.dumps({"amount": 120}))]


async def take_duty(context):
    on_duty[:] = [context.caller.identity]
    await context.reply("You are on duty. You are asked here when money goes out.")


manager = ApproverRole(name="the manager on duty", people=lambda question: on_duty)
cashier = AgentFrameworkHost(
    target=Agent(client=ScriptedChatClient(cashier_reply), name="Cashier", tools=[refund]),
    channels=[
        A2AChannel(
            auth=ApiKeyAuth({"concierge": KEY}),
            skills=[AgentSkill(id="refunds", name="Refunds", description="Pays money back.", tags=["money"])],
        ),
        WebChatChannel(title="Duty", commands=[ChannelCommand("duty", "Be the one who is asked.", take_duty)]),
    ],
    approvals=ApprovalOptions(tools={"refund": ApproverRule(approvers=[manager], exclude_requester=True)}),
)


@tool(approval_mode="never_require")
async def ask_the_cashier(question: str) -> str:
    """Asks the cashier and waits until a person has decided."""
    headers = {"A2A-Version": "1.0", "x-api-key": KEY}
    url = os.environ.get("CASHIER_URL", "http://127.0.0.1:8000")
    async with httpx.AsyncClient(base_url=f"{url}/a2a/v1", headers=headers, timeout=3600) as client:
        message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": question}]}
        task = (await client.post("/message:send", json={"message": message})).raise_for_status().json()["task"]
        if task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED":
            async with client.stream("POST", f"/tasks/{task['id']}:subscribe") as events:
                async for _ in events.aiter_lines():
                    pass
            task = (await client.get(f"/tasks/{task['id']}")).raise_for_status().json()
    return "".join(part.get("text", "") for artifact in task["artifacts"] for part in artifact["parts"])


def concierge_reply(messages):
    results = [str(content.result) for content in messages[-1].contents if content.type == "function_result"]
    if results:
        return f"The cashier says: {results[0]}"
    if "charged" not in messages[-1].text:
        return "Say “I was charged twice” if something went wrong."
    arguments = json.dumps({"question": messages[-1].text})
    return [Content.from_function_call("call-1", "ask_the_cashier", arguments=arguments)]


host = AgentFrameworkHost(
    target=Agent(client=ScriptedChatClient(concierge_reply), name="Concierge", tools=[ask_the_cashier]),
    channels=[WebChatChannel(title="Concierge"), InvocationsChannel()],
)
