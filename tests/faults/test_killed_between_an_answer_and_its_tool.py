"""A host was killed when it had written an answer to an approval, and the answer was lost with it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk_testing.messages import MessagePlatform
from tests.faults.answer_steps import code, yes
from tests.faults.ports import free_port, is_ready
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until
from tests.testing.messages.starting import new_platform


@asynccontextmanager
async def _process(**given: Any) -> AsyncIterator[ForkedProcess]:
    process = await fork("tests.faults.paying_host:main", json.dumps({"kind": "agent", **given}))
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _serve(root: Path, moment: str, **given: Any) -> AsyncIterator[tuple[Any, httpx.AsyncClient]]:
    port = free_port()
    async with (
        _process(root=str(root), moment=moment, port=port, **given) as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        await until(lambda: is_ready(client))
        yield process, client


def _read_paid(root: Path) -> list[str]:
    place = root / "paid"
    return place.read_text().split() if place.exists() else []


async def _kill_while_it_answers(root: Path, moment: str, **given: Any) -> dict[str, Any]:
    """Ask, answer, and be gone; returns the run that asked."""
    async with _serve(root, moment, **given) as (process, client):
        run = (await client.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
        with suppress(httpx.TransportError):
            await client.post("/invocations", json=yes(run))
        await process.wait()
    return run


@pytest.mark.parametrize(
    ("kind", "moment"),
    [("agent", "decided"), ("agent", "entered"), ("workflow", "decided"), ("workflow as agent", "decided")],
)
async def test_a_process_died_before_the_tool_and_the_answer_was_lost(kind: str, moment: str, tmp_path: Path) -> None:
    run = await _kill_while_it_answers(tmp_path, moment, kind=kind)
    assert _read_paid(tmp_path) == []
    async with _serve(tmp_path, "never", kind=kind) as (_, client):
        assert code(await client.post("/invocations", json=yes(run, approved=False))) == (409, "approval_answered")
        again = await client.post("/invocations", json=yes(run))
        assert (again.status_code, again.json()["status"]) == (200, "completed")
        assert code(await client.post("/invocations", json=yes(run))) == (409, "approval_answered")
    assert _read_paid(tmp_path) == ["5"]


async def test_a_process_died_in_the_tool_and_the_tool_was_not_begun_again(tmp_path: Path) -> None:
    run = await _kill_while_it_answers(tmp_path, "begun")
    async with _serve(tmp_path, "never") as (_, client):
        assert code(await client.post("/invocations", json=yes(run))) == (409, "approval_answered")
    assert _read_paid(tmp_path) == ["5"]


async def test_a_process_died_and_its_background_run_did_not_begin_again_with_the_answer(tmp_path: Path) -> None:
    headers = {"x-agent-invocation-id": "answering"}
    async with _serve(tmp_path, "decided", on_interrupt="restart") as (process, client):
        run = (await client.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
        await client.post("/invocations", json=yes(run, background=True), headers=headers)
        await process.wait()
    async with _serve(tmp_path, "never", on_interrupt="restart") as (_, client):

        async def ended() -> bool:
            return (await client.get("/invocations/answering")).json()["status"] == "completed"

        await until(ended)
        assert code(await client.post("/invocations", json=yes(run))) == (409, "approval_answered")
    assert _read_paid(tmp_path) == ["5"]


def _start_chat(platform: MessagePlatform, root: Path, moment: str) -> Any:
    return _process(root=str(root), moment=moment, platform=platform.url, token=platform.token)


@pytest.mark.parametrize("moment", ["decided", "entered"])
async def test_a_process_died_and_the_chat_said_that_its_question_was_answered_before(
    moment: str, tmp_path: Path
) -> None:
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        await platform.say(ada, "pay")
        async with _start_chat(platform, tmp_path, moment) as process:
            (question,) = await platform.wait_for_answers(ada.chat_id)
            await platform.click(ada, question, "Approve")
            await process.wait()
        assert _read_paid(tmp_path) == []
        async with _start_chat(platform, tmp_path, "never"):
            answers = await platform.wait_for_answers(ada.chat_id, 2)
        assert answers[-1].text == "done"
        assert not [one for one in (await platform.state()).clicks if "answered before" in str(one)]
    assert _read_paid(tmp_path) == ["5"]
