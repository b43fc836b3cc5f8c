"""Every channel of the house keeps the channel contract."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx

from frontdesk.channels.agui import AGUIChannel
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk_testing import ChannelContract, parse_sse


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
