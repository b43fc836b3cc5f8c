"""The reference of Telegram has every setting with its default, and every code of an error."""

import dataclasses

from frontdesk.channels.telegram import TelegramChannel, client
from frontdesk.channels.telegram.config import TelegramConfig
from frontdesk.channels.telegram.wire import ALLOWED_UPDATES
from frontdesk.chat.config import ChatConfig
from tests.docs.pages import ROOT, tables
from tests.docs.test_reference import parameters, shown, signature, spans

PAGE = ROOT / "docs/reference/telegram.md"


def test_every_parameter_is_documented_with_its_default() -> None:
    settings = {field.name for field in dataclasses.fields(TelegramConfig)} - {"bot_token", "secret_token"}
    wanted = {name: shown(one) for name, one in signature(TelegramChannel).items() if name not in settings}
    assert parameters(PAGE, TelegramChannel) == wanted


def test_every_setting_is_documented_with_its_default() -> None:
    shared = {field.name for field in dataclasses.fields(ChatConfig)} | {"bot_token", "secret_token"}
    own = {field.name: repr(field.default) for field in dataclasses.fields(TelegramConfig) if field.name not in shared}
    assert parameters(PAGE, TelegramConfig) == own


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
