"""The MCP channel keeps the channel contract, as the older version of the protocol without sessions."""

import json
from typing import Any

import httpx
import pytest

from frontdesk import ChannelRequest, ForbiddenError
from frontdesk.channels.mcp import MCPChannel, MCPTool
from frontdesk_testing import ChannelContract
from frontdesk_testing.agents import FailingAgent

SECRET = "the password is swordfish"


def message_in(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON-RPC message of a response: JSON, or the last event of a stream."""
    if response.headers["content-type"].startswith("text/event-stream"):
        return json.loads([line for line in response.text.splitlines() if line.startswith("data: {")][-1][6:])
    return response.json()


class TestMCP(ChannelContract):
    path = "/mcp"

    def channel(self, **settings: Any) -> MCPChannel:
        given = {name: value for name, value in settings.items() if value is not None}
        return MCPChannel(stateless=True, tools=[MCPTool(name="ask", description="Asks.")], **given)

    def message(self, text: str) -> Any:
        params = {"name": "ask", "arguments": {"message": text}}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    def run_id(self, answer: httpx.Response) -> str:
        return message_in(answer)["result"]["structuredContent"]["run_id"]

    def error_text(self, response: httpx.Response) -> str:
        message = message_in(response)
        assert set(message) == {"jsonrpc", "id", "error"}
        assert isinstance(message["error"]["code"], int)
        return message["error"]["message"]

    def failure_text(self, response: httpx.Response) -> str:
        return message_in(response)["result"]["structuredContent"]["text"]

    # An answered message has the status 200: its errors are in the message.

    @pytest.mark.parametrize("error", [RuntimeError(SECRET), KeyError(SECRET)], ids=["runtime", "key"])
    async def test_a_hook_that_fails_is_a_422(self, error: Exception) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
            raise error

        async with self.serve(self.channel(run_hook=hook)) as served:
            answer = await self.post(served.http)
            result = message_in(answer)["result"]
            assert result["isError"]
            assert SECRET not in answer.text
            assert served.untouched()

    async def test_a_hook_may_say_no_in_its_own_words(self) -> None:
        def hook(request: ChannelRequest, *, target: Any, protocol_request: Any) -> ChannelRequest:
            raise ForbiddenError("Not on Sundays.")

        async with self.serve(self.channel(run_hook=hook)) as served:
            answer = await self.post(served.http)
            assert self.error_text(answer) == "Not on Sundays."
            assert message_in(answer)["error"]["data"]["status"] == 403
            assert served.untouched()

    async def test_a_target_that_fails_is_told_without_the_reason_and_not_tried_again(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with self.serve(self.channel(), FailingAgent(RuntimeError(SECRET))) as served:
            answer = await self.post(served.http)
            assert answer.status_code == 200
            assert message_in(answer)["result"]["isError"]
            assert self.failure_text(answer)
            assert SECRET not in answer.text
            assert SECRET in caplog.text
