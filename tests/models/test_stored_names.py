"""Stored names are frozen: a name that was released is in `stored_names.json`, and may neither change nor disappear.

A new one is added there by hand: `python -m tests.models.test_stored_names` prints what there is.
"""

import inspect
import json
import re
import types
import typing
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec

from frontdesk.delivery import outbox, watchers
from frontdesk.inbox.dependencies import TASKS
from frontdesk.interfaces.store import ChangeKind, StateTransaction
from frontdesk.models.base import UNKNOWN
from frontdesk.models.file import SCHEME
from frontdesk.models.session import SessionRecord
from frontdesk.runners import procrastinate
from frontdesk.serialization import codec, framework_codec, json_tree
from frontdesk.stores.sql import background, files, sweeper
from frontdesk.stores.sql.migrations.schema import VERSION, backfills
from frontdesk.stores.sql.move.endpoints import read_shapes
from frontdesk.stores.sql.postgres import connections


def read_frozen() -> dict[str, Any]:
    """The names that were released, or are about to be."""
    return json.loads(Path(__file__).with_name("stored_names.json").read_text("utf-8"))


def literals(kind: Any) -> list[str]:
    """The words that a field can have, if it is one of a few."""
    if get_origin(kind) is Literal:
        return sorted(get_args(kind))
    if get_origin(kind) in (typing.Union, types.UnionType):
        return sorted(word for one in get_args(kind) for word in literals(one))
    return []


def records() -> dict[str, dict[str, list[str]]]:
    """Every tag with its fields, each with its words."""
    return {
        tag: {info.encode_name: literals(info.type) for info in msgspec.structs.fields(kind) if info.name != UNKNOWN}
        for tag, kind in codec.STORED_AS.items()
    }


def names() -> dict[str, Any]:
    """All names that are stored."""
    return {
        "format": codec.VERSION,
        "format_with_files": files.WITH_FILES,
        "file_scheme": SCHEME,
        "file_uses": list(sweeper.USES),
        "nouns": records(),
        "values": sorted([*_plain_tags(), *framework_codec.FORMS, *framework_codec.WORKFLOW_FORMS]),
        "tables": {shape.name: sorted(shape.columns) for shape in read_shapes(VERSION)},
        "backfills": sorted(backfills()),
        "tasks": [*TASKS.values(), outbox.TASK, watchers.TASK, procrastinate._CALL, procrastinate._QUEUE],
        "notices": [background.CHANNEL, *get_args(ChangeKind)],
        "locks": [connections.MIGRATIONS, procrastinate._MAKING],
    }


def _plain_tags() -> list[str]:
    return [tag for tag, kind in json_tree._types.items() if kind.__module__ in ("builtins", "datetime")]


def find_lost(frozen: Any, found: Any, at: str = "") -> list[str]:
    """What was frozen and is not there, or is something else."""
    if isinstance(frozen, dict) and isinstance(found, dict):
        return [name for key, value in frozen.items() for name in find_lost(value, found.get(key), f"{at}/{key}")]
    if isinstance(frozen, list) and isinstance(found, list):
        return [f"{at}/{one}" for one in frozen if one not in found]
    return [] if frozen == found else [at]


def test_no_stored_name_has_changed_or_disappeared() -> None:
    assert find_lost(read_frozen(), names()) == []


def test_every_stored_name_is_frozen() -> None:
    # One that is not listed could be changed after it was released, and nobody would see it.
    assert find_lost(names(), read_frozen()) == []


def test_the_comparison_sees_every_kind_of_change() -> None:
    found = names()
    found["nouns"]["SessionRecord"]["renamed"] = found["nouns"]["SessionRecord"].pop("unheard")
    found["nouns"]["RunRecord"]["status"].remove("incomplete")
    del found["nouns"]["Lease"]
    found["tables"]["inbox"].remove("data")
    found["tasks"].remove("answer")
    found["format"] = 2
    assert find_lost(read_frozen(), found) == [
        "/format",
        "/nouns/Lease",
        "/nouns/RunRecord/status/incomplete",
        "/nouns/SessionRecord/unheard",
        "/tables/inbox/data",
        "/tasks/answer",
    ]


def test_a_type_is_written_under_its_stored_name() -> None:
    for tag, kind in codec.STORED_AS.items():
        assert kind.__struct_config__.tag == tag
        assert json_tree.get_name(kind) == tag


WRITTEN_BY_WHOEVER_HOLDS_THE_LEASE = {
    *("session_id", "owner", "key", "created_at", "parent", "conversation_id"),  # when it is made
    *("updated_at", "turns", "messages", "state", "client_calls", "checkpoint", "shared_state"),  # by each turn
    *("unheard",),  # when an item of its conversation is deleted
}


def test_the_snapshot_that_a_turn_rewrites_holds_no_field_of_another_writer() -> None:
    """A field that is written without the session's lease (a title, what was seen) needs a table of its own."""
    assert set(records()["SessionRecord"]) == WRITTEN_BY_WHOEVER_HOLDS_THE_LEASE
    # The only way to write one asks for the lease, and no other call takes a part of one.
    takes = {
        name: typing.get_type_hints(call)
        for name, call in inspect.getmembers(StateTransaction, inspect.isfunction)
        if re.match(r"[a-z]", name)
    }
    writers = [name for name, hints in takes.items() if SessionRecord in hints.values()]
    assert writers == ["save_session"]
    assert "lease" in takes["save_session"]


def print_json(value: Any, depth: int = 0) -> str:
    """JSON with a line for each noun and each table."""
    if depth == 2 or not isinstance(value, dict):
        return json.dumps(value)
    lines = [f"{' ' * (depth + 1)}{json.dumps(key)}: {print_json(one, depth + 1)}" for key, one in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"


if __name__ == "__main__":
    print(print_json(names()))
