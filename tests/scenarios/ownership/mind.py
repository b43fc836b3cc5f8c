"""The agent that everybody talks to: it tells all that it heard."""

import asyncio
import re
from typing import Any

from agent_framework import Content, Message, tool

from tests.scenarios.responses.cast import build_answering, call

_TAG = re.compile(r"<(\w+/\w+):\d+>")


def owners_in(text: str) -> set[str]:
    """Whose words are in a text."""
    return set(_TAG.findall(text))


class Mind:
    """The agent: it says all that it heard, pays when it is told to and allowed to, and waits when it is told to."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.waiting: list[str] = []
        self.go_on = asyncio.Event()
        self.heard_together: set[str] = set()
        """Who was heard in one and the same run."""
        self._calls = 0

    def agent(self) -> Any:
        @tool(approval_mode="always_require")
        def pay(what: str) -> str:
            """Pays."""
            self.paid.append(what)
            return f"paid {what}"

        @tool(approval_mode="never_require")
        async def hold(what: str) -> str:
            """Waits."""
            self.waiting.append(what)
            await self.go_on.wait()
            return f"held {what}"

        return build_answering(self._answer, tools=[pay, hold])

    def _answer(self, messages: list[Message]) -> list[Content | str]:
        heard = " ".join(message.text for message in messages)
        if len(owners_in(heard)) > 1:
            self.heard_together |= owners_in(heard)
        self._calls += 1
        text = messages[-1].text
        if text.startswith("pay"):
            return [call("pay", f"call_{self._calls}", what=text)]
        if text.startswith("wait") and text not in self.waiting:
            return [call("hold", f"call_{self._calls}", what=text)]
        return [f"heard {heard}"]


def summary(messages: list[Message]) -> str:
    """What stands for a conversation."""
    return "summary of " + " ".join(message.text for message in messages)
