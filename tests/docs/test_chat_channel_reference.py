"""The reference of ChatChannel names everything that a platform can supply and set."""

import inspect
import re
from typing import Any

import msgspec

from frontdesk.chat import abilities, live_mixin, messages
from frontdesk.chat.channel import ChatChannel
from tests.docs.pages import ROOT, tables

PAGE = ROOT / "docs/reference/chat-channel.md"
SUPPLIED = ("connect", "verify", "read", "send", "direct", "challenge", "events", "payload", "answer_error", "close")
ATTRIBUTES = (
    "dialect",
    "text_limit",
    "text_unit",
    "has_buttons",
    "webhook_path",
    "earlier_webhook_paths",
    "signature_headers",
    "signs_bodies",
    "takes_forms",
    "tells_membership",
    "reads_feedback",
    "one_poller",
)


def spans(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def first_column(title: str) -> list[str]:
    return [spans(row[0])[0] for row in tables(PAGE)[title]]


def test_every_method_of_a_platform_is_documented_with_its_parameters() -> None:
    documented = dict(re.findall(r"(\w+)\((.*)\)", "\n".join(first_column("What a platform supplies"))))
    expected = {
        name: ", ".join(list(inspect.signature(getattr(ChatChannel, name)).parameters)[1:]) for name in SUPPLIED
    }
    assert documented == expected
    assert set(documented) >= ChatChannel.__abstractmethods__


def test_every_attribute_is_documented_with_its_default() -> None:
    rows = {spans(name)[0]: spans(default)[0] for name, default, _ in tables(PAGE)["Attributes"]}
    expected = {name: repr(getattr(ChatChannel, name)) for name in ATTRIBUTES}
    assert rows == {**expected, "dialect": "Plain()"}


def test_every_ability_is_documented_with_its_methods() -> None:
    kinds = {
        name: kind
        for module in (abilities, live_mixin)
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
    }
    assert set(first_column("Abilities")) == set(kinds)
    for row in tables(PAGE)["Abilities"]:
        name = spans(row[0])[0]
        own = getattr(kinds[name], "__abstractmethods__", frozenset()) - ChatChannel.__abstractmethods__
        named = {span.partition("(")[0] for span in spans(row[1])}
        assert named in (set(own), {"EditsMessages"}), name


def test_every_type_is_documented_with_its_fields() -> None:
    kinds: dict[str, Any] = {
        name: kind
        for name, kind in vars(messages).items()
        if inspect.isclass(kind) and kind.__module__ == messages.__name__
    }
    rows = {spans(name)[0]: spans(fields) for name, fields in tables(PAGE)["Messages"]}
    assert set(rows) == set(kinds)
    for name, kind in kinds.items():
        fields = [field.name for field in msgspec.structs.fields(kind)]
        assert rows[name][: len(fields)] == fields, name
