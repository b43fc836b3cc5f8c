"""A platform's isolation headers, over the wire: they were believed from anyone."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from frontdesk import (
    AgentFrameworkHost,
    ApiKeyAuth,
    PlatformAuth,
    TrustedEnvironment,
    TrustedPeers,
    TrustedSecret,
    get_current_isolation_keys,
)
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk_testing import HostClient, serving

KEY = "a-key-that-is-long-enough"
SECRET = "what the platform and we know"
FIRST = {"x-agent-user-isolation-key": "user-1", "x-agent-chat-isolation-key": "chat-1"}
SECOND = {"x-agent-user-id": "user-2", "x-agent-foundry-call-id": "call-2"}
LOCAL = TrustedPeers("127.0.0.0/8")


async def telling(text: str) -> AsyncIterator[str]:
    keys = get_current_isolation_keys()
    yield "nothing" if keys is None else f"{keys.user_key} {keys.chat_key} {keys.call_id}"


def host_of(auth: Any, target: Any = telling, **options: Any) -> AgentFrameworkHost:
    return AgentFrameworkHost(target, channels=[InvocationsChannel(auth=auth), ResponsesChannel(auth=auth)], **options)


async def extract_text(client: HostClient, headers: dict[str, str]) -> str:
    return (await client.invoke("hello", headers=headers))["text"]


async def test_a_host_without_a_platform_takes_no_notice_of_them() -> None:
    async with serving(host_of(None)) as client:
        plain = await client.invoke("hello", session_id="s")
        sent = await client.invoke("hello", session_id="s", headers={**FIRST, **SECOND})
        assert plain["text"] == sent["text"] == "nothing"
        # Nor do they change whose things these are.
        found = await client.http.get(f"/invocations/{plain['id']}", headers=FIRST)
        assert found.status_code == 200


async def test_a_caller_with_a_key_of_its_own_can_not_send_them() -> None:
    auth = [PlatformAuth(trusted=TrustedSecret(SECRET)), ApiKeyAuth({"alice": KEY})]
    async with serving(host_of(auth)) as client:
        assert await extract_text(client, {"x-api-key": KEY, **FIRST}) == "nothing"
        assert await extract_text(client, {"x-platform-secret": SECRET, **FIRST}) == "user-1 chat-1 None"
        refused = [
            FIRST,
            {**FIRST, "x-platform-secret": "wrong"},
            {**FIRST, "x-platform-secret": "wrong", "x-api-key": KEY},
        ]
        for headers in refused:
            answer = await client.http.post("/invocations", json={"message": "hi"}, headers=headers)
            assert answer.status_code == 401, headers


@pytest.mark.parametrize(("trusted", "status"), [(LOCAL, 200), (TrustedPeers("10.0.0.0/8"), 401)])
async def test_a_peer_is_of_the_platform_or_not(trusted: Any, status: int) -> None:
    async with serving(host_of(PlatformAuth(trusted=trusted))) as client:
        answer = await client.http.post("/invocations", json={"message": "hi"}, headers=FIRST)
        assert answer.status_code == status
        nobody = await client.http.post("/invocations", json={"message": "hi"})
        assert nobody.status_code == 401


@pytest.mark.parametrize("there", [True, False])
async def test_the_environment_says_whether_this_is_the_platform(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOUNDRY_HOSTING_ENVIRONMENT", raising=False)
    if there:
        monkeypatch.setenv("FOUNDRY_HOSTING_ENVIRONMENT", "production")
    host = host_of(PlatformAuth(trusted=TrustedEnvironment()), allow_in_process_runner=True)
    async with serving(host) as client:
        answer = await client.http.post("/invocations", json={"message": "hi"}, headers=SECOND)
        assert answer.status_code == (200 if there else 401)
        assert not there or answer.json()["text"] == "user-2 None call-2"


async def test_one_user_of_the_platform_does_not_see_another() -> None:
    async with serving(host_of(PlatformAuth(trusted=LOCAL))) as client:
        made = await client.invoke("hello", headers=FIRST)
        found = [
            (await client.http.get(f"/invocations/{made['id']}", headers=one)).status_code for one in (FIRST, SECOND)
        ]
    assert found == [200, 404]


async def test_the_keys_of_one_request_were_seen_by_the_next() -> None:
    barrier = asyncio.Barrier(10)

    async def together(text: str) -> str:
        before = get_current_isolation_keys()
        await barrier.wait()
        assert before == get_current_isolation_keys()
        return "" if before is None else str(before.user_key)

    async with serving(host_of([PlatformAuth(trusted=LOCAL), ApiKeyAuth({"alice": KEY})], together)) as client:
        sent = [{"x-agent-user-id": f"user-{one}"} if one % 2 else {"x-api-key": KEY} for one in range(10)]
        # On connections that are kept, a second round meets what the first has left.
        for _ in range(2):
            told = await asyncio.gather(*(extract_text(client, headers) for headers in sent))
            assert told == [headers.get("x-agent-user-id", "") for headers in sent]


async def test_a_stream_that_was_cut_left_its_keys_behind() -> None:
    ended = asyncio.Event()
    seen: list[Any] = []

    async def endless(text: str) -> AsyncIterator[str]:
        try:
            while True:
                yield str(get_current_isolation_keys())
                await asyncio.sleep(0)
        finally:
            seen.append(get_current_isolation_keys())
            ended.set()

    async with serving(host_of([PlatformAuth(trusted=LOCAL), ApiKeyAuth({"alice": KEY})], endless)) as client:
        async with aclosing(client.stream("hello", headers=FIRST)) as events:
            async for event in events:
                if event.event == "update":
                    break
        await asyncio.wait_for(ended.wait(), 60)
        ended.clear()
        async with aclosing(client.stream("hello", headers={"x-api-key": KEY})) as events:
            async for event in events:
                if event.event == "update":
                    assert event.json()["text"] == "None"
                    break
        await asyncio.wait_for(ended.wait(), 60)
    # Seen to the very end of the run that they belong to, and by no other.
    assert [None if one is None else one.user_key for one in seen] == ["user-1", None]


async def test_a_background_run_has_the_keys_of_its_request() -> None:
    async with serving(host_of(PlatformAuth(trusted=LOCAL))) as client:
        run = await client.invoke("hello", headers=FIRST, background=True, stream=False)
        while run["status"] in ("queued", "running"):
            run = (await client.http.get(f"/invocations/{run['id']}", headers=FIRST)).json()
        assert run["text"] == "user-1 chat-1 None"


async def test_a_background_run_that_waited_for_another_process_lost_its_keys(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def waiting(text: str) -> str:
        begun.set()
        await asyncio.Event().wait()
        return text

    auth = PlatformAuth(trusted=LOCAL)
    settings: dict[str, Any] = {"state_dir": tmp_path / "state", "shutdown_grace_seconds": 0, "max_background_runs": 1}
    async with serving(host_of(auth, waiting, **settings)) as client:
        await client.invoke("the only one at work", headers=SECOND, background=True)
        await begun.wait()
        run = await client.invoke("hello", headers=FIRST, background=True)
    async with serving(host_of(auth, **settings)) as client:
        while run["status"] in ("queued", "running"):
            run = (await client.http.get(f"/invocations/{run['id']}", headers=FIRST)).json()
    assert run["text"] == "user-1 chat-1 None"


async def test_every_response_on_a_socket_has_the_keys_of_its_handshake() -> None:
    async with serving(host_of(PlatformAuth(trusted=LOCAL))) as client:
        url = client.base_url.replace("http", "ws") + "/v1/responses"
        async with connect(url, additional_headers=FIRST, proxy=None) as socket:
            for _ in range(2):
                await socket.send(json.dumps({"type": "response.create", "input": "hello"}))
                while (event := json.loads(await socket.recv()))["type"] != "response.completed":
                    pass
                assert event["response"]["output"][0]["content"][0]["text"] == "user-1 chat-1 None"
