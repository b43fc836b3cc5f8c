"""Content as a name: session ids, file names and headers that walked out of their place, or fell together."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from frontdesk import AgentFrameworkHost, HttpAuth
from frontdesk.channels.conversations import ConversationsChannel
from frontdesk.channels.invocations import InvocationsChannel
from frontdesk.channels.responses import ResponsesChannel
from frontdesk.interfaces.auth import Principal
from frontdesk_testing import EchoAgent, serving
from tests.scenarios.cast import PlainAgent
from tests.scenarios.pausing import Inn

WALKS = [
    "../../outside",
    "..",
    ".",
    ".hidden",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\outside",
    "a\x00b",
    "..%2f..%2foutside",
    "~root",
    "con",
    "a:b",
    "a" * 256,
]


def _files(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


def _odd(files: set[str]) -> list[str]:
    """The files whose names are not of the host's own making."""
    own = re.compile(r"deep/state/(frontdesk\.(db(-shm|-wal)?|lock)|checkpoints/[0-9a-f]{64}/[0-9a-f-]{36}\.json)")
    return [name for name in files if not own.fullmatch(name)]


async def test_a_session_id_walked_out_of_its_folder(tmp_path: Path) -> None:
    """A workflow keeps checkpoints for each session, which is where folders were made of ids."""
    place = tmp_path / "deep" / "state"
    async with serving(AgentFrameworkHost(Inn(), channels=[InvocationsChannel()], state_dir=place)) as client:
        for name in WALKS:
            for body in ({"session_id": name}, {"session_id": "s", "checkpoint_id": name}):
                answer = await client.http.post("/invocations", json={"message": "Ada", **body})
                assert answer.status_code in (200, 400, 404, 409), (name, answer.text)
            for path in ("/invocations/{}", "/invocations/{}/cancel"):
                method = "POST" if path.endswith("cancel") else "GET"
                shown = await client.http.request(method, path.format(quote(name, safe="")))
                assert shown.status_code in (400, 404, 405)
        written = _files(tmp_path)
    assert not _odd(written)


async def test_a_file_name_walked_out_of_its_folder(tmp_path: Path) -> None:
    agent, place = EchoAgent(), tmp_path / "deep" / "state"
    channels = [InvocationsChannel(), ResponsesChannel()]
    async with serving(AgentFrameworkHost(agent, channels=channels, state_dir=place)) as client:
        for name in WALKS:
            data = {"type": "data", "data": "aGVsbG8=", "media_type": "text/plain", "name": name}
            answer = await client.http.post("/invocations", json={"message": [data]})
            assert answer.status_code in (200, 400)
            part = {"type": "input_file", "filename": name, "file_data": "data:text/plain;base64,aGVsbG8="}
            body = {"input": [{"role": "user", "content": [part]}]}
            assert (await client.http.post("/v1/responses", json=body)).status_code in (200, 400)
        written = _files(tmp_path)
    assert agent.seen
    assert not _odd(written)


class Named:
    """Takes the caller's word for who they are: what any other auth would have proved."""

    name = "named"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        given = bytes.fromhex(headers.get(b"x-name", b"").decode()).decode("utf-8", "surrogatepass")
        return Principal(id=given)


LIKE = [
    "alice",
    "Alice",
    "ALICE",
    "alice ",
    " alice",
    "alice.",
    "alice/",
    "alice%2F",
    "alice\x00",
    "ali\x00ce",
    "alice\n",
    "alice\u200b",
    "\u0430lice",
    unicodedata.normalize("NFC", "alic\u00e9"),
    unicodedata.normalize("NFD", "alic\u00e9"),
    "a/b",
    "a_b",
    "a-b",
    "a:b",
    "a" * 200,
    "a" * 201,
    "a" * 200 + "b",
    "a" * 300,
    "a" * 299 + "b",
    "\x01" + "0" * 64,
]
SESSIONS = ["s", "S", "s.", "s_", "s-", "s:", "s" * 256, "s" * 255 + "S"]


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
async def test_two_different_keys_were_written_to_the_same_name(kept: str, tmp_path: Path) -> None:
    auth: HttpAuth = Named()
    agent = PlainAgent()
    state: dict[str, Any] = {"state_dir": tmp_path} if kept == "sqlite" else {}
    host = AgentFrameworkHost(agent, channels=[InvocationsChannel(auth=auth)], **state)
    pairs = [(name, session) for name in LIKE for session in SESSIONS[:2]]
    pairs += [("alice", session) for session in SESSIONS[2:]]
    async with serving(host) as client:
        for turn in (1, 3):
            for name, session in pairs:
                headers = {
                    "x-name": name.encode("utf-8", "surrogatepass").hex(),
                    "x-agent-invocation-id": f"run-{turn}",
                }
                if session != "s":
                    headers.pop("x-agent-invocation-id")
                told = await client.invoke("hello", session_id=session, headers=headers)
                assert told["text"] == f"{turn} messages", (name, session)


class _Wire:
    """One request straight to the app, with header values that no well-behaved server would let through."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self._body = [b'{"message": "hello", "input": "hello"}', b""]

    async def receive(self) -> Message:
        return {"type": "http.request", "body": self._body[0], "more_body": False}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return list(self.sent[0]["headers"])


VALUES = st.one_of(
    st.binary(max_size=24),
    st.builds(lambda a, b: a + b"\r\nset-cookie: stolen=1" + b, st.binary(max_size=4), st.binary(max_size=4)),
    st.sampled_from([b"\r", b"\n", b"x\r\n\r\n<script>", b"x\x00", "x\u2028".encode()]),
)
HEADERS = ["x-request-id", "x-agent-invocation-id", "origin", "host", "authorization", "x-api-key", "content-type"]


@given(
    name=st.sampled_from(HEADERS),
    value=VALUES,
    path=st.sampled_from(["/invocations", "/v1/responses", "/v1/conversations", "/invocations/x", "/v1/x"]),
)
async def test_a_line_end_got_into_a_header_value(name: str, value: bytes, path: str) -> None:
    host = _open_host()
    headers = {b"host": b"127.0.0.1", b"content-type": b"application/json", name.encode(): value}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": value,
        "headers": list(headers.items()),
        "client": ("127.0.0.1", 1),
    }
    wire = _Wire()
    async with host.app.router.lifespan_context(host.app):
        await host.app(scope, wire.receive, wire.send)
    for told, said in wire.headers:
        assert not set(b"\r\n\x00") & {*told, *said}, (told, said)
    assert b"set-cookie" not in dict(wire.headers)


class Broken:
    """Fails in a way that nobody foresaw."""

    name = "broken"

    async def authenticate(self, headers: Mapping[bytes, bytes]) -> Principal | None:
        raise RuntimeError


async def test_a_line_end_in_a_path_made_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    host = AgentFrameworkHost(
        EchoAgent(), channels=[InvocationsChannel(auth=Broken()), ResponsesChannel(auth=Broken())]
    )
    async with serving(host) as client:
        for path in ("/invocations/x%0d%0aERROR forged", "/v1/responses/x%0aERROR forged"):
            assert (await client.http.get(path)).status_code == 500
    told = [record.getMessage() for record in caplog.records if "forged" in record.getMessage()]
    assert len(told) == 2
    assert not [text for text in told if len(text.splitlines()) > 1]


def _open_host() -> AgentFrameworkHost:
    channels = [InvocationsChannel(), ResponsesChannel(), ConversationsChannel()]
    return AgentFrameworkHost(EchoAgent(), channels=channels)
