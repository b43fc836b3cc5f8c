"""Found by an attacker: wide values took 72 times their bytes, and only bytes were counted.

Memory is measured in a new process for each case (`memory_probe.py`). The bounds leave much room above the budget: what
they fail for is several times as much.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost, HttpLimits
from frontdesk.asgi.messages import MAX_SMALL_JSON_BYTES, BodyBudget, BodyHold, count_charged
from frontdesk.channels.chat_completions import ChatCompletionsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import RequestError
from frontdesk.json_size import VALUE_BYTES, estimate_memory
from frontdesk_testing import GatedAgent, serving

BUDGET_MIB = (HttpLimits().max_bytes_per_caller or 0) / 2**20
ROOT = Path(__file__).parents[2]


async def measure(*arguments: str) -> tuple[float, dict[str, int]]:
    """Return by how many MiB a host grew, and the outcomes of the requests that it got."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.memory_probe", *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    measured = json.loads(printed.splitlines()[-1])
    return measured["mib"], measured["outcomes"]


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of a process's peak differs by system")
class TestMemory:
    @pytest.mark.parametrize(
        "arguments",
        [("bodies", "/v1/responses"), ("bodies", "/v1/chat/completions"), ("sockets", "/v1/responses")],
        ids=" ".join,
    )
    async def test_wide_bodies_took_more_memory_than_the_budget_of_their_caller(
        self, arguments: tuple[str, str]
    ) -> None:
        mib, outcomes = await measure(*arguments)
        assert outcomes == {"200": 2, "429 too_many_requests": 18}
        assert mib < 3 * BUDGET_MIB


SMALL_BUDGET = HttpLimits(max_bytes_per_caller=1_000_000, max_bytes=4_000_000)
LONG = "x" * 900_000


def parts(kind: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": kind, "text": "a"}] * 200}]


LONG_AND_WIDE: dict[str, tuple[Any, Any]] = {
    "/v1/responses": ({"input": LONG}, {"input": parts("input_text")}),
    "/v1/chat/completions": ({"messages": [{"role": "user", "content": LONG}]}, {"messages": parts("text")}),
    "/invocations": ({"message": LONG}, {"message": parts("text")}),
}


class TestValues:
    @pytest.mark.parametrize("has_length", [True, False])
    @pytest.mark.parametrize("path", list(LONG_AND_WIDE))
    async def test_values_of_bodies_were_not_counted(self, path: str, has_length: bool) -> None:
        agent = GatedAgent()
        long, wide = (json.dumps(body, separators=(",", ":")).encode() for body in LONG_AND_WIDE[path])
        assert MAX_SMALL_JSON_BYTES < len(wide) < 10_000, "its bytes alone do not count"
        kinds = (InvocationsChannel, ResponsesChannel, ChatCompletionsChannel)
        host = AgentFrameworkHost(agent, channels=[kind(limits=SMALL_BUDGET) for kind in kinds])

        async def pieces(body: bytes) -> AsyncIterator[bytes]:
            yield body[:100]
            yield body[100:]

        async with serving(host) as client:

            def post(body: bytes) -> Any:
                content = body if has_length else pieces(body)
                return client.http.post(path, content=content, headers={"content-type": "application/json"})

            first = asyncio.create_task(post(long))
            await agent.started.wait()
            refused = await post(wide)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            agent.release.set()
            assert (await first).status_code == 200
            assert (await post(wide)).status_code != 429

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            (b'{"input":"' + b"a, [b] {c} " * 10_000 + b'"}', 2),
            (b'{"input":"' + b'\\", ' * 10_000 + b'"}', 2),
            (b"[" + b"0," * 9_999 + b"0]", 10_001),
            (b"[" + b'{"a":0},' * 9_999 + b"{}]", 20_001),
        ],
        ids=["a text", "quotes in a text", "numbers", "objects"],
    )
    def test_punctuation_of_texts_counted_as_values(self, text: bytes, values: int) -> None:
        assert estimate_memory(text) == count_charged(text) == len(text) + values * VALUE_BYTES

    def test_one_wide_body_larger_than_the_budget_was_never_let_in(self) -> None:
        budget = BodyBudget(1_000, 500)
        hold = BodyHold(budget, ("api", "alice"))
        hold.add(400)
        hold.add(100 * VALUE_BYTES)
        with pytest.raises(RequestError):
            BodyHold(budget, ("api", "alice")).add(1)
