"""The pages about Telegram name every code of an error, and the updates of a webhook."""

from frontdesk.channels.telegram import client
from frontdesk.channels.telegram.wire import ALLOWED_UPDATES
from tests.docs.pages import ROOT, tables
from tests.docs.test_reference import spans

PAGE = ROOT / "docs/reference/telegram.md"


def test_the_updates_of_a_webhook_of_ones_own_are_named() -> None:
    page = " ".join((ROOT / "docs/guides/telegram.md").read_text("utf-8").split())
    assert ", ".join(f"`{kind}`" for kind in ALLOWED_UPDATES) in page


def test_every_code_of_an_error_is_documented() -> None:
    documented = {code for _, codes, _ in tables(PAGE)["Errors"] for code in spans(codes)}
    own = {client.UNAUTHORIZED, client.CONFLICT, client.WEBHOOK_ACTIVE, client.ChatMigratedError.code}
    assert own <= documented
    unusual = {"is_bot", client.REPLY_NOT_FOUND, "too_large", client.MEDIA_REFUSED, "button_invalid"}
    assert set(client._REFUSED) - unusual <= documented
    assert set(client._NOT_EDITABLE) <= documented
