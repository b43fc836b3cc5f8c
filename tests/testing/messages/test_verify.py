"""A signature is right, or nothing happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.chat.webhook import SignatureVerifier
from frontdesk.errors import UnauthenticatedError
from frontdesk.secret import Secret
from frontdesk_testing.messages import MessageChannel
from frontdesk_testing.messages.verify import SIGNATURE, TIMESTAMP, signature, verify

SECRET = Secret("the secret of the webhook")
NOW = 1_700_000_000


def headers(body: bytes, at: int = NOW, secret: Secret = SECRET) -> dict[bytes, bytes]:
    return {TIMESTAMP: str(at).encode(), SIGNATURE: signature(secret.reveal(), str(at), body).encode()}


@given(st.binary(), st.integers(-300, 300))
def test_what_is_signed_is_let_in(body: bytes, age: int) -> None:
    verify(headers(body, NOW + age), body, secret=SECRET, now=NOW, window=300)


@given(st.binary(), st.integers(301, 10**9), st.booleans())
def test_another_time_is_refused(body: bytes, age: int, old: bool) -> None:
    at = max(NOW - age, 0) if old else NOW + age
    with pytest.raises(UnauthenticatedError):
        verify(headers(body, at), body, secret=SECRET, now=NOW, window=300)


@given(st.binary(), st.binary())
def test_another_body_is_refused(body: bytes, other: bytes) -> None:
    if body != other:
        with pytest.raises(UnauthenticatedError):
            verify(headers(body), other, secret=SECRET, now=NOW, window=300)


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_made_up_headers_are_refused(timestamp: bytes, given_signature: bytes) -> None:
    with pytest.raises(UnauthenticatedError):
        verify({TIMESTAMP: timestamp, SIGNATURE: given_signature}, b"{}", secret=SECRET, now=NOW, window=300)


def test_without_a_secret_nobody_is_let_in() -> None:
    with pytest.raises(UnauthenticatedError):
        verify(
            {TIMESTAMP: str(NOW).encode(), SIGNATURE: signature("", str(NOW), b"").encode()},
            b"",
            secret=None,
            now=NOW,
            window=9,
        )


@pytest.mark.parametrize("left", [SIGNATURE, TIMESTAMP])
async def test_a_body_without_signature_is_not_even_read(left: bytes) -> None:
    signed = headers(b"{}")
    verifier = SignatureVerifier("messages", MessageChannel.signature_headers)
    assert (await verifier.verify({}, signed)).identity.channel == "messages"
    del signed[left]
    with pytest.raises(UnauthenticatedError):
        await verifier.verify({}, signed)
