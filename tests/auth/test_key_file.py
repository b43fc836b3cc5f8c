"""Keys in a file: what becomes of them while the host runs."""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk import ApiKeyAuth, Principal, Secret
from frontdesk.auth.api_keys import (
    LOOK_SECONDS,
    KeyFileError,
    StoredKey,
    append,
    extract_time,
    parse_seconds,
    read_keys,
)
from frontdesk.errors import UnauthenticatedError
from frontdesk_testing.clock import FakeClock

ONE = "fdk_the-first-key-of-alice"
TWO = "fdk_the-second-key-of-alice"
EMPTY = ApiKeyAuth.hash("")
NOW = parse_seconds("2026-06-01T12:00:00Z")


def build_stored(key: str, key_id: str = "key_1", principal: str = "alice", **times: str) -> StoredKey:
    return StoredKey(id=key_id, principal=principal, hash=ApiKeyAuth.hash(key), **times)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


def spoil(path: Path, how: str) -> None:
    if how == "gone":
        path.unlink(missing_ok=True)
        return
    good = path.read_text()
    twice = good + good.replace("alice", "bob").replace("key_1", "key_2")
    path.write_text("half a li" if how == "broken" else twice)


async def who(auth: ApiKeyAuth, key: str) -> Principal | None:
    return await auth.authenticate({b"x-api-key": key.encode()})


async def read_refusal(auth: ApiKeyAuth, key: str) -> str:
    with pytest.raises(UnauthenticatedError) as caught:
        await who(auth, key)
    assert key not in caught.value.message
    return caught.value.code


class TestRotation:
    async def test_a_new_key_is_taken_and_the_old_one_goes_on(self, path: Path, clock: FakeClock) -> None:
        append(path, build_stored(ONE))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        assert await who(auth, ONE) == Principal(id="alice")
        append(path, build_stored(TWO, "key_2"))
        clock.advance(LOOK_SECONDS)
        assert await who(auth, TWO) == await who(auth, ONE) == Principal(id="alice")

    async def test_a_revoked_key_is_refused_by_the_first_request_after_a_second(
        self, path: Path, clock: FakeClock
    ) -> None:
        append(path, build_stored(ONE))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        append(path, StoredKey(id="key_1", revoked=extract_time(clock.now())))
        # Within the second it may go on; after it, not one request more, however long nobody came.
        clock.advance(LOOK_SECONDS)
        assert await asyncio.gather(*(read_refusal(auth, ONE) for _ in range(5))) == ["key_expired"] * 5

    async def test_the_file_is_looked_at_once_a_second(
        self, path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append(path, build_stored(ONE))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        looks: list[Any] = []
        real = os.stat
        monkeypatch.setattr(
            os, "stat", lambda *a, **k: (looks.append(a[0]) if a[0] == path else None, real(*a, **k))[1]
        )
        for _ in range(10):
            await who(auth, ONE)
        assert not looks
        clock.advance(LOOK_SECONDS)
        await asyncio.gather(*(who(auth, ONE) for _ in range(10)))
        assert len(looks) == 1

    async def test_an_expired_key_is_refused_without_a_change_of_the_file(self, path: Path, clock: FakeClock) -> None:
        append(path, build_stored(ONE, expires=extract_time(NOW + 60)))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        assert await who(auth, ONE) == Principal(id="alice")
        clock.advance(60)
        assert await read_refusal(auth, ONE) == "key_expired"

    async def test_a_clock_that_goes_back_does_not_stop_the_looking(self, path: Path, clock: FakeClock) -> None:
        append(path, build_stored(ONE))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        append(path, build_stored(TWO, "key_2"))
        clock.jump(-3600)
        assert await who(auth, TWO) == Principal(id="alice")

    async def test_a_key_that_is_listed_twice_ends_with_the_first_end(self, path: Path, clock: FakeClock) -> None:
        append(path, build_stored(ONE))
        append(path, build_stored(ONE, "key_2"))
        append(path, StoredKey(id="key_2", revoked=extract_time(NOW)))
        assert await read_refusal(ApiKeyAuth.from_file(path, clock=clock), ONE) == "key_expired"


class TestBrokenFiles:
    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("not JSON", "line 1: this is not JSON"),
            ('{"id": "key_1"}', "an id and a principal"),
            ('{"id": "key_1", "principal": "anonymous", "hash": "sha256:%s"}' % ("0" * 64), "an id and a principal"),
            (f'{{"id": "key_1", "principal": "alice", "hash": "{EMPTY}"}}', "an empty key"),
            ('{"id": "key_1", "principal": "alice", "hash": "plain-key-by-mistake"}', "64 hexadecimal digits"),
            ('{"id": "key_1", "principal": "alice", "key": "plain-key-by-mistake"}', "unknown field"),
            ('{"id": "key_1", "principal": "alice", "hash": "sha256:%s", "expires": "soon"}' % ("0" * 64), "a time"),
            ('\n{"id": 1}', "line 2"),
        ],
    )
    def test_they_are_a_clear_error_at_build_that_tells_no_key(self, path: Path, text: str, told: str) -> None:
        path.write_text(text)
        with pytest.raises(ValueError, match=told) as caught:
            ApiKeyAuth.from_file(path)
        assert "plain-key" not in str(caught.value)
        assert str(path) in str(caught.value)

    def test_one_that_is_not_there_is_an_error_that_says_what_to_do(self, path: Path) -> None:
        with pytest.raises(ValueError, match="frontdesk keys create"):
            ApiKeyAuth.from_file(path)

    def test_a_directory_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="can't be read"):
            ApiKeyAuth.from_file(tmp_path)

    def test_two_principals_with_one_key_are_told(self, path: Path) -> None:
        append(path, build_stored(ONE))
        append(path, build_stored(ONE, "key_2", "bob"))
        with pytest.raises(ValueError, match="the same key"):
            ApiKeyAuth.from_file(path)

    @pytest.mark.parametrize("how", ["broken", "gone", "two owners"])
    async def test_while_the_host_runs_the_last_good_keys_stay(
        self, path: Path, clock: FakeClock, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        append(path, build_stored(ONE))
        auth = ApiKeyAuth.from_file(path, clock=clock)
        spoil(path, how)
        for _ in range(3):
            clock.advance(LOOK_SECONDS)
            assert await who(auth, ONE) == Principal(id="alice")
        # Told once, not each second.
        assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
        spoil(path, "gone")
        append(path, build_stored(TWO, "key_2"))
        clock.advance(LOOK_SECONDS)
        assert await who(auth, TWO) == Principal(id="alice")
        assert await read_refusal(auth, ONE) == "unauthenticated"

    def test_a_file_with_no_key_lets_nobody_in_and_is_no_error(self, path: Path) -> None:
        path.touch()
        assert repr(ApiKeyAuth.from_file(path)) == "ApiKeyAuth(0 keys)"

    def test_a_line_without_its_end_is_not_run_into_the_next(self, path: Path) -> None:
        append(path, build_stored(ONE))
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        append(path, build_stored(TWO, "key_2"))
        assert [key.id for key in read_keys(path)] == ["key_1", "key_2"]


def test_the_file_is_for_its_user_alone(path: Path) -> None:
    append(path, build_stored(ONE))
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert ONE not in path.read_text()


async def test_keys_can_be_given_as_secrets() -> None:
    auth = ApiKeyAuth({"alice": Secret(ONE), "bob": [Secret("fdk_the-key-of-bob-long")]})
    assert await who(auth, ONE) == Principal(id="alice")


async def test_a_token_of_another_kind_is_left_to_others() -> None:
    auth = ApiKeyAuth({"alice": ONE})
    jwt = b"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    assert await auth.authenticate({b"authorization": b"Bearer " + jwt}) is None
    with pytest.raises(UnauthenticatedError):
        await auth.authenticate({b"x-api-key": jwt})


@given(st.text(max_size=200))
def test_no_text_is_more_than_a_key_file_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "keys.jsonl"
    path.write_text(text, "utf-8", errors="replace")
    with suppress(KeyFileError):
        assert all(key.principal and key.digest for key in read_keys(path))


@given(st.floats(min_value=0, max_value=4e9))
def test_a_time_is_read_as_it_was_written(seconds: float) -> None:
    assert parse_seconds(extract_time(seconds)) == int(seconds)
