"""The host that clients of others are tried on: one agent behind the OpenAI APIs and A2A, with a script for a model."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from agent_framework import Agent, Content, Message, tool

from frontdesk import AgentFrameworkHost
from frontdesk.channels.a2a import A2AChannel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.scripted import ScriptedChatClient

SHELL = "const said = await tools.exec_command({cmd: 'echo from the shell'}); text(said);"
"""The program that the Codex CLI is asked to run."""
_charged: Counter[str] = Counter()


@tool(approval_mode="never_require")
def charge(order: str) -> str:
    """Charge an order, and count how often."""
    _charged[order] += 1
    return "charged"


@tool(approval_mode="always_require")
def refund(amount: str) -> str:
    """Pay money back."""
    return f"refunded {amount}"


def reply(messages: Sequence[Message]) -> list[Content]:
    """Answer as the words of the last message ask, and count tokens as a model does."""
    said = _answer(messages)
    words = [Content.from_text(word) for word in re.findall(r"\S+\s*", said)] if isinstance(said, str) else said
    return [*words, Content.from_usage({"input_token_count": 7, "output_token_count": 3, "total_token_count": 10})]


def _answer(messages: Sequence[Message]) -> str | list[Content]:
    last = messages[-1]
    results = [str(content.result) for content in last.contents if content.type == "function_result"]
    if results == ["charged"]:
        raise RuntimeError("the model is away")
    if results:
        return f"The tool said: {results[-1]}"
    said = [message.text for message in messages if message.role == "user"]
    # Of the last question, whatever follows it: a client that asks again may send what it got of the first answer.
    if order := re.search(r"charge (\S+)", said[-1]):
        return _call("charge", order=order[1])
    if amount := re.search(r"refund (\S+)", said[-1]):
        return _call("refund", amount=amount[1])
    if order := re.search(r"charges of (\S+)", said[-1]):
        return str(_charged[order[1]])
    if "shell" in last.text:
        return _call("functions__exec", input=SHELL)
    if "lamp" in last.text:
        return _call("switch_lamp", on=True)
    if "room" in last.text:
        return json.dumps({"number": 12, "view": "sea"})
    if any(content.type in ("data", "uri") for content in last.contents):
        return "I see a picture."
    return f"You said {said[-1]} after {len(said) - 1} others."


def _call(name: str, **arguments: Any) -> list[Content]:
    return [Content.from_function_call(f"call_{name}", name, arguments=json.dumps(arguments))]


def build_host() -> AgentFrameworkHost:
    """Build it; anyone on this machine may call it."""
    agent = Agent(client=ScriptedChatClient(reply), name="Concierge", tools=[charge, refund])
    return AgentFrameworkHost(agent, channels=[ResponsesChannel(), ChatCompletionsChannel(), A2AChannel()])
