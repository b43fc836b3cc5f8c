"""Every channel of the house keeps the channel contract."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx

from frontdesk.channels.a2a import A2AChannel
from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import ChannelContract, parse_sse
from frontdesk_testing.channel_driver import ServedChannel


class TestInvocations(ChannelContract):
    path = "/invocations"

    def channel(self, **settings: Any) -> InvocationsChannel:
        return InvocationsChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"message": text}

    def run_id(self, answer: httpx.Response) -> str:
        assert answer.headers["x-agent-invocation-id"] == answer.json()["id"]
        return answer.json()["id"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        return [("GET", f"/invocations/{run_id}"), ("POST", f"/invocations/{run_id}/cancel")]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "param", "id"}
        assert all(isinstance(value, str) for value in body["error"].values())
        return body["error"]["message"]


class TestAGUI(ChannelContract):
    path = "/agui"

    def channel(self, **settings: Any) -> AGUIChannel:
        return AGUIChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        message = {"id": str(uuid4()), "role": "user", "content": text}
        return {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": [message]}

    def run_id(self, answer: httpx.Response) -> str:
        if answer.headers["content-type"] == "application/json":
            return answer.json()["runId"]
        first, *_, last = [event.json() for event in parse_sse(answer.content)]
        assert (first["type"], last["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        return first["runId"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        return [("POST", f"/agui/runs/{run_id}/cancel")]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "param"}
        assert all(isinstance(value, str) for value in body["error"].values())
        return body["error"]["message"]

    def failure_text(self, response: httpx.Response) -> str:
        *_, last = [event.json() for event in parse_sse(response.content)]
        assert last["type"] == "RUN_ERROR"
        return last["message"]


class TestChatCompletions(ChannelContract):
    path = "/v1/chat/completions"

    def channel(self, **settings: Any) -> ChatCompletionsChannel:
        return ChatCompletionsChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"model": "m", "messages": [{"role": "user", "content": text}]}

    def run_id(self, answer: httpx.Response) -> str:
        return answer.json()["id"]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert isinstance(body["error"]["type"], str)
        return body["error"]["message"]


class TestChatCompletionsElsewhere(TestChatCompletions):
    path = "/desk/chat/completions"

    def channel(self, **settings: Any) -> ChatCompletionsChannel:
        return super().channel(path="/desk", **settings)


class TestA2A(ChannelContract):
    """The HTTP+JSON binding, whose errors have HTTP statuses. `tests/channels/a2a` has JSON-RPC."""

    path = "/a2a/v1/message:send"

    def channel(self, **settings: Any) -> A2AChannel:
        return A2AChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"message": {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}}

    def run_id(self, answer: httpx.Response) -> str:
        body = answer.json()
        return body["task"]["id"] if "task" in body else body["id"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        return [("GET", f"/a2a/v1/tasks/{run_id}")]

    @asynccontextmanager
    async def serve(self, channel: Any, target: Any = None, **settings: Any) -> AsyncGenerator[ServedChannel]:
        async with super().serve(channel, target, **settings) as served:
            served.http.headers["A2A-Version"] = "1.0"
            yield served

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert set(body["error"]) == {"code", "status", "message", "details"}
        assert body["error"]["code"] == response.status_code
        return body["error"]["message"]

    def failure_text(self, response: httpx.Response) -> str:
        return response.json()["task"]["status"]["message"]["parts"][0]["text"]

    async def test_a_client_that_leaves_takes_its_run_along(self) -> None:
        """A task goes on: `tests/channels/a2a/test_tasks.py`."""
