"""What a newer version writes is read as far as it is known, kept when it is written again, and never broken."""

from typing import Any

import msgspec
import pytest
from agent_framework import Content, Message
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import BrokenRecordError, CodecError, RequestError, UnreadableRecordError
from frontdesk.models.base import StoredRecord
from frontdesk.models.conversation import Conversation
from frontdesk.models.delivery import InboxItem
from frontdesk.models.identity import Caller, ChannelIdentity
from frontdesk.models.reply import ResponseTarget
from frontdesk.models.request import ChannelRequest
from frontdesk.models.session import CheckpointRef, SessionRecord
from frontdesk.serialization import codec, json_tree
from frontdesk_testing import strategies
from tests.examples import examples
from tests.models.codec_kit import all_nouns, picture

ADDED = {"shade": "red", "shapes": [{"$": "Invented", "x": 1}], "unknown_fields": "mine"}
SESSION = SessionRecord(session_id="s", owner="o", key="k", created_at=1.5, updated_at=2.5)


def parse_tree(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))["data"]


def record(tree: Any, version: Any = 1) -> bytes:
    return msgspec.json.encode({"v": version, "data": tree})


@pytest.mark.parametrize("kind", all_nouns(), ids=lambda kind: kind.__name__)
def test_a_field_of_a_newer_version_made_the_whole_record_unreadable(kind: type[StoredRecord]) -> None:
    @examples(8)
    @given(strategies.records(kind, strategies.values() | strategies.messages()))
    def check(noun: StoredRecord) -> None:
        newer = {**parse_tree(noun), **ADDED}
        read = codec.decode(record(newer))
        assert picture(msgspec.structs.replace(read, unknown_fields=None)) == picture(noun)
        assert parse_tree(read) == newer
        assert codec.to_json(read) == newer

    check()


def test_a_field_of_a_newer_version_was_dropped_when_an_older_one_wrote_the_record_again() -> None:
    point = {**parse_tree(CheckpointRef(session_id="s", checkpoint_id="c")), "epoch": 3}
    newer = {**parse_tree(SESSION), "checkpoint": point, "title": "Trip"}
    after = parse_tree(codec.decode(record(newer)).replace(turns=1, messages=2))
    assert after == {**newer, "turns": 1, "messages": 2}


def test_a_noun_with_such_fields_can_be_hashed_and_compared() -> None:
    tree = {**parse_tree(ResponseTarget.channels(["a"])), "urgency": {"a": [1]}}
    first, second = codec.from_json(tree), codec.from_json(tree)
    assert (first, hash(first)) == (second, hash(second))
    assert first != ResponseTarget.channels(["a"])


@examples(60)
@given(strategies.records(InboxItem), st.data())
def test_fields_added_anywhere_in_a_record_stay_in_it(item: InboxItem, data: st.DataObject) -> None:
    tree = parse_tree(item)
    nouns = [one for one in _objects(tree) if one.get("$") in codec.STORED_AS]
    for noun in data.draw(st.lists(st.sampled_from(nouns), min_size=1, max_size=3)):
        noun["added"] = data.draw(strategies.json_values())
    assert parse_tree(codec.decode(record(tree))) == tree


def _objects(tree: Any) -> list[dict[str, Any]]:
    if isinstance(tree, list):
        return [found for one in tree for found in _objects(one)]
    return [tree, *_objects(list(tree.values()))] if isinstance(tree, dict) else []


@pytest.mark.parametrize(
    "tree",
    [
        {"$": "Invented", "x": 1},
        [{"$": "user:not_registered_here", "value": {}}],
        {"$": "RunRecord", "run_id": "r", "owner": "o", "channel": "c", "status": "paused", "created_at": 1.5},
        {"$": "RunRecord", "run_id": "r", "owner": "o", "status": "completed", "created_at": 1.5},
        {"$": "SessionRecord", "session_id": 5},
        {"$": "Conversation"},
        {"$": "tuple", "items": [], "more": 1},
    ],
)
def test_what_a_newer_version_may_mean_was_taken_for_broken(tree: Any) -> None:
    with pytest.raises(UnreadableRecordError) as caught:
        codec.decode(record(tree))
    assert not isinstance(caught.value, BrokenRecordError)
    # It is shown to the caller, who may try again; what is wrong with the record is not.
    assert isinstance(caught.value, RequestError)
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "newer_record", 5.0)
    assert caught.value.reason not in caught.value.message


def test_an_envelope_may_grow() -> None:
    assert codec.decode(b'{"v":1,"data":5,"by":"0.9"}') == 5


@pytest.mark.parametrize(
    "value",
    [
        Content.from_text("hi"),
        Message("user", ["hi"], message_id="m"),
        {"a": [Content.from_function_call("1", "add", arguments={"a": 1})]},
    ],
)
def test_a_field_of_a_newer_framework_is_skipped(value: Any) -> None:
    tree = parse_tree(value)
    for one in _objects(tree):
        if "$" in one:
            one["sparkle"] = {"$": "Invented"}
    assert picture(codec.decode(record(tree))) == picture(value)


class TestARename:
    """A name in Python may change; what it is stored as may not."""

    @staticmethod
    def add(tag: str, kind: type[StoredRecord]) -> None:
        codec._add_record_type(tag, kind)

    def test_of_a_field_keeps_its_stored_name(self) -> None:
        class Trip(StoredRecord, frozen=True, kw_only=True, tag="Journey"):
            destination: str = msgspec.field(name="to")
            stops: tuple[str, ...] = msgspec.field(default=(), name="via")

        self.add("Journey", Trip)
        trip = Trip(destination="Oslo", stops=("Kiel",))
        assert parse_tree(trip) == {"$": "Journey", "to": "Oslo", "via": {"$": "tuple", "items": ["Kiel"]}}
        assert codec.decode(codec.encode(trip)) == trip
        # The Python name is no stored name: to a reader it is a field of another version.
        newer = {**parse_tree(trip), "destination": "Rome"}
        assert codec.from_json(newer).destination == "Oslo"
        assert parse_tree(codec.from_json(newer)) == newer
        with pytest.raises(CodecError, match="malformed"):
            codec.encode(trip.replace(destination=5))

    def test_of_a_field_refused_a_moment_before_1970(self) -> None:
        class Stay(StoredRecord, frozen=True, kw_only=True):
            guest: str = msgspec.field(name="who")
            since: float

        self.add("Stay", Stay)
        stay = Stay(guest="Ann", since=-1.5)
        assert parse_tree(stay) == {"$": "Stay", "who": "Ann", "since": -1.5}
        assert codec.decode(codec.encode(stay)) == stay

    def test_of_a_type_needs_its_old_tag(self) -> None:
        class Renamed(StoredRecord, frozen=True, kw_only=True):
            x: int

        with pytest.raises(CodecError, match="tag='Original'"):
            self.add("Original", Renamed)
        assert json_tree.get_name(Renamed) is None


def test_a_request_in_an_event_of_a_newer_version_keeps_its_fields_on_its_way() -> None:
    who = ChannelIdentity(channel="c", native_id="n")
    item = InboxItem(
        channel="c",
        event_id="e",
        conversation_id="v",
        caller=Caller(identity=who),
        request=ChannelRequest(channel="c", input="hi"),
        received_at=1.5,
    )
    tree = parse_tree(item)
    tree["request"]["urgent"] = True
    read = codec.decode(record(tree))
    assert parse_tree(read.request.replace(background=True)) == {**tree["request"], "background": True}


def test_a_conversation_keeps_what_it_does_not_know() -> None:
    tree = {**parse_tree(Conversation(conversation_id="c", owner="o", created_at=1.0)), "archived": True}
    assert parse_tree(codec.decode(record(tree)).replace(metadata={"a": "b"}))["archived"] is True
