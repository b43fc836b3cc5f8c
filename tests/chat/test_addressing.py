"""The whole table of which messages of a group are meant for us."""

from itertools import product
from typing import get_args

import pytest

from frontdesk.chat.inbound import accepts
from frontdesk.models.request import AcceptInGroup

# For each rule: a plain message, a command, a mention, a command with a mention.
IN_A_GROUP: dict[AcceptInGroup, tuple[bool, bool, bool, bool]] = {
    "mention_only": (False, False, True, True),
    "command_only": (False, True, False, True),
    "mention_or_command": (False, True, True, True),
    "all": (True, True, True, True),
}
KINDS = [(mentioned, command) for mentioned in (False, True) for command in (False, True)]


@pytest.mark.parametrize(
    ("rule", "kind", "expected"),
    [(rule, kind, meant) for rule, row in IN_A_GROUP.items() for kind, meant in zip(KINDS, row, strict=True)],
)
def test_in_a_group(rule: AcceptInGroup, kind: tuple[bool, bool], expected: bool) -> None:
    mentioned, command = kind
    assert accepts(rule, group=True, mentioned=mentioned, command=command) is expected


@pytest.mark.parametrize(("rule", "kind"), list(product(get_args(AcceptInGroup), KINDS)))
def test_in_a_direct_chat_everything_is_meant_for_us(rule: AcceptInGroup, kind: tuple[bool, bool]) -> None:
    mentioned, command = kind
    assert accepts(rule, group=False, mentioned=mentioned, command=command)


def test_every_rule_has_its_row() -> None:
    assert set(IN_A_GROUP) == set(get_args(AcceptInGroup))
