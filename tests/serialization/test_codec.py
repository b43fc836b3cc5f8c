"""What is written can be read, by Hypothesis and by a few records spelled out."""

import math
from collections import OrderedDict
from contextlib import suppress
from types import MappingProxyType
from typing import Any
from uuid import UUID

import msgspec
import pytest
from agent_framework import (
    Content,
    Message,
)
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import BrokenRecordError, CodecError, UnknownVersionError, UnreadableRecordError
from frontdesk.models.base import StoredRecord
from frontdesk.models.identity import ChannelIdentity, LastSeen
from frontdesk.models.request import ChannelRequest
from frontdesk.models.run import RunEvent, RunRecord
from frontdesk.serialization import codec, json_tree
from frontdesk_testing import strategies
from tests.examples import examples
from tests.models.codec_kit import (
    Agreeable,
    Colour,
    Invoice,
    Order,
    Unknown,
    all_nouns,
    assert_kept,
    invoices,
    orders,
    picture,
    quick,
    round_trip,
)
from tests.models.golden_records import GOLDEN


class TestNouns:
    def test_every_noun_is_listed(self) -> None:
        assert set(codec.RECORD_TYPES) == set(all_nouns())

    @pytest.mark.parametrize("kind", all_nouns(), ids=lambda kind: kind.__name__)
    def test_round_trip(self, kind: type[StoredRecord]) -> None:
        @examples(25)
        @given(strategies.records(kind, strategies.values() | strategies.messages()))
        def check(record: StoredRecord) -> None:
            assert_kept(record)

        check()

    @quick
    @given(strategies.records(RunRecord))
    def test_equal_without_framework_objects(self, record: RunRecord) -> None:
        assert round_trip(record) == record

    def test_defaults_are_not_written(self) -> None:
        assert codec.to_json(ChannelRequest(channel="a")) == {"$": "ChannelRequest", "channel": "a"}

    def test_an_object_that_equals_everything_is_written(self) -> None:
        assert type(round_trip(ChannelRequest(channel="a", input=Agreeable())).input) is Agreeable

    @pytest.mark.parametrize(
        "tree",
        [
            {"$": "ChannelRequest"},
            {"$": "ChannelRequest", "channel": 5},
            {"$": "ChannelRequest", "channel": "a", "operation": "steal"},
            {"$": "ChannelRequest", "channel": "a", "metadata": {"$": "dict", "items": [[1, 2]]}},
            {"$": "ChannelRequest", "channel": "a", "identity": {"$": "Caller"}},
            {"$": "RunEvent", "run_id": "a", "owner": "a", "number": 1, "data": "aGk="},
        ],
    )
    def test_a_malformed_noun_is_refused(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)

    @pytest.mark.parametrize(
        "record",
        [
            ChannelRequest(channel="a", conversation_id=5),  # type: ignore[arg-type]
            ChannelRequest(channel="a", operation="steal"),  # type: ignore[arg-type]
            ChannelRequest(channel="a", metadata={1: 2}),  # type: ignore[dict-item]
            RunEvent(run_id="a", owner="a", number=1, data="aGk="),  # type: ignore[arg-type]
        ],
    )
    def test_a_noun_that_could_not_be_read_is_not_written(self, record: StoredRecord) -> None:
        with pytest.raises(CodecError, match="malformed"):
            codec.encode({"a": record})

    def test_a_noun_of_an_application_is_refused(self) -> None:
        class Own(StoredRecord, frozen=True, kw_only=True):
            name: str

        with pytest.raises(CodecError, match="Own has no JSON form"):
            codec.encode(Own(name="a"))


class TestValues:
    @quick
    @given(strategies.json_values())
    def test_json_values(self, value: Any) -> None:
        assert_kept(value)

    @quick
    @given(strategies.values())
    def test_python_values(self, value: Any) -> None:
        assert_kept(value)
        assert round_trip(value) == value

    @quick
    @given(strategies.values())
    def test_a_tree_is_json(self, value: Any) -> None:
        tree = codec.to_json(value)
        again = msgspec.json.decode(msgspec.json.encode(tree))
        assert picture(codec.from_json(again)) == picture(value)

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 2**63, -(2**63) - 1])
    def test_numbers(self, value: float) -> None:
        assert_kept(value)
        assert math.copysign(1, round_trip(value)) == math.copysign(1, value)

    def test_a_number_too_long_for_decimals(self) -> None:
        assert round_trip(10**5000) == 10**5000

    def test_a_plain_dict_stays_plain(self) -> None:
        assert codec.to_json({"a": [1, {"b": None}]}) == {"a": [1, {"b": None}]}

    def test_a_forged_tag_is_only_data(self) -> None:
        forged = {"$": "ChannelIdentity", "channel": "a", "native_id": "b"}
        assert round_trip(forged) == forged

    @pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, ["a", ("\udfff",)], ChannelRequest(channel="\ud800")])
    def test_a_lone_surrogate_is_refused(self, value: Any) -> None:
        with pytest.raises(CodecError):
            codec.encode(value)

    @pytest.mark.parametrize(
        "tree",
        [
            {"$": "tuple", "items": [], "more": 1},
            {"$": "tuple", "items": "ab"},
            {"$": "tuple"},
            {"$": "dict", "items": [[1]]},
            {"$": "dict", "items": [[[1], 2]]},
            {"$": "set", "items": [[]]},
            {"$": "int", "value": 5},
            {"$": "float", "value": "1.5"},
            {"$": "bytes", "value": "a"},
            {"$": "date", "value": "today"},
            {"$": "user:order", "value": {}, "more": 1},
            {"$": "nothing"},
        ],
    )
    def test_a_malformed_value_is_refused(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)

    def test_equal_sets_make_equal_records(self) -> None:
        assert codec.encode({"b", "a", 3}) == codec.encode({3, "a", "b"})

    @pytest.mark.parametrize("value", [OrderedDict(), MappingProxyType({}), UUID(int=1), object(), int, bytearray()])
    def test_an_unknown_type_is_named(self, value: Any) -> None:
        with pytest.raises(CodecError, match=rf"{type(value).__qualname__} has no JSON form.*codec\.register\("):
            codec.encode({"a": [value]})


class TestDepth:
    @pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}, lambda x: {None: x}])
    def test_bounded(self, wrap: Any) -> None:
        value: Any = "core"
        for _ in range(json_tree.MAX_DEPTH + 1):
            value = wrap(value)
        assert round_trip(value) == value
        with pytest.raises(CodecError, match="deeper"):
            codec.encode(wrap(value))

    def test_of_a_record(self) -> None:
        with pytest.raises(UnreadableRecordError) as caught:
            codec.decode(b'{"v":1,"data":' + b"[" * 200 + b"]" * 200 + b"}")
        assert "deeper" in caught.value.reason
        with pytest.raises(CodecError):
            codec.decode(b'{"v":1,"data":' + b"[" * 100_000)

    def test_a_value_that_contains_itself(self) -> None:
        value: list[Any] = []
        value.append({"again": value})
        with pytest.raises(CodecError, match="contains itself"):
            codec.encode(value)

    def test_nested_contents(self) -> None:
        content = Content.from_function_call("1", "f")
        for _ in range(2000):
            content = Content("function_approval_request", id="1", function_call=content)
        with pytest.raises(CodecError, match="deeper"):
            codec.encode(content)


class TestRegister:
    @quick
    @given(orders | invoices | st.sampled_from(Colour))
    def test_round_trip(self, value: Any) -> None:
        assert_kept({"a": [value]})

    def test_again_is_fine(self) -> None:
        codec.register_dataclass(Order, "order")
        codec.register_model(Invoice, "invoice")

    def test_a_taken_name_is_refused(self) -> None:
        with pytest.raises(CodecError, match="used by another"):
            codec.register_model(Unknown, "order")

    @pytest.mark.parametrize("kind", [Order, Colour, ChannelIdentity, Message, dict, str, list])
    def test_a_known_type_is_refused(self, kind: type[Any]) -> None:
        with pytest.raises(CodecError, match="already"):
            codec.register(kind, "other", str, kind)

    def test_a_name_may_be_that_of_a_noun(self) -> None:
        class Lease:
            pass

        codec.register(Lease, "Lease", lambda _: None, lambda _: Lease())
        assert type(round_trip(Lease())) is Lease

    def test_functions_that_fail(self) -> None:
        class Bad:
            pass

        class Odd(Exception):
            pass

        def fail(value: Any) -> Any:
            raise Odd

        codec.register(Bad, "bad", fail, fail)
        with pytest.raises(CodecError, match="Odd"):
            codec.encode(Bad())
        with pytest.raises(CodecError, match="Odd"):
            codec.from_json({"$": "user:bad", "value": 1})

    def test_a_registered_record_that_does_not_fit(self) -> None:
        for tree in ({"number": "x"}, 5, None, {"number": 1, "due": "never"}):
            with pytest.raises(CodecError):
                codec.from_json({"$": "user:invoice", "value": tree})


class TestRecords:
    """A change here is a change of format: it needs a new version, and a reader for the old one."""

    @pytest.mark.parametrize(("value", "record"), GOLDEN)
    def test_golden(self, value: Any, record: str) -> None:
        data = f'{{"v":1,"data":{record}}}'.encode()
        assert codec.encode(value) == data
        assert picture(codec.decode(data)) == picture(value)

    @pytest.mark.parametrize("version", [2, 0, -1, "1", None, True, 1.0, [1]])
    def test_an_unknown_version_is_kept_on_the_error(self, version: Any) -> None:
        with pytest.raises(UnknownVersionError) as caught:
            codec.decode(msgspec.json.encode({"v": version, "data": None, "more": 1}))
        assert caught.value.version == version
        assert type(caught.value.version) is type(version)

    @pytest.mark.parametrize(
        "data",
        [b"", b"{}", b"1", b"[]", b'{"data":1}', b'{"v":1,"data":1}x', b"\xff", b'{"v":1,"data":' + b"[" * 100_000],
    )
    def test_what_no_version_has_written_is_broken(self, data: bytes) -> None:
        with pytest.raises(BrokenRecordError):
            codec.decode(data)


TAGS = [
    *("tuple", "set", "frozenset", "dict", "int", "float", "bytes", "datetime", "date", "nothing", ""),
    *("Content", "Message", "AgentResponse", "AgentResponseUpdate", "AgentSession"),
    *("WorkflowEvent", "WorkflowRunResult", "user:order", "user:invoice", "user:colour"),
    *(kind.__name__ for kind in codec.RECORD_TYPES),
]
NAMES = st.sampled_from(
    ["items", "value", "type", "channel", "native_id", "contents", "messages", "role", "events", "status", "data"]
)
TREES = st.recursive(
    strategies.json_values() | st.sampled_from(["output", "EXECUTOR", "text", "nan", "0x1", "2024-01-01"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.builds(
            lambda tag, fields: {"$": tag, **fields}, st.sampled_from(TAGS), st.dictionaries(NAMES, inner, max_size=4)
        ),
    ),
    max_leaves=8,
)


class TestWhateverComesIn:
    """Nothing but a `CodecError` is ever raised."""

    @staticmethod
    def try_to_decode(data: bytes) -> None:
        with suppress(CodecError):
            codec.decode(data)

    @given(st.binary() | st.binary().map(lambda data: b'{"v":1,"data":' + data + b"}"))
    def test_bytes(self, data: bytes) -> None:
        self.try_to_decode(data)

    @given(TREES)
    def test_trees(self, tree: Any) -> None:
        self.try_to_decode(msgspec.json.encode({"v": 1, "data": tree}))

    @quick
    @given(strategies.framework_objects() | strategies.records(ChannelRequest), st.data())
    def test_damaged_records(self, value: Any, data: st.DataObject) -> None:
        record = bytearray(codec.encode(value))
        for _ in range(3):
            record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
        self.try_to_decode(bytes(record))

    @pytest.mark.parametrize("tree", [(1,), {1, 2}, object(), {"a": (1,)}, {"$": ["tuple"]}, {"$": None}, b"x"])
    def test_a_tree_that_is_not_json(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)


class _Odd:
    """A value that does not like to be compared, as arrays do not."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = object.__hash__


def test_what_is_kept_need_not_be_comparable() -> None:
    codec.register(_Odd, "odd", lambda _: None, lambda _: _Odd())
    request = ChannelRequest(channel="web", input=_Odd())
    assert isinstance(codec.decode(codec.encode(request)).input, _Odd)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 0.0, 1e300, -0.0])
def test_moments_of_any_kind_come_back(number: float) -> None:
    who = ChannelIdentity(channel="c", native_id="n")
    seen = LastSeen(isolation_key="k", identity=who, conversation_id=None, at=number)
    assert repr(codec.decode(codec.encode(seen)).at) == repr(number)
