"""A host that nobody started says so, one that is mounted can be started, and readiness looks at the store."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import AgentFrameworkHost
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.errors import FrontdeskError, StoreUnavailableError
from frontdesk.host.app import Readiness
from frontdesk_testing import EchoAgent, serving, serving_app
from frontdesk_testing.internals import get_store


def _host(**options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(EchoAgent(), channels=[InvocationsChannel(), ResponsesChannel()], **options)


async def test_a_mounted_host_that_was_never_started_says_so_and_logs_it_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    host = _host(state_dir=tmp_path)
    async with serving_app(Starlette(routes=[Mount("/desk", app=host.app)])) as client:
        for path, body in (("/desk/invocations", {"message": "hi"}), ("/desk/v1/responses", {"input": "hi"})):
            answer = await client.http.post(path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_started")
            assert answer.json()["error"]["message"] == "This host was not started."
            assert answer.headers["x-should-retry"] == "false"
        with pytest.raises(InvalidStatus) as caught:
            async with connect(f"{client.base_url.replace('http', 'ws')}/desk/v1/responses", proxy=None):
                pass
        assert caught.value.response.status_code == 503
        assert (await client.http.get("/desk/healthz")).status_code == 200
        assert (await client.http.get("/desk/readyz")).status_code == 503
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len([message for message in told if "lifespan=host.lifespan" in message]) == 1


@pytest.mark.parametrize("kind", [FastAPI, Starlette])
async def test_the_lifespan_of_a_host_is_that_of_the_app_around_it(kind: Any, tmp_path: Path) -> None:
    host = _host(state_dir=tmp_path)
    app = kind(lifespan=host.lifespan)
    app.mount("/desk", host.app)
    async with serving_app(app) as client:
        answer = await client.http.post("/desk/invocations", json={"message": "good day"})
        assert (answer.status_code, answer.json()["text"]) == (200, "good day")
        made = await client.http.post("/desk/invocations", json={"message": "good day", "background": True})
        assert made.headers["location"].startswith("/desk/invocations/")
        assert (await client.http.get("/desk/readyz")).status_code == 200


async def test_several_hosts_live_in_one_app(tmp_path: Path) -> None:
    sales, support = _host(state_dir=tmp_path / "sales"), _host(state_dir=tmp_path / "support")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with sales.lifespan(app), support.lifespan(app):
            yield

    app = Starlette(routes=[Mount("/sales", app=sales.app), Mount("/support", app=support.app)], lifespan=lifespan)
    async with serving_app(app) as client:
        made = (await client.http.post("/sales/v1/responses", json={"input": "hello"})).json()
        assert (await client.http.get(f"/sales/v1/responses/{made['id']}")).status_code == 200
        assert (await client.http.get(f"/support/v1/responses/{made['id']}")).status_code == 404
        assert (await client.http.post("/support/invocations", json={"message": "hello"})).status_code == 200


async def test_a_host_runs_once_at_a_time() -> None:
    host = _host()
    async with host.lifespan():
        with pytest.raises(FrontdeskError, match="already running"):
            async with host.lifespan():
                pytest.fail("it ran twice")
    async with host.lifespan():
        assert await host._readiness.is_ready()


class _Store:
    """Answers, or does not."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked = 0

    async def ask(self) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [StoreUnavailableError(), OSError("gone"), TimeoutError()])
async def test_a_host_is_not_ready_while_its_store_is_down(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.host.app._MAX_AGE", 0.0)
    store = _Store()
    readiness = Readiness(store.ask)
    assert not await readiness.is_ready()
    with readiness.run():
        assert not await readiness.is_ready()
        readiness.is_serving = True
        told: list[bool] = []
        for store.error in (None, error, None):
            told.append(await readiness.is_ready())
        assert told == [True, False, True]
    assert not await readiness.is_ready()


async def test_who_asks_often_does_not_ask_the_store_as_often() -> None:
    store = _Store()
    readiness = Readiness(store.ask)
    with readiness.run():
        readiness.is_serving = True
        assert [await readiness.is_ready() for _ in range(20)] == [True] * 20
    assert store.asked == 1


async def test_readyz_says_no_when_the_database_was_closed_under_the_host(tmp_path: Path) -> None:
    host = _host(state_dir=tmp_path)
    async with serving(host, raise_errors=False) as client:
        assert (await client.http.get("/readyz")).status_code == 200
        await get_store(host).close()
        host._readiness._asked = None
        down = await client.http.get("/readyz")
        assert (down.status_code, down.json()) == (503, {"status": "unavailable"})
        assert (await client.http.get("/healthz")).status_code == 200
