"""A host that was stopped at the very moment at which its platform refused a connection waited for ever."""

import asyncio
from typing import Any

import pytest

from frontdesk_testing.messages.connections import Connections


@pytest.mark.parametrize("error", [ConnectionRefusedError(), None], ids=["refused", "connected"])
async def test_a_stop_came_together_with_the_end_of_a_call(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    dialling = asyncio.Event()
    outcome: asyncio.Future[Any] = loop.create_future()

    async def dial(*_: Any, **__: Any) -> Any:
        dialling.set()
        return await outcome

    monkeypatch.setattr(loop, "create_connection", dial)
    call = asyncio.create_task(Connections("http://127.0.0.1:1", {}).request("GET", "/", seconds=5))
    await dialling.wait()
    if error is None:
        outcome.set_result((None, None))
    else:
        outcome.set_exception(error)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
