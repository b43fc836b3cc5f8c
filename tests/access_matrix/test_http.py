"""Every door and every kind of caller: each cell of the table says what it must, and leaves nothing behind."""

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from frontdesk import Channel, ChannelContext, ChannelContribution
from frontdesk.identifiers import digest
from tests.access_matrix.callers import CALLERS, Caller
from tests.access_matrix.doors import EveryDoorHost, open_house
from tests.access_matrix.issuer import serve_issuers
from tests.access_matrix.purposes import PURPOSES, SOCKET, Door, Purpose, name_door, purpose, shape

# What the issue names; more is better.
NAMED = {
    *("anonymous", "other principal", "other tenant", "unlinked", "denied"),
    *("expired token", "wrong audience", "alg=none", "replayed"),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CALLERS)
async def test_every_door_says_what_it_must(name: str, tmp_path: Path) -> None:
    caller = CALLERS[name]
    async with serve_issuers() as issuers, open_house(caller.house, issuers, tmp_path) as house:
        if caller.house == "open":
            await house.furnish()
        wrong: list[str] = []
        for door in await house.doors():
            knock = KNOCKS.get(purpose(door).kind, _http)
            wrong += [f"{door}: {one}" for one in await knock(house, door, caller)]
    assert not wrong, "\n".join(wrong)


async def _http(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    kind, body, more = purpose(door)
    # What is sent twice may go on in the background, and be taken for what the second time did.
    refused = getattr(caller.said, kind) in (401, 403) and not caller.again
    bodies = (body, *(more if refused else ()))
    wrong = [line for sent in bodies for line in await _ask(house, door, caller, sent)]
    return [*wrong, "what the owner has was changed"] if await house.has_changed() else wrong


async def _ask(house: EveryDoorHost, door: Door, caller: Caller, body: Any) -> list[str]:
    target, data = house.fill_path(door.path), b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **caller.credentials(house.keys, door.method, target, data)}
    if caller.again:
        await house.http.request(door.method, target, content=data, headers=headers)
    ran, rows = len(house.agent.seen), house.rows()
    answer = await house.http.request(door.method, target, content=data, headers=headers)
    wanted = getattr(caller.said, purpose(door).kind)
    wrong = [] if answer.status_code == wanted else [f"{answer.status_code} and not {wanted}: {answer.text}"]
    if answer.status_code >= 400:
        wrong += _wrong_refusal(answer, door, caller)
        if (ran, rows) != (len(house.agent.seen), house.rows()):
            wrong.append("something ran, or was stored")
    return wrong


def _wrong_refusal(answer: httpx.Response, door: Door, caller: Caller) -> list[str]:
    error: dict[str, Any] = answer.json().get("error", {})
    if door.path.startswith("/mcp"):
        # The code of JSON-RPC is a number.
        error = {**error, "code": error["data"]["code"]}
    wrong = [] if set(error) >= shape(door) else [f"the error has {sorted(error)}"]
    details = error.get("details") or (error.get("data") if door.path.startswith("/a2a") else None)
    code = details[0]["metadata"].get("code") if details else error.get("code")
    if answer.status_code in (401, 403) and caller.code not in (None, code):
        wrong.append(f"the code is {code}")
    if answer.status_code == 401 and "www-authenticate" not in answer.headers:
        wrong.append("nothing says how to come in")
    return wrong


async def _socket(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """A handshake is refused like a request; who may not come in is refused at the first message."""
    headers = caller.credentials(house.keys, "GET", door.path, b"")
    if caller.again:
        await _say_on_socket(house, door, headers, go_on=None)
    for go_on in (None, house.ids.get("response", "resp_1")):
        before = len(house.agent.seen), house.rows()
        status, code = await _say_on_socket(house, door, headers, go_on)
        # What is not there is a 400 on this way in, as in the API.
        wanted = {404: 400}.get(caller.said.thing, caller.said.thing) if go_on else caller.said.make
        if status != wanted:
            return [f"{status} ({code}) and not {wanted}"]
        if status in (401, 403) and caller.code not in (None, code):
            return [f"the code is {code}"]
        if status >= 400 and before != (len(house.agent.seen), house.rows()):
            return ["something ran, or was stored"]
    return []


async def _say_on_socket(
    house: EveryDoorHost, door: Door, headers: dict[str, str], go_on: str | None
) -> tuple[int, Any]:
    url = house.url.replace("http://", "ws://") + door.path
    message = {"type": "response.create", "input": "hello", "previous_response_id": go_on}
    try:
        async with connect(url, additional_headers=headers, proxy=None, compression=None) as socket:
            await socket.send(json.dumps(message))
            async for raw in socket:
                event = json.loads(raw)
                if event["type"] == "error":
                    assert event["status"] not in (401, 403), "who may not come in has a connection"
                    return event["status"], event["error"]["code"]
                if event["type"] == "response.completed":
                    return 200, None
    except InvalidStatus as refused:
        return refused.response.status_code, json.loads(refused.response.body or b"{}")["error"]["code"]
    raise AssertionError("the connection was closed without a word")


async def _session(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """Whoever may come in has to name a session, and whoever may not is told that first."""
    headers = caller.credentials(house.keys, door.method, door.path, b"")
    if caller.again:
        await house.http.request(door.method, door.path, headers=headers)
    before = len(house.agent.seen), house.rows()
    status = (await house.http.request(door.method, door.path, headers=headers)).status_code
    wanted = caller.said.info if caller.said.info in (401, 403) else 400
    wrong = [] if status == wanted else [f"{status} and not {wanted}"]
    return wrong if before == (len(house.agent.seen), house.rows()) else [*wrong, "something ran, or was stored"]


async def _page(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """A browser without a link of ours gets a plain page, whoever sits in front of it."""
    before = house.rows()
    target = house.fill_path(door.path) + ("?state=made-up&code=%3Cscript%3E" if door.path.endswith("callback") else "")
    headers = caller.credentials(house.keys, door.method, target, b"")
    answer = await house.http.request(door.method, target, headers=headers)
    wrong = [] if answer.status_code in (400, 403) else [f"{answer.status_code}: {answer.text}"]
    if not answer.headers["content-type"].startswith("text/html") or "script" in answer.text:
        wrong.append("what was sent is on the page")
    if "default-src 'none'" not in answer.headers.get("content-security-policy", ""):
        wrong.append("the page may do anything")
    return wrong if house.rows() == before else [*wrong, "something was stored"]


async def _webhook(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """Whoever is not the platform says nothing here, whatever else they may do."""
    before = len(house.agent.seen), house.rows()
    headers = caller.credentials(house.keys, door.method, door.path, b"{}")
    wrong: list[str] = []
    forged = {"x-message-signature": "v1=" + "0" * 64, "x-message-timestamp": str(int(time.time()))}
    for more in ({}, forged):
        sent = {"content-type": "application/json", **headers, **more}
        answer = await house.http.request(door.method, door.path, content=b"{}", headers=sent)
        if answer.status_code != 401 or not set(answer.json()["error"]) >= shape(door):
            wrong.append(f"{answer.status_code}: {answer.text}")
    return wrong if before == (len(house.agent.seen), house.rows()) else [*wrong, "something ran, or was stored"]


async def _visitor(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """Whoever has no cookie of the page is nobody there, whatever else they may do; its files are for everybody."""
    before = len(house.agent.seen), house.rows()
    target, data = house.fill_path(door.path), json.dumps(purpose(door).body or {}).encode()
    headers = {"origin": house.url, **caller.credentials(house.keys, door.method, target, data)}
    if door.method == SOCKET:
        status = await _handshake(f"{house.url.replace('http', 'ws', 1)}{target}", headers)
    else:
        sent = {"content-type": "application/json", **headers, **_forge(house.url)}
        status = (await house.http.request(door.method, target, content=data, headers=sent)).status_code
    wanted = 404 if "/api/" not in door.path else 401 if headers["origin"] == house.url else 403
    wrong = [] if status == wanted else [f"{status} and not {wanted}"]
    return wrong if before == (len(house.agent.seen), house.rows()) else [*wrong, "something ran, or was stored"]


async def _handshake(url: str, headers: dict[str, str]) -> int:
    try:
        async with connect(url, additional_headers={**headers, **_forge(url)}, proxy=None):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def _forge(url: str) -> dict[str, str]:
    """A cookie of the name that the page at an address gives."""
    page = digest(f"{urlsplit(url).netloc}/chat")[:8]
    return {"cookie": f"frontdesk_visitor_{page}=vis_1.{'A' * 43}"}


async def _task(house: EveryDoorHost, door: Door, caller: Caller) -> list[str]:
    """Another agent whose caller has to link first gets a task that waits for the link, and nothing runs."""
    if caller.house != "linked":
        return await _http(house, door, caller)
    target, data = house.fill_path(door.path), json.dumps(purpose(door).body).encode()
    headers = {"content-type": "application/json", **caller.credentials(house.keys, door.method, target, data)}
    answer = await house.http.request(door.method, target, content=data, headers=headers)
    waits = answer.status_code == 200 and "TASK_STATE_AUTH_REQUIRED" in answer.text
    wrong = [] if waits else [f"{answer.status_code}: {answer.text}"]
    return [*wrong, "something ran"] if house.agent.seen else wrong


KNOCKS = {
    "task": _task,
    "session": _session,
    "socket": _socket,
    "page": _page,
    "webhook": _webhook,
    "visitor": _visitor,
}


async def test_the_order_in_which_credentials_are_offered_makes_no_difference(tmp_path: Path) -> None:
    async with serve_issuers() as issuers, open_house("open", issuers, tmp_path, backwards=True) as house:
        await house.furnish()
        doors = [door for door in await house.doors() if door.path in ("/invocations", "/v1/responses/{run_id}")]
        wrong = [
            f"{name} at {door}: {one}"
            for name, caller in CALLERS.items()
            if caller.house == "open"
            for door in doors
            if door.method != "DELETE"
            for one in await _http(house, door, caller)
        ]
    assert not wrong, "\n".join(wrong)


async def test_every_door_has_a_purpose_and_every_purpose_a_door(tmp_path: Path) -> None:
    async with serve_issuers() as issuers, open_house("open", issuers, tmp_path) as house:
        doors = {name_door(door) for door in await house.doors()}
    assert not doors - set(PURPOSES), "say in PURPOSES who may use these"
    assert set(PURPOSES) == doors


class Careless(Channel):
    """A channel with a route that asks nobody who they are."""

    name = "careless"
    path = "/careless"

    def contribute(self, context: ChannelContext) -> ChannelContribution:
        async def dump(request: Request) -> PlainTextResponse:
            return PlainTextResponse("everything")

        return ChannelContribution(routes=[Route("/dump", dump, methods=["GET"])])


async def test_a_door_that_asks_nobody_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_issuers() as issuers, open_house("open", issuers, tmp_path, more=[Careless()]) as house:
        (door,) = [door for door in await house.doors() if name_door(door) not in PURPOSES]
        assert str(door) == "GET /careless/dump"
        # Whatever it is said to be for, it does not keep to it.
        monkeypatch.setitem(PURPOSES, name_door(door), Purpose("info"))
        assert await _http(house, door, CALLERS["anonymous"])


def test_every_kind_of_caller_that_was_named_is_there() -> None:
    assert set(CALLERS) >= NAMED
