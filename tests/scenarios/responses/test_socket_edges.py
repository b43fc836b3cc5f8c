"""Connections that are refused, misused, cut, slow, idle or outlived by their server."""

import asyncio
import json
from typing import Any

import pytest
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from frontdesk import ApiKeyAuth
from frontdesk.channels.responses import SocketLimits
from frontdesk.errors import UnauthenticatedError
from frontdesk.http.sockets import MAX_LANES, MAX_REJECTED_MESSAGES, MAX_WAITING
from frontdesk.interfaces.auth import Principal
from frontdesk_testing import GatedAgent
from tests.scenarios.desk import until
from tests.scenarios.responses.cast import build_answering, parrot
from tests.scenarios.responses.desk import ResponsesHost, open_client
from tests.scenarios.responses.sockets import LAST, Line, dial, extract_text

KEY = "the-key-of-somebody"
AUTH = ApiKeyAuth({"somebody": KEY, "another": "the-key-of-another"})


async def _read_refusal(desk: ResponsesHost, **options: Any) -> tuple[int, Any]:
    with pytest.raises(InvalidStatus) as caught:
        async with dial(desk, **options):
            pass
    return caught.value.response.status_code, json.loads(caught.value.response.body or b"{}")


def _key(key: str, name: str = "Authorization") -> dict[str, Any]:
    return {"additional_headers": {name: f"Bearer {key}"}}


async def test_the_handshake_needs_the_credentials_that_http_needs(caplog: pytest.LogCaptureFixture) -> None:
    async with open_client(parrot(), auth=AUTH) as desk:
        for options in ({}, _key("not a key of anybody's")):
            status, body = await _read_refusal(desk, **options)
            assert (status, body["error"]["type"]) == (401, "authentication_error")
        for name in ("Authorization", "authorization", "AUTHORIZATION"):
            async with dial(desk, **_key(KEY, name)) as line:
                assert extract_text(await line.response()) == "you said hello"
        assert len(desk.runs()) == 3
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("name", ["Origin", "origin", "ORIGIN"])
async def test_pages_of_other_origins_are_refused_however_the_header_is_written(name: str) -> None:
    async with open_client(parrot(), allowed_origins=("https://ours.example",)) as desk:
        status, body = await _read_refusal(desk, additional_headers={name: "https://evil.example"})
        assert (status, body["error"]["code"]) == (403, "origin_refused")
        for fine in ("https://ours.example", desk.url):
            async with dial(desk, additional_headers={name: fine}) as line:
                assert extract_text(await line.response()) == "you said hello"


async def test_a_name_that_points_here_is_not_local() -> None:
    async with open_client(parrot()) as desk:
        port = desk.url.rpartition(":")[2]
        with pytest.raises(InvalidStatus) as caught:
            async with connect(
                f"ws://rebound.example:{port}/v1/responses", host="127.0.0.1", port=int(port), proxy=None
            ):
                pass
        assert caught.value.response.status_code == 401


async def test_another_caller_can_not_continue_what_is_not_theirs() -> None:
    other = _key("the-key-of-another")
    async with open_client(parrot(), auth=AUTH) as desk, dial(desk, **_key(KEY)) as mine, dial(desk, **other) as theirs:
        for store in (True, False):
            response = await mine.response("one", store=store)
            error = await theirs.error("two", previous_response_id=response["id"])
            assert error["code"] == "previous_response_not_found"
            await theirs.send({"type": "response.cancel", "response_id": response["id"]})
            assert (await theirs.receive())["status"] == 404


async def test_a_key_that_is_taken_away_ends_the_connection_at_its_next_response() -> None:
    class Keys:
        name = "keys"
        good = True

        async def authenticate(self, headers: Any) -> Principal | None:
            if not self.good:
                raise UnauthenticatedError("The key is not good any more.")
            return Principal(id="somebody")

    keys = Keys()
    async with open_client(parrot(), auth=keys, tapped=False) as desk, dial(desk) as line:
        assert extract_text(await line.response()) == "you said hello"
        keys.good = False
        error = await line.error()
        assert (error["status"], error["code"]) == (401, "unauthenticated")
        assert await _wait_for_close(line) == 1008
        assert len(desk.runs()) == 1


async def test_a_key_that_becomes_another_s_ends_the_connection_too() -> None:
    class Keys:
        name = "keys"
        holder = "somebody"

        async def authenticate(self, headers: Any) -> Principal | None:
            return Principal(id=self.holder)

    keys = Keys()
    async with open_client(parrot(), auth=keys, tapped=False) as desk, dial(desk) as line:
        first = await line.response(store=False)
        keys.holder = "another"
        assert (await line.error(previous_response_id=first["id"]))["status"] == 401
        assert await _wait_for_close(line) == 1008


async def test_a_check_of_keys_that_breaks_lets_nobody_in() -> None:
    class Keys:
        name = "keys"

        async def authenticate(self, headers: Any) -> Principal | None:
            raise RuntimeError("the secret reason")

    async with open_client(parrot(), auth=Keys()) as desk:
        status, body = await _read_refusal(desk)
        assert (status, body["error"]["code"]) == (500, "internal_error")
        assert "secret" not in str(body)


async def test_all_connections_together_remember_only_so_much() -> None:
    limits = SocketLimits(max_kept_bytes=9_000)
    async with open_client(parrot(), sockets=limits) as desk, dial(desk) as first, dial(desk) as second:
        mine = await first.response("one" * 1_000, store=False)
        theirs = await second.response("two" * 1_000, store=False)
        assert (await first.error("x", previous_response_id=mine["id"]))["code"] == "previous_response_not_found"
        more = await second.response("x", store=False, previous_response_id=theirs["id"])
        assert more["status"] == "completed"


async def test_other_paths_have_no_socket() -> None:
    async with open_client(parrot()) as desk:
        for path in ("/v1/responses/compact", "/v1/models", "/nothing"):
            status, _ = await _read_refusal(desk, path=path)
            assert status in (403, 404)


async def test_too_many_connections_are_refused() -> None:
    async with open_client(parrot(), sockets=SocketLimits(max_open=1)) as desk:
        async with dial(desk) as line:
            status, body = await _read_refusal(desk)
            assert (status, body["error"]["code"]) == (503, "unavailable")
            assert (await line.response())["status"] == "completed"
        await until(lambda: desk.tap.connections[0].said and not desk.server.server_state.tasks)
        async with dial(desk) as line:
            assert (await line.response())["status"] == "completed"


async def test_too_many_connections_of_one_caller_are_refused_and_no_other_s() -> None:
    limits = SocketLimits(max_open_per_caller=1)
    async with open_client(parrot(), auth=AUTH, sockets=limits) as desk, dial(desk, **_key(KEY)):
        status, body = await _read_refusal(desk, **_key(KEY))
        assert (status, body["error"]["code"]) == (429, "too_many_requests")
        async with dial(desk, **_key("the-key-of-another")) as line:
            assert (await line.response())["status"] == "completed"


WRONG: list[tuple[Any, str | None, str]] = [
    ("not json", None, "invalid_json"),
    (b"\xff\xfe", None, "invalid_json"),
    ("[]", None, "invalid_request"),
    ({"input": "x"}, None, "invalid_request"),
    ({"type": 5}, "type", "invalid_request"),
    ({"type": "response.steer", "input": "x", "previous_response_id": "resp_1"}, "type", "unsupported"),
    ({"type": "response.create", "input": "x", "generate": False}, "generate", "unsupported"),
    ({"type": "response.create", "input": "x", "background": True}, "background", "invalid_request"),
    ({"type": "response.create", "input": "x", "stream_id": "a b"}, "stream_id", "invalid_request"),
    ({"type": "response.create"}, "input", "invalid_request"),
    ({"type": "response.create", "input": 5}, "input", "invalid_request"),
    (
        {"type": "response.create", "input": "x", "previous_response_id": "../x"},
        "previous_response_id",
        "invalid_request",
    ),
    ('{"type": "response.create", "input": ' + "[" * 100_000, None, "too_many_values"),
]


@pytest.mark.parametrize(("message", "param", "code"), WRONG)
async def test_whatever_is_wrong_is_named_and_the_connection_goes_on(
    message: Any, param: str | None, code: str
) -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        await line.send(message)
        event = await line.receive()
        assert (event["type"], event["status"]) == ("error", 400)
        assert (event["error"]["param"], event["error"]["code"]) == (param, code)
        assert desk.untouched()
        assert extract_text(await line.response()) == "you said hello"


async def test_bytes_are_read_as_text_is() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        await line.send(json.dumps({"type": "response.create", "input": "hello"}).encode())
        assert extract_text((await line.until(*LAST))[-1]["response"]) == "you said hello"


async def test_half_a_character_from_a_model_does_not_break_the_connection() -> None:
    async with open_client(build_answering(lambda _: ["half \ud83d"])) as desk, dial(desk) as line:
        assert extract_text(await line.response(store=False)) == "half \ufffd"
        await line.send('{"type": "response.create", "input": "\\ud83d"}')
        assert (await line.until(*LAST))[-1]["type"] in LAST


async def _wait_for_close(line: Line) -> int:
    """Reads to the end; returns the code that the server closed with."""
    with pytest.raises(ConnectionClosed) as caught:
        await line.until("nothing ever")
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code


async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    async with open_client(parrot(), sockets=SocketLimits(max_message_bytes=1000)) as desk, dial(desk) as line:
        error = await line.error("x" * 1000)
        assert (error["status"], error["code"]) == (413, "body_too_large")
        assert await _wait_for_close(line) == 1009
        assert desk.untouched()


async def test_a_message_larger_than_the_server_takes_ends_the_connection() -> None:
    async with open_client(parrot()) as desk, dial(desk) as line:
        await line.create("x" * (17 * 1024 * 1024))
        assert await _wait_for_close(line) == 1009


async def test_messages_that_come_too_fast_are_refused_then_the_connection_ends() -> None:
    async with open_client(parrot(), sockets=SocketLimits(messages_per_minute=2)) as desk, dial(desk) as line:
        for _ in range(2):
            await line.response()
        await line.create()
        event = await line.receive()
        assert (event["status"], event["error"]["code"]) == (429, "too_many_requests")
        assert int(event["error"]["headers"]["retry-after"]) > 1
        for _ in range(MAX_REJECTED_MESSAGES + 1):
            await line.create()
        assert await _wait_for_close(line) == 1008
        assert len(desk.runs()) == 2


async def test_only_so_many_messages_wait() -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk, dial(desk) as line:
        await line.create("a b")
        await line.until("response.output_text.delta")
        for _ in range(MAX_WAITING + 1):
            await line.create("c")
        event = (await line.until("error"))[-1]
        assert (event["status"], event["error"]["code"]) == (429, "too_many_requests")
        gated.release.set()
        heard = [extract_text((await line.until(*LAST))[-1]["response"]) for _ in range(MAX_WAITING + 1)]
        assert heard == ["a b", *["c"] * MAX_WAITING]


async def test_only_so_much_waits() -> None:
    gated = GatedAgent()
    async with open_client(gated, sockets=SocketLimits(max_message_bytes=10_000)) as desk, dial(desk) as line:
        await line.create("a b")
        await line.until("response.output_text.delta")
        await line.create("c" * 6_000)
        await line.create("d" * 6_000)
        event = (await line.until("error"))[-1]
        assert event["status"] == 429
        gated.release.set()
        assert [extract_text((await line.until(*LAST))[-1]["response"]) for _ in range(2)] == ["a b", "c" * 6_000]


async def test_only_so_many_lanes_are_at_work() -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk, dial(desk) as line:
        for lane in range(MAX_LANES + 1):
            await line.create("a b", stream_id=f"lane-{lane}")
        event = (await line.until("error"))[-1]
        assert (event["status"], event["stream_id"]) == (429, f"lane-{MAX_LANES}")
        gated.release.set()
        ended = [(await line.until(*LAST))[-1] for _ in range(MAX_LANES)]
        assert {event["stream_id"] for event in ended} == {f"lane-{lane}" for lane in range(MAX_LANES)}


async def test_a_connection_remembers_only_the_last_responses_and_not_too_much() -> None:
    async with open_client(parrot(), max_body_bytes=20_000) as desk, dial(desk) as line:
        first = await line.response("one", store=False)
        for _ in range(20):
            last = await line.response("two", store=False)
        assert (await line.error("x", previous_response_id=first["id"]))["code"] == "previous_response_not_found"
        assert (await line.response("x", store=False, previous_response_id=last["id"]))["status"] == "completed"
        large = await line.response("y" * 19_000, store=False)
        assert (await line.error("x", previous_response_id=large["id"]))["code"] == "previous_response_not_found"


@pytest.mark.parametrize("way", ["close", "cut"])
async def test_a_connection_that_is_cut_cancels_its_run(way: str) -> None:
    gated = GatedAgent()
    async with open_client(gated) as desk:
        before = len(asyncio.all_tasks())
        async with dial(desk) as line:
            await line.create("one two")
            await line.create("never begun")
            await line.until("response.output_text.delta")
            if way == "cut":
                line.wire.transport.abort()
        await gated.cancelled.wait()
        await until(lambda: not desk.active)
        await until(lambda: len(asyncio.all_tasks()) <= before)
        (run,) = desk.runs()
        assert run.status == "cancelled"


async def test_a_run_goes_on_without_its_connection_if_the_operator_says_so() -> None:
    gated = GatedAgent()
    async with open_client(gated, finish_abandoned=True) as desk:
        async with dial(desk) as line:
            await line.create("one two")
            begun = await line.until("response.output_text.delta")
        gated.release.set()
        await until(lambda: not desk.active)
        response = await desk.client().responses.retrieve(begun[0]["response"]["id"])
        assert (response.status, response.output_text) == ("completed", "one two")


async def test_a_slow_reader_does_not_let_the_run_get_far_ahead() -> None:
    pieces = 0

    async def chatter(text: str) -> Any:
        nonlocal pieces
        while True:
            pieces += 1
            yield "x" * 100_000

    async with open_client(chatter, tapped=False) as desk:
        async with dial(desk, max_queue=1, compression=None) as line:
            line.wire.transport.pause_reading()
            await line.create("go")
            await until(lambda: pieces)
            while await _grew(lambda: pieces):
                pass
            assert pieces < 500
            await line.send({"type": "response.cancel"})
            line.wire.transport.resume_reading()
            last = (await line.until(*LAST))[-1]
            assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        assert desk.active == 0


async def test_a_reader_that_stands_still_loses_its_run() -> None:
    async def chatter(text: str) -> Any:
        while True:
            yield "x" * 100_000

    limits = SocketLimits(send_seconds=0.05)
    slow = {"max_queue": 1, "compression": None}
    async with open_client(chatter, tapped=False, sockets=limits) as desk, dial(desk, **slow) as line:
        line.wire.transport.pause_reading()
        await line.create("go")
        await until(lambda: desk.runs() and not desk.active)
        (run,) = desk.runs()
        assert run.status == "cancelled"
        line.wire.transport.abort()


async def _grew(count: Any) -> bool:
    """Whether something still grows while the loop is given many turns."""
    before = count()
    for _ in range(2_000):
        await asyncio.sleep(0)
    return count() > before


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    gated = GatedAgent()
    async with open_client(gated, sockets=SocketLimits(idle_seconds=0.05)) as desk, dial(desk) as line:
        await line.create("one two")
        await line.until("response.output_text.delta")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await line.receive()
        gated.release.set()
        assert extract_text((await line.until(*LAST))[-1]["response"]) == "one two"
        assert await _wait_for_close(line) == 1000


async def test_the_server_s_end_closes_connections_and_cancels_their_runs() -> None:
    gated = GatedAgent()
    async with open_client(gated, tapped=False) as desk:
        async with dial(desk) as line, dial(desk) as idle:
            await line.create("one two")
            await line.until("response.output_text.delta")
            for connection in list(desk.server.server_state.connections):
                connection.shutdown()
            assert [await _wait_for_close(one) for one in (line, idle)] == [1012, 1012]
        await gated.cancelled.wait()
        await until(lambda: not desk.active)
        (run,) = desk.runs()
        assert run.status == "cancelled"


class _Named(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


async def test_a_channel_under_a_path_and_behind_middleware_has_its_socket_there() -> None:
    settings = {"middleware": [Middleware(_Named)]}
    async with open_client(parrot(), path="/desk", host_settings=settings, tapped=False) as desk:
        for path in ("/desk/responses", "/desk/v1/responses"):
            async with dial(desk, path) as line:
                assert extract_text(await line.response()) == "you said hello"
        assert (await _read_refusal(desk, path="/v1/responses"))[0] == 403
