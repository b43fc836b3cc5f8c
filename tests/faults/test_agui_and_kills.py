"""Hosts with the AG-UI channel are killed: questions are answered after it, and no tool runs twice."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.channels.agui.agui_client import AGUIClient, checked, interrupts, resumed, text_of
from tests.faults.ports import free_port, is_ready
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until


@asynccontextmanager
async def _served(root: Path, **given: Any) -> AsyncIterator[tuple[ForkedProcess, AGUIClient]]:
    port = free_port()
    process = await fork("tests.faults.agui_host:main", json.dumps({"root": str(root), "port": port, **given}))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            await until(lambda: is_ready(client))
            yield process, AGUIClient(client, "t", x_badge="ada")
    finally:
        process.kill()
        await process.wait()


def _paid(root: Path) -> list[str]:
    place = root / "paid"
    return place.read_text().split() if place.exists() else []


async def test_questions_are_answered_after_a_kill_once(tmp_path: Path) -> None:
    async with _served(tmp_path) as (process, page):
        asked = interrupts(await page.run("1 2"))
        messages = page.messages
        process.kill()
        await process.wait()
    async with _served(tmp_path) as (_, page):
        assert [one["id"] for one in (await page.thread())["interrupts"]] == [one["id"] for one in asked]
        page.messages = messages
        body = page.input(resume=resumed(*((one["id"], True) for one in asked)))
        for _ in range(2):
            answer = await page.http.post("/agui", json=body, headers=page.headers)
            assert text_of(checked(answer.content)) == "paid 1 and paid 2"
    assert sorted(_paid(tmp_path)) == ["1", "2"]


async def test_a_run_whose_tool_began_is_not_run_again_after_a_kill(tmp_path: Path) -> None:
    async with _served(tmp_path, slow=True) as (process, page):
        (asked,) = interrupts(await page.run("5"))
        body = page.input(resume=resumed((asked["id"], True)))
        sending = page.http.stream("POST", "/agui", json=body, headers=page.headers)
        with suppress(httpx.TransportError):
            async with sending:

                async def has_begun() -> bool:
                    return bool(_paid(tmp_path))

                await until(has_begun)
                process.kill()
                await process.wait()
    async with _served(tmp_path) as (_, page):
        answer = await page.http.post("/agui", json=body, headers=page.headers)
        assert checked(answer.content)[-1]["type"] == "RUN_ERROR"
        assert _paid(tmp_path) == ["5"]
        # The thread goes on.
        assert interrupts(await page.run("6"))


async def test_another_person_approves_on_another_replica_after_a_kill(tmp_path: Path, postgres: str) -> None:
    settings: dict[str, Any] = {"dsn": postgres, "approver": True}
    async with _served(tmp_path, **settings) as (process, page):
        (asked,) = interrupts(await page.run("5"))
        assert asked["reason"] == "confirmation"
        process.kill()
        await process.wait()
    async with _served(tmp_path, **settings) as (_, first), _served(tmp_path, **settings) as (_, second):
        decision = {"approval": {"id": asked["id"], "approved": True}}
        answer = await first.http.post("/invocations", json=decision, headers={"x-badge": "bob.finance"})
        answer.raise_for_status()
        followed = await second.reconnect(wait="true")
        assert text_of(followed) == "paid 5"
    assert _paid(tmp_path) == ["5"]
