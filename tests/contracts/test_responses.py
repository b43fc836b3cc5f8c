"""The Responses channel keeps the channel contract, at both of its paths."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from frontdesk.channels.responses import ResponsesChannel
from frontdesk.testing import ChannelContract


class TestResponses(ChannelContract):
    path = "/v1/responses"

    def channel(self, **settings: Any) -> ResponsesChannel:
        return ResponsesChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"input": text}

    def run_id(self, answer: httpx.Response) -> str:
        return answer.json()["id"]

    def calls_about(self, run_id: str) -> Sequence[tuple[str, str]]:
        return [("GET", f"{self.path}/{run_id}"), ("POST", f"{self.path}/{run_id}/cancel")]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert list(body) == ["error"]
        assert set(body["error"]) == {"message", "type", "param", "code"}
        assert isinstance(body["error"]["type"], str)
        return body["error"]["message"]


class TestResponsesWithoutTheVersion(TestResponses):
    path = "/responses"


class TestResponsesElsewhere(TestResponses):
    path = "/desk/v1/responses"

    def channel(self, **settings: Any) -> ResponsesChannel:
        channel = super().channel(**settings)
        channel.path = "/desk"
        return channel
