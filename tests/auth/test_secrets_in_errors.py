"""Configuration mistakes of which the error printed the secret."""

from collections.abc import Callable
from typing import Any

import pytest

from frontdesk import ApiKeyAuth, HmacAuth, PlatformAuth
from frontdesk.secret import Secret

KEY = "correct horse battery staple"
OTHER = "another key that is long enough"
TOKEN = "sk-abcdefghijklmnopqrstuvwxyz"
SHORT = "hunter2"


@pytest.mark.parametrize("auth", [ApiKeyAuth, HmacAuth])
@pytest.mark.parametrize(
    "given",
    [
        {KEY: "alice"},
        {KEY: ["alice", "ada"]},
        {KEY: "ada", OTHER: "bob"},
        {KEY: "a-name-of-a-service", OTHER: "a-name-of-a-service"},
        {TOKEN: "a-name-of-a-service"},
        {"sha256:" + "ab" * 32: "a-name-of-a-service"},
        {KEY: []},
        {KEY: None},
        {KEY: [None]},
        {KEY + "\n": "a-name-of-a-service\n", "": KEY},
        {"alice": SHORT},
        {SHORT: "x"},
        {Secret(KEY): "alice"},
        {"alice": KEY, "bob": KEY},
        {"alice": {KEY: "first"}, "bob": [1]},
    ],
)
def test_a_mapping_written_the_wrong_way_round_printed_the_key(auth: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        auth(given)
    message = str(caught.value)
    assert auth.__name__ in message  # pyright: ignore[reportFunctionMemberAccess]
    for secret in (KEY, OTHER, TOKEN, SHORT, "ab" * 32):
        assert secret not in message


def test_a_secret_as_the_trust_of_a_platform_was_printed() -> None:
    with pytest.raises(ValueError, match="TrustedSecret") as caught:
        PlatformAuth(trusted=KEY)  # pyright: ignore[reportArgumentType]
    assert KEY not in str(caught.value)
