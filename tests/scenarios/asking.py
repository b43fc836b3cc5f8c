"""A target that makes up the ids of its questions itself, and may wait before it asks."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_framework import AgentResponse, Content, Message


class Clerk:
    """Asks before it pays, under the ids that it was given; a turn may ask several questions at once."""

    def __init__(self, *turns: Any) -> None:
        self._turns = iter(turns)
        self.paid: list[int] = []
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def answer(self, messages: list[Message]) -> Any:
        """`pay 5` asks; a yes pays; `wait` is no question."""
        said = messages[-1]
        self.began.set()
        await self.go_on.wait()
        answers = [one for one in said.contents if one.type == "function_approval_response"]
        for one in answers:
            given: Any = None if one.function_call is None else one.function_call.parse_arguments()
            if one.approved:
                self.paid.append(given["amount"])
        if answers:
            return "done"
        ids = next(self._turns) if said.text.startswith("pay") else ()
        amounts = [int(one) for one in said.text.split() if one.isdigit()]
        return _ask(ids, amounts) if amounts else "waited"


def _ask(ids: Any, amounts: Sequence[int]) -> AgentResponse[Any]:
    many = ids if isinstance(ids, list) else [ids]
    requests = [
        Content.from_function_approval_request(one, Content.from_function_call(f"call-{place}", "pay", arguments=given))
        for place, (one, given) in enumerate(zip(many, ({"amount": amount} for amount in amounts), strict=True))
    ]
    return AgentResponse(messages=[Message("assistant", requests)])
