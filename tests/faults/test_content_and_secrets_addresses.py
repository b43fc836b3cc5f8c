"""Content with an address in it: where hosts were sent to, though nobody outside may go there."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from frontdesk import AgentFrameworkHost
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import EchoAgent, HostClient, serving
from tests.outbound.origin import Internet, Origin, build_redirect, ok
from tests.outbound.origin import serve_origin as originating

PICTURE = "the-keys-of-the-kingdom"


@asynccontextmanager
async def _serve_fetching(agent: EchoAgent, **settings: Any) -> AsyncIterator[HostClient]:
    channel = ResponsesChannel(fetch_urls=True, fetch_http=True, **settings)
    async with serving(AgentFrameworkHost(agent, channels=[channel])) as client:
        yield client


async def _ask(client: HostClient, url: str, kind: str = "input_image") -> tuple[int, str, str]:
    part = {"type": kind, "image_url" if kind == "input_image" else "file_url": url}
    body = {"input": [{"role": "user", "content": [part]}]}
    answer = await client.http.post("/v1/responses", json=body)
    error = answer.json().get("error") or {}
    return answer.status_code, error.get("code") or "", answer.text


INSIDE = [
    "http://127.0.0.1:{port}/",
    "http://localhost:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://0.0.0.0:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f.1:{port}/",
    "http://127.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://user@127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
]


@pytest.mark.parametrize("kind", ["input_image", "input_file"])
@pytest.mark.parametrize("url", INSIDE)
async def test_a_media_url_reached_an_internal_address_directly(url: str, kind: str) -> None:
    agent = EchoAgent()
    async with originating() as inside, _serve_fetching(agent) as client:
        inside.answers["/"] = ok(PICTURE.encode(), "Content-Type: image/png")
        status, _, text = await _ask(client, url.format(port=inside.port), kind)
        assert status == 400
        assert PICTURE not in text
        assert inside.heads == []
    assert agent.seen == []


async def test_a_media_url_reached_an_internal_address_by_dns_that_changes_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = ["93.184.216.34", "127.0.0.1"]
    asked: list[str] = []

    def look_up(host: bytes, port: int, *_: Any, **__: Any) -> list[Any]:
        asked.append(host.decode())
        address = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    agent = EchoAgent()
    async with originating() as outside, _serve_fetching(agent) as client:
        outside.answers["/"] = ok(PICTURE.encode(), "Content-Type: image/png")
        internet = Internet(monkeypatch)
        internet.places["93.184.216.34"] = outside.port
        # The host's own client asks for nothing: its address is a number.
        port = int(client.base_url.rpartition(":")[2])
        internet.places["127.0.0.1"] = port
        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        good, _, _ = await _ask(client, "http://files.example/")
        bad, code, text = await _ask(client, "http://files.example/")
        dialled = [one for one in internet.dialled if one[1] != port]
    assert (good, bad, code) == (200, 400, "url_refused")
    assert PICTURE not in text
    # One question for each fetch, and the connection goes to the very address that was checked.
    assert asked == ["files.example", "files.example"]
    assert dialled == [("93.184.216.34", 80)]
    assert len(agent.seen) == 1


@pytest.mark.parametrize("location", ["http://127.0.0.1:{port}/", "http://169.254.169.254/", "file:///etc/passwd"])
async def test_a_media_url_reached_an_internal_address_by_a_redirect(location: str) -> None:
    agent = EchoAgent()
    async with originating() as trusted, originating() as inside:
        inside.answers["/"] = ok(PICTURE.encode(), "Content-Type: image/png")
        trusted.answers["/"] = build_redirect(location.format(port=inside.port))
        async with _serve_fetching(agent, fetch_from=[f"127.0.0.1:{trusted.port}"]) as client:
            status, _, text = await _ask(client, f"http://127.0.0.1:{trusted.port}/")
        assert (status, len(trusted.heads), inside.heads) == (400, 1, [])
        assert PICTURE not in text
    assert agent.seen == []


async def test_a_url_was_fetched_where_nobody_had_asked_for_that() -> None:
    """Without `fetch_urls` the host goes nowhere, and the model's service is told the URL and decides itself."""
    agent = EchoAgent()
    async with originating() as inside:
        async with serving(AgentFrameworkHost(agent, channels=[ResponsesChannel()])) as client:
            await _ask(client, f"http://127.0.0.1:{inside.port}/")
        assert inside.heads == []


async def test_a_stranger_made_the_host_fetch(origin: Origin) -> None:
    async with _serve_fetching(EchoAgent(), fetch_from=[f"127.0.0.1:{origin.port}"]) as client:
        part = {"type": "input_image", "image_url": f"http://127.0.0.1:{origin.port}/"}
        body = {"input": [{"role": "user", "content": [part]}]}
        refused = await client.http.post("/v1/responses", json=body, headers={"host": "evil.example"})
    assert (refused.status_code, origin.heads) == (401, [])


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with originating() as one:
        yield one
