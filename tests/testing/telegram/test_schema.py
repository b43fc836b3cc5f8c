"""Every call is checked against the Bot API's own schema."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk_testing.telegram.api import METHODS
from frontdesk_testing.telegram.errors import ApiError
from frontdesk_testing.telegram.schema.calls import check_call
from frontdesk_testing.telegram.schema.load import bot_api
from frontdesk_testing.telegram.schema.values import MismatchError, check_value
from tools.telegram_schema import TARGET, compact, main, write

SAMPLE = {
    "api": {"version": "10.3"},
    "items": [
        {
            "children": [
                {
                    "name": "sendThing",
                    "category": "methods",
                    "description": "",
                    "annotations": [
                        {"name": "to", "type": "Integer", "required": True, "description": "The place, 1-9."},
                        {"name": "text", "type": "String", "required": False, "description": "Words, 1-64 bytes"},
                        {
                            "name": "body",
                            "type": "String",
                            "required": False,
                            "description": "Text, 1-4096 characters after entities parsing",
                        },
                        {
                            "name": "things",
                            "type": "Array of Red, Blue and Green",
                            "required": False,
                            "description": "must include 2-10 items",
                        },
                    ],
                },
                {"name": "Color", "category": "types", "description": "One of\n - Red\n - Blue", "annotations": []},
                *(
                    {
                        "name": name,
                        "category": "types",
                        "description": "",
                        "annotations": [
                            {
                                "name": "type",
                                "type": "String",
                                "required": True,
                                "description": f"Type, must be {name.lower()}",
                            }
                        ],
                    }
                    for name in ("Red", "Blue")
                ),
            ]
        }
    ],
}


def test_the_generator_keeps_types_limits_and_unions(tmp_path: Any) -> None:
    made = compact(SAMPLE)
    assert made["methods"]["sendThing"] == {
        "to": ["Integer", 1, {"range": [1, 9]}],
        "text": ["String", 0, {"bytes": [1, 64]}],
        "body": ["String"],
        "things": ["Array of Red or Blue or Green", 0, {"items": [2, 10]}],
    }
    assert made["unions"] == {"Color": ["Red", "Blue"]}
    assert made["types"]["Red"] == {"type": ["String", 1, {"is": "red"}]}
    source, target = tmp_path / "schema.json", tmp_path / "made.json"
    source.write_text(json.dumps(SAMPLE), "utf-8")
    main([str(source), "--target", str(target)])
    assert target.read_text("utf-8") == write(made)
    assert json.loads(target.read_text("utf-8"))["methods"] == made["methods"]


def test_the_file_is_as_the_generator_writes_it() -> None:
    text = TARGET.read_text("utf-8")
    assert write(json.loads(text)) == text


def test_the_schema_knows_every_type_that_it_names() -> None:
    schema = bot_api()
    assert schema.version == "10.3"
    assert len(schema.methods) == 185
    known = {*schema.types, *schema.unions, "Integer", "Float", "String", "Boolean", "True", "InputFile"}
    fields = [field for part in (schema.methods, schema.types) for owner in part.values() for field in owner.values()]
    kinds = [kind.replace("Array of ", "") for field in fields for kind in field.kind.split(" or ")]
    assert set(kinds) <= known
    assert {name for members in schema.unions.values() for name in members} <= known | {"Array of RichText"}


def test_every_method_that_is_acted_on_is_in_the_schema() -> None:
    assert METHODS.keys() <= bot_api().methods.keys()


KEYBOARD = {"inline_keyboard": [[{"text": "a", "callback_data": "b"}]]}
ACCEPTED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("sendMessage", {"chat_id": "-42", "text": "1"}, {"chat_id": -42, "text": "1"}),
    ("sendMessage", {"chat_id": "@x", "text": "a"}, {"chat_id": "@x", "text": "a"}),
    (
        "sendMessage",
        {"chat_id": 1, "text": "a", "reply_markup": json.dumps(KEYBOARD), "protect_content": "True"},
        {"chat_id": 1, "text": "a", "reply_markup": KEYBOARD, "protect_content": True},
    ),
    (
        "sendLocation",
        {"chat_id": 1, "latitude": "1.5", "longitude": 2},
        {"chat_id": 1, "latitude": 1.5, "longitude": 2},
    ),
    ("getUpdates", {"limit": 1000}, {"limit": 1000}),
    ("deleteMyCommands", {"scope": {"type": "all_group_chats"}}, {"scope": {"type": "all_group_chats"}}),
]


@pytest.mark.parametrize(("method", "given", "decoded"), ACCEPTED)
def test_parameters_are_decoded(method: str, given: dict[str, Any], decoded: dict[str, Any]) -> None:
    assert check_call(method, given) == decoded


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("sendMessage", {"text": "a"}, "chat_id is empty"),
    ("sendMessage", {"chat_id": 1}, "message text is empty"),
    ("sendMessage", {"chat_id": 1, "text": "a", "txt": "b"}, 'unknown parameter "txt" of sendMessage'),
    ("sendMessage", {"chat_id": 1, "text": 5}, 'parameter "text" must be of type String'),
    ("sendMessage", {"chat_id": 1, "text": None}, 'parameter "text" must be of type String'),
    ("sendMessage", {"chat_id": True, "text": "a"}, 'parameter "chat_id" must be of type Integer or String'),
    ("sendMessage", {"chat_id": 1, "text": "a", "message_thread_id": "x"}, "must be of type Integer"),
    ("sendMessage", {"chat_id": 1, "text": "a", "protect_content": "perhaps"}, "must be of type Boolean"),
    ("sendMessage", {"chat_id": 1, "text": "a", "reply_markup": "{"}, "can't parse reply keyboard markup JSON object"),
    ("sendMessage", {"chat_id": 1, "text": "a", "entities": {}}, "can't parse entities: Array expected"),
    (
        "sendMessage",
        {"chat_id": 1, "text": "a", "reply_markup": {"inline_keyboard": [[{"callback_data": "b"}]]}},
        "can't parse inline keyboard button: Can't find field \"text\"",
    ),
    (
        "sendMessage",
        {"chat_id": 1, "text": "a", "reply_markup": {"inline_keyboard": [[{"text": 1}]]}},
        'can\'t parse inline keyboard button: Field "text" must be of type String',
    ),
    (
        "sendMessage",
        {"chat_id": 1, "text": "a", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "ä" * 33}]]}},
        "BUTTON_DATA_INVALID",
    ),
    ("sendPhoto", {"chat_id": 1}, "there is no photo in the request"),
    ("sendMediaGroup", {"chat_id": 1, "media": [{"type": "photo", "media": "x"}]}, "2-10"),
    ("sendLocation", {"chat_id": 1, "latitude": 1, "longitude": 1, "heading": 361}, "1-360"),
    ("setMyCommands", {"commands": [{"command": "", "description": "a"}]}, "BOT_COMMAND_INVALID"),
    ("setMyCommands", {"commands": [], "scope": {"type": "chat"}}, 'Can\'t find field "chat_id"'),
    ("setMyCommands", {"commands": [], "scope": {"type": "nobody"}}, "can't parse scope"),
    ("answerCallbackQuery", {"callback_query_id": "1", "text": "x" * 201}, "MESSAGE_TOO_LONG"),
]


@pytest.mark.parametrize(("method", "given", "told"), REFUSED)
def test_what_is_wrong_is_named(method: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ApiError) as raised:
        check_call(method, given)
    assert raised.value.code == 400
    assert raised.value.description.startswith("Bad Request: ")
    assert told in raised.value.description


def test_a_method_that_there_is_not_is_not_found() -> None:
    with pytest.raises(ApiError) as raised:
        check_call("sendMoney", {})
    assert raised.value.as_json() == {"ok": False, "error_code": 404, "description": "Not Found: method not found"}


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    text: Any = "a"
    for _ in range(500):
        text = {"type": "bold", "text": text}
    with pytest.raises(MismatchError, match="nested too deeply"):
        check_value("RichText", text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text"]), inner, max_size=2),
    max_leaves=6,
)


@given(
    kind=st.sampled_from([*bot_api().types, *bot_api().unions, "Array of Integer", "InputFile or String"]), value=JSON
)
def test_no_value_breaks_the_check(kind: str, value: Any) -> None:
    with contextlib.suppress(MismatchError):
        check_value(kind, value)
