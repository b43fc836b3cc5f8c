"""The small channel that a page builds keeps the channel contract."""

from typing import Any

import httpx

from frontdesk_testing import ChannelContract
from tests.contracts.plain_channel import PlainChannel


class TestPlain(ChannelContract):
    path = "/plain"

    def channel(self, **settings: Any) -> PlainChannel:
        return PlainChannel(**{name: value for name, value in settings.items() if value is not None})

    def message(self, text: str) -> Any:
        return {"text": text}

    def run_id(self, answer: httpx.Response) -> str:
        return answer.json()["id"]

    def error_text(self, response: httpx.Response) -> str:
        assert response.headers["content-type"] == "application/json"
        return response.json()["error"]["message"]
