"""What the page about the Responses API says of WebSockets and of compaction is what the code does."""

import re
from typing import Any

from openai import AsyncOpenAI

from frontdesk.channels.responses import schema, socket
from frontdesk.http import sockets
from frontdesk.http import sockets as message_queues
from frontdesk_testing import serving
from tests.docs.pages import ROOT, tables
from tests.docs.running import example
from tests.docs.test_examples import direct, find_example
from tests.docs.test_reference import spans
from tests.docs.test_responses_reference import PAGE, ROOM

SOCKET_PAGE = ROOT / "docs/reference/responses-websocket.md"


def test_the_limits_are_those_of_the_code() -> None:
    """`test_reference_tables.py` checks the limits that are parameters."""
    rows = {what: much for what, much, _ in tables(PAGE)["Limits"]}
    assert rows["lanes of a WebSocket"].split()[0] == f"{message_queues.MAX_LANES}"
    assert rows["messages that wait on a WebSocket"].split(",")[0] == f"{message_queues.MAX_WAITING}"
    assert rows["responses that only a WebSocket remembers"].split(",")[0] == f"{socket.MAX_STORED}"


def test_every_message_and_every_close_code_is_documented() -> None:
    text = SOCKET_PAGE.read_text("utf-8").partition("\n## SocketLimits\n")[0]
    cells = re.findall(r"^\| (\S+) \|", text, re.MULTILINE)
    source = (ROOM / "socket.py").read_text("utf-8")
    taken = set(re.findall(r'event\.type == "(response\.\w+)"', source))
    assert {spans(cell)[0] for cell in cells if cell.startswith("`response.")} == taken
    codes = {sockets.BYE, sockets.POLICY, sockets.TOO_LARGE, sockets.BROKEN, sockets.RESTART}
    assert {int(cell) for cell in cells if cell.isdigit()} == codes
    assert f"after {sockets.MAX_REJECTED_MESSAGES} errors" in text


def test_every_field_of_compact_is_documented() -> None:
    text = PAGE.read_text("utf-8").partition("\n## Compact\n")[2].partition("\n## ")[0]
    # Which model writes the summary, and how it caches, is the operator's.
    named = set(schema.CompactBody.__struct_fields__) - {"model", "prompt_cache_key"}
    assert named <= set(spans(text))


async def test_the_example_compacts_as_the_operator_wants_it() -> None:
    async with (
        serving(example(find_example("compactor"))) as client,
        AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="any", http_client=direct()) as api,
    ):
        first = await api.responses.create(model="any", input="good day")
        compacted = await api.responses.compact(model="any", previous_response_id=first.id)
        history: list[Any] = [item.to_dict(warnings=False) for item in compacted.output]
        answer = await api.responses.create(model="any", input=[*history, {"role": "user", "content": "and"}])
    assert answer.output_text == "message 3"
