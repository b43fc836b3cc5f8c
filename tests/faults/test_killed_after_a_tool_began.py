"""A host was killed when a tool had begun after the requester's own answer, and nobody was notified of it."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontdesk_testing.messages import MessagePlatform
from frontdesk_testing.telegram import FakeTelegram, fake_telegram
from frontdesk_testing.telegram.records import Chat, Message
from tests.faults.answer_steps import code, yes
from tests.faults.ports import free_port, is_ready
from tests.forked import ForkedProcess, fork
from tests.scenarios.desk import until
from tests.testing.messages.starting import new_platform

MOMENTS = ("written", "begun")
"""With the beginning committed, and nothing done by the tool, or in the tool."""
STORES = ("sqlite", "postgres")
INTERRUPTED = "interrupted"


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Settings of hosts that share one state."""
    more = {"dsn": request.getfixturevalue("postgres")} if request.param == "postgres" else {}
    return {"root": str(tmp_path), "kind": "agent", **more}


@asynccontextmanager
async def _process(place: dict[str, str], **given: Any) -> AsyncIterator[ForkedProcess]:
    process = await fork("tests.faults.paying_host:main", json.dumps({**place, **given}))
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _serve(place: dict[str, str], moment: str) -> AsyncIterator[tuple[ForkedProcess, httpx.AsyncClient]]:
    port = free_port()
    async with (
        _process(place, moment=moment, port=port) as process,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client,
    ):
        await until(lambda: is_ready(client))
        yield process, client


def _read_paid(place: dict[str, str]) -> list[str]:
    paid = Path(place["root"]) / "paid"
    return paid.read_text().split() if paid.exists() else []


def _get_paid_at(moment: str) -> list[str]:
    return ["5"] if moment == "begun" else []


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("target", ["agent", "workflow"])
async def test_a_run_over_invocations_without_an_idempotency_key_could_not_be_retrieved(
    place: dict[str, str], moment: str, target: str
) -> None:
    place, headers = {**place, "kind": target}, {"x-agent-invocation-id": "answering"}
    async with _serve(place, moment) as (process, client):
        run = (await client.post("/invocations", json={"message": "pay", "session_id": "s"})).json()
        with suppress(httpx.TransportError):
            await client.post("/invocations", json=yes(run), headers=headers)
        await process.wait()
    paid = _read_paid(place)
    async with _serve(place, "never") as (_, client):

        async def is_over() -> bool:
            found = await client.get("/invocations/answering")
            return found.status_code == 200 and found.json()["status"] != "running"

        await until(is_over)
        ended = (await client.get("/invocations/answering")).json()
        assert (ended["status"], ended["error"]["code"]) == ("failed", INTERRUPTED)
        # The same id is not run again, and the same answer neither.
        assert (await client.post("/invocations", json=yes(run), headers=headers)).status_code == 409
        assert code(await client.post("/invocations", json=yes(run))) == (409, "approval_answered")
        # The session can be used.
        assert (await client.post("/invocations", json={"message": "pay", "session_id": "s"})).status_code == 200
    # What a workflow does is not seen, so that it is begun when it is called.
    assert _read_paid(place) == paid == ([] if target == "workflow" and moment == "written" else _get_paid_at(moment))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_streamed_response_could_not_be_retrieved(place: dict[str, str], moment: str) -> None:
    seen: list[str] = []
    async with _serve(place, moment) as (process, client):
        run = (await client.post("/responses", json={"model": "any", "input": "pay"})).json()
        (question,) = [item for item in run["output"] if item["type"] == "mcp_approval_request"]
        answer = {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}
        body = {"model": "any", "input": [answer], "previous_response_id": run["id"], "stream": True}
        with suppress(httpx.TransportError):
            async with client.stream("POST", "/responses", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        seen.append(json.loads(line.removeprefix("data: "))["response"]["id"])
        await process.wait()
    async with _serve(place, "never") as (_, client):

        async def is_over() -> bool:
            found = await client.get(f"/responses/{seen[0]}")
            return found.status_code == 200 and found.json()["status"] != "in_progress"

        await until(is_over)
        ended = (await client.get(f"/responses/{seen[0]}")).json()
        assert ended["status"] == "failed"
        assert INTERRUPTED in ended["error"]["message"]
        again = await client.post("/responses", json={**body, "stream": False})
        assert code(again) == (409, "approval_answered")
    assert _read_paid(place) == _get_paid_at(moment)


def _texts(answers: Sequence[Any]) -> list[str]:
    return [answer.text for answer in answers]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_click_was_shown_as_approved_and_nothing_followed(place: dict[str, str], moment: str) -> None:
    async with new_platform() as platform:
        ada = await platform.user("Ada")
        given = {"platform": platform.url, "token": platform.token}
        await platform.say(ada, "pay")
        async with _process(place, moment=moment, **given) as process:
            (question,) = await platform.wait_for_answers(ada.chat_id)
            await platform.click(ada, question, "Approve")
            await process.wait()
        async with _process(place, moment="never", **given):
            assert INTERRUPTED in (await platform.wait_for_answers(ada.chat_id, 2))[1].text
            await _end_of_clicks(platform)
            # The event that was repeated is not refused, and the conversation goes on.
            await platform.say(ada, "pay")
            answers = await platform.wait_for_answers(ada.chat_id, 3)
        assert "answered before" not in str((await platform.state()).clicks)
        assert [INTERRUPTED in text for text in _texts(answers)] == [False, True, False]
        assert [bool(answer.buttons) for answer in answers] == [False, False, True]
    assert _read_paid(place) == _get_paid_at(moment)


async def _end_of_clicks(platform: MessagePlatform) -> None:
    """Wait until the person who has clicked is shown what was decided."""

    async def is_shown() -> bool:
        return any(entry.method == "answer" for entry in platform.log_on_disk())

    await platform.until(is_shown)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_click_on_telegram_was_shown_as_approved_and_nothing_followed(
    place: dict[str, str], moment: str
) -> None:
    async with fake_telegram() as fake:
        ada = fake.user("Ada")
        chat, given = fake.private(ada), {"bot_api": fake.url, "token": fake.token}
        fake.say(ada, "pay")
        async with _process(place, moment=moment, **given) as process:
            await fake.until(lambda: _buttons(fake, chat) == (("Approve", "Reject"),))
            fake.press(ada, _last(fake, chat), "Approve")
            await process.wait()
        async with _process(place, moment="never", **given):
            await fake.until(lambda: INTERRUPTED in fake.shown(chat).answers[-1])
            fake.say(ada, "pay")
            await fake.until(lambda: len(fake.shown(chat).answers) == 3)
        told = [answer for answer in fake.shown(chat).answers if INTERRUPTED in answer]
        assert len(told) == 1
    assert _read_paid(place) == _get_paid_at(moment)


def _buttons(fake: FakeTelegram, chat: Chat) -> Any:
    messages = fake.shown(chat).messages
    return messages[-1].buttons if messages else ()


def _last(fake: FakeTelegram, chat: Chat) -> Message:
    """Return the last message of the bot."""
    return [message for message in chat.messages.values() if message.sender is fake.bot.user][-1]
