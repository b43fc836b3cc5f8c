"""A streaming caller receives events when a hook sends the answer elsewhere (AUDIT 272)."""

from typing import Any

import pytest

from frontdesk import ChannelRequest, ResponseTarget
from tests.scenarios.cast import echo
from tests.scenarios.desk import until
from tests.scenarios.responses.customers import AsyncCustomer
from tests.scenarios.responses.desk import open_client


def elsewhere(request: ChannelRequest, **_: Any) -> ChannelRequest:
    return request.replace(response_target=ResponseTarget.none)


def background(request: ChannelRequest, **_: Any) -> ChannelRequest:
    return request.replace(background=True, stream=False)


@pytest.mark.parametrize("hook", [elsewhere, background])
async def test_audit_272_a_streaming_caller_got_json_and_no_event(hook: Any) -> None:
    async with open_client(echo, run_hook=hook) as desk:
        customer = AsyncCustomer(desk)
        events = await customer.events("hello")
        assert [event.type for event in events] == ["response.created", "response.queued"]
        assert [event.sequence_number for event in events] == [0, 1]
        assert {event.response.status for event in events} == {"queued"}
        (response_id,) = {event.response.id for event in events}

        async def is_done() -> bool:
            return (await customer.retrieve(response_id)).status == "completed"

        await until(is_done)
        assert (await customer.retrieve(response_id)).output_text == "you said hello"
        raw = await desk.post({"input": "hello", "stream": True})
        assert raw.headers["content-type"].startswith("text/event-stream")
        # A caller without a stream reads the same as before.
        whole = await desk.post({"input": "hello"})
        assert whole.json()["status"] == "queued"
