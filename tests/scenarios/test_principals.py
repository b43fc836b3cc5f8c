"""What one principal creates does not exist for another."""

import asyncio
import logging

import httpx
import pytest

from frontdesk import ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import PlainAgent, echo
from tests.scenarios.desk import InvocationsHost, open_client
from tests.scenarios.test_cancel import Slow

ALICE = {"x-api-key": "the-key-of-alice"}
ALICE_AGAIN = {"authorization": "Bearer another-key-of-alice"}
BOB = {"api-key": "the-key-of-bob-long"}
KEYS = {"alice": ["the-key-of-alice", ApiKeyAuth.hash("another-key-of-alice")], "bob": "the-key-of-bob-long"}


def _channel() -> InvocationsChannel:
    return InvocationsChannel(auth=ApiKeyAuth(KEYS))


async def _same_as_unknown(desk: InvocationsHost, run_id: str) -> None:
    for ask in (desk.get, desk.cancel):
        foreign, unknown = await ask(run_id, headers=BOB), await ask("never-was", headers=BOB)
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json() == unknown.json()
        assert set(foreign.headers) == set(unknown.headers)


async def test_a_run_of_another_is_not_there_before_and_after_the_first_visit() -> None:
    async with open_client(echo, _channel()) as desk:
        run = (await desk.ask(headers=ALICE)).json()
        await _same_as_unknown(desk, run["id"])
        await desk.ask(headers=BOB)
        await _same_as_unknown(desk, run["id"])
        assert (await desk.get(run["id"], headers=ALICE)).json() == run


@pytest.mark.parametrize("background", [False, True])
async def test_a_running_run_of_another_can_t_be_seen_or_cancelled(background: bool) -> None:
    slow = Slow()
    async with open_client(slow.whole, _channel()) as desk:
        headers = {**ALICE, "x-agent-invocation-id": "hers"}
        asked = asyncio.create_task(desk.ask(headers=headers, background=background))
        await slow.began.wait()
        await _same_as_unknown(desk, "hers")
        assert not slow.left
        slow.go_on.set()
        assert (await asked).is_success


async def test_the_same_names_are_different_things_for_different_principals() -> None:
    async with open_client(PlainAgent(), _channel()) as desk:
        for who in (ALICE, BOB):
            answer = await desk.ask(session_id="s", headers={**who, "x-agent-invocation-id": "first"})
            assert (answer.status_code, answer.json()["text"]) == (200, "1 messages")
        assert (await desk.ask(session_id="s", headers=ALICE)).json()["text"] == "3 messages"
        assert len({one.owner for one in desk.sessions()}) == len(desk.sessions()) == 2


async def test_several_keys_are_one_principal() -> None:
    async with open_client(PlainAgent(), _channel()) as desk:
        run = (await desk.ask(session_id="s", headers=ALICE)).json()
        assert (await desk.ask(session_id="s", headers=ALICE_AGAIN)).json()["text"] == "3 messages"
        assert (await desk.get(run["id"], headers=ALICE_AGAIN)).json() == run


WRONG = {
    "no key": {},
    "an empty key": {"x-api-key": ""},
    "a wrong key": {"x-api-key": "not-a-key-at-all"},
    "a hash instead of its key": {"x-api-key": ApiKeyAuth.hash("another-key-of-alice")},
    "a key in the wrong scheme": {"authorization": "Basic the-key-of-alice"},
    "the principal's name": {"x-api-key": "alice"},
}


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
async def test_nobody_gets_in_without_a_key(headers: dict[str, str]) -> None:
    async with open_client(echo, _channel()) as desk:
        answers = [
            await desk.ask(headers=headers),
            await desk.ask(stream=True, headers=headers),
            await desk.get("x", headers=headers),
            await desk.cancel("x", headers=headers),
            await desk.client.get("/invocations/docs/openapi.json", headers=headers),
        ]
        assert {answer.status_code for answer in answers} == {401}
        assert {answer.json()["error"]["code"] for answer in answers} == {"unauthenticated"}
        assert all(answer.headers["www-authenticate"] for answer in answers)
        assert desk.untouched()


async def test_a_key_is_never_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(text: str) -> str:
        raise RuntimeError("no")

    with caplog.at_level(logging.DEBUG):
        async with open_client(broken, _channel()) as desk:
            said = [(await desk.ask(headers=headers)).text for headers in (ALICE, {"x-api-key": "not-a-key-at-all"})]
    for key in (*ALICE.values(), "not-a-key-at-all"):
        assert all(key not in text for text in said)
        assert key not in "".join(
            record.getMessage() for record in caplog.records if record.name.startswith("frontdesk")
        )


async def test_a_page_of_another_origin_can_t_drive_the_host() -> None:
    async with open_client(echo) as desk:
        refused = await desk.ask(headers={"origin": "https://evil.example"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_refused")
        assert desk.untouched()
        own = f"http://127.0.0.1:{desk.port}"
        assert (await desk.ask(headers={"origin": own})).status_code == 200


async def test_a_name_that_points_at_loopback_is_not_local() -> None:
    async with open_client(echo) as desk, httpx.AsyncClient(base_url=desk.client.base_url, trust_env=False) as client:
        response = await client.post("/invocations", json={"message": "hi"}, headers={"host": "evil.example"})
        assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated")
        assert desk.untouched()
