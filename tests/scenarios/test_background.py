"""A run in the background is answered at once, looked at later, and cancelled like any other."""

import asyncio
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from frontdesk import AgentFrameworkHost, ApiKeyAuth
from frontdesk.channels.invocations import InvocationsChannel
from tests.scenarios.cast import echo, spell, two_voices
from tests.scenarios.desk import open_client, until
from tests.scenarios.test_cancel import MINE, Slow


async def test_it_is_accepted_and_polled_to_its_end() -> None:
    slow = Slow()
    async with open_client(slow.pieces) as desk:
        accepted = await desk.ask("it", background=True, session_id="s", metadata={"a": "b"})
        run = accepted.json()
        assert (accepted.status_code, run["status"], run["session_id"]) == (202, "queued", "s")
        assert accepted.headers["x-agent-invocation-id"] == run["id"]
        await slow.began.wait()
        assert (await desk.get(run["id"])).json()["status"] == "running"
        slow.go_on.set()
        ended = await desk.wait_for_end(run["id"])
        assert (ended["status"], ended["text"], ended["metadata"]) == ("completed", "begun, done", {"a": "b"})
        assert desk.list_texts("s") == ["it", "begun, done"]


@pytest.mark.parametrize("path", ["/invocations", "/v2/ask", ""])
@pytest.mark.parametrize(("outer", "root_path"), [("", ""), ("/house", ""), ("", "/desk x"), ("/house", "/desk")])
async def test_who_was_put_off_was_not_told_where_to_look(path: str, outer: str, root_path: str) -> None:
    host = AgentFrameworkHost(target=echo, channels=[InvocationsChannel(path=path)])
    app = Starlette(routes=[Mount(outer, app=host.app)]) if outer else host.app
    transport = httpx.ASGITransport(app=app, root_path=root_path)
    async with (
        host.app.router.lifespan_context(host.app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        place = f"{root_path}{outer}{path}"
        accepted = await client.post(place if path else f"{place}/", json={"message": "hi", "background": True})
        assert accepted.status_code == 202
        assert accepted.headers["location"] == quote(f"{place}/{accepted.json()['id']}")
        found = await client.get(accepted.headers["location"])
        assert found.json()["id"] == accepted.json()["id"]
        assert ("location" in found.headers) is (found.status_code == 202)


async def test_its_session_is_known_before_it_begins() -> None:
    async with open_client(echo) as desk:
        run = (await desk.ask("Hi", background=True)).json()
        assert run["session_id"]
        assert (await desk.wait_for_end(run["id"]))["session_id"] == run["session_id"]


@pytest.mark.parametrize("target", [echo, spell, two_voices()], ids=["function", "generator", "workflow"])
async def test_every_target_runs_in_the_background(target: object) -> None:
    async with open_client(target) as desk:
        run = (await desk.ask("Hi", background=True)).json()
        ended = await desk.wait_for_end(run["id"])
        assert ended["status"] == "completed"
        assert "Hi" in ended["text"] or "HI" in ended["text"]
        again = (await desk.ask("Hi", session_id=ended["session_id"])).json()
        assert again["session_id"] == ended["session_id"]


async def test_a_running_one_is_cancelled() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        await desk.ask("it", background=True, headers=MINE, session_id="s")
        await slow.began.wait()
        assert (await desk.cancel("mine")).json()["status"] == "cancelled"
        assert slow.left == ["CancelledError"]
        assert (await desk.get("mine")).json()["status"] == "cancelled"
        assert desk.list_texts("s") == ["it"]


async def test_one_that_waits_for_its_session_is_cancelled() -> None:
    slow = Slow()
    async with open_client(slow.whole) as desk:
        first = asyncio.create_task(desk.ask("one", session_id="s"))
        await slow.began.wait()
        await desk.ask("two", background=True, headers=MINE, session_id="s")
        waiting = await desk.get("mine")
        assert (waiting.status_code, waiting.json()["status"]) == (202, "queued")
        cancelled = (await desk.cancel("mine")).json()
        assert cancelled["status"] == "cancelled"
        assert cancelled["finished_at"] is not None
        slow.go_on.set()
        assert (await first).status_code == 200
        assert desk.list_texts("s") == ["one", "done with one"]


async def test_those_of_one_session_wait_for_each_other() -> None:
    async with open_client(echo) as desk:
        asked = [desk.ask(f"q{number}", background=True, session_id="s") for number in range(10)]
        runs = [response.json()["id"] for response in await asyncio.gather(*asked)]
        for run in runs:
            assert (await desk.wait_for_end(run))["status"] == "completed"
        said = desk.list_texts("s")
        assert said[1::2] == [f"you said {question}" for question in said[::2]]
        assert len(said) == 20


async def test_only_so_many_run_and_only_so_many_wait() -> None:
    slow = Slow()
    async with open_client(slow.whole, max_background_runs=2, max_waiting_background_runs=1) as desk:
        answers = [await desk.ask(str(number), background=True) for number in range(4)]
        assert [one.status_code for one in answers] == [202, 202, 202, 429]
        assert int(answers[3].headers["retry-after"]) >= 1
        assert answers[3].json()["error"]["message"] == "Too many runs wait in the background."
        assert len(desk.runs()) == 3
        await until(lambda: desk.active == 2)
        assert (await desk.get(answers[2].json()["id"])).json()["status"] == "queued"
        slow.go_on.set()
        await until(lambda: all(run.status == "completed" for run in desk.runs()))
        assert (await desk.ask("more", background=True)).status_code == 202


async def test_one_caller_has_only_so_many() -> None:
    slow = Slow()
    keys = ApiKeyAuth({"ada": "the key of ada 123", "ben": "the key of ben 123"})
    ada, ben = ({"authorization": f"Bearer the key of {name} 123"} for name in ("ada", "ben"))
    channel = InvocationsChannel(auth=keys)
    async with open_client(slow.whole, channel, max_background_runs=1, max_background_runs_per_caller=2) as desk:
        answers = [await desk.ask(str(number), background=True, headers=ada) for number in range(3)]
        assert [one.status_code for one in answers] == [202, 202, 429]
        assert answers[2].json()["error"]["message"] == "Too many of your runs are in the background."
        assert (await desk.ask("it", background=True, headers=ben)).status_code == 202
        slow.go_on.set()


async def test_one_that_waits_for_room_is_cancelled() -> None:
    slow = Slow()
    async with open_client(slow.whole, max_background_runs=1) as desk:
        first = (await desk.ask("one", background=True)).json()
        await slow.began.wait()
        await desk.ask("two", background=True, headers=MINE)
        assert (await desk.cancel("mine")).json()["status"] == "cancelled"
        slow.go_on.set()
        assert (await desk.wait_for_end(first["id"]))["status"] == "completed"
        assert (await desk.wait_for_end("mine"))["status"] == "cancelled"


@pytest.mark.parametrize("first", [False, True])
async def test_an_invocation_id_counts_once_in_the_background_too(first: bool) -> None:
    async with open_client(echo) as desk:
        assert (await desk.ask("one", headers=MINE, background=first)).status_code in (200, 202)
        await desk.wait_for_end("mine")
        repeated = await desk.ask("two", headers=MINE, background=True)
        assert (repeated.status_code, repeated.json()["error"]["code"]) == (409, "run_exists")
        assert (await desk.get("mine")).json()["text"] == "you said one"


async def test_of_two_with_one_id_at_once_only_one_runs() -> None:
    async with open_client(echo) as desk:
        asked = (desk.ask(str(number), headers=MINE, background=True) for number in range(5))
        statuses = sorted([response.status_code for response in await asyncio.gather(*asked)])
        assert statuses == [202, 409, 409, 409, 409]
        assert (await desk.wait_for_end("mine"))["status"] == "completed"
        assert len(desk.sessions()) == 1


async def test_what_needs_a_session_is_refused_before_it_is_accepted() -> None:
    async with open_client(echo, InvocationsChannel(session_mode="required")) as desk:
        refused = await desk.ask(background=True)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_required")
        assert desk.untouched()


async def test_a_failure_is_found_by_polling() -> None:
    async def broken(text: str) -> str:
        raise RuntimeError("the secret reason")

    async with open_client(broken) as desk:
        run = (await desk.ask(background=True)).json()
        ended = await desk.wait_for_end(run["id"])
        assert (ended["status"], ended["error"]["code"], ended["error"]["id"]) == ("failed", "target_failed", run["id"])
        assert "secret" not in str(ended)
