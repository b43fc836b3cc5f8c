"""A client of AG-UI that keeps its transcript as `HttpAgent` does, and checks every event by the protocol's types."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
from ag_ui.core import Event
from pydantic import TypeAdapter

from frontdesk import AgentFrameworkHost
from frontdesk.channels.agui import AGUIChannel
from frontdesk_testing import parse_sse, serving

_EVENTS: TypeAdapter[Any] = TypeAdapter(Event)


def checked(content: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream. Each has the form of the protocol, and no optional field is null."""
    events = [event.json() for event in parse_sse(content)]
    for event in events:
        parsed = _EVENTS.validate_python(event)
        known = _EVENTS.dump_python(parsed, by_alias=True, mode="json")
        assert {name: value for name, value in event.items() if value is not None} == event
        assert set(event) <= set(known)
    return events


def text_of(events: Sequence[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def interrupts(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    outcome = events[-1]["outcome"]
    assert outcome["type"] == "interrupt"
    return outcome["interrupts"]


def said(text: str, message_id: str | None = None) -> dict[str, Any]:
    return {"id": message_id or str(uuid4()), "role": "user", "content": text}


class AGUIClient:
    """A page with one thread."""

    def __init__(self, http: httpx.AsyncClient, thread_id: str | None = None, **headers: str) -> None:
        self.http, self.headers = http, {name.replace("_", "-"): value for name, value in headers.items()}
        self.thread_id = thread_id or str(uuid4())
        self.messages: list[dict[str, Any]] = []
        self.state: Any = {}
        self.tools: list[dict[str, Any]] = []
        self.run_id = ""

    def input(self, **more: Any) -> dict[str, Any]:
        self.run_id = str(uuid4())
        return {
            "threadId": self.thread_id,
            "runId": self.run_id,
            "protocolVersion": "1.0",
            "state": self.state,
            "messages": self.messages,
            "tools": self.tools,
            "context": [],
            "forwardedProps": {},
            **more,
        }

    async def post(self, **more: Any) -> httpx.Response:
        return await self.http.post("/agui", json=self.input(**more), headers=self.headers)

    async def run(self, text: str | None = None, **more: Any) -> list[dict[str, Any]]:
        """Send a message, and add what comes back to the transcript."""
        if text is not None:
            self.messages.append(said(text))
        answer = await self.post(**more)
        assert answer.status_code == 200, answer.text
        events = checked(answer.content)
        self.apply(events)
        return events

    async def resume(self, *entries: tuple[str, Any], **more: Any) -> list[dict[str, Any]]:
        """Answer interrupts. A payload of None cancels one."""
        return await self.run(resume=resumed(*entries), **more)

    def apply(self, events: Sequence[dict[str, Any]]) -> None:
        for event in events:
            kind = event["type"]
            if kind in ("TEXT_MESSAGE_START", "TOOL_CALL_START"):
                self._assistant(event["messageId" if kind == "TEXT_MESSAGE_START" else "parentMessageId"])
            if kind == "TEXT_MESSAGE_CONTENT":
                self._assistant(event["messageId"])["content"] += event["delta"]
            if kind == "TOOL_CALL_START":
                function = {"name": event["toolCallName"], "arguments": ""}
                call = {"id": event["toolCallId"], "type": "function", "function": function}
                calls = self._assistant(event["parentMessageId"]).setdefault("toolCalls", [])
                assert all(one["id"] != call["id"] for one in self._calls())
                calls.append(call)
            if kind == "TOOL_CALL_RESULT":
                result = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
                self.messages.append({**result, "content": event["content"]})
            if kind == "STATE_SNAPSHOT":
                self.state = event["snapshot"]
            if kind == "MESSAGES_SNAPSHOT":
                self.messages = list(event["messages"])

    def _calls(self) -> list[dict[str, Any]]:
        return [call for message in self.messages for call in message.get("toolCalls", ())]

    def _assistant(self, message_id: str) -> dict[str, Any]:
        for message in self.messages:
            if message["id"] == message_id:
                return message
        self.messages.append({"id": message_id, "role": "assistant", "content": ""})
        return self.messages[-1]

    def add_result(self, call_id: str, content: str) -> None:
        self.messages.append({"id": str(uuid4()), "role": "tool", "toolCallId": call_id, "content": content})

    async def thread(self, **query: str) -> dict[str, Any]:
        headers = {**self.headers, "accept": "application/json"}
        answer = await self.http.get(f"/agui/threads/{self.thread_id}", params=query, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def reconnect(self, **query: str) -> list[dict[str, Any]]:
        answer = await self.http.get(f"/agui/threads/{self.thread_id}", params=query, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return checked(answer.content)


def resumed(*entries: tuple[str, Any]) -> list[dict[str, Any]]:
    return [
        {"interruptId": name, "status": "cancelled"}
        if payload is None
        else {"interruptId": name, "status": "resolved", "payload": payload}
        for name, payload in entries
    ]


@asynccontextmanager
async def open_page(target: Any, channel: AGUIChannel | None = None, **settings: Any) -> AsyncGenerator[AGUIClient]:
    """A page of a host with one channel."""
    host = AgentFrameworkHost(target, channels=[channel or AGUIChannel()], **settings)
    async with serving(host) as client:
        yield AGUIClient(client.http)
