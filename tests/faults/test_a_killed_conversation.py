"""A host was killed in the middle of a turn: the items of a conversation and what its agent hears stayed one."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk_testing import CRASH_POINTS
from tests.faults.crash.processes import HostProcess, HostProcesses, Kind
from tests.faults.crash.server import RECALL, TOLD

MOMENTS = [*((point, 1) for point in CRASH_POINTS), ("before_commit", 2), ("before_commit", 3), ("after_commit", 3)]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Kind, str]]:
    """Where the state is kept."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "state")
    else:
        yield "postgres", request.getfixturevalue("postgres")


async def _say(host: HostProcess, text: str, conversation: str, **more: Any) -> str:
    body = {"input": text, "conversation": conversation, **more}
    answer = (await host.client.post("/v1/responses", json=body)).raise_for_status()
    return "" if more else answer.json()["output"][0]["content"][0]["text"]


async def _items(host: HostProcess, conversation: str) -> list[tuple[str, str]]:
    listed = await host.client.get(f"/v1/conversations/{conversation}/items?order=asc&limit=100")
    return [(one["role"], one["content"][0]["text"]) for one in listed.raise_for_status().json()["data"]]


async def _change(host: HostProcess, conversation: str) -> None:
    """Everything that writes, one after another; somewhere on the way the host dies."""
    about = f"/v1/conversations/{conversation}/items"
    await _say(host, "two", conversation)
    added = await host.client.post(about, json={"items": [{"role": "user", "content": "added"}]})
    added.raise_for_status()
    await _say(host, "three", conversation, stream=True)
    listed = (await host.client.get(f"{about}?order=asc")).raise_for_status().json()
    (await host.client.delete(f"{about}/{listed['data'][0]['id']}")).raise_for_status()
    await _say(host, "four", conversation)


@pytest.mark.parametrize(("point", "passes"), MOMENTS)
async def test_a_crash_left_one_without_the_other(
    point: str, passes: int, place: tuple[Kind, str], tmp_path: Path
) -> None:
    async with HostProcesses(*place, tmp_path / "ledger") as house:
        host = await house.start()
        made = (await host.client.post("/v1/conversations", json={})).raise_for_status().json()["id"]
        await _say(host, "one", made)
        await host.arm(point, passes)
        with suppress(httpx.TransportError):
            await _change(host, made)
        host.kill()
        host = await house.start()
        items = await _items(host, made)
        told = await _say(host, RECALL, made)
        assert [tuple(one) for one in json.loads(told.removeprefix(TOLD))] == items
        _whole([text for _, text in items if text not in ("added", "one")])
        assert (await _items(host, made))[len(items) :] == [("user", RECALL), ("assistant", told)]


async def test_two_hosts_interleaved_the_turns_of_a_conversation(postgres: str, tmp_path: Path) -> None:
    async with HostProcesses("postgres", postgres, tmp_path / "ledger") as house:
        hosts = [await house.start() for _ in range(2)]
        made = (await hosts[0].client.post("/v1/conversations", json={})).raise_for_status().json()["id"]
        about = f"/v1/conversations/{made}/items"

        async def add(number: int) -> None:
            words = [{"role": "user", "content": f"{kind} {number}"} for kind in ("added", "too")]
            (await hosts[number % 2].client.post(about, json={"items": words})).raise_for_status()

        turns = [_say(hosts[number % 2], f"turn {number}", made) for number in range(8)]
        await asyncio.gather(*turns, *(add(number) for number in range(4)))
        items = await _items(hosts[0], made)
        assert items == await _items(hosts[1], made)
        said = [text for _, text in items]
        assert len(said) == 24
        for place, text in enumerate(said):
            if text.startswith("turn"):
                assert said[place + 1] == f"heard {text}"
            if text.startswith("added"):
                assert said[place + 1] == text.replace("added", "too")
        for host in hosts:
            told = await _say(host, RECALL, made)
            recalled = [tuple(one) for one in json.loads(told.removeprefix(TOLD))]
            assert recalled == items


def _whole(said: list[str]) -> None:
    """Every question has its answer behind it; the first was deleted, or not."""
    said = said[1:] if said[:1] == ["heard one"] else said
    assert said[1::2] == [f"heard {word}" for word in said[::2]]
