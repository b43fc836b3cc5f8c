"""Messages that nobody would send: each gets its answer, and the connection stays what it was."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.channels.responses import schema
from tests.examples import examples
from tests.scenarios.responses.cast import parrot
from tests.scenarios.responses.desk import open_client
from tests.scenarios.responses.sockets import LAST, dial, extract_text
from tests.scenarios.stores import choose

# It draws examples until it has enough, and other processes may use the same cores.
pytestmark = pytest.mark.timeout(300)

FIELDS = sorted({*schema.CreateBody.__struct_fields__, *schema.SocketEvent.__struct_fields__, "unknown"} - {"type"})
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
JSON = st.recursive(
    LEAVES, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=8), one, max_size=3), max_leaves=8
)
CREATES = st.fixed_dictionaries(
    {"type": st.just("response.create")}, optional={name: JSON for name in FIELDS if name != "input"}
).flatmap(lambda body: st.sampled_from(["x", [], [{}], None]).map(lambda said: {**body, "input": said}))
MESSAGES = st.one_of(CREATES, JSON, st.text(max_size=50), st.binary(max_size=50))


@examples(40)
@given(messages=st.lists(MESSAGES, max_size=8))
def test_every_message_has_an_answer(messages: list[Any]) -> None:
    choose("memory", Path())
    asyncio.run(_play(messages))


async def _play(messages: list[Any]) -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        for message in messages:
            await line.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
            ends = await line.until(*LAST, "response.queued")
            assert ends[-1].get("status", 400) < 500, (message, ends[-1])
        assert extract_text(await line.response("still there")) == "you said still there"
