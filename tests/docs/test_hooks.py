"""What the page on hooks says is so."""

from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import serving
from tests.docs.pages import ROOT, blocks
from tests.docs.running import module_of
from tests.scenarios.cast import call
from tests.scenarios.test_approvals import Bank

PAGE = ROOT / "docs/guides/hooks.md"


def _first_hook() -> Any:
    block = next(one for one in blocks("python") if one.page == PAGE)
    return module_of(str(block), compile(block.text, str(block), "exec"))["later"]


async def test_the_first_hook_of_the_page_failed_on_an_approval() -> None:
    hook, bank = _first_hook(), Bank()
    agent = bank.agent([call("pay", amount=5)], ["done"])
    async with serving(AgentFrameworkHost(agent, channels=[InvocationsChannel(run_hook=hook)])) as client:
        asked = await client.http.post("/invocations", json={"message": "pay"})
        answer = {"id": asked.json()["approvals"][0]["id"], "approved": True}
        given = await client.http.post("/invocations", json={"approval": answer})
        assert (given.status_code, bank.paid) == (200, [5]), given.text
        long = await client.http.post("/invocations", json={"message": "pay" * 1000})
        assert long.json()["status"] == "queued"


@pytest.mark.parametrize("door", [InvocationsChannel, ResponsesChannel])
async def test_an_approval_has_no_input_unless_something_is_said_besides(door: Any) -> None:
    seen: list[Any] = []

    def hook(request: Any, **_: Any) -> Any:
        seen.append((request.operation, request.input or None, len(request.approvals)))
        return request

    agent = Bank().agent([call("pay", amount=5)], ["done"])
    async with serving(AgentFrameworkHost(agent, channels=[door(run_hook=hook)])) as client:
        if door is InvocationsChannel:
            (question,) = (await client.http.post("/invocations", json={"message": "pay"})).json()["approvals"]
            body: Any = {"approval": {"id": question["id"], "approved": True}}
        else:
            (question,) = (await client.http.post("/responses", json={"input": "pay"})).json()["output"]
            answer = {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}
            body = {"input": [answer]}
        path = "/invocations" if door is InvocationsChannel else "/responses"
        assert (await client.http.post(path, json=body)).status_code == 200
    assert seen[1:] == [("approval", None, 1)]
