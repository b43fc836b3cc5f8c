"""The reference about callers over HTTP names every header of a signature."""

from frontdesk import HmacHeaders
from tests.docs.pages import ROOT, tables


def test_every_header_of_a_signature_is_documented() -> None:
    rows = tables(ROOT / "docs/reference/http-callers.md")["HmacHeaders"]
    assert [default.strip("`'") for _, default, _ in rows] == list(HmacHeaders())
