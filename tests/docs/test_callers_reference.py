"""The page on callers over HTTP says what the code says."""

import re

import pytest

from frontdesk import (
    AnyAuth,
    HmacAuth,
    HmacHeaders,
    HttpLimits,
    PlatformAuth,
    RateLimit,
    TrustedEnvironment,
    TrustedPeers,
    TrustedSecret,
)
from tests.docs.pages import ROOT, tables
from tests.docs.test_reference import parameters, shown, signature

PAGE = ROOT / "docs/reference/http-callers.md"
DOCUMENTED = [
    AnyAuth,
    HmacAuth,
    HmacHeaders,
    PlatformAuth,
    TrustedEnvironment,
    TrustedPeers,
    TrustedSecret,
    HttpLimits,
    RateLimit,
]


@pytest.mark.parametrize("documented", DOCUMENTED)
def test_every_parameter_is_documented_with_its_default(documented: type) -> None:
    wanted = {name: shown(one) for name, one in signature(documented).items()}
    if documented is HmacAuth:
        # Its names have a table of their own.
        wanted["headers"] = "[five names](#hmacheaders)"
    assert parameters(PAGE, documented) == wanted


def test_every_code_is_one_that_is_sent() -> None:
    source = "".join(
        path.read_text("utf-8")
        for part in ("asgi", "auth", "http")
        for path in (ROOT / "src/frontdesk" / part).rglob("*.py")
    )
    codes = {code for _, cell, _ in tables(PAGE)["Codes"] for code in re.findall(r"`(\w+)`", cell)}
    assert all(f'code="{code}"' in source for code in codes - {"too_many_requests", "unavailable"})
    sent = {"key_expired", "signature_expired", "signature_replayed", "body_altered", "rate_limit_exceeded"}
    assert sent <= codes


def test_every_header_of_a_signature_is_documented() -> None:
    rows = tables(PAGE)["HmacHeaders"]
    assert [default.strip("`'") for _, default, _ in rows] == list(HmacHeaders())
