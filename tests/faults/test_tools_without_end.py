"""One request brought 8,000 tools of its own, and nobody else was answered for 15 seconds."""

from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.channels.responses.parse import MAX_TOOLS
from frontdesk_testing import serving
from tests.scenarios.cast import parrot


def _body(count: int) -> dict[str, Any]:
    tools = [{"type": "function", "name": f"tool_{number}", "parameters": {}} for number in range(count)]
    return {"model": "any", "input": "hello", "tools": tools}


@pytest.mark.parametrize(("count", "status"), [(MAX_TOOLS, 200), (MAX_TOOLS + 1, 400), (8_000, 400)])
async def test_a_request_brings_only_so_many_tools(count: int, status: int) -> None:
    agent = parrot()
    async with serving(AgentFrameworkHost(target=agent, channels=[ResponsesChannel()])) as client:
        response = await client.http.post("/responses", json=_body(count))
        assert response.status_code == status
        if status == 400:
            assert response.json()["error"]["param"] == "tools"
            assert not agent.client.seen
