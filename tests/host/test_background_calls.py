"""The operator's own way to the background: run, ask how far it is, cancel."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from frontdesk import (
    AgentFrameworkHost,
    ChannelIdentity,
    ChannelRequest,
    ContinuationToken,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.errors import InvalidRequestError, NotFoundError
from frontdesk.models.run import FINAL, RunRecord
from frontdesk_testing import GatedAgent

ADA = ChannelIdentity(channel="invocations", native_id="ada")
BOB = ChannelIdentity(channel="invocations", native_id="bob")
ASKED = ChannelRequest(channel="invocations", input="two words")


@pytest.fixture
def agent() -> GatedAgent:
    return GatedAgent()


@pytest.fixture
async def host(agent: GatedAgent) -> AsyncIterator[AgentFrameworkHost]:
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel()], shutdown_grace_seconds=0)
    async with host.app.router.lifespan_context(host.app):
        yield host


async def wait_for_end(host: AgentFrameworkHost, token: ContinuationToken) -> RunRecord:
    async with asyncio.timeout(60):
        # Asking again is all that these calls offer, so asking again is what is tested.
        while (run := await host.get_continuation(token, identity=ADA)).status not in FINAL:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return run


async def test_a_run_is_followed_to_its_end(host: AgentFrameworkHost, agent: GatedAgent) -> None:
    token = await host.run_in_background(ASKED, identity=ADA)
    await agent.started.wait()
    assert (await host.get_continuation(token, identity=ADA)).status == "running"
    agent.release.set()
    run = await wait_for_end(host, token)
    assert (run.status, run.background, run.run_id) == ("completed", True, str(token))
    assert "two words" in run.result.text


async def test_a_run_is_cancelled(host: AgentFrameworkHost, agent: GatedAgent) -> None:
    token = await host.run_in_background(ASKED, identity=ADA)
    await agent.started.wait()
    assert (await host.cancel(token, identity=ADA)).status == "cancelled"
    assert agent.cancelled.is_set()
    assert (await wait_for_end(host, token)).status == "cancelled"


async def test_a_run_does_not_exist_for_anybody_else(host: AgentFrameworkHost, agent: GatedAgent) -> None:
    token = await host.run_in_background(ASKED, identity=ADA)
    await agent.started.wait()
    for ask in (host.get_continuation, host.cancel):
        with pytest.raises(NotFoundError):
            await ask(token, identity=BOB)
    assert (await host.get_continuation(token, identity=ADA)).status == "running"


async def test_a_channel_that_the_host_does_not_have_is_named(host: AgentFrameworkHost) -> None:
    with pytest.raises(InvalidRequestError, match="'telegram'"):
        await host.run_in_background(ASKED.replace(channel="telegram"), identity=ADA)
