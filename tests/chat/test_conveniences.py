"""What authors of chat channels need for nearly every platform."""

import hashlib
import hmac

import msgspec
import pytest

from frontdesk import (
    FileTooLargeError,
    InvalidRequestError,
    PushError,
    PushLimitedError,
    PushNotEditableError,
    PushRefusedError,
    UnauthenticatedError,
)
from frontdesk.chat import (
    PlatformHttp,
    PlatformResponse,
    Secret,
    decode_event,
    verify_hmac,
    verify_time,
)
from tests.outbound.origin import at, ok, serve_origin

SECRET, BODY = Secret("a secret"), b"1760000000.{}"
SIGNATURE = hmac.new(b"a secret", BODY, hashlib.sha256).hexdigest().encode()


class Event(msgspec.Struct):
    id: str


def test_an_event_is_decoded() -> None:
    assert decode_event(b'{"id": "1"}', Event) == Event(id="1")


@pytest.mark.parametrize("event", [b"", b"{", b"[]", b'{"id": 1}', b"\xff", b"[" * 100_000])
def test_an_event_that_does_not_match_is_an_invalid_request(event: bytes) -> None:
    with pytest.raises(InvalidRequestError, match="The event is invalid"):
        decode_event(event, Event)


def test_the_right_signature_is_accepted() -> None:
    verify_hmac(SECRET, BODY, SIGNATURE)


@pytest.mark.parametrize("signature", [b"", SIGNATURE[:-1], SIGNATURE.upper(), b"v1=" + SIGNATURE, b"\xff"])
def test_a_wrong_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(UnauthenticatedError, match="signature"):
        verify_hmac(SECRET, BODY, signature)


@pytest.mark.parametrize("time", [b"700", b"1300", b"1000"])
def test_a_recent_time_is_accepted(time: bytes) -> None:
    verify_time(time, 1000.0)


@pytest.mark.parametrize("time", [b"699", b"1301", b"", b"-1000", b"1e3", b"9" * 13, b"\xb2"])
def test_another_time_is_refused(time: bytes) -> None:
    with pytest.raises(UnauthenticatedError, match="out of range"):
        verify_time(time, 1000.0)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(410, PushNotEditableError), (404, PushRefusedError), (429, PushLimitedError), (500, PushError)],
)
def test_a_response_that_is_not_ok_raises_the_error_for_its_status(status: int, kind: type[PushError]) -> None:
    response = PlatformResponse(status=status, headers={}, body=b"a secret")
    with pytest.raises(kind) as caught:
        response.checked({410: PushNotEditableError})
    assert type(caught.value) is kind
    assert "a secret" not in str(caught.value)


def test_a_response_that_is_ok_is_returned() -> None:
    response = PlatformResponse(status=204, headers={}, body=b"")
    assert response.checked({204: PushError}) is response


@pytest.mark.parametrize("size", [0, 9, 10, 11, 1_000])
async def test_a_file_is_downloaded_up_to_its_limit(size: int) -> None:
    async with serve_origin() as origin:
        origin.answers["/file"] = ok(b"x" * size)
        client = PlatformHttp(at(origin), allow_private=True)
        try:
            if size <= 10:
                assert await client.download("file", max_bytes=10) == b"x" * size
            else:
                with pytest.raises(FileTooLargeError):
                    await client.download("file", max_bytes=10)
        finally:
            await client.close()


async def test_a_file_that_is_missing_is_an_error_of_the_platform() -> None:
    async with serve_origin() as origin:
        origin.answers["/file"] = ok(status="404 Not Found")
        client = PlatformHttp(at(origin), allow_private=True)
        try:
            with pytest.raises(PushRefusedError):
                await client.download("file", max_bytes=10)
        finally:
            await client.close()
