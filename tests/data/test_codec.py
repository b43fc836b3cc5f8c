"""What is written can be read, by Hypothesis and by a few records spelled out."""

import importlib
import math
import pkgutil
import subprocess
import sys
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from inspect import signature
from types import MappingProxyType
from typing import Any, get_args
from uuid import UUID

import msgspec
import pytest
from agent_framework import (
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    Message,
    WorkflowEvent,
    WorkflowRunResult,
    WorkflowRunState,
)
from agent_framework._types import ContentType
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

import frontdesk.data
from frontdesk.data import codec, json_tree
from frontdesk.data.identity import Caller, ChannelIdentity
from frontdesk.data.noun import Noun
from frontdesk.data.request import ChannelRequest
from frontdesk.data.response_target import ResponseTarget
from frontdesk.data.result import HostedRunResult
from frontdesk.data.run import RunEvent, RunRecord
from frontdesk.errors import CodecError, UnknownVersionError
from frontdesk.testing import strategies

quick = settings(max_examples=60, deadline=None)

# What the framework's own copies don't have either, and what a generic alias leaves on what it makes.
IGNORED = {"raw_representation", "__orig_class__"}
MARKER = "FunctionInvocationError"


class Colour(Enum):
    RED = ("red", 1)
    BLUE = ("blue", 2)


@dataclass(frozen=True)
class Order:
    number: int
    placed: date
    colour: Colour = Colour.RED
    lines: tuple[str, ...] = ()
    total: int = field(init=False, default=0)


class Agreeable:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    number: int
    due: datetime
    vat_id: str = Field(default="", validation_alias="vatId", serialization_alias="vat")


class Unknown(BaseModel):
    city: str


codec.register(Colour, "colour", lambda colour: colour.value, Colour)
codec.register(Agreeable, "agreeable", lambda _: None, lambda _: Agreeable())
codec.register_dataclass(Order, "order")
codec.register_model(Invoice, "invoice")

orders = st.builds(Order, st.integers(), st.dates(), st.sampled_from(Colour), st.lists(st.text()).map(tuple))
invoices = st.builds(
    lambda number, due, vat: Invoice.model_validate({"number": number, "due": due, "vatId": vat}),
    st.integers(),
    st.datetimes(timezones=st.just(UTC)),
    st.text(),
)


def round_trip(value: Any) -> Any:
    return codec.decode(codec.encode(value))


def picture(value: Any) -> Any:
    """A value with its types, so that objects without `==`, and 1 and True, can be compared."""
    kind = type(value)
    if isinstance(value, Noun):
        return kind, {name: picture(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, WorkflowRunResult):
        return kind, [picture(one) for one in value], [picture(one) for one in value.status_timeline()]
    if isinstance(value, dict):
        return kind, [(picture(key), picture(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return kind, [picture(item) for item in value]
    if isinstance(value, set | frozenset):
        return kind, {(type(item), item) for item in value}
    if kind.__module__.startswith("agent_framework") and not isinstance(value, Enum):
        state = {name: picture(item) for name, item in vars(value).items() if name not in IGNORED}
        if state.get("exception", (None,))[-1] is not None:
            state["exception"] = (str, MARKER)
        return kind, state
    return kind, "nan" if value != value else value


def assert_kept(value: Any) -> None:
    assert picture(round_trip(value)) == picture(value)


def all_nouns() -> list[type[Noun]]:
    for module in pkgutil.iter_modules(frontdesk.data.__path__):
        importlib.import_module(f"frontdesk.data.{module.name}")

    def below(kind: type[Noun]) -> set[type[Noun]]:
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    ours = {kind for kind in below(Noun) - {Noun} if kind.__module__.startswith("frontdesk.data.")}
    return sorted(ours, key=lambda kind: kind.__name__)


class TestNouns:
    def test_every_noun_is_listed(self) -> None:
        assert set(codec.NOUNS) == set(all_nouns())

    @pytest.mark.parametrize("kind", all_nouns(), ids=lambda kind: kind.__name__)
    def test_round_trip(self, kind: type[Noun]) -> None:
        @settings(max_examples=25, deadline=None)
        @given(strategies.nouns(kind, strategies.values() | strategies.messages()))
        def check(noun: Noun) -> None:
            assert_kept(noun)

        check()

    @quick
    @given(strategies.nouns(RunRecord))
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
            {"$": "ChannelRequest", "channel": "a", "colour": "red"},
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
        "noun",
        [
            ChannelRequest(channel="a", conversation_id=5),  # type: ignore[arg-type]
            ChannelRequest(channel="a", operation="steal"),  # type: ignore[arg-type]
            ChannelRequest(channel="a", metadata={1: 2}),  # type: ignore[dict-item]
            RunEvent(run_id="a", owner="a", number=1, data="aGk="),  # type: ignore[arg-type]
        ],
    )
    def test_a_noun_that_could_not_be_read_is_not_written(self, noun: Noun) -> None:
        with pytest.raises(CodecError, match="malformed"):
            codec.encode({"a": noun})

    def test_a_noun_of_an_application_is_refused(self) -> None:
        class Own(Noun, frozen=True, kw_only=True):
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
        with pytest.raises(CodecError, match="deeper"):
            codec.decode(b'{"v":1,"data":' + b"[" * 200 + b"]" * 200 + b"}")
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


class TestFrameworkObjects:
    def test_every_kind_of_content_has_a_strategy(self) -> None:
        assert set(strategies.CONTENTS) == set(get_args(ContentType))

    @pytest.mark.parametrize("kind", get_args(ContentType))
    def test_content(self, kind: str) -> None:
        @settings(max_examples=25, deadline=None)
        @given(strategies.contents(kind))
        def check(content: Content) -> None:
            assert content.type == kind
            assert_kept(content)

        check()

    @quick
    @given(strategies.messages())
    def test_message(self, message: Message) -> None:
        assert_kept(message)

    @quick
    @given(strategies.agent_responses(st.none() | strategies.json_values() | orders | invoices))
    def test_response_with_value(self, response: AgentResponse[Any]) -> None:
        copy = round_trip(response)
        assert picture(copy.value) == picture(response.value)
        assert picture(copy.messages) == picture(response.messages)
        assert copy.to_dict() == response.to_dict()

    @quick
    @given(strategies.agent_response_updates())
    def test_update(self, update: AgentResponseUpdate) -> None:
        assert_kept(update)

    @quick
    @given(strategies.agent_sessions())
    def test_session(self, session: AgentSession) -> None:
        assert_kept(session)

    @quick
    @given(strategies.workflow_results(strategies.json_values() | orders | strategies.agent_responses()))
    def test_workflow_result(self, result: WorkflowRunResult) -> None:
        copy = round_trip(result)
        assert_kept(result)
        assert picture(copy.get_outputs()) == picture(result.get_outputs())
        assert picture(copy.get_intermediate_outputs()) == picture(result.get_intermediate_outputs())
        assert [one.response_type for one in copy.get_request_info_events()] == [
            one.response_type for one in result.get_request_info_events()
        ]
        if result.status_timeline():
            assert copy.get_final_state() is result.get_final_state()

    @quick
    @given(strategies.framework_objects())
    def test_a_hosted_result(self, result: Any) -> None:
        run = RunRecord(run_id="r", owner="o", channel="c", status="completed", created_at=1.0, result=result)
        assert_kept(HostedRunResult(result=result, run=run))

    def test_a_namesake_is_refused(self) -> None:
        namesake = type("Message", (), {"__module__": "agent_framework.elsewhere"})
        with pytest.raises(CodecError, match=r"elsewhere\.Message has no JSON form"):
            codec.encode(namesake())

    def test_a_subclass_is_refused(self) -> None:
        class Labelled(Message):
            pass

        with pytest.raises(CodecError, match="Labelled is not a Message"):
            codec.encode(AgentResponse(messages=[Labelled("user", ["hi"])]))

    @pytest.mark.parametrize(
        "value",
        [
            AgentResponse(messages=["hi"]),  # type: ignore[list-item]
            Content("function_approval_response", approved="yes"),  # type: ignore[arg-type]
            Content(5),  # type: ignore[arg-type]
        ],
    )
    def test_an_object_that_could_not_be_read_is_not_written(self, value: Any) -> None:
        with pytest.raises(CodecError):
            codec.encode(value)

    def test_text_enumerations_become_text(self) -> None:
        class Reason(StrEnum):
            STOP = "stop"

        copy = round_trip(AgentResponse(finish_reason=Reason.STOP, additional_properties={"why": Reason.STOP}))  # type: ignore[arg-type]
        assert (type(copy.finish_reason), copy.finish_reason) == (str, "stop")
        assert copy.additional_properties == {"why": "stop"}

    def test_the_text_of_an_exception_is_not_kept(self) -> None:
        content = Content.from_function_result("1", result="failed", exception="password=hunter2")
        assert b"hunter2" not in codec.encode(content)
        assert round_trip(content).exception == content.to_dict()["exception"] == MARKER

    def test_informational_only_is_kept(self) -> None:
        assert round_trip(Content("text", text="a", informational_only=True)).informational_only

    def test_what_providers_leave_behind_is_left_out(self) -> None:
        content = Content.from_text(
            "hi",
            annotations=[{"type": "citation", "url": "u", "raw_representation": object()}],
            additional_properties={"logprobs": [object(), 1], "kept": (1, 2)},
            raw_representation=object(),
        )
        copy = round_trip(content)
        assert copy.annotations == [{"type": "citation", "url": "u"}]
        assert copy.additional_properties == {"logprobs": [1], "kept": [1, 2]}
        assert copy.raw_representation is None

    def test_a_tool_result_is_kept_as_far_as_it_has_a_form(self) -> None:
        content = Content("mcp_server_tool_result", call_id="1", output=MappingProxyType({"a": 1, "b": object()}))
        assert round_trip(content).output == {"a": 1}

    def test_outputs_that_from_dict_can_not_read(self) -> None:
        content = Content.from_image_generation_tool_result(outputs=[{"url": "https://example.com"}])
        assert round_trip(content).outputs == [{"url": "https://example.com"}]

    @pytest.mark.parametrize(
        "tree",
        [
            {"$": "Content"},
            {"$": "Content", "type": 5},
            {"$": "Content", "type": "text", "colour": 1},
            {"$": "Content", "type": "text", "raw_representation": 1},
            {"$": "Content", "type": "function_approval_response", "approved": "yes"},
            {"$": "Message", "role": "user", "contents": "hi"},
            {"$": "Message", "role": "user", "contents": ["hi"]},
            {"$": "AgentResponse", "messages": ["hi"]},
            {"$": "AgentResponse", "response_format": {}},
            {"$": "WorkflowEvent", "type": "failed", "origin": "EXECUTOR"},
            {"$": "WorkflowEvent", "type": "output", "origin": "EXECUTOR", "executor_id": 5},
            {"$": "WorkflowEvent", "type": "output", "origin": "NOBODY"},
            {"$": "WorkflowEvent", "type": "status", "origin": "FRAMEWORK", "state": "BORED"},
            {"$": "WorkflowRunResult", "events": []},
            {"$": "WorkflowRunResult", "events": [], "status": [], "more": []},
            {"$": "WorkflowRunResult", "events": [1], "status": []},
            {"$": "AgentSession"},
        ],
    )
    def test_a_malformed_object_is_refused(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)


class TestResponseValue:
    def test_of_an_unknown_model(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ['{"city": "Oslo"}'])], response_format=Unknown
        )
        with pytest.raises(CodecError, match=r"Unknown has no JSON form.*register_model.*holds the JSON"):
            codec.encode(response)

    def test_of_an_unknown_model_from_elsewhere(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ["Oslo"])], value=Unknown(city="Oslo")
        )
        with pytest.raises(CodecError) as caught:
            codec.encode(response)
        assert "holds the JSON" not in str(caught.value)

    def test_that_the_model_got_wrong(self) -> None:
        response: AgentResponse[Any] = AgentResponse(
            messages=[Message("assistant", ["no JSON"])], response_format=Unknown
        )
        copy = round_trip(response)
        assert (copy.text, copy.value) == ("no JSON", None)


class TestWorkflowResult:
    def test_events_about_steps_are_left_out(self) -> None:
        events = [WorkflowEvent.executor_invoked("a", object()), WorkflowEvent("output", 1, executor_id="a")]
        copy = round_trip(WorkflowRunResult(events, [WorkflowEvent.status(WorkflowRunState.IDLE)]))
        assert [(one.type, one.executor_id, one.data) for one in copy] == [("output", "a", 1)]
        assert copy.get_final_state() is WorkflowRunState.IDLE

    def test_an_output_of_an_unknown_type_is_refused(self) -> None:
        with pytest.raises(CodecError, match=r"Unknown has no JSON form.*register_model"):
            codec.encode(WorkflowRunResult([WorkflowEvent("output", Unknown(city="Oslo"), executor_id="a")]))

    def test_an_unknown_response_type_becomes_object(self) -> None:
        event = WorkflowEvent.request_info("1", "a", Order(1, date(2024, 1, 1)), Unknown)
        copy = round_trip(event)
        assert (copy.request_id, copy.request_type, copy.response_type) == ("1", Order, object)

    def test_a_registered_response_type_is_kept(self) -> None:
        assert round_trip(WorkflowEvent.request_info("1", "a", "?", Order)).response_type is Order


class TestRegister:
    @quick
    @given(orders | invoices | st.sampled_from(Colour))
    def test_round_trip(self, value: Any) -> None:
        assert_kept({"a": [value]})

    def test_again_is_fine(self) -> None:
        codec.register_dataclass(Order, "order")
        codec.register_model(Invoice, "invoice")

    def test_a_taken_name_is_refused(self) -> None:
        with pytest.raises(CodecError, match="taken"):
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

    GOLDEN: tuple[tuple[Any, str], ...] = (
        (None, "null"),
        (
            [1, 2.5, "a", True, (1, "b"), b"hi", {"k": None}],
            '[1,2.5,"a",true,{"$":"tuple","items":[1,"b"]},{"$":"bytes","value":"aGk="},{"k":null}]',
        ),
        ({1: "a", "$": 2}, '{"$":"dict","items":[[1,"a"],["$",2]]}'),
        ({"a", "b"}, '{"$":"set","items":["a","b"]}'),
        (frozenset({1}), '{"$":"frozenset","items":[1]}'),
        (2**64, '{"$":"int","value":"0x10000000000000000"}'),
        (-math.inf, '{"$":"float","value":"-inf"}'),
        (datetime(2024, 5, 1, 12, tzinfo=UTC), '{"$":"datetime","value":"2024-05-01T12:00:00+00:00"}'),
        (date(2024, 5, 1), '{"$":"date","value":"2024-05-01"}'),
        (
            Caller(identity=ChannelIdentity(channel="web", native_id="7", attributes={"name": "Ann"})),
            '{"$":"Caller","identity":{"$":"ChannelIdentity","channel":"web","native_id":"7","attributes":{"name":"Ann"}}}',
        ),
        (
            ResponseTarget.channels(["a", "b"], echo_input=True),
            '{"$":"ResponseTarget","kind":"channels","names":{"$":"tuple","items":["a","b"]},"echo_input":true}',
        ),
        (
            RunEvent(run_id="r", owner="o", number=1, data=b"\x00"),
            '{"$":"RunEvent","owner":"o","run_id":"r","number":1,"data":{"$":"bytes","value":"AA=="}}',
        ),
        (
            RunRecord(
                run_id="r",
                owner="o",
                channel="c",
                status="completed",
                created_at=1.5,
                result=AgentResponse(messages=[Message("assistant", ["hi"], message_id="m")], value={"a": 1}),  # type: ignore[arg-type]
            ),
            '{"$":"RunRecord","run_id":"r","owner":"o","channel":"c","status":"completed","created_at":1.5,'
            '"result":{"$":"AgentResponse","messages":[{"$":"Message","role":"assistant",'
            '"contents":[{"$":"Content","type":"text","text":"hi"}],"message_id":"m"}],"value":{"a":1}}}',
        ),
        (
            Content.from_function_call("1", "add", arguments={"a": 1}, hosted=False),
            '{"$":"Content","type":"function_call","call_id":"1","name":"add","arguments":{"a":1},"hosted":false}',
        ),
        (
            WorkflowRunResult(
                [WorkflowEvent("output", Order(1, date(2024, 5, 1)), executor_id="x")],
                [WorkflowEvent.status(WorkflowRunState.IDLE)],
            ),
            '{"$":"WorkflowRunResult","events":[{"$":"WorkflowEvent","type":"output","origin":"EXECUTOR",'
            '"data":{"$":"user:order","value":{"number":1,"placed":{"$":"date","value":"2024-05-01"},'
            '"colour":{"$":"user:colour","value":{"$":"tuple","items":["red",1]}},"lines":{"$":"tuple","items":[]}}},'
            '"executor_id":"x"}],"status":[{"$":"WorkflowEvent","type":"status","origin":"EXECUTOR","state":"IDLE"}]}',
        ),
    )

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
        [b"", b"{}", b"1", b"[]", b'{"v":1}', b'{"data":1}', b'{"v":1,"data":1,"x":1}', b'{"v":1,"data":1}x', b"\xff"],
    )
    def test_no_envelope(self, data: bytes) -> None:
        with pytest.raises(CodecError):
            codec.decode(data)


TAGS = [
    *("tuple", "set", "frozenset", "dict", "int", "float", "bytes", "datetime", "date", "nothing", ""),
    *("Content", "Message", "AgentResponse", "AgentResponseUpdate", "AgentSession"),
    *("WorkflowEvent", "WorkflowRunResult", "user:order", "user:invoice", "user:colour"),
    *(kind.__name__ for kind in codec.NOUNS),
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

    @settings(max_examples=200, deadline=None)
    @given(st.binary() | st.binary().map(lambda data: b'{"v":1,"data":' + data + b"}"))
    def test_bytes(self, data: bytes) -> None:
        self.try_to_decode(data)

    @settings(max_examples=400, deadline=None)
    @given(TREES)
    def test_trees(self, tree: Any) -> None:
        self.try_to_decode(msgspec.json.encode({"v": 1, "data": tree}))

    @quick
    @given(strategies.framework_objects() | strategies.nouns(ChannelRequest), st.data())
    def test_damaged_records(self, value: Any, data: st.DataObject) -> None:
        record = bytearray(codec.encode(value))
        for _ in range(3):
            record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
        self.try_to_decode(bytes(record))

    @pytest.mark.parametrize("tree", [(1,), {1, 2}, object(), {"a": (1,)}, {"$": ["tuple"]}, {"$": None}, b"x"])
    def test_a_tree_that_is_not_json(self, tree: Any) -> None:
        with pytest.raises(CodecError):
            codec.from_json(tree)


def test_the_framework_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, frontdesk.data.codec as c; c.encode({'a': (1,)}); sys.exit('agent_framework' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)}).returncode
        == 0
    )


def test_the_constructors_take_what_the_objects_hold() -> None:
    """The codec relies on it: an attribute under another name would be lost."""
    for one in (Content("text"), Message("user"), AgentResponse(), AgentResponseUpdate()):
        held = {name for name in vars(one) if not name.startswith("_")}
        assert held == signature(type(one)).parameters.keys() - {"value", "response_format"}
